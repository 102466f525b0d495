"""Charts: what a view shows is the plot as it is in Python, whenever it changed."""

import json

import numpy as np
import pytest
from playwright.sync_api import Browser, FloatRect, expect

from browser.accessibility import serious_findings
from browser.notebook_page import NotebookPage, eventually
from browser.toys import LOADS_SLOWLY, LOSES_MESSAGES, WAVES
from workbench.charts.ticks import TEXTS_IN_BROWSER, TICKS_IN_BROWSER, texts, ticks

pytestmark = pytest.mark.long
# The same, of every plot that the page shows.
SHOWN = """version => {
    const column = ({data_source: {data}}, name) => Array.from(data.get?.(name) ?? data[name]);
    const {documents} = globalThis[Symbol.for(`lossbench.bokeh.${version}`)] ?? {documents: []};
    return documents.flatMap(document => document.roots()).map(plot => [
        plot.title.text, plot.x_range.end, plot.y_range.start, plot.renderers.map(each => each.glyph.id),
        plot.renderers.map(each => [column(each, "x"), column(each, "y")]),
    ]);
}"""

STYLED = """from workbench.charts.description import Axis, Chart, Series
axes = Axis("k", 0.5, 20, logarithmic=True), Axis("power", 0, 4)
told = ["one", "three"]
view = chart(Chart("growth", *axes, (Series("found", [1, 10], [1, 3], "#2f7fc1", marker="square", tooltips=told),)))"""
POINT = """version => {
    const home = globalThis[Symbol.for(`lossbench.bokeh.${version}`)];
    const view = [...home.index].find(each => each.model.x_range);
    const {left, top} = view.el.getBoundingClientRect();
    const {x_scale, y_scale, bbox} = view.frame;
    return [left + x_scale.compute(10), top + y_scale.compute(3)];
}"""
ENDS = """version => {
    const [plot] = globalThis[Symbol.for(`lossbench.bokeh.${version}`)].documents.flatMap(document => document.roots());
    return [plot.x_range.start, plot.x_range.end];
}"""
INK = "() => getComputedStyle(probes.all('.bk-LinearAxis')[0]).getPropertyValue('--bk-major-label-text-color')"


def shows_what_python_has(notebook: NotebookPage, views: int) -> bool:
    version = notebook.python("bokeh.__version__").strip("'")
    told = json.loads(notebook.run_cell("import json; print(json.dumps(told()))"))
    notebook.delete_cell()
    return bool(notebook.page.evaluate(SHOWN, version) == [told] * views)


def test_changes_before_a_view_listens_are_seen(notebook: NotebookPage) -> None:
    notebook.write("charts.ipynb", WAVES, "display(view)\nview.chart.show(wave(2))")
    notebook.run_all()
    eventually(lambda: shows_what_python_has(notebook, 1))
    before = notebook.drawn("canvas.bk-layer")
    notebook.run_cell("for number in range(3, 9):\n    view.chart.show(wave(number))")
    assert shows_what_python_has(notebook, 1)
    eventually(lambda: notebook.picture("canvas.bk-layer") != before)


def test_later_views_and_reloaded_pages_show_the_chart_as_it_is(notebook: NotebookPage) -> None:
    notebook.write("views.ipynb", WAVES, "view", "view")
    notebook.run_all()
    eventually(lambda: shows_what_python_has(notebook, 2))
    notebook.run_cell("view.chart.show(wave(2))")
    notebook.run_cell("display(view)\nview.chart.show(wave(3))")
    eventually(lambda: shows_what_python_has(notebook, 3))
    notebook.save()
    notebook.reload()
    eventually(lambda: shows_what_python_has(notebook, 3))
    notebook.run_cell("view.chart.show(wave(4))")
    assert shows_what_python_has(notebook, 3)


def test_many_changes_while_views_come_and_go(notebook: NotebookPage) -> None:
    notebook.write("busy.ipynb", WAVES, "view")
    notebook.run_all()
    for number in range(2, 14):
        notebook.run_cell(f"view.chart.show(wave({number}))" + ("\ndisplay(view)" if number % 3 == 0 else ""))
        if number % 4 == 0:
            notebook.delete_cell()
    eventually(lambda: shows_what_python_has(notebook, 4))


def test_lost_messages_are_made_up_for(notebook: NotebookPage) -> None:
    notebook.write("lossy.ipynb", WAVES, "view")
    notebook.run_all()
    eventually(lambda: shows_what_python_has(notebook, 1))
    notebook.run_cell(LOSES_MESSAGES)
    for number in range(2, 9):
        notebook.run_cell(f"view.chart.show(wave({number}))")
    eventually(lambda: shows_what_python_has(notebook, 1))
    assert int(notebook.python("lost")) >= 2   # every third of at least seven
    notebook.run_cell("lose_all = True\nview.chart.show(wave(9))\nlose_all = False")
    eventually(lambda: shows_what_python_has(notebook, 1))
    expect(notebook.page.locator(".wb-chart-frame")).to_have_attribute("aria-busy", "false")


def test_a_chart_that_loads_too_slowly_follows_python_all_the_same(notebook: NotebookPage) -> None:
    said: list[str] = []
    notebook.page.on("console", lambda message: said.append(message.text))
    notebook.write("slow.ipynb", WAVES + LOADS_SLOWLY, "view")
    notebook.run_all()
    notebook.run_cell("view.chart.show(wave(2))")
    eventually(lambda: shows_what_python_has(notebook, 1))
    notebook.run_cell("view.chart.show(wave(3))")
    eventually(lambda: shows_what_python_has(notebook, 1))
    eventually(lambda: sum("was late, and listens again" in text for text in said) == 2)


