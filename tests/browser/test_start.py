"""The first notebook, and the smallest panels there can be, in a real browser."""

import pytest

from browser import toys
from browser.notebook_page import NotebookPage, eventually

pytestmark = pytest.mark.slow
CHART = "canvas.bk-layer"   # the lower one of two comes first
WIDGET = "application/vnd.jupyter.widget-view+json"


def test_the_first_notebook_runs_and_draws_its_plots_by_itself(notebook: NotebookPage) -> None:
    notebook.open("start.ipynb")
    notebook.run_all(seconds=60)
    assert not notebook.warnings()
    drawings = notebook.showing(WIDGET)
    assert len(drawings) >= 2
    for cell in drawings:
        cell.scroll_into_view_if_needed()
        assert notebook.drawn(cell.locator("canvas")).colours > 50
    notebook.screenshot("start")
    notebook.run_cell("panel.close()")
    eventually(lambda: drawings[-1].locator("canvas").count() == 0)


def test_moving_a_slider_changes_the_picture_and_the_value(notebook: NotebookPage) -> None:
    notebook.write("slider.ipynb", toys.SLIDER_AND_CANVAS, "panel = toy()\npanel")
    notebook.run_all()
    before = notebook.drawn("canvas.toy")
    assert (before.width, before.height, before.colours) == (128, 128, 256)
    notebook.move("Bound", 3)
    eventually(lambda: notebook.python("panel.children[0].value") == "3")
    eventually(lambda: notebook.picture("canvas.toy") != before)
    assert notebook.text(".widget-readout") == "3"
    notebook.move("Bound", -1)
    eventually(lambda: notebook.python("panel.children[0].value") == "2")
    notebook.press("Start again")
    eventually(lambda: notebook.picture("canvas.toy") == before)
    assert notebook.python("panel.children[0].value") == "0"


def test_a_canvas_shows_its_last_picture_after_the_page_is_loaded_again(notebook: NotebookPage) -> None:
    notebook.write("again.ipynb", toys.SLIDER_AND_CANVAS, "panel = toy()\npanel")
    notebook.run_all()
    before = notebook.drawn("canvas.toy")
    notebook.move("Bound", 1)
    eventually(lambda: notebook.picture("canvas.toy") != before)
    moved = notebook.picture("canvas.toy")
    notebook.save()
    notebook.reload()
    assert notebook.drawn("canvas.toy") == moved
    notebook.press("Start again")
    eventually(lambda: notebook.picture("canvas.toy") == before)


def test_a_chart_follows_events_from_another_thread_the_theme_and_the_width(notebook: NotebookPage) -> None:
    notebook.write("chart.ipynb", toys.CHART)
    notebook.run_all()
    notebook.page.wait_for_function("() => window.Bokeh", polling=100)   # a view made before it is there is never drawn
    notebook.run_cell("wave, model = chart()\nmodel")
    before = notebook.drawn(CHART)
    notebook.run_cell(
        "import asyncio, threading\n"
        "loop = asyncio.get_running_loop()\n"
        "threading.Thread(target=loop.call_soon_threadsafe, args=[lambda: wave.event(number=4.0)]).start()"
    )
    eventually(lambda: notebook.picture(CHART) != before)
    notebook.dark()
    colour = "() => getComputedStyle(document.querySelector('.jp-NotebookPanel')).backgroundColor"
    assert notebook.page.evaluate(colour) == "rgb(17, 17, 17)"
    wide = notebook.picture(CHART).width
    notebook.resize(900)
    eventually(lambda: notebook.picture(CHART).width < wide)
    notebook.screenshot("dark-and-narrow")
    notebook.dark(False)
