"""Friends of friends against slow definitions, other finders, hard cases, and every way of asking wrongly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import workbench as wb
from combinations import in_pairs
from workbench import backend
from workbench.clusters import sparse_cells


@st.composite
def particle_sets(draw: st.DrawFn) -> tuple[wb.Particles, float]:
    """Small random sets in every mode, on a lattice half of the time, so that distances tie with the linking length."""
    dimensions = draw(st.sampled_from([2, 3]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    count = draw(st.integers(1, 120))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([1e-12, 0.125, 1.0, 1e6]))
    unit = random.random((count, dimensions))
    if draw(st.booleans()):
        unit = np.floor(unit * 8) / 8
    if draw(st.booleans()):
        unit[:, 0] *= 0.03   # a thin slab: many cells along one axis, few along another
    stretch = draw(st.sampled_from([(1, 1, 1), (1, 4, 0.25)]))[:dimensions]
    positions = (unit * scale * np.array(stretch)).astype(dtype)
    length = draw(st.sampled_from([0.01, 0.03, 0.125, 0.17677669529663689, 0.3, 0.49, 0.5, 0.77, 1.3])) * scale
    box = draw(st.sampled_from(["open", "tight", "loose"]))
    if box == "open":
        return wb.Particles(positions), length
    periods = np.nextafter(np.array(stretch) * scale, np.inf) * (1 if box == "tight" else 1.7)
    return wb.Particles.wrapped(positions, periods), length


@given(particle_sets())
@settings(max_examples=400)
def test_labels_are_right(case: tuple[wb.Particles, float]) -> None:
    particles, length = case
    groups = wb.friends_of_friends(particles, length, unit="length")
    oracles.judge_labels(particles, length, groups.labels)


HARD = oracles.hard_cases()


@pytest.mark.few
@pytest.mark.parametrize("name", oracles.half_of(HARD))
def test_hard_cases(name: str) -> None:
    particles, length = HARD[name]
    labels = wb.friends_of_friends(particles, length, unit="length").labels
    if len(particles) <= 3000:
        oracles.judge_labels(particles, length, labels)
    else:
        np.testing.assert_array_equal(labels, oracles.scipy_labels(particles, length))


@pytest.fixture(scope="module")
def clustered() -> wb.Particles:
    return wb.synthetic.cosmic_web(n=32, seed=3)


@pytest.mark.parametrize(
    ("linking_length", "periodic", "dtype"), in_pairs([0.02, 0.2, 0.5, 1.1], [True, False], [np.float32, np.float64])
)
def test_clustered_snapshot_as_scipy(clustered: wb.Particles, linking_length: float, periodic: bool, dtype: type) -> None:
    particles = wb.Particles(clustered.positions.astype(dtype), clustered.box if periodic else None)
    groups = wb.friends_of_friends(particles, linking_length)
    np.testing.assert_array_equal(groups.labels, oracles.scipy_labels(particles, groups.linking_length))


def test_plane_as_scipy(clustered: wb.Particles) -> None:
    assert clustered.box is not None
    particles = wb.Particles(clustered.positions[:, :2], clustered.box[:2])
    groups = wb.friends_of_friends(particles, 0.4)
    np.testing.assert_array_equal(groups.labels, oracles.scipy_labels(particles, groups.linking_length))


def test_same_partition_as_kdcount(clustered: wb.Particles) -> None:
    cluster = pytest.importorskip("kdcount.cluster", reason="kdcount is not installed")
    models = pytest.importorskip("kdcount.models")
    groups = wb.friends_of_friends(clustered)
    dataset = models.dataset(clustered.positions.astype(np.float64), boxsize=np.array(clustered.box))
    theirs = cluster.fof(dataset, groups.linking_length, np=0).labels
    assert groups.equals(wb.Groups.from_labels(theirs, groups.linking_length))


def test_mock_galaxies_as_kdcount_found_them(shared_data) -> None:
    particles = wb.open(shared_data / "corrfunc_mr19/gals_Mr19.ff")
    groups = wb.friends_of_friends(particles, 0.2)
    assert groups.linking_length == pytest.approx(0.7827403223414, abs=1e-12)
    assert groups.count(20) == 2601
    assert groups.sizes[np.argsort(-groups.sizes)][:5].tolist() == [428, 414, 354, 295, 269]
    theirs = np.load(shared_data / "corrfunc_mr19/mr19_kdcount_fof_b0.2_min20.npz")["label"]
    big = groups.sizes >= 20
    in_big = np.isin(groups.labels, groups.ids[big])
    np.testing.assert_array_equal(in_big, theirs >= 0)
    ours_of_theirs = wb.Groups.from_labels(theirs[in_big], 0.2)
    assert ours_of_theirs.equals(wb.Groups.from_labels(groups.labels[in_big], 0.2))


def test_gadget_snapshot_as_published(shared_data) -> None:
    particles = wb.open(shared_data / "disperse_32/disperse_simu_32_id.gad")
    groups = wb.friends_of_friends(particles, 0.2)
    assert groups.linking_length == 312.5
    assert groups.count(20) == 136
    assert sorted(groups.sizes.tolist())[:-7:-1] == [894, 455, 380, 378, 361, 285]
    assert int(groups.sizes[groups.sizes >= 20].sum()) == 10_248
    alone = wb.friends_of_friends(wb.Particles(particles.positions), 312.5, unit="length")
    assert (alone.count(20), int(alone.sizes[alone.sizes >= 20].sum())) == (138, 10_175)   # what ignoring the box gives


def test_early_snapshot_has_no_groups(shared_data) -> None:
    particles = wb.open(shared_data / "hacc_nyx_toy/m000.full.mpicosmo.50")
    groups = wb.friends_of_friends(particles, 0.2)
    assert groups.linking_length == 1.6
    assert len(groups) == len(particles) == 32_768


def test_fluid_with_a_long_linking_length(shared_data) -> None:
    particles = wb.open(shared_data / "md_freud/rdf_benchmark.gsd")
    groups = wb.friends_of_friends(particles, 0.8)
    assert groups.sizes.max() == 14
    np.testing.assert_array_equal(groups.labels, oracles.scipy_labels(particles, groups.linking_length))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_nothing(clustered: wb.Particles, threads: int) -> None:
    expected = wb.friends_of_friends(clustered).labels
    with backend.using_threads(threads):
        np.testing.assert_array_equal(wb.friends_of_friends(clustered).labels, expected)


@pytest.mark.parametrize("chunks", [1, 2, 37, 100_000])
def test_chunks_change_nothing(clustered: wb.Particles, chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch on another machine would change: how many runs the particles and blocks are cut into."""
    expected = wb.friends_of_friends(clustered).labels
    monkeypatch.setattr(backend, "chunks", lambda count, array: max(1, min(chunks, count)))
    np.testing.assert_array_equal(wb.friends_of_friends(clustered).labels, expected)


