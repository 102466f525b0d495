"""What is shown: for every kind of array, the same form before and after, with the right numbers in it."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import workbench as wb
from lab.propagation_panel.samples import ALL, results, sample, state_of
from workbench.charts.description import Cells, Series
from workbench.lab.chart_part import ChartPart
from workbench.lab.propagation_panel import draw
from workbench.lab.propagation_panel.arrays import arrangement, largest_slice
from workbench.lab.propagation_panel.campaign_charts import WITH, WITHOUT, cells_of, heat_map_chart, outcome_chart
from workbench.lab.propagation_panel.counting import Counted, compared
from workbench.lab.propagation_panel.drawing import error_chart
from workbench.lab.propagation_panel.graph import nodes
from workbench.lab.propagation_panel.pictures import hit_indices
from workbench.lab.propagation_panel.reading import reading
from workbench.propagation import BitFlip
from workbench.propagation.charts import ROOM, axes, dose_chart

ERRORS = [{"bit": 2}, {"bit": 14}, {"kind": "stuck at 1", "bit": 1, "count": 3}]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_every_site_can_be_shown(name: str, error: dict[str, Any]) -> None:
    base = sample(name)
    state = state_of(name, **error)
    found = results(name, state)
    for site in base.run.pipeline.sites:
        for scale in ("size", "sign"):
            shown = draw(base, dataclasses.replace(state, look=site, scale=scale), found)
            form = arrangement(base, site).form
            assert (form == "line") == (not shown.pictures) == ("values" in shown.charts)
            assert all(fact.value and fact.meaning and "…" not in fact.value for fact in shown.facts)


@pytest.mark.parametrize("name", ["density", "halos", "line"])
def test_every_chart_can_be_drawn(name: str) -> None:
    base, state = sample(name), state_of(name, bit=3, look=sample(name).run.pipeline.sites[-1])
    shown = draw(base, state, results(name, state))
    assert {"values", "change", "errors"} <= set(shown.charts)
    for chart in shown.charts:
        assert shown.charts[chart].svg.startswith("<svg")


@pytest.mark.parametrize("name", ALL)
def test_the_form_is_the_same_before_and_after(name: str) -> None:
    state = state_of(name)
    before, after = draw(sample(name), state, {}), draw(sample(name), state, results(name, state))
    assert [fact.name for fact in before.facts] == [fact.name for fact in after.facts]
    assert list(before.tables) == list(after.tables)
    assert "errors" in after.charts
    assert "errors" in before.charts.coming   # type: ignore[attr-defined]


def test_a_flip_is_seen_where_it_is_and_nowhere_else() -> None:
    state = state_of("density", bit=30, trial=3)
    found = results("density", state)
    (index,) = hit_indices(found["travel"], "input")
    place = np.unravel_index(index, (12, 12, 12))
    assert largest_slice(found["travel"], "input", 0, 0) == place[0]
    for scale in ("size", "sign"):
        original, changed, difference = draw(sample("density"), dataclasses.replace(state, scale=scale), found).pictures
        (mark,) = difference.marks
        assert mark.places.tolist() == [[place[2] + 0.5, place[1] + 0.5]]
        row, column = 11 - place[1], place[2]   # row 0 is at the top
        unchanged = difference.pixels[(row + 1) % 12, column]
        assert difference.pixels[row, column] != unchanged
        assert np.count_nonzero(difference.pixels != unchanged) == 1
        assert np.count_nonzero(original.pixels != changed.pixels) <= 1


def test_a_slice_can_be_chosen_and_the_error_is_elsewhere() -> None:
    state = state_of("density", bit=30, trial=3)
    found = results("density", state)
    worst = largest_slice(found["travel"], "input", 0, 0)
    shown = draw(sample("density"), dataclasses.replace(state, index=(worst + 1) % 12), found)
    assert len(np.unique(shown.pictures[2].pixels)) == 1
    assert not shown.pictures[2].marks


def test_the_component_with_the_error_is_shown() -> None:
    state = state_of("flow", bit=62, look="vorticity")   # the first velocity is in the other two components of the curl
    found = results("flow", state)
    (index,) = hit_indices(found["travel"], "input")
    assert index < 6**3
    difference = draw(sample("flow"), state, found).pictures[2]
    told = draw(sample("flow"), state, found).note
    assert "component = 1 of 3" in told or "component = 2 of 3" in told
    assert len(np.unique(difference.pixels)) > 1


def test_the_reading_has_all_digits() -> None:
    state = state_of("plane", bit=30)
    found = results("plane", state)
    (index,) = hit_indices(found["travel"], "input")
    row, column = np.unravel_index(index, (16, 20))
    told = reading(sample("plane"), found["travel"], state, (column + 0.5, row + 0.5))
    before, after = (run["input"][row, column] for run in (found["travel"].original, found["travel"].changed))
    assert told is not None
    assert told.values[:2] == (str(before), str(after))
    assert reading(sample("plane"), found["travel"], state, (-1.0, 0.0)) is None


@pytest.mark.parametrize("look", ["input", "groups"])
def test_the_reading_of_particles_is_their_number(look: str) -> None:
    state = state_of("halos", look=look)
    found, run = results("halos", state), sample("halos").run
    place = run["input"][7, :2]
    told = reading(sample("halos"), found["travel"], state, (float(place[0]), float(place[1])))
    assert told is not None
    assert int(told.values[0].split(" here")[0]) >= 1
    assert reading(sample("halos"), found["travel"], state_of("halos", look="mass_function"), (0.5, 0.5)) is None


def test_complex_values_are_shown_by_the_size_of_their_change() -> None:
    state = state_of("density", site="waves", bit=63)   # the sign of a part: the size of the value stays
    found = results("density", state)
    change = found["travel"].difference("waves")
    assert change.max() > 0
    assert np.allclose(abs(found["travel"].changed["waves"]), abs(found["travel"].original["waves"]))
    difference = draw(sample("density"), state, found).pictures[2]
    assert len(np.unique(difference.pixels)) == 2


def test_changed_labels_are_marked_on_the_particles() -> None:
    state = state_of("halos", kind="compression", bound=0.02, look="groups")
    found = results("halos", state)
    _, changed = draw(sample("halos"), state, found).pictures
    count = int(np.count_nonzero(found["travel"].original["groups"] != found["travel"].changed["groups"]))
    assert changed.title == f"with another label: {count:,}"
    assert count > 0


def test_lines_of_values_survive_values_that_are_not_finite() -> None:
    state = state_of("line", bit=62, trial=1)
    found = results("line", state)
    for site in sample("line").run.pipeline.sites[:2]:
        shown = draw(sample("line"), dataclasses.replace(state, look=site), found)
        assert {"values", "change"} <= set(shown.charts)
        assert shown.charts["values"].svg.count("<polyline") >= 1


def test_the_chart_of_errors_has_the_measured_and_the_predicted_ones() -> None:
    state = state_of("plane", kind="noise", bound=1e-3)
    found = results("plane", state)
    chart = error_chart(found["travel"], found["floor"], found["trace"], "laplacian")
    curves = {part.name: part for part in chart.of(Series)}
    drawn = dict(zip(range(1, 5), curves["measured"].y, strict=True))
    assert drawn == {number: found["travel"].errors[site] for number, site in enumerate(found["travel"].errors, 1)}
    predicted = curves["predicted (first order)"].y
    assert predicted == pytest.approx(list(drawn.values()), rel=0.02)
    alone = found["trace"].plot()   # the same marks and colours as in the panel
    looks = [[(part.name, part.colour, part.marker, part.dash) for part in each.of(Series)] for each in (chart, alone)]
    assert looks[0] == looks[1]


def test_graph_nodes_tell_what_became_of_the_error() -> None:
    base, state = sample("two inputs"), state_of("two inputs", site="b", bit=63, look="roots")
    found = results("two inputs", state)
    told = {node["site"]: node for node in nodes(base.run, state, found["travel"], found["floor"], found["trace"])}
    assert told["a"]["kind"] == "untouched"
    assert told["b"]["hit"]
    assert told["roots"]["kind"] == "stopped"
    assert told["roots"]["chosen"]
    assert told["roots"]["error"] == "not reached"
    assert 0 < told["product"]["floor"] < told["product"]["bar"] <= 1
    assert told["product"]["column"] == 1


def test_the_shares_of_the_sentence_and_the_chart_are_those_of_all_possible_faults() -> None:
    base, state = sample("plane"), state_of("plane", bits="fields")
    faults = wb.propagation.strata(base.run.pipeline, base.run)
    bare, protected = (
        Counted(wb.propagation.campaign(base.run.pipeline, base.run, faults, seed, until=90), state.campaign)
        for seed in (0, 1)
    )
    for outcome in ("masked", "silent"):
        chart, said = outcome_chart(bare, protected), compared(protected, bare, outcome)
        marks = {part.name: part for part in chart.of(Series)}
        for name, counted in ((WITHOUT, bare), (WITH, protected)):
            rate = counted.campaign.rate(outcome)
            share = sum(each[outcome] for each in counted.campaign.counts) / len(counted.campaign.trials)
            assert rate.estimate != pytest.approx(share, rel=0.01)   # mantissas have more bits than signs
            place = wb.propagation.trials.OUTCOMES.index(outcome)
            assert marks[name].y[place] == pytest.approx(100 * rate.estimate)
            assert f"{100 * rate.estimate:.2g}% (95%: {100 * rate.low:.2g} to {100 * rate.high:.2g}%)" in said
            assert f"{100 * rate.estimate:.2g}% (95%" in marks[name].tooltips[place]


@pytest.mark.parametrize(("sites", "turned"), [
    (["density", "contrast", "transform", "power", "spectrum"], True), (["a", "b", "c"], False),
    (["temperature_anomaly_filtered", "x"], False), (["temperature_anomaly", "spectral_density", "zonal_mean"], True),
    ([f"layers.{number}.feed_forward" for number in range(40)], True), ([str(number) for number in range(12)], False),
], ids=["letters", "short", "two", "long", "many", "numbers"])
def test_names_of_sites_do_not_touch_each_other(sites: list[str], turned: bool) -> None:
    across, _ = axes(sites, "error", [])
    share = ROOM / (across.high - across.low)   # letters from one site to the next
    for (one, name), (other, further) in itertools.pairwise(across.names):
        apart = (other - one) * share
        assert apart >= 2 if across.turned else apart >= (len(name) + len(further)) / 2 + 1
    assert across.turned == turned


def test_the_heat_map_has_a_cell_for_each_site_and_bit() -> None:
    base = sample("plane")
    faults = wb.propagation.strata(base.run.pipeline, base.run, ["sign", "exponent"])
    campaign = wb.propagation.campaign(base.run.pipeline, base.run, faults, until=10)
    cells = cells_of(campaign.heat_map("masked"))
    assert [(cell.site, cell.bit) for cell in cells] == [(each.site, each.bit) for each in faults]
    assert [cell.trials for cell in cells] == [sum(counts.values()) for counts in campaign.counts]
    rows = max(cell.row for cell in cells)
    assert cells[0].row == rows
    chart = heat_map_chart(Counted(campaign, state_of("plane").campaign), "masked")
    untried, tried = chart.of(Cells)
    counts = zip(cells, campaign.counts, strict=True)
    assert tried.texts == [f"{each['masked'] / cell.trials:.0%} of {cell.trials}" for cell, each in counts]
    assert [len(part.boxes) for part in (untried, tried)] == [0, len(faults)]
    assert all(f" {cell.share:.1%} (" in words for cell, words in zip(cells, tried.tooltips, strict=True))


def test_charts_can_be_changed_from_empty_to_full() -> None:
    base = sample("plane")
    faults = [BitFlip("input", bit=bit) for bit in (1, 30)]
    campaign = wb.propagation.campaign(base.run.pipeline, base.run, faults, until=4)
    empty = dataclasses.replace(campaign, trials=())
    dose = wb.propagation.dose_response(base.run.pipeline, base.run, "input", [1e-3, 1e-1], codec="prequantised")
    pairs = [
        (heat_map_chart(Counted(each, state_of("plane").campaign), "silent") for each in (empty, campaign)),
        (dose_chart(each, 1e-3) for each in (dose.doses[:1], dose.doses)),
    ]
    for before, after in pairs:
        part = ChartPart(before)
        part.show(after)
        assert part.plot.state.tags[0]["about"] == after.words
        part.close()
