"""What the tests in a browser stand on: it notices what goes wrong, finds what it should, and leaves nothing running."""

import sys
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser

from browser import toys
from browser.chromium import NoChromiumError, executable
from browser.lab_server import LabServer, lab_server
from browser.latency import Latency, cell_to_picture, key_to_picture
from browser.notebook_page import NotebookPage, eventually
from browser.watch import Watch

pytestmark = pytest.mark.long   # tests of the tests: nothing of the package is in them
Opened = tuple[NotebookPage, Watch]


def test_what_goes_wrong_unseen_is_noted(opened: Opened) -> None:
    notebook, watch = opened
    notebook.write("wrong.ipynb", "import ipywidgets\nslider = ipywidgets.IntSlider(description='Bound')\nslider")
    notebook.run_all()
    assert watch.complaints() == []
    notebook.run_cell("slider.observe(lambda change: 1 / 0, 'value')")
    notebook.move("Bound", 1)
    eventually(lambda: any("ZeroDivisionError" in complaint for complaint in watch.complaints()))
    notebook.page.evaluate("() => { setTimeout(() => { throw new Error('thrown away'); }); }")
    notebook.page.evaluate("() => { console.error('said aside'); console.warn('take care'); }")
    notebook.page.evaluate("() => fetch('https://example.org/asked?for=this').catch(() => null)")
    notebook.page.evaluate("() => { try { new WebSocket('wss://example.org/socket'); } catch {} }")
    notes = ("thrown away", "said aside", "take care", "https://example.org/asked?for=this", "wss://example.org/socket")
    eventually(lambda: all(any(note in complaint for complaint in watch.complaints()) for note in notes))
    watch.allow(r"another machine: https://example\.org/.*")
    assert not any("asked?for" in complaint for complaint in watch.complaints())
    assert any("socket" in complaint for complaint in watch.complaints())


def test_a_cell_that_fails_is_told_with_its_error(notebook: NotebookPage) -> None:
    notebook.write("fails.ipynb", "import warnings\nwarnings.warn('careful')", "1 / 0", "not_reached = 1")
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        notebook.run_all()
    assert "careful" in notebook.warnings()
    with pytest.raises(AssertionError, match="KeyError"):
        notebook.run_cell("{}['missing']")
    with pytest.raises(AssertionError, match="NameError"):
        notebook.python("not_reached")
    with pytest.raises(TimeoutError, match=r"0\.3 s"):
        notebook.run_cell("import time; time.sleep(1)", seconds=0.3)


def test_the_kernel_is_this_python_and_its_sliders_are_found(notebook: NotebookPage) -> None:
    one = "one = ipywidgets.IntSlider(description='one')\none.add_class('error-bound')"
    two = "two = ipywidgets.IntSlider(description='two')\nipywidgets.VBox([two, one])"
    notebook.write("kernel.ipynb", "import ipywidgets, os, sys", f"{one}\n{two}")
    notebook.run_all()
    assert notebook.python("sys.executable") == repr(sys.executable)
    assert notebook.python("os.environ['OMP_NUM_THREADS']") == "'2'"
    assert notebook.python("os.getpid()") == str(notebook.kernel().pid)
    assert notebook.run_cell("print('said'); 1 + 1") == "said\n2"
    notebook.move("error-bound", 2)
    notebook.move("two", 1)
    eventually(lambda: notebook.python("one.value, two.value") == "(2, 1)")


def test_every_step_of_a_slider_is_timed(notebook: NotebookPage) -> None:
    notebook.write("timed.ipynb", toys.SLIDER_AND_CANVAS)
    notebook.run_all()
    for counts in (True, False):   # by its count of drawings, or by its pixels
        first = cell_to_picture(notebook, f"panel = toy(canvases=2, counts={counts})\npanel", "canvas.toy", canvases=2)
        assert 0 < first < 10_000
        measured = key_to_picture(notebook, notebook.slider("Bound"), notebook.page.locator("canvas.toy"), steps=5)
        assert measured.missed == 0
        assert 0 < measured.median <= measured.p90 <= measured.largest < 5000
        assert notebook.python("panel.children[0].value") == "5"
        assert notebook.picture("canvas.toy", 0) == notebook.picture("canvas.toy", 1)
        notebook.delete_cell()


def test_a_step_that_changes_nothing_is_missed_not_timed(notebook: NotebookPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("browser.latency.CHANGES_WITHIN", 0.3)
    notebook.write("missed.ipynb", toys.SLIDER_AND_CANVAS, "panel = toy()\npanel")
    notebook.run_all()
    notebook.drawn("canvas.toy")
    measured = key_to_picture(notebook, notebook.slider("Bound"), notebook.page.locator("canvas.toy"), 2, key="Shift")
    assert (measured.missed, len(measured.milliseconds)) == (2, 0)
    with pytest.raises(TimeoutError, match="not drawn"):
        cell_to_picture(notebook, "1 + 1", "canvas.toy", seconds=0.3)


def test_figures_of_a_latency() -> None:
    measured = Latency([float(value) for value in range(20, 0, -1)], missed=1)
    assert (measured.median, measured.p90, measured.largest) == (10.5, 18.0, 20.0)


def test_nothing_runs_on_after_the_server_has_stopped(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("browser.lab_server.STOPS_WITHIN", 2.0)
    with lab_server(tmp_path / "server", threads=1) as server:
        assert server.address.startswith("http://127.0.0.1:")
        assert {connection.laddr.ip for connection in server.process.net_connections("inet")} == {"127.0.0.1"}
        page = browser.new_page()
        notebook = NotebookPage(page, server, tmp_path)
        notebook.write("left.ipynb", "import subprocess\nsubprocess.Popen(['sleep', '1000']).pid")
        notebook.run_all()
        everyone = [server.process, *server.process.children(recursive=True)]
        assert len(everyone) == 3
        assert server.kernels() == [notebook.kernel()]
        page.close()
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in everyone)


def test_a_server_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [sys.executable, "-c", "raise SystemExit('no port for you')"]
    monkeypatch.setattr("browser.lab_server._command", lambda root: fails)
    with pytest.raises(RuntimeError, match="no port for you"), lab_server(tmp_path / "server"):
        pass


def test_strangers_are_not_let_in(server: LabServer) -> None:
    assert isinstance(server.api("kernels"), list)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{server.address}api/kernels")


def test_without_a_browser_it_is_said_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(NoChromiumError, match="CHROMIUM names /nowhere/chromium"):
        executable(sys.executable)
    monkeypatch.delenv("CHROMIUM")
    monkeypatch.setenv("PATH", "")
    assert executable(sys.executable) == sys.executable
    with pytest.raises(NoChromiumError, match="apt install chromium"):
        executable("/nowhere/chromium")
