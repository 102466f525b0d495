"""What is shown: the same form whatever the field, the right numbers in it, and nothing made twice."""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from lab.limits_panel.samples import ALL, results, sample
from workbench.bounds.run import Run
from workbench.charts.description import Cells
from workbench.charts.looks import COLOURS, area_colour
from workbench.lab.chart_part import ChartPart
from workbench.lab.limits_panel import LimitsState, draw
from workbench.lab.limits_panel.causes import CAUSES, MEANINGS
from workbench.lab.limits_panel.gap_chart import gap_chart
from workbench.lab.limits_panel.measuring import best, codecs_for, limit_of, nearest
from workbench.lab.limits_panel.waterfall import Waterfall, of_theory, to_codec, waterfall_chart
from workbench.limits.plot import BAND, BOUND, TILES


def state_of(name, **changes):
    return dataclasses.replace(LimitsState.for_(sample(name)), **changes)


@functools.cache
def points(name):
    limits = results(name)["model"].limits
    spread = math.sqrt(limits.variance)
    bounds = [wb.Absolute(step * spread) for step in (0.1, 0.01)]
    return tuple(limits.compare([codec.id for codec in codecs_for(sample(name))], bounds))


@pytest.mark.long_with("two")
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.long] * (name in ("plane", "four"))) for name in ALL
])
def test_the_form_is_the_same_before_and_after(name):
    state = state_of(name, tile=4)
    before, after = draw(sample(name), state, {}), draw(sample(name), state, results(name), points(name))
    assert not before.charts.keys() - {"values"}   # a line has values before there is a model
    partly = draw(sample(name), state, {**results(name), "band": None, "figures": None})
    assert partly.charts.keys() <= after.charts.keys()
    on_request = [fact.name for fact in after.facts if fact.group == "theory"]
    assert [fact.name for fact in before.facts] + on_request == [fact.name for fact in after.facts]
    assert list(before.tables) == list(after.tables)
    assert all(fact.value and fact.meaning and "…" not in fact.value for fact in after.facts)


@pytest.mark.long_with("line-True")
@pytest.mark.parametrize(("name", "above"), [
    pytest.param(name, above, marks=[pytest.mark.long] * ((name, above) not in {("line", True), ("coast", False)}))
    for name, above in itertools.product(ALL, [False, True])
])
def test_every_chart_can_be_drawn_and_changed(name, above):
    state = state_of(name, tile=4, above=above)
    before, after = (draw(sample(name), state, results(name), points(name)[:few]) for few in (1, None))
    for chart, element in before.charts.items():
        view = ChartPart(element)
        view.show(after.charts[chart])
        figure = view.plot.state
        assert figure.output_backend == "canvas"
        assert figure.background_fill_alpha == 0
        ends = [figure.x_range.start, figure.x_range.end, figure.y_range.start, figure.y_range.end]
        assert np.isfinite(ends).all()
        view.close()


@pytest.mark.parametrize("name", [name for name in ALL if name != "line"])
def test_pictures_are_in_one_place(name):
    field, regions, news = draw(sample(name), state_of(name), results(name)).pictures
    assert field.pixels.shape == regions.pixels.shape == news.pixels.shape
    assert field.window == regions.window == news.window
    assert [field.title, regions.title, news.title] == ["field", "regions", "new information"]


def test_a_line_is_drawn_as_curves():
    found = draw(sample("line"), state_of("line", window=(100.0, 200.0, 0, 1)), results("line"))
    assert found.pictures == ()
    assert found.front is None
    assert 99 <= len(found.charts["values"].parts[0].x) <= 102
    drawn = found.charts["new information"].parts[0].y
    assert np.isfinite(drawn).any()


def test_masked_and_missing_cells_are_empty_everywhere():
    found = draw(sample("coast"), state_of("coast", index=3), results("coast"))
    empty = ~sample("coast").valid[3][::-1]
    assert empty.any()
    for picture in found.pictures:
        assert picture.empty
        assert ((picture.pixels == 0) == empty).all()


def test_regions_are_where_they_are():
    _, regions, _ = draw(sample("two"), state_of("two"), results("two")).pictures
    labels = results("two")["model"].limits.source.regions.labels[::-1]
    shown = (regions.pixels.astype(float) - 1) / 254 * (regions.high - regions.low) + regions.low
    assert shown == pytest.approx(labels + 1, abs=0.01)
    assert regions.palette == tuple(area_colour(region) for region in range(labels.max() + 1))


def test_the_chosen_picture_is_in_front_once_it_is_there():
    state = state_of("two", picture="regions")
    assert draw(sample("two"), state, results("two")).front == 1
    assert draw(sample("two"), state, {}).front == 0


