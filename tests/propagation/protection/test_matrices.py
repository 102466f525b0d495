"""Products with checksums: every fault above the threshold is corrected, and no correct element is changed."""

from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fake_cupy
from workbench.errors import WorkbenchError
from workbench.propagation.protection import Findings, protected_matmul
from workbench.propagation.protection.matrices import _Sums, column_sums

KINDS = ["normal", "positive", "constant", "rows alike", "wide range", "tiny", "sparse", "whole", "ramp"]


def matrix(kind: str, shape: tuple[int, int], dtype: type, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.normal(size=shape)
    match kind:
        case "positive":
            values = random.random(shape)
        case "constant":
            values = np.full(shape, 0.1)
        case "rows alike":
            values = np.repeat(values[:1], shape[0], axis=0)
        case "wide range":
            values = values * 10.0 ** random.uniform(-8, 8, shape)
        case "tiny":
            values = values * (1e-25 if dtype == np.float32 else 1e-170)
        case "sparse":
            values = values * (random.random(shape) < 0.05)
        case "whole":
            values = np.rint(9 * values)
        case "ramp":
            values = np.linspace(0, 1, shape[0] * shape[1]).reshape(shape)
    return values.astype(dtype)


@st.composite
def factors(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    n, m, k = (draw(st.integers(1, 150)) for _ in range(3))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    seed = draw(st.integers(0, 2**32))
    left, right = draw(st.sampled_from(KINDS)), draw(st.sampled_from(KINDS))
    return matrix(left, (n, m), dtype, seed), matrix(right, (m, k), dtype, seed + 1)


class Once:
    """A product that is wrong the first time."""

    def __init__(self, faulty: np.ndarray) -> None:
        self.results = [faulty]

    def __call__(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.results.pop() if self.results else a @ b


def struck(c: np.ndarray, row: int, column: int, bit: int) -> np.ndarray:
    """The product with one bit flipped."""
    c = c.copy()
    c.view(f"u{c.itemsize}")[row, column] ^= np.array(1 << bit, f"u{c.itemsize}")
    return c


@given(factors())
@settings(max_examples=80)
def test_without_faults_nothing_is_changed(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    c, found = protected_matmul(a, b)
    assert c.tobytes() == (a @ b).tobytes()
    assert (found.checks, found.corrected, found.unchecked) == (b.shape[1], 0, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["normal", "positive", "wide range", "tiny", "sparse", "whole", "ramp"])
def test_there_is_no_false_alarm_where_round_off_is_random(kind: str, dtype: type) -> None:
    found = Findings()
    for seed in range(4):
        left = matrix(kind, (120, 200), dtype, seed)
        found += protected_matmul(left, matrix("normal", (200, 500), dtype, seed + 100))[1]
    assert found == Findings(checks=2000)


@given(factors(), st.data())
@settings(max_examples=80)
def test_every_flip_above_the_threshold_is_corrected(pair: tuple[np.ndarray, np.ndarray], data: st.DataObject) -> None:
    a, b = pair
    clean = a @ b
    row, column = data.draw(st.integers(0, len(a) - 1)), data.draw(st.integers(0, b.shape[1] - 1))
    faulty = struck(clean, row, column, data.draw(st.integers(0, 8 * clean.itemsize - 1)))
    with np.errstate(all="ignore"):
        off = abs(np.longdouble(faulty[row, column]) - np.longdouble(clean[row, column]))
        sums = _Sums(a, b)
        above = not off <= np.longdouble(2 * sums.threshold[column])
        above &= column not in sums.suspects(clean)   # equal numbers round equally, and a fault may cancel their round-off
        c, found = protected_matmul(a, b, product=Once(faulty))
    assert (c != clean).sum() <= 1   # only the struck one may differ, and then within round-off
    if above:
        assert found.detected >= 1
        in_double = a.shape[1] * 2.0**-52 * float(abs(a[row]).astype(np.float64) @ abs(b[:, column]))
        allowed = Fraction(in_double) + Fraction(float(np.spacing(abs(clean[row, column]))))
        assert error_of(c, a, b, row, column) <= error_of(clean, a, b, row, column) + allowed
    if not (found.detected or found.recomputed):   # a suspect column is computed again and replaced
        assert c.tobytes() == faulty.tobytes()


@pytest.mark.parametrize(("shape", "value"), [((21, 27, 20), 1 / 3), ((87, 147, 99), 0.7), ((136, 13, 145), 9.1)])
def test_equal_numbers_which_round_equally_are_no_fault(shape: tuple[int, int, int], value: float) -> None:
    rows, terms, columns = shape
    a, b = np.full((rows, terms), value, np.float32), np.full((terms, columns), 1 / value, np.float32)
    c, found = protected_matmul(a, b)
    assert (found.detected, found.corrected) == (0, 0)
    assert c.tobytes() == (a @ b).tobytes()
    _, found = protected_matmul(a, b, product=Once(struck(a @ b, 1, 2, 30)))
    assert found.detected == 1


def error_of(c: np.ndarray, a: np.ndarray, b: np.ndarray, row: int, column: int) -> Fraction:
    """How far one element is from the exact one."""
    terms = zip(a[row].tolist(), b[:, column].tolist(), strict=True)
    return abs(Fraction(float(c[row, column])) - sum((Fraction(x) * Fraction(y) for x, y in terms), Fraction()))


def test_thresholds_are_low_where_it_matters() -> None:
    """Far below a bound that holds for any data, or small faults would pass."""
    a, b = matrix("normal", (300, 400), np.float32, 0), matrix("normal", (400, 200), np.float32, 1)
    round_off = abs((a @ b) - a.astype(np.longdouble) @ b).sum(axis=0) / 300
    bound = 400 * 2.0**-24 * (abs(a).astype(np.float64) @ abs(b)).sum(axis=0)
    threshold = _Sums(a, b).threshold
    assert (threshold < bound / 100).all()
    assert (threshold > round_off).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("damage", ["nan", "inf", "two in a column", "a column", "a row", "all", "many"])
def test_many_faults_are_corrected(dtype: type, damage: str) -> None:
    a, b = matrix("normal", (90, 70), dtype, 0), matrix("normal", (70, 110), dtype, 1)
    clean = a @ b

    def faulty(_: np.ndarray, __: np.ndarray) -> np.ndarray:   # each time: the fault persists
        c = clean.copy()
        match damage:
            case "nan":
                c[3, 5] = np.nan
            case "inf":
                c[3, 5], c[4, 5] = np.inf, -np.inf
            case "two in a column":
                c[3, 5] += 100
                c[4, 5] -= 100.5
            case "a column":
                c[:, 7] = 1e10
            case "a row":
                c[11] = np.nan
            case "all":
                c[...] = 0
            case "many":
                c.ravel()[::37] *= 2
        return c

    c, found = protected_matmul(a, b, product=faulty)
    np.testing.assert_allclose(c, clean, rtol=0, atol=float(1e4 * np.finfo(dtype).eps))
    assert found.detected > 0
    assert found.corrected > 0
    assert found.recomputed == (damage in {"a row", "all", "many"})


def test_a_fault_that_passes_costs_one_more_product_when_it_is_large() -> None:
    a, b = matrix("normal", (64, 64), np.float32, 0), matrix("normal", (64, 64), np.float32, 1)
    calls: list[int] = []

    def faulty(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        calls.append(1)
        return np.zeros((64, 64), np.float32) if len(calls) == 1 else a @ b

    c, found = protected_matmul(a, b, product=faulty)
    assert c.tobytes() == (a @ b).tobytes()
    assert (len(calls), found.recomputed, found.corrected) == (2, 1, 0)


def test_input_that_is_not_finite_leaves_the_rest_checked() -> None:
    a, b = matrix("normal", (20, 30), np.float64, 0), matrix("normal", (30, 10), np.float64, 1)
    a[3, 4], b[7, 2] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        clean = a @ b
        faulty = clean.copy()
        faulty[5, 6] = 1e9
        c, found = protected_matmul(a, b, product=lambda a, b: faulty)
    np.testing.assert_allclose(c, clean, rtol=1e-12)
    assert np.isnan(c[3]).all()
    assert (found.checks, found.detected, found.corrected, found.unchecked) == (9, 1, 1, 20 + 10 - 1)


def test_results_that_overflow_are_right() -> None:
    a, b = np.full((3, 4), 1e30, np.float32), np.full((4, 5), 1e30, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        c, found = protected_matmul(a, b)
    assert np.isposinf(c).all()
    assert found.corrected == 0


@given(factors())
@settings(max_examples=50)
def test_column_sums_are_those_of_longer_numbers(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, _ = pair
    sums, squares = column_sums(a)
    longer = a.astype(np.longdouble)
    np.testing.assert_allclose(sums, longer.sum(axis=0), rtol=0, atol=1e-14 * float(abs(longer).sum(axis=0).max()) + 1e-320)
    np.testing.assert_allclose(squares, (longer**2).sum(axis=0), rtol=1e-13, atol=1e-300)


def test_a_gpu_gives_the_same(stand_in: ModuleType) -> None:
    a, b = matrix("normal", (150, 40), np.float32, 0), matrix("normal", (40, 60), np.float32, 1)

    def faulty(a: fake_cupy.ndarray, b: fake_cupy.ndarray) -> fake_cupy.ndarray:
        c = a @ b
        c[3, 5] = float("nan")
        c[9, 5] = 1e20
        return c

    c, found = protected_matmul(stand_in.asarray(a), stand_in.asarray(b), product=faulty)
    assert type(c) is fake_cupy.ndarray
    np.testing.assert_allclose(c.get(), a @ b, rtol=1e-4, atol=1e-4)
    assert found == Findings(checks=60, detected=1, corrected=2)



@pytest.mark.parametrize(("a", "b", "message"), [
    (np.ones(3), np.ones((3, 3)), "two non-empty matrices"),
    (np.ones((3, 2)), np.ones((3, 3)), r"got shapes \(3, 2\) and \(3, 3\)"),
    (np.ones((0, 3)), np.ones((3, 3)), "non-empty"),
    (np.ones((3, 3), np.float32), np.ones((3, 3)), "both matrices must be float32, or both float64"),
    (np.ones((3, 3), int), np.ones((3, 3), int), "got int64 and int64"),
])
def test_bad_input_is_refused(a: np.ndarray, b: np.ndarray, message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        protected_matmul(a, b)


def test_a_product_of_another_shape_is_refused() -> None:
    with pytest.raises(WorkbenchError, match=r"must be float64 of shape \(3, 3\); got float64 of shape \(2, 2\)"):
        protected_matmul(np.ones((3, 3)), np.ones((3, 3)), product=lambda a, b: np.ones((2, 2)))
