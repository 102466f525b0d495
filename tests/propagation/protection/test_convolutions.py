"""Convolutions with checksums, against SciPy and sums of fractions."""

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fake_cupy
from workbench.errors import WorkbenchError
from workbench.propagation.protection import Findings, protected_convolve
from workbench.propagation.protection.convolutions import _extended, _Lines, _three_axes

MODES = {"periodic": "wrap", "zero": "constant"}


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, str]:
    axes = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 20 if axes > 1 else 300)) for _ in range(axes))
    stencil = tuple(draw(st.integers(1, min(n, 6))) for n in shape)
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    values = random.normal(size=shape)
    match draw(st.sampled_from(["normal", "positive", "constant", "wide range", "whole"])):
        case "positive":
            values = abs(values)
        case "constant":
            values = np.full(shape, 0.1)
        case "wide range":
            values *= 10.0 ** random.uniform(-6, 6, shape)
        case "whole":
            values = np.rint(9 * values)
    return values.astype(dtype), random.normal(size=stencil).astype(dtype), draw(st.sampled_from(["valid", *MODES]))


def by_definition(values: np.ndarray, stencil: np.ndarray, edges: str) -> np.ndarray:
    """Sums over the stencil, point by point, in longer numbers."""
    flipped = stencil[(slice(None, None, -1),) * stencil.ndim].astype(np.longdouble)
    if edges != "valid":
        around = [(k - 1 - k // 2, k // 2) for k in stencil.shape]
        values = np.pad(values, around, mode="wrap" if edges == "periodic" else "constant")
    windows = np.lib.stride_tricks.sliding_window_view(values, stencil.shape).astype(np.longdouble)
    return (windows * flipped).sum(axis=tuple(range(values.ndim, 2 * values.ndim)))


@given(problems())
@settings(max_examples=80)
def test_it_is_the_convolution_and_nothing_is_changed(problem: tuple[np.ndarray, np.ndarray, str]) -> None:
    values, stencil, edges = problem
    result, found = protected_convolve(values, stencil, edges)
    expected = by_definition(values, stencil, edges)
    size = by_definition(abs(values), abs(stencil), edges)
    assert result.shape == expected.shape
    assert result.dtype == values.dtype
    assert (abs(result - expected) <= (stencil.size + 2) * np.finfo(values.dtype).eps * size).all()
    assert (found.corrected, found.unchecked) == (0, 0)
    assert found.checks == result.size // result.shape[-1]


@pytest.mark.parametrize("edges", MODES)
@pytest.mark.parametrize("shape", [(5,), (4, 3), (3, 2, 5)])
def test_the_centre_of_the_stencil_is_where_scipy_has_it(shape: tuple[int, ...], edges: str) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    random = np.random.default_rng(0)
    values, stencil = random.normal(size=(9, 8, 7)[: len(shape)]), random.normal(size=shape)
    ours = protected_convolve(values, stencil, edges)[0]
    np.testing.assert_allclose(ours, ndimage.convolve(values, stencil, mode=MODES[edges]), atol=1e-12)


def test_there_is_no_false_alarm_in_ten_thousand_lines() -> None:
    random = np.random.default_rng(1)
    found = Findings()
    for dtype in (np.float32, np.float64):
        for values in (random.normal(size=(40, 50, 60)), 1 + random.random((40, 50, 60))):
            for size in (3, 5):
                found += protected_convolve(values.astype(dtype), random.normal(size=(size,) * 3))[1]
    assert found == Findings(checks=16_000)


@given(problems(), st.data())
@settings(max_examples=80)
def test_every_flip_above_the_threshold_is_corrected(
    problem: tuple[np.ndarray, np.ndarray, str], data: st.DataObject
) -> None:
    values, stencil, edges = problem
    clean = protected_convolve(values, stencil, edges)[0]
    place, bit = data.draw(st.integers(0, clean.size - 1)), data.draw(st.integers(0, 8 * clean.itemsize - 1))
    faulty = clean.copy()
    faulty.reshape(-1).view(f"u{clean.itemsize}")[place] ^= np.array(1 << bit, f"u{clean.itemsize}")
    lines = checked_lines(values, stencil, edges)
    results = [faulty.reshape(lines.shape)]
    with np.errstate(all="ignore"):
        off = abs(np.longdouble(faulty.ravel()[place]) - np.longdouble(clean.ravel()[place]))
        line = place // clean.shape[-1]   # whose round-off may exceed the threshold where all values are equal
        round_off = np.fmax(lines.threshold[line], lines._off(clean.reshape(lines.shape))[line])
        above = not off <= np.longdouble(lines.threshold[line] + round_off)
        result, found = protected_convolve(
            values, stencil, edges, correlate=lambda *_: results.pop() if results else clean.reshape(lines.shape)
        )
    if above:
        assert found.detected == 1
        size = by_definition(abs(values), abs(stencil), edges)
        allowed = (stencil.size + 2) * np.finfo(values.dtype).eps * size
        assert (abs(result - by_definition(values, stencil, edges)) <= allowed).all()
    assert (result != clean).sum() <= 1


def checked_lines(values: np.ndarray, stencil: np.ndarray, edges: str) -> _Lines:
    flipped = np.ascontiguousarray(_three_axes(stencil)[::-1, ::-1, ::-1])
    return _Lines(_three_axes(_extended(values, stencil, edges)), flipped)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("damage", ["nan", "inf", "two in a line", "a line", "all"])
def test_many_faults_are_corrected(dtype: type, damage: str) -> None:
    random = np.random.default_rng(3)
    values, stencil = random.normal(size=(12, 10, 40)).astype(dtype), random.normal(size=(3, 3, 3)).astype(dtype)
    clean = protected_convolve(values, stencil)[0]

    def faulty(*_: np.ndarray) -> np.ndarray:
        c = clean.copy()
        match damage:
            case "nan":
                c[3, 4, 5] = np.nan
            case "inf":
                c[3, 4, 5], c[3, 4, 6] = np.inf, -np.inf
            case "two in a line":
                c[3, 4, 5] += 10
                c[3, 4, 6] -= 11
            case "a line":
                c[3, 4] = 1e10
            case "all":
                c[...] = 0
        return c

    result, found = protected_convolve(values, stencil, correlate=faulty)
    np.testing.assert_allclose(result, clean, rtol=0, atol=float(1e3 * np.finfo(dtype).eps))
    assert found.corrected > 0
    assert found.recomputed == (damage == "all")


def test_lines_that_are_not_finite_are_not_checked() -> None:
    values = np.ones((6, 20))
    values[2, 3] = np.nan
    result, found = protected_convolve(values, np.ones((3, 3)))
    assert np.isnan(result[1:4, 2:5]).all()
    assert np.isnan(result).sum() == 9
    assert (found.checks, found.unchecked, found.detected) == (3, 60, 0)


def test_a_gpu_gives_the_same(stand_in: ModuleType) -> None:
    random = np.random.default_rng(4)
    values, stencil = random.normal(size=(20, 30)).astype(np.float32), random.normal(size=(3, 3)).astype(np.float32)
    here = protected_convolve(values, stencil, "zero")
    there = protected_convolve(stand_in.asarray(values), stand_in.asarray(stencil), "zero")
    assert type(there[0]) is fake_cupy.ndarray
    assert there[0].get().tobytes() == here[0].tobytes()
    assert there[1] == here[1]


@pytest.mark.parametrize(("values", "stencil", "edges", "message"), [
    (np.ones((2, 2, 2, 2)), np.ones((1, 1, 1, 1)), "valid", "1 to 3 axes"),
    (np.ones(4, int), np.ones(2), "valid", "float32 or float64 with 1 to 3 axes; got int64"),
    (np.ones((4, 4)), np.ones(2), "valid", "numbers with 2 axes"),
    (np.ones(4), np.ones(5), "valid", r"\(5,\) must not be larger than the field \(4,\)"),
    (np.ones(4), np.array([1, np.nan]), "valid", "stencil must be finite"),
    (np.ones(4), np.ones(2), "mirror", "edges must be one of valid, zero, periodic; got 'mirror'"),
])
def test_bad_input_is_refused(values: np.ndarray, stencil: np.ndarray, edges: str, message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        protected_convolve(values, stencil, edges)


def test_a_result_of_another_shape_is_refused() -> None:
    with pytest.raises(WorkbenchError, match=r"correlate must return float64 of shape \(1, 1, 4\)"):
        protected_convolve(np.ones(4), np.ones(3), correlate=lambda *_: np.ones(4))
