"""Charts: words and keys that go with a plot, and views that learn of changes they missed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import holoviews as hv
import pytest
from bokeh.models import CustomJSTicker

from workbench.codecs import registry
from workbench.lab import chart_view, report
from workbench.lab.chart_view import ChartView
from workbench.lab.charts import styled
from workbench.lab.description import Charts, Shown
from workbench.lab.legend import Entry, in_html
from workbench.lab.view import View


def growth(end: int, name: str = "growth") -> Any:
    curve = hv.Curve([(1, 1), (10, end)], label="found")
    return styled(curve, name, [Entry("found", "#2f7fc1", dash="solid")], logx=True, xlabel="k", ylabel="power")


@pytest.fixture
def view() -> Iterator[ChartView]:
    made = ChartView(growth(3))
    yield made
    made.close()


@pytest.fixture
def sent(view: ChartView, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the browser is sent from here on."""
    messages: list[Any] = []
    monkeypatch.setattr(view.widget, "_send", lambda message, buffers=None: messages.append(message))
    return messages


def test_words_and_key_follow_the_element(view: ChartView) -> None:
    plot = view._plot.state
    assert plot.tags[0]["about"] == "growth: power by k. found: 3 at 10."
    view.show(growth(7, "more growth"))
    assert plot.tags[0]["about"] == "more growth: power by k. found: 7 at 10."
    assert [entry["name"] for entry in plot.tags[0]["key"]] == ["found"]


def test_points_of_codecs_are_described_one_by_one() -> None:
    points = hv.Points([(1.0, 30.0, "zfp"), (2.0, 40.0, "zfp"), (1.5, 50.0, "sz3")], ["bits", "psnr"], ["codec"])
    plot = hv.renderer("bokeh").get_plot(styled(points, xlabel="bits", ylabel="PSNR")).state
    assert plot.tags[0]["about"] == "PSNR by bits. zfp: 40 at 2; sz3: 50 at 1.5."


def test_charts_can_be_zoomed_but_not_by_the_wheel_that_scrolls_the_page(view: ChartView) -> None:
    plot = view._plot.state
    tools = {type(tool).__name__ for tool in plot.tools}
    assert {"BoxZoomTool", "WheelZoomTool", "ResetTool"} <= tools
    assert plot.toolbar.active_scroll is None
    assert type(plot.toolbar.active_drag).__name__ == "BoxZoomTool"


def test_ticks_of_logarithmic_axes_stay_when_data_change(view: ChartView) -> None:
    ticker = view._plot.state.xaxis[0].ticker
    assert isinstance(ticker, CustomJSTicker)
    view.show(growth(5))
    assert view._plot.state.xaxis[0].ticker is ticker


def test_a_key_is_text_and_nothing_else() -> None:
    told = in_html([Entry.of("<script>", registry.looks()["zfp"]).told(), Entry("area", "#2f7fc1", opacity=0.3).told()])
    assert "<script>" not in told
    assert told.count("<li>") == 2
    assert 'opacity="0.3"' in told


def test_every_change_has_the_next_number(view: ChartView, sent: list[Any]) -> None:
    view.show(growth(4))
    view.show(growth(5))
    assert [message["content"]["number"] for message in sent if message["method"] == "custom"] == [1, 2]
    assert [message["state"]["revision"] for message in sent if message["method"] == "update"] == [1, 2]


def test_a_view_that_asks_gets_the_plot_or_the_number(view: ChartView, sent: list[Any]) -> None:
    view.show(growth(4))
    sent.clear()
    view.widget._handle_custom_msg({"shown": 0}, [])
    view.widget._handle_custom_msg({"shown": 1}, [])
    drawing, number = (message["content"] for message in sent)
    assert drawing["drawing"]["number"] == 1
    assert "growth" in drawing["drawing"]["document"]
    assert number == {"number": 1}


def test_the_number_is_sent_again_when_changes_have_ended(
    view: ChartView, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart_view, "REPEATED", (0.01, 0.02))

    async def changes() -> None:
        view.show(growth(4))
        view.show(growth(5))
        sent.clear()
        while not sent:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(changes(), 30))
    assert [message["state"]["revision"] for message in sent] == [2]


class Nobody:
    """The panel of a view that nobody uses."""

    def code(self) -> str:
        return ""

    def __getattr__(self, name: str) -> Any:
        return lambda *given: None


def test_charts_appear_with_their_data_and_go_with_them() -> None:
    view = View(Nobody(), "charts", [], None)   # type: ignore[arg-type]

    def shows(charts: Any) -> list[str]:
        view.show(Shown(charts=charts), None, None)
        there = [child for place in view.chart_box.children for child in place.children]
        assert {chart.widget for chart in view.charts.values()} == set(there)
        return list(view.charts)

    assert shows({}) == []
    assert shows(Charts({"one": lambda: growth(1)}, coming=["two"])) == ["one"]
    assert shows(Charts({"one": lambda: growth(1), "two": lambda: growth(2)})) == ["one", "two"]
    kept = view.charts["two"]
    assert shows(Charts({"one": lambda: growth(3)}, coming=["two"])) == ["one", "two"]
    assert view.charts["two"] is kept
    assert "wb-coming" in kept.widget._dom_classes
    assert shows({"two": growth(2)}) == ["two"]
    assert "wb-coming" not in kept.widget._dom_classes
    assert shows({}) == []
    view.close()


def test_a_report_has_the_name_and_the_key_of_each_chart() -> None:
    body = report.body("Toy", "data", Shown(charts={"first": growth(3)}), "")
    assert "<b>growth</b><ul class=\"wb-key\"><li><svg" in body
