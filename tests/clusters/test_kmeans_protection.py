"""Faults in k-means: found, corrected, and without effect on labels; without faults, no alarm."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from combinations import in_pairs
from workbench.clusters import Integrity, ProductFlips, SumFlip
from workbench.clusters.kmeans import Kmeans
from workbench.errors import WorkbenchError

EXPONENT = {np.dtype(np.float32): (23, 31), np.dtype(np.float64): (52, 63)}


def clumps(count: int, axes: int, k: int, dtype: type, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = 2 * random.normal(size=(k, axes))
    return (centres[random.integers(0, k, count)] + random.normal(size=(count, axes))).astype(dtype)


def flips(points: np.ndarray, k: int, number: int, bits: tuple[int, int], seed: object) -> ProductFlips:
    """Random flips of these bits (the second excluded), in any product after any axis."""
    random = np.random.default_rng(seed)
    return ProductFlips(
        random.integers(0, len(points), number), centre=random.integers(0, k, number),
        bit=random.integers(*bits, number), axis=random.integers(0, points.shape[1], number),
    )


def same(a: Kmeans, b: Kmeans) -> bool:
    return a.labels.tobytes() + a.centres.tobytes() == b.labels.tobytes() + b.centres.tobytes() and a.inertia == b.inertia


@pytest.mark.parametrize(("shape", "dtype"), in_pairs([(64, 64), (3, 40), (17, 33)], [np.float32, np.float64]))
def test_ten_thousand_exponent_flips_in_each_iteration_change_no_label(shape: tuple[int, int], dtype: type) -> None:
    axes, k = shape
    points = clumps(20_000, axes, k, dtype)
    clean = wb.clusters.kmeans(points, k, seed=1, max_iterations=4)
    bits = EXPONENT[points.dtype]

    def faults(iteration: int) -> list[ProductFlips]:
        return [flips(points, k, 10_000, bits, (iteration, axes))]

    unprotected = wb.clusters.kmeans(points, k, seed=1, max_iterations=4, faults=faults)
    protected = wb.clusters.kmeans(points, k, seed=1, max_iterations=4, faults=faults, protect=True)
    assert not np.array_equal(unprotected.labels, clean.labels)   # the faults matter
    assert same(protected, clean)
    assert protected.integrity is not None
    assert protected.integrity.corrected > 20_000


@given(st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]), st.integers(0, 63), st.integers(1, 40))
@settings(max_examples=40)
def test_one_flip_of_any_bit_changes_no_label(seed: int, dtype: type, bit: int, axes: int) -> None:
    points = clumps(700, axes, 20, dtype, seed)
    bit %= 8 * points.dtype.itemsize
    clean = wb.clusters.kmeans(points, 20, seed=1, max_iterations=2)

    def faults(iteration: int) -> list[ProductFlips]:
        return [flips(points, 20, 1, (bit, bit + 1), (seed, iteration))]

    assert same(wb.clusters.kmeans(points, 20, seed=1, max_iterations=2, faults=faults, protect=True), clean)


def test_a_flip_is_counted_once() -> None:
    points = clumps(1000, 8, 10, np.float32)
    strike = ProductFlips([500], centre=[3], bit=[30])
    found = wb.clusters.kmeans(points, 10, max_iterations=1, protect=True, faults=lambda i: [strike] if i == 1 else [])
    assert found.integrity is not None
    assert (found.integrity.detected, found.integrity.corrected) == (1, 1)


def test_not_a_number_becomes_no_label() -> None:
    """The flip of the highest exponent bit of 1.5 is not a number: it must neither win nor hide the right centre."""
    points = np.full((64, 1), 1.5, np.float32)
    points[32:] = -1.5
    start = np.array([[1.0], [-1.0]], np.float32)
    clean = wb.clusters.kmeans(points, 2, initial=start, max_iterations=1)
    strike = ProductFlips([0, 1, 40], centre=[0, 1, 1], bit=[30, 30, 30])
    found = wb.clusters.kmeans(points, 2, initial=start, max_iterations=1, protect=True, faults=lambda i: [strike])
    assert same(found, clean)


def test_there_is_no_false_alarm_in_100_000_checks() -> None:
    checks = 0
    for seed, (dtype, (axes, k)) in enumerate(itertools.product((np.float32, np.float64), ((64, 64), (3, 64), (17, 50)))):
        points = clumps(20_000, axes, k, dtype, seed)
        integrity = wb.clusters.kmeans(points, k, seed=seed, max_iterations=3, protect=True).integrity
        assert integrity is not None
        assert (integrity.detected, integrity.corrected, integrity.recomputed) == (0, 0, 0)
        checks += integrity.checks
    assert checks > 100_000


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axes", [3, 20])
def test_there_is_no_false_alarm_far_from_the_origin(dtype: type, axes: int) -> None:
    points = clumps(30_000, axes, 40, dtype) + dtype(50)
    integrity = wb.clusters.kmeans(points, 40, max_iterations=2, protect=True).integrity
    assert integrity is not None
    assert (integrity.detected, integrity.corrected) == (0, 0)


@pytest.mark.parametrize("points", [
    np.full((5000, 40), 0.1, np.float32),                                            # all rounding errors alike
    np.repeat(np.linspace(0, 1, 50, dtype=np.float32), 4000).reshape(5000, 40),
    np.float32(1e4) + np.random.default_rng(0).normal(size=(5000, 40)).astype(np.float32),
])
def test_where_round_off_is_not_random_nothing_is_changed(points: np.ndarray) -> None:
    clean = wb.clusters.kmeans(points, 7, max_iterations=3)
    protected = wb.clusters.kmeans(points, 7, max_iterations=3, protect=True)
    assert protected.integrity is not None
    assert (protected.integrity.detected, protected.integrity.corrected) == (0, 0)
    assert same(clean, protected)


# The centre update.

@pytest.mark.parametrize("bit", [0, 20, 40, 62, 63])
def test_a_flip_in_a_sum_is_undone(bit: int) -> None:
    points = clumps(3000, 5, 12, np.float64)
    clean = wb.clusters.kmeans(points, 12, max_iterations=5)

    def faults(iteration: int) -> list[SumFlip]:
        return [SumFlip(cluster=4, axis=2, bit=bit)] if iteration == 2 else []

    protected = wb.clusters.kmeans(points, 12, max_iterations=5, faults=faults, protect=True)
    assert same(protected, clean)
    assert protected.integrity is not None
    assert protected.integrity.recomputed == 1


def test_an_unprotected_sum_keeps_the_flip() -> None:
    points = clumps(3000, 5, 12, np.float64)
    struck = wb.clusters.kmeans(points, 12, max_iterations=1, faults=lambda i: [SumFlip(4, 2, 61)] if i else [])
    assert not same(struck, wb.clusters.kmeans(points, 12, max_iterations=1))


# The hook.

def test_only_protected_runs_report() -> None:
    points = clumps(300, 3, 4, np.float32)
    assert wb.clusters.kmeans(points, 4).integrity is None
    integrity = wb.clusters.kmeans(points, 4, protect=True).integrity
    assert isinstance(integrity, Integrity)
    assert integrity.checks > 0
    assert dataclasses.asdict(integrity)["detected"] == 0


@pytest.mark.parametrize(("strike", "message"), [
    (ProductFlips([300], centre=[0], bit=[0]), "point of a flip must be less than 300; got 300"),
    (ProductFlips([0], centre=[4], bit=[0]), "centre of a flip must be less than 4"),
    (ProductFlips([0], centre=[0], bit=[32]), "bit of a flip must be less than 32"),
    (ProductFlips([0], centre=[0], bit=[0], axis=[3]), "axis of a flip must be less than 3"),
    (ProductFlips([0, -1], centre=[0, 0], bit=[0, 0]), "got -1 to 0"),
    (SumFlip(9, 0, 0), "4 clusters, 3 axes and 64 bits"),
])
def test_flips_that_hit_nothing_are_refused(strike: ProductFlips | SumFlip, message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        wb.clusters.kmeans(clumps(300, 3, 4, np.float32), 4, faults=lambda _: [strike])


def test_flips_are_rows_of_one_length() -> None:
    with pytest.raises(WorkbenchError, match="one entry per flip each; got point 2, centre 1"):
        ProductFlips([0, 1], centre=[0], bit=[0])
    with pytest.raises(WorkbenchError, match="bit of flips must be a row of whole numbers; got float64"):
        ProductFlips([0], centre=[0], bit=[0.5])
    strike = ProductFlips([0], centre=[0], bit=[0])
    with pytest.raises(WorkbenchError, match="one ProductFlips per iteration; got 2"):
        wb.clusters.kmeans(clumps(300, 3, 4, np.float32), 4, faults=lambda _: [strike, strike])


@pytest.mark.parametrize(("dtype", "exponent"), [(np.float32, -51), (np.float32, -99), (np.float64, -900)])
@pytest.mark.parametrize("start", ["seeded", "given"])
def test_points_whose_checksums_would_underflow_are_grouped_in_another_unit(dtype: type, exponent: int, start: str) -> None:
    points = clumps(200, 3, 4, dtype)
    points /= dtype(2.0 ** np.ceil(np.log2(abs(points).max())))
    tiny = np.ldexp(points, exponent)
    initial, small = (points[:4], tiny[:4]) if start == "given" else (None, None)
    usual = wb.clusters.kmeans(points, 4, protect=True, initial=initial)
    found = wb.clusters.kmeans(tiny, 4, protect=True, initial=small)
    assert found.labels.tolist() == usual.labels.tolist()
    assert np.ldexp(found.centres, -exponent).tolist() == usual.centres.tolist()
    assert found.inertia == np.ldexp(usual.inertia, 2 * exponent)
    assert found.integrity == usual.integrity
    assert wb.clusters.kmeans(np.zeros((9, 2), dtype), 1, protect=True).inertia == 0
