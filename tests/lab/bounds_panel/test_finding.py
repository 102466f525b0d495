"""*find*: the target, the search as it goes on, the bound that is chosen, and what is said where there is none."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.lab.bounds_panel.forecast import forecast_of
from workbench.lab.bounds_panel.goals import GOALS, goals_of

SOON = 120.0


@pytest.fixture
def panel() -> Any:
    with wb.lab.bounds(wb.synthetic.gaussian_field((24, 32, 40), 3, seed=2), codec="sz3") as made:
        yield made


def told(panel: Any) -> str:
    """The answer beside the button."""
    return str(panel._outcome.content["text"])


def find(panel: Any, **fields: Any) -> None:
    panel.widget   # noqa: B018
    panel.change(**fields)
    panel.find()
    panel.wait(SOON)


def test_the_bound_that_meets_the_target_is_chosen_and_its_runs_are_listed(panel: Any) -> None:
    panel.name = "field"
    find(panel, target="psnr", goal=55)
    run = panel.result["trial"].run
    assert 55 <= run["psnr"] <= 55.5   # it jumps near 55
    assert told(panel) == f"{panel.state.eb:g} meets 55 dB ({run['psnr']:.4g} dB)"
    names = {"field": panel.data}
    assert 'wb.find_bound(field, wb.PSNR(55), "sz3")' in panel.code()
    exec(panel.code(), names)
    assert names["found"].bound == panel.state.bound
    assert names["archive"].nbytes == panel.result["trial"].archive.nbytes


@pytest.mark.long
def test_a_cell_that_waits_has_the_bound_that_was_found() -> None:
    """A cell runs in the event loop in which results arrive, so none of them arrives while it waits."""

    async def cell() -> None:
        with wb.lab.bounds(wb.synthetic.gaussian_field((24, 32, 40), 3, seed=2)) as panel:
            before = panel.result["trial"].run.bound.eb
            find(panel, target="psnr", goal=55)
            assert panel.state.eb != before
            assert "meets 55 dB" in told(panel)
            assert panel.result["trial"].run["psnr"] >= 55

    asyncio.run(cell())


@pytest.mark.long
def test_two_targets_hold_together_and_code_searches_for_both(panel: Any) -> None:
    panel.name = "field"
    panel.widget   # noqa: B018
    assert panel._second_goal.content["hidden"] is True
    panel.change(second="ratio")
    assert panel.state.second_goal == GOALS["ratio"].usual
    assert panel._second_goal.content["hidden"] is False
    find(panel, target="psnr", goal=40, second="ssim", second_goal=0.999)
    run = panel.result["trial"].run
    assert run["psnr"] >= 40
    assert run["ssim"] >= 0.999
    assert told(panel) == f"{panel.state.eb:g} meets 40 dB and SSIM 0.999 ({run['psnr']:.4g} dB, {run['ssim']:.4g})"
    assert 'wb.find_bound(field, wb.All(wb.PSNR(40), wb.SSIM(0.999)), "sz3")' in panel.code()
    names = {"field": panel.data}
    exec(panel.code(), names)
    assert names["found"].bound == panel.state.bound
    panel.change(second=None)
    assert panel._second_goal.content["hidden"] is True
    assert told(panel) == ""


@pytest.mark.long
def test_targets_that_exclude_each_other_are_named_in_the_note(panel: Any) -> None:
    before = panel.state.eb
    find(panel, target="psnr", goal=90, second="ratio", second_goal=50)
    assert panel.state.eb == before
    assert told(panel).startswith("no bound meets 90 dB and 50x: nearest is ")
    assert "these exclude each other: the largest bound with a PSNR of at least 90 dB, " in panel.shown.note


@pytest.mark.long
def test_a_psnr_is_searched_and_kept_with_the_options_that_lower_mean_errors() -> None:
    with wb.lab.bounds(wb.synthetic.gaussian_field((24, 32, 40), 3, seed=2), codec="interpolation") as panel:
        find(panel, target="psnr", goal=55)
        assert panel.state.given == wb.codecs.get("interpolation", aim="psnr")
        run = panel.result["trial"].run
        assert told(panel) == f"{panel.state.eb:g} meets 55 dB ({run['psnr']:.4g} dB)"
        (choice,) = (control for control in panel._view.controls if control.field == "codec")
        assert choice.content["texts"][-1] == 'interpolation(aim="psnr")'


@pytest.mark.long
def test_moving_on_forgets_the_search(panel: Any) -> None:
    find(panel, target="ratio", goal=4)
    assert "meets 4x" in told(panel)
    panel.change(eb=2 * panel.state.eb)
    panel.result   # noqa: B018
    assert "find_bound" not in panel.code()
    assert told(panel) == ""


def test_a_target_that_cannot_be_met_leaves_the_bound_and_says_what_comes_nearest(panel: Any) -> None:
    before = panel.state.eb
    find(panel, target="ratio", goal=1e5)
    assert panel.state.eb == before
    assert told(panel).startswith("no bound meets 100000x: nearest is ")
    assert "are the archive's documents" in panel.shown.note   # why


def test_each_kind_of_target_has_a_usual_number(panel: Any) -> None:
    for goal in goals_of(panel.data).values():
        panel.change(target=goal)
        assert panel.state.goal == GOALS[goal].usual


@pytest.mark.parametrize(("target", "goal"), [("ratio", 0), ("ssim", 2), ("psnr", float("nan")), ("beauty", 3)])
def test_numbers_that_make_no_sense_are_refused(panel: Any, target: str, goal: float) -> None:
    assert not panel.request(target=target, goal=goal)
    assert panel.status.error
    assert panel.state.target == "psnr"


@pytest.mark.long
def test_clusters_of_particles_are_kept_by_the_bound() -> None:
    snapshot = wb.synthetic.cosmic_web(n=12, seed=1)
    with wb.lab.bounds(snapshot) as panel:
        assert "halos" in goals_of(panel.data).values()
        find(panel, target="halos", goal=20)
        assert "meets 20% in numbers of halos (" in told(panel)


def test_the_forecast_is_drawn_with_its_interval(panel: Any) -> None:
    forecast = panel.result["forecast"]
    assert (forecast.low < forecast.middle).all()
    assert (forecast.middle < forecast.high).all()
    assert (np.diff(forecast.bits) > 0).all()
    band, curve, *_ = panel.shown.charts["rate-distortion"].parts
    assert len(band.x) == len(curve.x) == len(forecast.bits)
    panel.change(codec=wb.codecs.get("interpolation", aim="psnr"))   # as a search for a PSNR leaves it
    assert len(panel.result["forecast"].bits) > 0
    panel.change(codec="pcodec")
    assert len(panel.result["forecast"].bits) == 0


def test_constant_fields_have_no_forecast() -> None:
    assert len(forecast_of(wb.Field(np.ones((8, 8))), wb.codecs.get("sz3")).bits) == 0