@given(st.integers(0, 2**32), st.floats(0.05, 0.6))
@settings(max_examples=30)
def test_order_of_particles_changes_only_names(clustered: wb.Particles, seed: int, linking_length: float) -> None:
    shuffle = np.random.default_rng(seed).permutation(len(clustered))
    groups = wb.friends_of_friends(clustered, linking_length)
    shuffled = wb.friends_of_friends(clustered.select(shuffle), linking_length)
    assert shuffled.equals(wb.Groups.from_labels(groups.labels[shuffle], groups.linking_length))


def test_longer_links_only_merge(clustered: wb.Particles) -> None:
    finer = wb.friends_of_friends(clustered, 0.15)
    coarser = wb.friends_of_friends(clustered, 0.2)
    np.testing.assert_array_equal(coarser.labels[finer.labels], coarser.labels)


def test_dense_pairs_are_decided_by_trees() -> None:
    """Two dense shells almost touching: a sample finds no friends, the trees find the single pair that are."""
    random = np.random.default_rng(0)
    shell = random.normal(size=(4000, 3))
    shell *= 0.05 / np.linalg.norm(shell, axis=1, keepdims=True)
    apart = np.concatenate([shell, shell + np.array([0.3, 0, 0])])
    joined = np.concatenate([apart, [[0.05, 0, 0], [0.25, 0, 0]]])
    for positions, groups in ((apart, 2), (joined, 1)):
        for particles in (wb.Particles(positions), wb.Particles.wrapped(positions - [0.15, 0, 0], box=1.0)):
            found = wb.friends_of_friends(particles, 0.2000001, unit="length")
            assert len(found) == groups


@pytest.mark.slow
@pytest.mark.parametrize("excess", [-1e-9, 1e-9])
def test_sheets_of_many_particles_just_apart(excess: float) -> None:
    """A quadratic search would look at 10^10 pairs here."""
    random = np.random.default_rng(1)
    sheets = random.random((200_000, 3)) * [0.3, 0.3, 0]
    sheets[100_000:, 2] = 0.2 + excess
    sheets[100_000:, :2] = sheets[:100_000, :2]
    assert len(wb.friends_of_friends(wb.Particles(sheets), 0.2, unit="length")) == (1 if excess < 0 else 2)


def test_memory_per_particle() -> None:
    """At most 100 bytes a particle beyond the positions, labels included."""
    import tracemalloc

    particles = wb.synthetic.cosmic_web(n=32, seed=1)
    wb.friends_of_friends(particles)
    tracemalloc.start()
    wb.friends_of_friends(particles)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    fixed = 400_000   # tables and counters that do not grow with the particles
    assert peak - fixed <= 100 * len(particles)


ONE = wb.Particles([[0.5, 0.5, 0.5]], box=1.0)


