"""k-means against its plain definition, on any machine and in any order of work."""

import itertools
import math
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fake_cupy
import workbench as wb
from workbench import backend
from workbench.clusters.kmeans_centres import Sums
from workbench.clusters.kmeans_seeding import seeded_centres
from workbench.errors import WorkbenchError


def squared_distances(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """As the definition says: eight partial sums over the axes in double, folded."""
    apart = (points[:, None].astype(np.float64) - centres[None].astype(np.float64)) ** 2
    missing = -apart.shape[2] % 8
    parts = np.concatenate([apart, np.zeros((*apart.shape[:2], missing))], axis=2).reshape(*apart.shape[:2], -1, 8)
    sums = np.zeros((*apart.shape[:2], 8))
    for group in range(parts.shape[2]):
        sums += parts[:, :, group]
    for width in (4, 2, 1):
        sums = sums[:, :, :width] + sums[:, :, width : 2 * width]
    return sums[:, :, 0]


def by_definition(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return squared_distances(points, centres).argmin(axis=1)


@st.composite
def clouds(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Points of many kinds: clumps, lattices with ties, copies of few points, far from the origin, tiny and huge."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, axes = draw(st.integers(1, 200)), draw(st.integers(1, 20))
    k = draw(st.integers(1, min(count, 70)))
    kind = draw(st.sampled_from(["normal", "clumps", "lattice", "copies", "far", "tiny", "huge", "line"]))
    points = random.normal(size=(count, axes))
    match kind:
        case "clumps":
            points = 5 * random.normal(size=(k, axes))[random.integers(0, k, count)] + 0.1 * points
        case "lattice":
            points = random.integers(-2, 3, (count, axes)).astype(np.float64)
        case "copies":
            points = points[random.integers(0, max(count // 10, 1), count)]
        case "far":
            points += 1e5
        case "tiny":
            points *= 1e-24
        case "huge":
            points *= 1e15
        case "line":
            points[:, 1:] = 0.1
    return points.astype(draw(st.sampled_from([np.float32, np.float64]))), k


@given(clouds(), st.booleans())
@settings(max_examples=100)
def test_every_label_is_that_of_the_nearest_centre(cloud: tuple[np.ndarray, int], protect: bool) -> None:
    points, k = cloud
    found = wb.clusters.kmeans(points, k, seed=3, max_iterations=4, protect=protect)
    np.testing.assert_array_equal(found.labels, by_definition(points, found.centres))
    np.testing.assert_array_equal(found.sizes, np.bincount(found.labels, minlength=k))
    own = squared_distances(points, found.centres)[np.arange(len(points)), found.labels]
    assert found.inertia == math.fsum(own)
    assert found.centres.dtype == points.dtype
    if found.integrity is not None:
        assert (found.integrity.corrected, found.integrity.recomputed) == (0, 0)


@given(clouds())
@settings(max_examples=60)
def test_centres_are_means_and_inertia_falls(cloud: tuple[np.ndarray, int]) -> None:
    points, k = cloud
    last = math.inf
    centres = points[:k].copy()
    for _ in range(5):
        step = wb.clusters.kmeans(points, k, initial=centres, max_iterations=1)
        before = by_definition(points, centres)
        largest = float(abs(points).max())
        for cluster in range(k):
            members = points[before == cluster].astype(np.longdouble)
            if len(members):
                error = abs(step.centres[cluster] - members.mean(axis=0)).max()
                assert error <= 2 * largest * np.finfo(points.dtype).eps
        assert step.inertia <= last * (1 + 1e-5) + 1e-5 * largest**2 * points.size
        last, centres = step.inertia, step.centres


def test_sums_are_exact_and_forget_nothing() -> None:
    random = np.random.default_rng(1)
    points = random.integers(-1000, 1000, (5000, 3)).astype(np.float64)
    sums, labels = Sums(points, 7), np.full(5000, -1, np.int32)
    for _ in range(5):
        new = random.integers(0, 7, 5000).astype(np.int32)
        sums.move(labels, new)
        labels = new
    for cluster in range(7):
        assert (sums.sums[cluster] / sums.scale).tolist() == points[labels == cluster].sum(axis=0).tolist()
    np.testing.assert_array_equal(sums.counts, np.bincount(labels, minlength=7))


def test_points_that_share_the_sums_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(2).normal(size=(3000, 5)).astype(np.float32)
    alone = wb.clusters.kmeans(points, 20, seed=1)
    monkeypatch.setattr("workbench.clusters.kmeans_centres._ROOM", 0)
    shared = wb.clusters.kmeans(points, 20, seed=1)
    assert alone.centres.tobytes() == shared.centres.tobytes()
    assert alone.iterations == shared.iterations


# Seeding.

def test_seeding_draws_in_proportion_to_the_squared_distance() -> None:
    points = np.array([[0.0], [1.0], [3.0]])
    wanted = {0: {1: 1 / 10, 2: 9 / 10}, 1: {0: 1 / 5, 2: 4 / 5}, 2: {0: 9 / 13, 1: 4 / 13}}
    draws = 2500
    seen = np.zeros((3, 3))
    for seed in range(draws):
        first, second = seeded_centres(points, 2, seed)[:, 0]
        seen[int(first > 0) + int(first > 1), int(second > 0) + int(second > 1)] += 1
    np.testing.assert_allclose(seen.sum(axis=1) / draws, 1 / 3, atol=0.05)
    for first, shares in wanted.items():
        for second, share in shares.items():
            assert seen[first, second] / seen[first].sum() == pytest.approx(share, abs=0.06)


@given(clouds(), st.integers(0, 2**63 - 1))
@settings(max_examples=60)
def test_seeding_by_the_triangle_inequality_leaves_nothing_out(cloud: tuple[np.ndarray, int], seed: int) -> None:
    points, k = cloud
    fast = seeded_centres(points, k, seed)
    np.testing.assert_array_equal(fast, slow_seeding(points, k, seed))


def slow_seeding(points: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The same draws from all distances, with whole-number weights of any length."""
    chosen: list[int] = []
    for number in range(k):
        draw = np.random.Generator(np.random.Philox(key=[seed, number]))
        near = squared_distances(points, points[chosen]).min(axis=1) if chosen else np.zeros(len(points))
        if not near.max() > 0:
            chosen.append(int(draw.integers(len(points))))
            continue
        scale = 2.0 ** min(62 - len(points).bit_length() - math.frexp(near.max())[1], 1000)
        running = list(itertools.accumulate(int(d * scale) for d in near))
        target = int(draw.integers(running[-1]))
        chosen.append(next(i for i, total in enumerate(running) if total > target))
    return points[chosen]


# Empty clusters, ends.

def test_an_empty_cluster_goes_to_the_farthest_point() -> None:
    points = np.array([[0.0], [1.0], [2.0], [10.0]])
    found = wb.clusters.kmeans(points, 2, initial=[[0.0], [1e6]])
    assert found.sizes.tolist() == [3, 1]
    assert found.centres.tolist() == [[1.0], [10.0]]
    assert found.converged


def test_more_clusters_than_different_points_leaves_some_empty() -> None:
    found = wb.clusters.kmeans(np.repeat([[1.0, 2.0], [3.0, 4.0]], 10, axis=0), 5)
    assert found.inertia == 0
    assert found.sizes.sum() == 20
    assert (found.sizes > 0).sum() == 2
    assert found.converged


def test_one_cluster_is_the_mean_and_one_per_point_has_no_inertia() -> None:
    points = np.random.default_rng(0).normal(size=(50, 4))
    np.testing.assert_allclose(wb.clusters.kmeans(points, 1).centres[0], points.mean(axis=0), atol=1e-14)
    assert wb.clusters.kmeans(points, 50).inertia < 1e-28


def test_it_ends_early_when_asked() -> None:
    points = np.random.default_rng(0).normal(size=(2000, 4))
    whole = wb.clusters.kmeans(points, 10)
    assert whole.converged
    assert wb.clusters.kmeans(points, 10, tolerance=0.1).iterations < whole.iterations
    assert not wb.clusters.kmeans(points, 10, max_iterations=2).converged


def test_known_clumps_are_found() -> None:
    random = np.random.default_rng(5)
    centres = 100 * random.normal(size=(12, 6))
    truth = random.integers(0, 12, 4000)
    points = (centres[truth] + random.normal(size=(4000, 6))).astype(np.float32)
    best = min((wb.clusters.kmeans(points, 12, seed=seed) for seed in range(5)), key=lambda found: found.inertia)
    assert len({(a, b) for a, b in zip(best.labels.tolist(), truth.tolist(), strict=True)}) == 12


def test_scipy_comes_to_the_same_centres() -> None:
    vq = pytest.importorskip("scipy.cluster.vq")
    points = np.random.default_rng(6).normal(size=(3000, 5))
    start = points[:8]
    ours = wb.clusters.kmeans(points, 8, initial=start, max_iterations=20)
    theirs, labels = vq.kmeans2(points, start, iter=20, minit="matrix", missing="raise")
    np.testing.assert_allclose(ours.centres, theirs, rtol=1e-9)
    assert (by_definition(points, theirs) != ours.labels).mean() < 0.001
    assert len(labels) == len(points)


# Machines.

@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("protect", [False, True])
def test_a_gpu_gives_the_same(stand_in: ModuleType, dtype: type, protect: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(7).normal(size=(1500, 9)).astype(dtype)
    here = wb.clusters.kmeans(points, 30, seed=2, protect=protect)
    monkeypatch.setattr(backend, "constant", fake_cupy.constant)   # the sizes of blocks may be the CPU's
    there = wb.clusters.kmeans(stand_in.asarray(points), 30, seed=2, protect=protect)
    assert type(there.labels) is type(there.centres) is fake_cupy.ndarray
    np.testing.assert_array_equal(there.labels.get(), here.labels)
    np.testing.assert_array_equal(there.centres.get(), here.centres)
    assert (there.inertia, there.iterations) == (here.inertia, here.iterations)
    assert "assign_and_check" in " ".join(fake_cupy.Function.launches) or not protect


def test_the_number_of_threads_changes_nothing() -> None:
    points = np.random.default_rng(8).normal(size=(5000, 3)).astype(np.float32)
    results = []
    for threads in (1, 2, 5):
        with backend.using_threads(threads):
            results.append(wb.clusters.kmeans(points, 40, seed=1, protect=True))
    assert len({found.centres.tobytes() + found.labels.tobytes() for found in results}) == 1


# Bad input.

@pytest.mark.parametrize(
    ("given_points", "k", "options", "message"),
    [
        (np.zeros(5), 1, {}, r"non-empty array \(N, D\)"),
        (np.zeros((0, 3)), 1, {}, "non-empty"),
        (np.zeros((5, 3), complex), 1, {}, "float32 or float64; got complex128"),
        (np.full((5, 3), np.nan), 1, {}, "must be finite"),
        (np.full((5, 3), np.inf), 1, {}, "must be finite"),
        (np.full((5, 3), 1e30, np.float32), 1, {}, "squares overflow; got 1e[+]30: divide points"),
        (np.full((5, 3), 1e-300), 1, {"initial": np.full((1, 3), 1e100)}, "initial must lie near the points"),
        (np.zeros((5, 3)), 0, {}, "k must be a whole number, between 1 and 5"),
        (np.zeros((5, 3)), 6, {}, "between 1 and 5; got 6"),
        (np.zeros((5, 3)), 2.5, {}, "got 2.5"),
        (np.zeros((5, 3)), 2, {"seed": -1}, "seed"),
        (np.zeros((5, 3)), 2, {"max_iterations": 0}, "max_iterations"),
        (np.zeros((5, 3)), 2, {"tolerance": -1.0}, "tolerance"),
        (np.zeros((5, 3)), 2, {"tolerance": math.nan}, "tolerance"),
        (np.zeros((5, 3)), 2, {"initial": np.zeros((3, 3))}, r"initial must have shape \(2, 3\)"),
        (np.zeros((5, 3)), 2, {"initial": np.full((2, 3), np.nan)}, "initial must be finite"),
    ],
)
def test_bad_input_is_refused(given_points: np.ndarray, k: int, options: dict, message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        wb.clusters.kmeans(given_points, k, **options)


def test_particles_are_refused_with_what_to_do() -> None:
    with pytest.raises(WorkbenchError, match=r"give particles\.positions"):
        wb.clusters.kmeans(wb.Particles(np.zeros((3, 3))), 1)


def test_whole_numbers_and_strided_arrays_are_taken() -> None:
    points = np.arange(40).reshape(20, 2)
    expected = wb.clusters.kmeans(points.astype(np.float64), 3)
    assert wb.clusters.kmeans(points, 3).inertia == expected.inertia
    wide = np.zeros((20, 4))
    wide[:, ::2] = points
    assert wb.clusters.kmeans(wide[:, ::2], 3).inertia == expected.inertia


def test_masked_points_are_refused():
    points = np.ma.masked_less(np.random.default_rng(0).random((10, 2)), 0.3)
    with pytest.raises(WorkbenchError, match=r"points must have no masked entries; got .* leave those points out"):
        wb.clusters.kmeans(points, 2)


@pytest.mark.parametrize("seed", range(5))
def test_first_centres_are_points_also_where_no_squared_distance_can_be_weighed(seed: int) -> None:
    """A point after the last one was drawn, where all squared distances were below 2^-1000."""
    points = np.random.default_rng(seed).normal(size=(53, 2)) * 1e-160
    found = wb.clusters.kmeans(points, 10, seed=seed)
    assert (abs(found.centres) <= abs(points).max()).all()
    assert found.inertia < 1e-300
