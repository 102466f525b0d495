"""Charts: words and keys that go with a plot, and views that learn of changes they missed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bokeh.models import CustomJSTicker, LinearScale, LogScale

from workbench.charts.description import Axis, Band, Cells, Chart, Part, Rule, Series, Span
from workbench.charts.looks import DASHES
from workbench.charts.to_holoviews import UNSEEN
from workbench.lab import report
from workbench.lab.chart_part import ChartPart
from workbench.lab.description import Charts, Shown
from workbench.lab.view import View

POWER = Axis("power", 0.0, 10.0)


def growth(end: int, name: str = "growth", *more: Part) -> Chart:
    return Chart(name, Axis("k", 0.5, 20.0, logarithmic=True), POWER, (Series("found", [1, 10], [1, end]), *more))


@pytest.fixture
def view() -> Iterator[ChartPart]:
    made = ChartPart(growth(3))
    yield made
    made.close()


@pytest.fixture
def sent(view: ChartPart, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the browser is sent from here on."""
    messages: list[Any] = []
    usual = view.set

    def listening(**content: Any) -> None:
        messages.append(content)
        usual(**content)

    monkeypatch.setattr(view, "set", listening)
    return messages


def test_words_and_key_follow_the_element(view: ChartPart) -> None:
    plot = view.plot.state
    assert plot.tags[0]["about"] == "growth: power by k. found: 3 at 10."
    view.show(growth(7, "more growth"))
    assert plot.tags[0]["about"] == "more growth: power by k. found: 7 at 10."
    assert [entry["name"] for entry in plot.tags[0]["key"]] == ["found"]


def test_charts_can_be_zoomed_but_not_by_the_wheel_that_scrolls_the_page(view: ChartPart) -> None:
    plot = view.plot.state
    tools = {type(tool).__name__ for tool in plot.tools}
    assert {"BoxZoomTool", "WheelZoomTool", "ResetTool"} <= tools
    assert plot.toolbar.active_scroll is None
    assert type(plot.toolbar.active_drag).__name__ == "BoxZoomTool"


def test_ticks_of_logarithmic_axes_stay_when_data_change(view: ChartPart) -> None:
    ticker = view.plot.state.xaxis[0].ticker
    assert isinstance(ticker, CustomJSTicker)
    view.show(growth(5))
    assert view.plot.state.xaxis[0].ticker is ticker


EVERYTHING = (
    Span("a", "x", 1.0, 2.0), Span("b", "y", 1.0, 2.0), Band("c", [1, 2], [1, 2], [3, 4]), Rule("d", "x", 3.0),
    Rule("e", "y", 4.0, dash="dotted"), Cells("f", [(1, 1, 2, 2), (2, 2, 3, 3)], tooltips=["one", "two"], texts=["1", ""]),
    Series("g", [1, 2, 3], [1, float("nan"), 3], "#2f7fc1", "dashed", "square", tooltips=["x", "y", "z"]),
    Series("h", [1, 2], [5, 6], "#d0600f", None, "circle", hollow=True),
)
NOTHING = (
    Span("a", "x", 1.0, 2.0), Span("b", "y", 1.0, 2.0), Band("c", [], [], []), Rule("d", "x", float("nan")),
    Rule("e", "y", float("nan")), Cells("f", []), Series("g", [], []),
)