@pytest.mark.parametrize(
    ("linking_length", "unit", "message"),
    [
        (-0.2, "spacing", "linking_length must be positive and finite; got -0.2"),
        (0, "spacing", "linking_length must be positive and finite; got 0"),
        (float("nan"), "length", "linking_length must be positive and finite; got nan"),
        (float("inf"), "length", "linking_length must be positive and finite; got inf"),
        ("0.2", "length", "linking_length must be a number; got '0.2'"),
        (True, "length", "linking_length must be a number; got True"),
        (0.2, "mpc", "unit must be one of spacing, length; got 'mpc'"),
        (1e-200, "length", "must lie between 1e-150 and 1e150"),
        (1e-12, "length", "linking_length must be at least about 3.76e-09 in a box of 1"),
    ],
)
def test_wrong_arguments_are_refused(linking_length: float, unit: str, message: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=message.replace("(", r"\(")):
        wb.friends_of_friends(ONE, linking_length, unit=unit)


def test_smallest_linking_length_named_in_the_error_works() -> None:
    with pytest.raises(wb.WorkbenchError) as refused:
        wb.friends_of_friends(ONE, 1e-12, unit="length")
    least = float(str(refused.value).split("at least about ")[1].split()[0])
    assert len(wb.friends_of_friends(ONE, least, unit="length")) == 1


def test_spacing_needs_a_volume() -> None:
    flat = wb.Particles([[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    with pytest.raises(wb.WorkbenchError, match='give unit="length"'):
        wb.friends_of_friends(flat, 0.2)
    assert len(wb.friends_of_friends(flat, 2.0, unit="length")) == 1


@pytest.mark.parametrize("length", [0.4, 0.5, 0.8660254, 0.9, 1.0, 50.0])
def test_linking_length_beyond_the_box(length: float) -> None:
    """Every linking length is allowed: the nearest image decides, however large it is."""
    particles = wb.Particles(np.random.default_rng(5).random((40, 3)), box=1.0)
    groups = wb.friends_of_friends(particles, length, unit="length")
    oracles.judge_labels(particles, length, groups.labels)


@given(st.integers(0, 2**32), st.sampled_from([2, 3]), st.sampled_from([1e-7, 1e-8]), st.booleans())
@settings(max_examples=60)
def test_links_far_shorter_than_the_space(seed: int, dimensions: int, length: float, periodic: bool) -> None:
    """A regular grid would have more cells than keys; some tight clumps sit across a face or corner of the box."""
    random = np.random.default_rng(seed)
    centres = random.random((20, dimensions)) * random.integers(0, 2, (20, dimensions))
    positions = np.repeat(centres, 4, axis=0) + random.uniform(-length, length, (80, dimensions))
    particles = wb.Particles.wrapped(positions, box=1.0) if periodic else wb.Particles(positions)
    oracles.judge_labels(particles, length, wb.friends_of_friends(particles, length, unit="length").labels)


@pytest.mark.parametrize("far", [1e5, 1e9, 1e15, 1e300])
def test_a_stray_particle_changes_nothing(far: float) -> None:
    positions = np.random.default_rng(0).random((300, 3))
    expected = wb.friends_of_friends(wb.Particles(positions), 0.1, unit="length").labels
    strayed = np.concatenate([positions, [[far, -far, 0.5]]])
    labels = wb.friends_of_friends(wb.Particles(strayed), 0.1, unit="length").labels
    np.testing.assert_array_equal(labels, [*expected, 300])


@pytest.mark.parametrize(("limit", "message"), [("MOST_CELLS", "space without gaps"), ("KEY_BITS", "64-bit cell keys")])
def test_more_cells_than_numbers_is_refused(limit: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes billions of particles in earnest, so the limits are lowered here."""
    monkeypatch.setattr(sparse_cells, limit, 40)
    positions = np.linspace(0, 1e12, 2000)[:, None] + np.linspace(0, 1, 200)[:, None, None]
    with pytest.raises(wb.WorkbenchError, match=f"linking_length must be at least about .*{message}"):
        wb.friends_of_friends(wb.Particles(positions.reshape(-1, 1) * [1, 1, 1]), 0.01, unit="length")


def test_what_is_no_set_of_particles_is_refused_with_a_way_out():
    archive = wb.compress(wb.Particles(np.random.default_rng(0).random((9, 3)), 1.0), wb.Absolute(0.01))
    with pytest.raises(wb.WorkbenchError, match=r"got Archive\(9 particles.*: give archive.decompress\(\)"):
        wb.friends_of_friends(archive)
    with pytest.raises(wb.WorkbenchError, match=r"got an array of float32 with shape \(9, 3\): give wb.Particles\(pos"):
        wb.friends_of_friends(np.zeros((9, 3), np.float32))
    with pytest.raises(wb.WorkbenchError, match=r"needs Particles; got Field\(3, float64\)"):
        wb.friends_of_friends(wb.Field(np.zeros(3)))
