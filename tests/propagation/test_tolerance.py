"""What counts as damage: the same in any unit, and never nothing where a value is not finite any more."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.propagation import BitFlip, Noise, Pipeline, campaign, each_within, poisson, shares_equal, trace, within
from workbench.propagation.dose import dose_response
from workbench.propagation.error_sizes import relative_error
from workbench.propagation.tolerance import Tolerance

ALL = [within(0.01), each_within(0.01), poisson(), shares_equal(0.5)]
UNITS = [1e-310, 1e-170, 1.0, 1e160, 4e307]


def of(tolerance: Tolerance, right: object, other: object) -> float:
    return tolerance.damage({"P": np.asarray(right)}, {"P": np.asarray(other)})


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("tolerance", [within(0.5), each_within(0.5)])
def test_damage_is_the_same_in_any_unit(tolerance: Tolerance, unit: float) -> None:
    right, other = np.array([3.0, -4.0, 2.0]) * unit, np.array([3.0, 4.0, 2.0]) * unit
    expected = of(tolerance, [3.0, -4.0, 2.0], [3.0, 4.0, 2.0])
    assert expected > 1
    assert of(tolerance, right, other) == pytest.approx(expected, rel=1e-9)
    assert of(tolerance, right + 1j * right, other + 1j * other) == pytest.approx(of(tolerance, right, other))
    assert relative_error(right, other) == pytest.approx(8 / math.sqrt(29), rel=1e-9)


@pytest.mark.parametrize("tolerance", ALL)
def test_what_is_not_finite_is_like_itself_alone_in_any_output(tolerance: Tolerance) -> None:
    right = {"a": np.array([1.0, -np.inf, np.nan]), "b": np.array([1.0, 2.0])}
    assert tolerance.damage(right, {name: values.copy() for name, values in right.items()}) == 0
    changes = [("a", 0, np.nan), ("a", 1, np.inf), ("a", 1, 5.0), ("a", 2, 5.0), ("b", 1, np.nan), ("b", 0, np.inf)]
    for name, place, value in changes:
        other = {each: values.copy() for each, values in right.items()}
        other[name][place] = value
        assert tolerance.damage(right, other) >= 2 / 3, (name, place, value)
        assert tolerance.name.startswith("at most") or tolerance.damage(right, other) == np.inf


@pytest.mark.parametrize("tolerance", ALL)
def test_outputs_without_values_have_no_damage(tolerance: Tolerance) -> None:
    assert of(tolerance, np.zeros(0), np.zeros(0)) == 0


@pytest.mark.parametrize("unit", UNITS)
def test_a_campaign_ends_the_same_in_any_unit(unit: float) -> None:
    pipeline = Pipeline([("copied", lambda x: x.copy())])
    found = campaign(pipeline, np.array([1.0, 2.0, 3.0]) * unit, [BitFlip("input", bit="sign")], until=25)
    assert found.counts[0]["silent"] == 25


@pytest.mark.parametrize("unit", UNITS)
def test_bounds_by_default_and_first_order_are_the_same_in_any_unit(unit: float) -> None:
    pipeline, values = Pipeline([("halved", lambda x: x / 2)]), np.linspace(-3.0, 3.0, 64)
    expected, found = (dose_response(pipeline, values * each, "input", codec="prequantised").doses for each in (1, unit))
    assert [one.bound.eb / unit for one in found] == pytest.approx([one.bound.eb for one in expected], rel=1e-2)
    assert trace(pipeline, values * unit, Noise("input", 1e-3, unit="rms"))["halved"].badge == "linear"


def test_a_clean_output_that_is_not_finite_can_be_tried_and_its_change_is_seen() -> None:
    pipeline = Pipeline([("log", np.log)])
    with np.errstate(divide="ignore"):
        found = campaign(pipeline, np.array([0.0, 1.0]), [BitFlip("input", bit=62, index=0)], until=25)
    assert found.counts[0]["silent"] == 25   # -inf became finite


def test_a_bound_that_makes_a_result_not_finite_is_too_much_and_says_so() -> None:
    pipeline = Pipeline([("log", np.log)])
    with np.errstate(all="ignore"):
        (dose,) = dose_response(pipeline, np.linspace(1e-6, 1, 64), "input", [0.5], codec="prequantised").doses
    assert (dose.damage, dose.reason) == (math.inf, "the result is not finite")


OWN = Tolerance("half", lambda right, other: float(abs(right["P"] - other["P"]).max()) / 4)


@pytest.mark.parametrize("tolerance", [*ALL, OWN])
def test_another_limit_scales_the_damage_and_the_name_tells_it(tolerance: Tolerance) -> None:
    doubled = tolerance.with_limit(2 * tolerance.limit)
    one, other = np.array([4.0, 9.0]), np.array([4.0, 11.0])
    assert of(doubled, one, other) == of(tolerance, one, other) / 2 > 0
    assert doubled.name != tolerance.name
    again = doubled.with_limit(tolerance.limit)
    assert of(again, one, other) == of(tolerance, one, other)
    assert len(again.name) <= len(tolerance.name) + 10   # names do not pile up
    with pytest.raises(WorkbenchError, match="must be positive and finite"):
        tolerance.with_limit(0.0)