def glyphs_of(view: ChartPart) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The glyphs of a plot by their kinds, with what they are drawn from."""
    return {type(each.glyph).__name__: (each.glyph, each.data_source.data) for each in view.plot.state.renderers}


def of(glyph: Any, data: dict[str, Any], name: str) -> list[Any]:
    """A property for each shape: always a column, without those that nobody sees."""
    return list(data[glyph.properties_with_values()[name].field])[: -len(UNSEEN)]


@pytest.mark.parametrize("before", [EVERYTHING, NOTHING, (Series("g", [], []),)], ids=["full", "empty", "other kinds"])
def test_live_charts_have_the_marks_the_colours_and_the_words_of_the_description(before: tuple[Part, ...]) -> None:
    view = ChartPart(Chart("all", POWER, POWER, before))
    view.show(Chart("all", POWER, POWER, EVERYTHING))
    found = glyphs_of(view)
    assert found.keys() == {"VStrip", "HStrip", "MultiPolygons", "VSpan", "HSpan", "Quad", "Text", "MultiLine", "Scatter"}
    points, data = found["Scatter"]
    assert list(data["tooltip"]) == ["x", "z", "h: 5 at 1", "h: 6 at 2", "", ""]
    assert of(points, data, "marker") == ["square", "square", "circle", "circle"]
    assert of(points, data, "fill_color") == ["#2f7fc1"] * 2 + ["#d0600f"] * 2
    assert of(points, data, "fill_alpha") == [1, 1, 0, 0]
    line, data = found["MultiLine"]
    assert of(line, data, "line_dash") == [DASHES["dashed"]]
    assert len(data["xs"]) == 1 + len(UNSEEN)
    assert list(found["Quad"][1]["tooltip"]) == ["one", "two", "", ""]
    assert list(found["Text"][1]["text"]) == ["1"]
    assert [entry["name"] for entry in view.plot.state.tags[0]["key"]] == list("abcdefgh")
    view.close()


def test_other_kinds_of_parts_are_one_change_with_the_whole_plot(view: ChartPart, sent: list[Any]) -> None:
    view.show(growth(4, "growth", Rule("end", "x", 4.0)))
    assert (view.content["drawing"]["number"], sent[-1]["change"]) == (1, {"number": 1})
    view.show(growth(5, "growth", Rule("end", "x", 5.0)))
    assert [list(message) for message in sent] == [["drawing", "change"], ["change"]]


def test_an_axis_that_becomes_linear_is_drawn_anew(view: ChartPart) -> None:
    assert isinstance(view.plot.state.x_scale, LogScale)
    view.show(Chart("growth", Axis("k", 0.0, 20.0), POWER, (Series("found", [1, 10], [1, 4]),)))
    assert isinstance(view.plot.state.x_scale, LinearScale)


def test_every_change_has_the_next_number(view: ChartPart, sent: list[Any]) -> None:
    for end in (4, 5):
        view.show(growth(end))
    assert [message["change"]["number"] for message in sent] == [1, 2]


def test_who_has_missed_changes_gets_the_plot_as_it_is(view: ChartPart) -> None:
    view.show(growth(4))
    assert view.content["drawing"]["number"] == 0   # which is not sent again with every change
    drawing = view.whole()["drawing"]
    assert drawing["number"] == 1
    assert "growth" in drawing["document"]


class Nobody:
    """The panel of a view that nobody uses."""

    def code(self) -> str:
        return ""

    def __getattr__(self, name: str) -> Any:
        return lambda *given: None


def test_charts_appear_with_their_data_and_go_with_them() -> None:
    view = View(Nobody(), "charts", [], None)   # type: ignore[arg-type]

    def shows(charts: Any, beside: tuple[str, ...] = ()) -> list[str]:
        view.show(Shown(charts=charts, beside=beside), None, None)
        areas = view.frame.content["areas"]
        keys = {chart.key: name for name, chart in view.charts.items()}
        assert sorted(keys) == sorted([*areas["beside"], *areas["below"]])
        assert [keys[key] for key in areas["beside"]] == list(beside)
        return [keys[key] for key in areas["below"]]

    assert shows(Charts({})) == []
    assert shows(Charts({"one": lambda: growth(1)}, coming=["two"])) == ["one"]
    assert shows(Charts({"one": lambda: growth(1), "two": lambda: growth(2)})) == ["one", "two"]
    kept = view.charts["two"]
    assert shows(Charts({"one": lambda: growth(3)}, coming=["two"])) == ["one", "two"]
    assert view.charts["two"] is kept
    assert kept.content["coming"]
    assert shows(Charts({"one": lambda: growth(3), "two": lambda: growth(2)}), ("two",)) == ["one"]
    assert not kept.content["coming"]
    assert shows(Charts({})) == []
    view.close()


def test_a_report_has_the_name_and_the_key_of_each_chart() -> None:
    body = report.body("Toy", "data", Shown(charts=Charts({"first": lambda: growth(3)})), "")
    assert "<b>growth</b><ul class=\"wb-key\"><li><svg" in body