def test_a_field_with_few_large_values_is_shown_between_percentiles():
    few = wb.Field(np.where(np.arange(10_000) % 500 == 0, 1000.0, np.arange(10_000.0) % 7).reshape(100, 100))
    assert draw(few, LimitsState(0.1), {}).pictures[0].limits == "1-99"
    assert draw(sample("two"), state_of("two"), {}).pictures[0].limits == "full"


def test_pixels_for_many_values_are_as_many_in_all_pictures():
    found = draw(sample("two"), state_of("two", pixels=40), results("two"))
    assert {picture.pixels.shape for picture in found.pictures} == {(40, 40)}
    assert "mean of up to 2 x 2 values" in found.note


def test_a_larger_bound_needs_less_of_the_same_information():
    one, other = (
        draw(sample("two"), state_of("two", eb=eb), results("two")).pictures[2] for eb in (0.01, 0.04)
    )
    assert other.pixels is one.pixels
    assert one.low - other.low == pytest.approx(2.0)


def test_what_did_not_change_is_the_same_object():
    field, state = sample("two"), state_of("two", tile=4)
    found, measured = results("two"), points("two")
    one, other = draw(field, state, found, measured), draw(field, state, dict(found), list(measured))
    assert all(a is b for a, b in zip(one.pictures[:2], other.pictures[:2], strict=True))
    assert all(one.charts[name] is other.charts[name] for name in one.charts)
    later = draw(field, dataclasses.replace(state, above=True), found, measured)
    assert later.charts["spectra"] is one.charts["spectra"]
    assert later.charts["rate-distortion"] is not one.charts["rate-distortion"]


def test_the_bound_is_drawn_where_it_is():
    found = results("two")
    chart = draw(sample("two"), state_of("two", tile=4), found).charts["rate-distortion"]
    parts = {part.name: part for part in chart.parts if part.name}
    curves = found["curves"]
    assert parts[BOUND].y == pytest.approx(curves.rate)
    assert parts[TILES].y == pytest.approx(found["tiled"].rate)
    assert parts[BAND].high == pytest.approx(found["band"].achievable)
    above = draw(sample("two"), state_of("two", tile=4, above=True), found).charts["rate-distortion"]
    parts = {part.name: part for part in above.parts if part.name}
    assert parts[BOUND].y == pytest.approx(np.zeros(len(curves.rate)), abs=1e-12)
    assert parts[TILES].y == pytest.approx(found["tiled"].rate - curves.rate)


def test_lines_reach_a_distortion_that_is_tiny():
    eb = 1e-6
    found = results("two", eb=eb)
    chart = draw(sample("two"), state_of("two", eb=eb), found).charts["rate-distortion"]
    bound = next(part for part in chart.parts if part.name == BOUND)
    assert bound.x[0] == pytest.approx(eb**2 / 3)
    assert bound.y[0] == pytest.approx(found["figures"].rate)


def test_each_codec_has_its_own_mark():
    chart = draw(sample("two"), state_of("two"), results("two"), points("two")).charts["rate-distortion"]
    labels = {point.run.label for point in points("two")}
    assert len(labels) >= 2
    drawn = [part for part in chart.parts if part.name in labels]
    assert sum(len(part.x) for part in drawn) == len(points("two"))
    assert len({(part.colour, part.marker) for part in drawn}) == len(labels)
    assert not {part.colour for part in drawn} & set(COLOURS[:3])   # the bound, tiles, the band


def test_bars_are_the_parts_of_the_gap():
    state = state_of("two")
    close = nearest(list(points("two")), state.distortion)
    chart = gap_chart(close)
    widths = {part.name: sum(box[2] - box[0] for box in part.boxes) for part in chart.of(Cells) if part.boxes}
    assert set(widths) <= set(CAUSES.values())
    assert sum(widths.values()) == pytest.approx(sum(sum(map(abs, point.parts.values())) for point in close), abs=1e-3)


def test_a_codec_below_the_bound_has_a_bar_to_the_left():
    point = points("two")[0]
    below = dataclasses.replace(point, bits=point.rate - 0.5, parts={"documents": 0.1, "prediction and coding": -0.6})
    chart = gap_chart([below])
    ends = sorted((box[0], box[2]) for part in chart.of(Cells) for box in part.boxes)
    assert np.allclose(ends, [(-0.6, 0.0), (0.0, 0.1)])
    assert "0.50 below the bound" in chart.words


