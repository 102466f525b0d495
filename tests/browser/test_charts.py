"""Charts: what a view shows is the plot as it is in Python, whenever it changed."""

import json

import pytest

from browser.notebook_page import NotebookPage, eventually

pytestmark = pytest.mark.slow
WAVES = """
import bokeh, holoviews as hv, numpy as np
from IPython.display import display
from workbench.lab.chart_view import ChartView

def wave(number):
    x = np.linspace(0, 6, 4 * number + 3)
    marks = hv.Scatter((x, np.cos(number * x))).opts(size=number)
    return (hv.Curve((x, np.sin(number * x))) * marks).opts(width=300, height=150, title=f"wave {number}", toolbar=None)

def told():
    plot = view.widget._plot
    lines = [[source.data[axis].tolist() for axis in "xy"] for source in (each.data_source for each in plot.renderers)]
    return [plot.title.text, plot.x_range.end, plot.y_range.start, [each.glyph.id for each in plot.renderers], lines]

view = ChartView(wave(1))
"""
# The same, of every plot that the page shows.
SHOWN = """version => {
    const column = ({data_source: {data}}, name) => Array.from(data.get?.(name) ?? data[name]);
    const {documents} = globalThis[Symbol.for(`lossbench.bokeh.${version}`)];
    return documents.flatMap(document => document.roots()).map(plot => [
        plot.title.text, plot.x_range.end, plot.y_range.start, plot.renderers.map(each => each.glyph.id),
        plot.renderers.map(each => [column(each, "x"), column(each, "y")]),
    ]);
}"""


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
