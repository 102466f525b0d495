"""A notebook in a real browser, in the words of a test: open, run all, move a slider, look at the picture.

What JupyterLab knows is asked of JupyterLab (`window.jupyterapp`), so nothing here sleeps and hopes: cells are done when
their promise says so. What a reader sees is asked of the page. Playwright's selectors look through open shadow roots, where
Bokeh draws.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from playwright.sync_api import Locator, Page

from browser.lab_server import LabServer

WAITS = 120.0   # seconds, unless told otherwise; what takes 5 when nothing else runs takes 40 on a busy machine
POLLS = 50     # milliseconds
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
ANSI = re.compile(r"\x1b\[[0-9;]*m")

PROBES = Path(__file__).with_name("probes.js")


class Picture(NamedTuple):
    """What a canvas shows: equal pictures have equal pixels."""

    width: int
    height: int
    colours: int   # how many different ones; a blank canvas has one
    digest: str


def notebook(*cells: str) -> str:
    """A notebook of these code cells, for the kernel of this Python, as JSON: nbformat takes seconds to be imported."""
    code: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"cell-{i}", "metadata": {}, "execution_count": None, "outputs": [], "source": source}
        for i, source in enumerate(cells)
    ]
    return json.dumps({"cells": code, "metadata": {"kernelspec": KERNEL}, "nbformat": 4, "nbformat_minor": 5})


class InUse(NamedTuple):
    """What the page's scripts still refer to, after garbage was collected."""

    megabytes: float
    nodes: int
    listeners: int