def test_steps_to_a_codec_end_at_its_bits_exactly():
    limits = results("two")["model"].limits
    for point in points("two"):
        fall = to_codec(limits, point)
        assert fall.rates[-1] == pytest.approx(point.bits, abs=1e-12)
        assert fall.rates[0] == fall.bound == pytest.approx(limits.rate(limit_of(point) ** 2 / 3), abs=1e-12)
        assert f"{point.bits:.3f}" in waterfall_chart(fall).words


def test_errors_larger_than_uniform_ones_are_a_step_to_the_left():
    limits, point = results("two")["model"].limits, points("two")[0]
    coarse = 3 * limit_of(point) ** 2 / 4
    rate = limits.rate(coarse)
    large = dataclasses.replace(point, distortion=coarse, rate=rate, parts={"prediction and coding": point.bits - rate})
    assert to_codec(limits, large).steps["larger errors"] < 0
    assert to_codec(limits, large).rates[-1] == pytest.approx(point.bits, abs=1e-12)


def test_without_a_codec_steps_are_the_known_costs():
    found = results("two")["figures"]
    steps = of_theory(found).steps
    assert steps["tiles"] == found.tiled - found.rate
    assert steps["model"] == found.description
    chart = draw(sample("two"), state_of("two"), results("two")).charts["waterfall"]
    assert chart.title == "What practice adds"
    assert "interpolation" not in chart.words


@given(
    bound=st.floats(0.01, 20), borders=st.floats(0, 1), end=st.sampled_from(["zfp", "in practice"]),
    costs=st.lists(st.floats(-30, 30), max_size=len(MEANINGS) - 1),
)
def test_a_waterfall_begins_at_zero_and_its_bars_are_the_rates(bound, borders, end, costs):
    causes = [cause for cause in MEANINGS if cause != "region borders"]
    fall = Waterfall("", bound, min(borders, bound), dict(zip(causes, costs, strict=False)), end)
    chart = waterfall_chart(fall)
    lowest = min(fall.rates)
    assert chart.x.low == 0 if lowest >= 0 else chart.x.low < lowest
    assert chart.x.high > max(fall.rates)
    bars = {box[1]: box for part in chart.of(Cells) if not part.tooltips[0].endswith(MEANINGS["region borders"])
            for box in part.boxes}
    in_order = [bars[row] for row in sorted(bars, reverse=True)]
    ends = [(0.0, bound), *itertools.pairwise(fall.rates), (0.0, fall.rates[-1])]
    assert [(box[0], box[2]) for box in in_order] == [tuple(sorted(each)) for each in ends]


def test_the_best_codec_is_that_of_fewest_bits_at_the_bound():
    spread = math.sqrt(results("two")["model"].limits.variance)
    chosen = best(points("two"), 0.01 * spread)
    assert chosen.bits == min(point.bits for point in points("two") if limit_of(point) == 0.01 * spread)
    assert best(points("two"), 0.009 * spread) is best([], 1.0) is None


def said(shown):
    return " ".join(part if isinstance(part, str) else f"{part.value} {part.unit}".strip() for part in shown.answer)


def test_the_answer_is_the_bound_and_then_the_best_codec():
    found = results("two")
    figures = found["figures"]
    bound = f"Gaussian model: at least {figures.rate:.2f} ({figures.low:.2f} to {figures.high:.2f}) bits/value"
    before = f"{bound} at this error bound. Press “compare codecs” for what codecs need."
    assert said(draw(sample("two"), state_of("two"), found)) == before
    assert draw(sample("two"), state_of("two"), {}).answer == ()
    point = points("two")[0]
    state = state_of("two", eb=limit_of(point))
    chosen = best(points("two"), state.eb)
    gap = chosen.bits - found["model"].limits.rate(state.distortion)
    after = f"{bound} · best codec: {chosen.run.label}, {chosen.bits:.2f} ({gap:.2f} above the bound)"
    assert said(draw(sample("two"), state, found, points("two"))) == after


def test_the_answer_is_about_the_chosen_bound_only_also_while_codecs_are_compared():
    found, chosen = results("two"), limit_of(points("two")[0])
    others = [point for point in points("two") if limit_of(point) != chosen]
    for measured in ([], others):
        shown = draw(sample("two"), state_of("two", eb=chosen), found, measured)
        assert "codec: " not in said(shown)
        assert shown.charts["waterfall"].title == "What practice adds"
    first = draw(sample("two"), state_of("two", eb=chosen), found, [*others, points("two")[0]])
    assert f"best codec so far: {points('two')[0].run.label}, " in said(first)