def test_a_chart_is_described_zoomed_by_keys_and_saved(notebook: NotebookPage) -> None:
    notebook.write("tools.ipynb", WAVES, STYLED, "view")
    notebook.run_all()
    page, frame = notebook.page, notebook.page.locator(".wb-chart-frame")
    expect(frame.get_by_role("img")).to_have_attribute("aria-label", "growth: power by k. found: 3 at 10.")
    expect(frame.get_by_role("listitem")).to_have_text(["found"])
    notebook.drawn("canvas.bk-layer")

    x, y = page.evaluate(POINT, notebook.python("bokeh.__version__").strip("'"))
    page.mouse.move(x - 40, y - 40)
    page.mouse.move(x, y)
    expect(page.locator(".bk-Tooltip")).to_have_text("three")

    def ends() -> list[float]:
        version = notebook.python("bokeh.__version__").strip("'")
        return page.evaluate(ENDS, version)

    assert ends() == [0.5, 20]
    frame.get_by_role("button", name="zoom in").press("Enter")
    assert ends() == pytest.approx([0.5 * 40 ** (1 / 6), 20 / 40 ** (1 / 6)])   # of a logarithmic axis
    frame.get_by_role("button", name="show everything again").press("Enter")
    assert ends() == [0.5, 20]
    light = page.evaluate(INK)
    notebook.dark()
    eventually(lambda: page.evaluate(INK) != light)
    for kind, start in {"svg": b"<svg ", "png": b"\x89PNG"}.items():
        with page.expect_download() as told:
            frame.get_by_role("button", name=f"save as {kind.upper()}").press("Enter")
        assert told.value.suggested_filename == f"growth.{kind}"
        content = told.value.path().read_bytes()
        assert content.startswith(start)
        assert kind == "png" or all(word in content for word in (b">growth<", b">found<", b"#333333"))


def test_tools_of_a_narrow_chart_cover_neither_its_name_nor_its_points(notebook: NotebookPage) -> None:
    notebook.write("narrow.ipynb", WAVES, STYLED, "view")
    notebook.run_all()
    notebook.drawn("canvas.bk-layer")
    frame = notebook.page.locator(".wb-chart-frame")
    tools, zoom = frame.locator(".wb-chart-tools"), frame.get_by_role("button", name="zoom in")
    for width, folded in ((330, False), (240, True)):
        notebook.page.mouse.move(0, 0)
        frame.evaluate("(frame, width) => { frame.style.width = `${width}px`; }", width)
        frame.hover()
        expect(tools).to_have_css("opacity", "1")
        boxes = {part: frame.locator(f".wb-chart-{part}").bounding_box() for part in ("name", "key", "plot", "tools")}
        assert [part for part in ("name", "key", "plot") if covered(boxes["tools"], boxes[part])] == []
        assert (tools.evaluate("tools => tools.offsetWidth") < 30) == folded
    tools.hover()   # now they are asked for
    eventually(lambda: tools.evaluate("tools => tools.offsetWidth") > 150)
    assert not covered(zoom.bounding_box(), frame.locator(".wb-chart-name").bounding_box())
    version = notebook.python("bokeh.__version__").strip("'")
    before = notebook.page.evaluate(ENDS, version)
    zoom.click()
    assert notebook.page.evaluate(ENDS, version) != before
    notebook.page.mouse.move(0, 0)
    frame.get_by_role("button", name="save as PNG").focus()
    eventually(lambda: tools.evaluate("tools => tools.offsetWidth") > 150)
    assert not serious_findings(notebook.page, ".wb-chart-frame")


def covered(one: FloatRect | None, other: FloatRect | None) -> bool:
    """Whether two boxes share more than the rounding of a pixel."""
    assert one is not None
    assert other is not None
    return (
        one["x"] + 1 < other["x"] + other["width"] and other["x"] + 1 < one["x"] + one["width"]
        and one["y"] + 1 < other["y"] + other["height"] and other["y"] + 1 < one["y"] + one["height"]
    )


def test_browsers_find_the_ticks_that_python_finds(browser: Browser) -> None:
    page, random = browser.new_page(), np.random.default_rng(1)
    axes = [(low, low + span, False) for low, span in zip(random.normal(size=200) * 10.0 ** random.integers(-8, 8, 200),
                                                          10.0 ** random.uniform(-6, 9, 200), strict=True)]
    axes += [(low, low * 10.0**decades, True) for low, decades in zip(
        10.0 ** random.uniform(-12, 6, 200), random.uniform(0.05, 25, 200), strict=True)]
    for low, high, logarithmic in axes:
        code = TICKS_IN_BROWSER.replace("LOGARITHMIC", str(logarithmic).lower())
        there = page.evaluate(f"""([start, end]) => {{
            const ticks = new Function("cb_data", {json.dumps(code)})({{range: {{start, end}}}});
            const text = new Function("tick", "index", "ticks", {json.dumps(TEXTS_IN_BROWSER)});
            return [ticks, ticks.map((tick, index) => text(tick, index, ticks))];
        }}""", [low, high])
        here = ticks(low, high, logarithmic)
        assert there == [here, texts(here)], (low, high, logarithmic)
    page.close()