class NotebookPage:
    """One browser page that shows one notebook."""

    def __init__(self, page: Page, server: LabServer, artefacts: Path) -> None:
        self.page = page
        self._server = server
        self._artefacts = artefacts
        page.set_default_timeout(1e3 * WAITS)
        page.add_init_script(path=PROBES)
        page.on("dialog", lambda dialog: dialog.accept())   # leave the page although the notebook is not saved

    def write(self, name: str, *cells: str) -> None:
        """Put a notebook of these code cells where the server finds it, and open it."""
        (self._server.notebooks / name).write_text(notebook(*cells))
        self.open(name)

    def open(self, name: str) -> None:
        """Show a notebook and wait until its kernel is idle."""
        self.page.goto(self._server.lab(name))
        self._wait_for_kernel(name)

    def reload(self) -> None:
        """Load the page again; the kernel goes on, and what was not saved is gone."""
        name = self.page.evaluate("() => probes.panel().context.path")
        self.page.reload()
        self._wait_for_kernel(name)

    def end_kernel(self) -> None:
        """End the kernel; the notebook gets another one when it is opened again."""
        self.page.evaluate("async () => { await probes.panel().sessionContext.shutdown(); }")

    def save(self) -> None:
        """Write the notebook with its outputs."""
        self._execute("docmanager:save")

    def _wait_for_kernel(self, name: str) -> None:
        self.page.wait_for_function("name => probes.ready(name)", arg=name, polling=POLLS)
        self.page.evaluate("() => probes.listen()")

    def _execute(self, command: str, **arguments: object) -> None:
        self.page.evaluate("async ([command, args]) => { await probes.execute(command, args); }", [command, arguments])

    def run_all(self, seconds: float = WAITS) -> None:
        """Run all cells and wait until they are done; an error in one of them ends the run and is raised."""
        if not self.page.evaluate("probes.runAll", seconds):
            raise TimeoutError(f"the cells were not done after {seconds} s")
        if errors := self.errors():
            raise AssertionError("a cell failed:\n" + "\n".join(errors))
        assert all(cell["ran"] for cell in self._cells()), "not every cell was run"

    def run_cell(self, source: str, seconds: float = WAITS) -> str:
        """Run a new cell at the end; what it printed and the value that it ended with, as text."""
        if not self.page.evaluate("probes.runCell", [source, seconds]):
            raise TimeoutError(f"the cell was not done after {seconds} s")
        outputs = self._cells()[-1]["outputs"]
        if errors := [error for output in outputs if (error := _error(output))]:
            raise AssertionError("the cell failed:\n" + "\n".join(errors))
        return "".join(_text(output) for output in outputs).strip()

    def delete_cell(self) -> None:
        """Remove the cell that was run last, with what it shows; what it made in the kernel stays."""
        self._execute("notebook:delete-cell")

    def delete_cells_after(self, kept: int) -> None:
        """Remove all but so many cells."""
        while len(self._cells()) > kept:
            self.page.evaluate("() => { const all = probes.panel().content; all.activeCellIndex = all.widgets.length - 1 }")
            self.delete_cell()

    def errors(self) -> list[str]:
        """The exceptions that cells ended with."""
        return [error for cell in self._cells() for output in cell["outputs"] if (error := _error(output))]

    def warnings(self) -> str:
        """What cells wrote to standard error."""
        outputs = (output for cell in self._cells() for output in cell["outputs"])
        return "".join(_text(output) for output in outputs if output.get("name") == "stderr")

    def texts(self) -> list[str]:
        """What cells show and print, as text, output by output."""
        return [_text(output) for cell in self._cells() for output in cell["outputs"]]

    def _cells(self) -> list[dict[str, Any]]:
        cells: list[dict[str, Any]] = self.page.evaluate("probes.cells")
        return cells

    def showing(self, mime: str) -> list[Locator]:
        """The cells with an output of this type, as on the page; what is far from the window is drawn when scrolled to."""
        shown = self.page.evaluate("probes.showing", mime)
        return [self.page.locator(".jp-Notebook .jp-Cell").nth(cell) for cell in shown]

    def python(self, expression: str) -> str:
        """What the kernel makes of an expression, as `repr` writes it; no cell is added."""
        answer = self.page.evaluate("probes.python", expression)
        if answer["status"] != "ok":
            raise AssertionError(f"{expression}: {answer['ename']}: {answer['evalue']}")
        return str(answer["data"]["text/plain"])

    def in_use(self) -> InUse:
        """What JupyterLab and all widgets of this page keep; a JupyterLab keeps the cells that were deleted, too."""
        session = self.page.context.new_cdp_session(self.page)
        for _ in range(2):   # what the first run ends may let go of more
            session.send("HeapProfiler.collectGarbage")
        elements, used = session.send("Memory.getDOMCounters"), session.send("Runtime.getHeapUsage")["usedSize"]
        session.detach()
        return InUse(used / 1e6, elements["nodes"], elements["jsEventListeners"])

    def kernel(self) -> psutil.Process:
        """The process that runs this notebook's cells."""
        name = self.page.evaluate("() => probes.kernel().id")
        return next(kernel for kernel in self._server.kernels() if any(name in word for word in kernel.cmdline()))

    def slider(self, label: str) -> Locator:
        """The handle of a slider: by its description, by its `aria-label`, or by the CSS class of its widget."""
        described = self.page.locator(".widget-slider", has=self.page.get_by_text(label, exact=True))
        classed = self.page.locator(f"[class~={json.dumps(label)}]")
        named = self.page.get_by_role("slider", name=label, exact=True)
        return described.or_(classed).locator(".noUi-handle").or_(named).first

    def move(self, label: str, steps: int) -> None:
        """Move a slider so many steps by the keyboard, to the left if negative."""
        handle = self.slider(label)
        for _ in range(abs(steps)):
            handle.press("ArrowRight" if steps > 0 else "ArrowLeft")

    def press(self, text: str) -> None:
        """Press the button of this text."""
        self.page.get_by_role("button", name=text, exact=True).click()

    def text(self, selector: str) -> str:
        """The text that a reader sees in an element."""
        return self.page.locator(selector).first.inner_text()

    def picture(self, canvas: str | Locator = "canvas", nth: int = 0) -> Picture:
        """What a canvas shows now; shadow roots are looked into."""
        found = self.page.locator(canvas) if isinstance(canvas, str) else canvas
        return Picture(*found.nth(nth).evaluate("probes.picture"))

    def drawn(self, canvas: str | Locator = "canvas", nth: int = 0) -> Picture:
        """What a canvas shows once it is not blank any more."""
        eventually(lambda: self.picture(canvas, nth).colours > 1)
        return self.picture(canvas, nth)

    def dark(self, dark: bool = True) -> None:
        """Change to JupyterLab's dark theme, or back."""
        self._execute("apputils:change-theme", theme="JupyterLab Dark" if dark else "JupyterLab Light")
        shown = "light => document.body.dataset.jpThemeLight === light"
        self.page.wait_for_function(shown, arg="false" if dark else "true", polling=POLLS)

    def resize(self, width: int, height: int = 900) -> None:
        """Make the window so many pixels wide."""
        self.page.set_viewport_size({"width": width, "height": height})

    def show_files(self, shown: bool) -> None:
        """Open or close the list of files at the left."""
        if self.page.locator("#jp-left-stack").is_visible() != shown:
            self._execute("application:toggle-left-area")

    def screenshot(self, name: str) -> Path:
        """A picture of the window as a file, for people; where it is gets printed."""
        path = self._artefacts / f"{name}.png"
        self.page.screenshot(path=path)
        print(f"screenshot: {path}")
        return path

    def portrait(self, name: str, selector: str = ".wb-panel") -> Path:
        """A picture of one element, as high as it is; JupyterLab's columns at the sides are put away for it."""
        path = self._artefacts / f"{name}.png"
        size, element = self.page.viewport_size, self.page.locator(selector).first
        element.scroll_into_view_if_needed()
        box = element.bounding_box()
        assert size is not None
        assert box is not None
        self.page.set_viewport_size({"width": size["width"], "height": round(box["height"]) + 260})
        element.scroll_into_view_if_needed()
        self.page.wait_for_timeout(500)   # what follows the size has been drawn
        element.screenshot(path=path)
        self.page.set_viewport_size(size)
        print(f"portrait: {path}")
        return path

    def close(self) -> None:
        """Close the page and end its kernel."""
        self.page.evaluate("async () => { await window.probes?.panel()?.sessionContext?.shutdown(); }")
        self.page.close()


def eventually(condition: Callable[[], bool], seconds: float = WAITS) -> None:
    """Wait until something asked of the kernel or the page is so."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not so within {seconds} s"
        time.sleep(POLLS / 1e3)


def _error(output: dict[str, Any]) -> str:
    return ANSI.sub("", "\n".join(output["traceback"])) if output["output_type"] == "error" else ""


def _text(output: dict[str, Any]) -> str:
    text = output.get("text") or output.get("data", {}).get("text/plain", "")
    return ANSI.sub("", text if isinstance(text, str) else "".join(text))