def test_a_negative_bound_says_nothing():
    found = {**results("two"), "figures": dataclasses.replace(results("two")["figures"], pointwise=-0.5)}
    facts = {fact.name: fact for fact in draw(sample("two"), state_of("two"), found).facts}
    assert facts["each value bounded"].value == "says nothing"
    assert "below 0" in facts["each value bounded"].meaning


def test_of_each_codec_the_nearest_point_is_taken():
    chosen = nearest(list(points("two")), points("two")[0].distortion)
    assert points("two")[0] in chosen
    assert len({point.run.label for point in chosen}) == len(chosen)
    assert nearest([], 1.0) == []


def test_facts_say_what_was_computed():
    found, state = results("two"), state_of("two", tile=4, eps=0.01)
    facts = {fact.name: fact for fact in draw(sample("two"), state, found).facts}
    figures, fixed = found["figures"], found["fixed length"]
    assert facts["Gaussian-model bound"].value == f"{figures.rate:.3f}"
    assert facts["tiles add"].value == f"+{figures.tiled - figures.rate:.3f}"
    assert facts["fixed length ≥"].value == f"{fixed.converse:.4f}"
    assert "1% of the time" in facts["fixed length ≥"].meaning
    this = found["model"].limits.instance(state.eb)
    assert facts["this field alone"].value == f"{max(this, 0):.3f}"
    bounds = ["Gaussian-model bound", "bound in tiles of 4", "fixed length ≥", "fixed length ≤"]
    pointwise = ["each value bounded", "this field alone"]
    assert all("Gaussian model" in facts[name].meaning for name in [*bounds, *pointwise])


def test_the_bound_without_tiles_is_not_explained_as_one_in_tiles():
    facts = {fact.name: fact for fact in draw(sample("two"), state_of("two"), results("two")).facts}
    assert facts["bound without tiles"].meaning == facts["Gaussian-model bound"].meaning


def test_figures_are_in_groups_with_units():
    facts = draw(sample("coast"), state_of("coast"), results("coast")).facts
    groups = [group for group, _ in itertools.groupby(fact.group for fact in facts)]
    assert groups == ["the bound", "what practice adds", "how sure", "theory"]
    units = {fact.name: fact.unit for fact in facts}
    assert units["mean square error"] == "(m)²"
    assert units["Gaussian-model bound"] == units["tiles add"] == units["95% interval of the bound"] == "bits/value"
    assert draw(sample("coast"), state_of("coast", index=3), {}).settings["slice"] == "3 of 16 across axis 0"


def test_facts_that_are_not_there_yet_are_dots():
    facts = {fact.name: fact.value for fact in draw(sample("two"), state_of("two"), {}).facts}
    assert facts["Gaussian-model bound"] == facts["each value bounded"] == facts["this field alone"] == "…"
    assert facts["mean square error"] == f"{state_of('two').distortion:.3g}"


def test_the_tables_have_a_row_for_each_region_and_each_point():
    found = draw(sample("two"), state_of("two", eb=limit_of(points("two")[0])), results("two"), points("two"))
    regions, table = found.tables["regions"], found.tables["operating points"]
    assert len(regions.rows) == results("two")["model"].limits.source.regions.count
    assert len(table.rows) == len(points("two"))
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.chosen is not None


def test_what_failed_and_what_lost_nothing_is_said():
    failed = Run({"id": "sz3"}, "sz3", wb.Absolute(1.0), error="no memory")
    exact = Run({"id": "zfp"}, "zfp", wb.Absolute(1.0), figures={"rms_error": 0.0})
    found = draw(sample("two"), state_of("two"), results("two"), (failed, exact, *points("two")))
    assert "sz3 failed: no memory" in found.note
    assert "lossless, so not in the charts: zfp" in found.note
    assert len(found.tables["operating points"].rows) == len(points("two"))


def test_warnings_are_told_of_and_listed():
    news = dataclasses.replace(results("two")["news"], warnings=("region 7 is odd",))
    found = draw(sample("two"), state_of("two"), {**results("two"), "news": news})
    assert "1 warning about the model" in found.note
    assert found.tables["warnings"].rows == (("region 7 is odd",),)


def test_a_codec_below_the_bound_is_marked_in_the_answer():
    point = dataclasses.replace(points("two")[0], interval=(99.0, 100.0))
    state = state_of("two", eb=limit_of(point))
    assert draw(sample("two"), state, results("two"), [point]).answer[-2].verdict == "bad"


@pytest.mark.parametrize("name", ["coast", "four"])
def test_slices_of_every_axis_can_be_looked_at(name):
    for axis in range(3):
        found = draw(sample(name), state_of(name, axis=axis, index=1), results(name))
        assert len(found.pictures) == 3
