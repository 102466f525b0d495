"""Ranges, guards and shielded stages: what they change, what they leave, and what they tell."""

import itertools
import math
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import fake_cupy
from workbench.errors import WorkbenchError
from workbench.propagation.protection import Findings, Finite, Guard, Range, Shielded, learn_ranges, protect

floats = arrays.arrays(
    st.sampled_from([np.float32, np.float64]), arrays.array_shapes(max_dims=3, max_side=6),
    elements=st.floats(width=32, allow_nan=True, allow_infinity=True),
)


@given(floats, st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_a_range_brings_back_what_is_beyond_and_nothing_else(values: np.ndarray, low: float, width: float) -> None:
    guard = Range(low, low + width)
    before = values.copy()
    result, found = guard(values)
    np.testing.assert_array_equal(values, before)   # the input stays
    inside = (values >= guard.low) & (values <= guard.high)
    np.testing.assert_array_equal(result[inside], values[inside])
    assert result.dtype == values.dtype
    assert found == Findings(values.size, int((~inside).sum()), int((~inside).sum()))
    slack = np.spacing(np.asarray(max(abs(guard.low), abs(guard.high)), values.dtype))
    assert ((result >= guard.low - slack) & (result <= guard.high + slack)).all()


@given(floats)
def test_finite_replaces_what_is_not(values: np.ndarray) -> None:
    result, found = Finite(2.5)(values)
    bad = ~np.isfinite(values)
    np.testing.assert_array_equal(result, np.where(bad, values.dtype.type(2.5), values))
    assert found.corrected == bad.sum()
    assert found.clean == (not bad.any())


@pytest.mark.parametrize("guard", [Range(-1.0, 1.0), Finite()])
def test_clean_arrays_are_not_copied(guard: Guard, stand_in: ModuleType) -> None:
    for values in (np.zeros((3, 4)), stand_in.zeros((3, 4))):
        assert guard(values)[0] is values
    bad = stand_in.asarray([0.0, float("nan"), 0.5])
    result, found = guard(bad)
    assert type(result) is fake_cupy.ndarray
    assert result.get().tolist() == [0.0, 0.0, 0.5]
    assert found == Findings(checks=3, detected=1, corrected=1)


def test_whole_numbers_are_finite_and_have_no_range() -> None:
    assert Finite()(np.arange(3))[1].clean
    with pytest.raises(WorkbenchError, match="a range guards floating-point values; got int64"):
        Range(0, 1)(np.arange(3))


def test_ranges_are_learned_over_runs() -> None:
    runs = [{"a": np.array([0.0, 1.0]), "labels": np.arange(3)}, {"a": np.array([-3.0]), "b": np.float32([2, 2])}]
    assert learn_ranges(iter(runs), margin=0.25) == {"a": Range(-4.0, 2.0), "b": Range(2.0, 2.0)}


@pytest.mark.parametrize(("runs", "message"), [
    ([], "got none"),
    ([{"labels": np.arange(3)}], "got none"),
    ([{"a": np.array([1.0, np.nan])}], "'a' has NaN or infinite values"),
])
def test_ranges_need_clean_runs(runs: list[dict[str, np.ndarray]], message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        learn_ranges(runs)


def test_a_range_tames_flips_of_high_bits() -> None:
    """The damage of exponent flips to a mean, with and without the range of another data set."""
    random = np.random.default_rng(0)
    (guard,) = learn_ranges([{"x": random.normal(size=10_000)}]).values()
    values = random.normal(size=10_000)
    assert guard(values)[1].clean   # no false alarm on data from elsewhere
    bare, guarded = [], []
    for place in range(200):
        struck = values.copy()
        struck.view(np.uint64)[place] ^= np.uint64(1 << (52 + place % 11))
        with np.errstate(over="ignore"):
            bare.append(abs(struck.mean() - values.mean()))
        guarded.append(abs(guard(struck)[0].mean() - values.mean()))
    assert max(guarded) < 1e-3
    assert not max(bare) < 1e100


# Shielded stages.

def struck_on(calls: set[int]) -> Shielded:
    """A stage that is wrong on these calls, and computed twice."""
    count = itertools.count()
    return Shielded(lambda x: x + (next(count) in calls), times=2)


@pytest.mark.parametrize("calls", [{0}, {1}])
def test_of_two_results_that_differ_a_third_decides(calls: set[int]) -> None:
    result, found = struck_on(calls).checked(np.zeros(3))
    assert result.tolist() == [0, 0, 0]
    assert (found.detected, found.recomputed) == (1, 1)


def test_two_equal_results_are_enough() -> None:
    assert struck_on(set()).checked(np.ones(2))[1] == Findings(checks=1)


def test_not_a_number_is_equal_to_itself() -> None:
    assert Shielded(lambda x: x * np.nan, times=3).checked(np.ones(2))[1].clean


def test_results_that_never_agree_are_refused() -> None:
    count = itertools.count()
    with pytest.raises(WorkbenchError, match="3 computations of one stage gave as many results"):
        Shielded(lambda x: x + next(count), times=2)(np.ones(2))


def test_guards_of_what_is_read_and_returned() -> None:
    stage = Shielded(lambda x, y: x / y, reads=(None, Finite(instead=2.0)), returns=Range(0.0, 10.0))
    result, found = stage.checked(np.array([4.0, 80.0]), np.array([np.nan, 1.0]))
    assert result.tolist() == [2.0, 10.0]
    assert found == Findings(checks=4, detected=2, corrected=2)
    with pytest.raises(WorkbenchError, match="2 guards of what is read, but 1 arrays"):
        stage(np.ones(2))


def test_protect_shields_the_named_stages_alone() -> None:
    stages = {"double": lambda x: 2 * x, "root": np.sqrt, "mean": np.mean}
    shielded = protect(stages, ["root"], {"root": Range(0.0, 3.0), "mean": Finite()})
    assert [name for name, stage in shielded.items() if isinstance(stage, Shielded)] == ["root"]
    assert list(shielded) == list(stages)
    assert shielded["root"](np.array([100.0])).tolist() == [3.0]
    assert isinstance(protect(stages, ["mean"], times=2)["mean"], Shielded)


@pytest.mark.parametrize(("arguments", "message"), [
    ((["rot"], Finite()), "there is no stage 'rot'; the nearest names are root"),
    ((["root"],), "needs a guard, or times of at least 2"),
    ((["root"], {"mean": Finite()}), "no guard for root; there are some for mean"),
    ((["root"], Finite(), 0), "times must be a whole number, at least 1"),
])
def test_bad_choices_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        protect({"root": np.sqrt, "mean": np.mean}, *arguments)


@pytest.mark.parametrize("limits", [(1.0, 0.0), (math.nan, 1.0), (0.0, math.inf)])
def test_a_range_needs_limits(limits: tuple[float, float]) -> None:
    with pytest.raises(WorkbenchError, match="finite limits, low <= high"):
        Range(*limits)


def test_what_is_no_guard_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="a guard must be callable"):
        Shielded(np.sqrt, reads=("finite",))   # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match="a function is shielded"):
        Shielded(3)   # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match="instead must be finite"):
        Finite(math.nan)
