"""Charts: what a view shows is the plot as it is in Python, whenever it changed."""

import json

import pytest
from playwright.sync_api import expect

from browser.notebook_page import NotebookPage, eventually
from browser.toys import LOADS_SLOWLY, LOSES_MESSAGES, WAVES

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

STYLED = """from workbench.lab.charts import styled
from workbench.lab.legend import Entry
curve = hv.Curve([(1, 1), (10, 3)], label="found")
key = [Entry("found", "#2f7fc1", dash="solid")]
view = ChartView(styled(curve, "growth", key, logx=True, xlabel="k", ylabel="power", xlim=(0.5, 20)))"""
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
    notebook.write("charts.ipynb", WAVES, "display(view.widget)\nview.show(wave(2))")
    notebook.run_all()
    eventually(lambda: shows_what_python_has(notebook, 1))
    before = notebook.drawn("canvas.bk-layer")
    notebook.run_cell("for number in range(3, 9):\n    view.show(wave(number))")
    assert shows_what_python_has(notebook, 1)
    eventually(lambda: notebook.picture("canvas.bk-layer") != before)


def test_later_views_and_reloaded_pages_show_the_chart_as_it_is(notebook: NotebookPage) -> None:
    notebook.write("views.ipynb", WAVES, "view.widget", "view.widget")
    notebook.run_all()
    eventually(lambda: shows_what_python_has(notebook, 2))
    notebook.run_cell("view.show(wave(2))")
    notebook.run_cell("display(view.widget)\nview.show(wave(3))")
    eventually(lambda: shows_what_python_has(notebook, 3))
    notebook.save()
    notebook.reload()
    eventually(lambda: shows_what_python_has(notebook, 3))
    notebook.run_cell("view.show(wave(4))")
    assert shows_what_python_has(notebook, 3)


def test_many_changes_while_views_come_and_go(notebook: NotebookPage) -> None:
    notebook.write("busy.ipynb", WAVES, "view.widget")
    notebook.run_all()
    for number in range(2, 14):
        notebook.run_cell(f"view.show(wave({number}))" + ("\ndisplay(view.widget)" if number % 3 == 0 else ""))
        if number % 4 == 0:
            notebook.delete_cell()
    eventually(lambda: shows_what_python_has(notebook, 4))


def test_lost_messages_are_made_up_for(notebook: NotebookPage) -> None:
    notebook.write("lossy.ipynb", WAVES, "view.widget")
    notebook.run_all()
    eventually(lambda: shows_what_python_has(notebook, 1))
    notebook.run_cell(LOSES_MESSAGES)
    for number in range(2, 9):
        notebook.run_cell(f"view.show(wave({number}))")
    eventually(lambda: shows_what_python_has(notebook, 1))
    assert int(notebook.python("lost")) > 2
    notebook.run_cell("lose_all = True\nview.show(wave(9))\nlose_all = False")
    eventually(lambda: shows_what_python_has(notebook, 1))
    expect(notebook.page.locator(".wb-chart-frame")).to_have_attribute("aria-busy", "false")


def test_a_chart_that_loads_too_slowly_follows_python_all_the_same(notebook: NotebookPage) -> None:
    said: list[str] = []
    notebook.page.on("console", lambda message: said.append(message.text))
    notebook.write("slow.ipynb", WAVES + LOADS_SLOWLY, "view.widget")
    notebook.run_all()
    notebook.run_cell("view.show(wave(2))")
    eventually(lambda: shows_what_python_has(notebook, 1))
    notebook.run_cell("view.show(wave(3))")
    eventually(lambda: shows_what_python_has(notebook, 1))
    eventually(lambda: sum("was late, and listens again" in text for text in said) == 2)


def test_a_chart_is_described_zoomed_by_keys_and_saved(notebook: NotebookPage) -> None:
    notebook.write("tools.ipynb", WAVES, STYLED, "view.widget")
    notebook.run_all()
    page, frame = notebook.page, notebook.page.locator(".wb-chart-frame")
    expect(frame.get_by_role("img")).to_have_attribute("aria-label", "growth: power by k. found: 3 at 10.")
    expect(frame.get_by_role("listitem")).to_have_text(["found"])
    notebook.drawn("canvas.bk-layer")

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
