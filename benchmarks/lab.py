"""What a reader of a panel waits for, in a real JupyterLab and a real browser: the first picture, the next one, and memory.

python benchmarks/lab.py [--steps 40] [--repeats 3] [--full] [--quick] [--only NAME]

Chromium is driven as a reader would: a key on a slider, then the clock runs until an animation frame has the new picture,
so kernel, server and socket are in it; a frame, 16 ms, is the resolution. Each measurement has a kernel and a page of its
own. It is a function that yields the rows of a table; adding one means writing it and naming it in MEASUREMENTS.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import timing

from workbench import backend

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))   # the browser is driven as in the tests

from browser.chromium import NoChromiumError, chromium
from browser.lab_server import LabServer, lab_server
from browser.latency import cell_to_picture, key_to_picture
from browser.notebook_page import NotebookPage, eventually
from browser.toys import SLIDER_AND_CANVAS

Row = list[object]
SIDES = (128, 512, 1024)


@dataclass(frozen=True)
class Run:
    """What a measurement gets: an empty page with a kernel, and how much to do."""

    notebook: NotebookPage
    server: LabServer
    steps: int
    repeats: int
    full: bool
    quick: bool

    def start(self, *cells: str) -> None:
        """Open a notebook and run these cells."""
        self.notebook.write("measured.ipynb", *cells)
        self.notebook.run_all()

    def kernel_megabytes(self) -> float:
        """What the kernel's process holds in memory."""
        return float(self.notebook.kernel().memory_info().rss) / 1e6


@dataclass(frozen=True)
class Measurement:
    """A table: what it is of, and how its rows are measured."""

    title: str
    header: list[str]
    rows: Callable[[Run], Iterator[Row]]


def key_to_canvas(run: Run) -> Iterator[Row]:
    """The floor under every panel: a slider whose callback only sends bytes to canvases that only draw them."""
    run.start(SLIDER_AND_CANVAS)
    for side in SIDES[:1] if run.quick else SIDES:
        for canvases in (1, 3):
            cell_to_picture(run.notebook, f"panel = toy({side}, {canvases})\npanel", "canvas.toy", canvases)
            pictures = run.notebook.page.locator("canvas.toy")
            taken = key_to_picture(run.notebook, run.notebook.slider("Bound"), pictures, run.steps)
            yield [side, canvases, f"{taken.median:.0f}", f"{taken.p90:.0f}", f"{taken.largest:.0f}", taken.missed]
            run.notebook.delete_cell()


def first_picture(run: Run) -> Iterator[Row]:
    """From running a cell to its picture; the first time in a kernel is told apart, as it loads what is needed."""
    run.start(SLIDER_AND_CANVAS)
    taken = []
    for _ in range(1 + run.repeats):
        taken.append(cell_to_picture(run.notebook, "toy(1024)", "canvas.toy"))
        run.notebook.delete_cell()
    yield ["slider and one canvas, 1024²", f"{taken[0]:.0f}", f"{statistics.median(taken[1:]):.0f}"]


def open_and_close(run: Run, panels: int = 30) -> Iterator[Row]:
    """Memory of the kernel before, with one panel after another shown and closed again, and what stays."""
    run.start(SLIDER_AND_CANVAS, "panel = toy(1024)\npanel.close_all()")
    before, largest = run.kernel_megabytes(), 0.0
    times = 3 if run.quick else panels
    for _ in range(times):
        cell_to_picture(run.notebook, "panel = toy(1024)\ndisplay(panel)", "canvas.toy")   # not kept in `Out`
        largest = max(largest, run.kernel_megabytes())
        run.notebook.run_cell("panel.close_all(); del panel")
        run.notebook.delete_cell()
        eventually(lambda: run.notebook.page.locator("canvas.toy").count() == 0)
    after = run.kernel_megabytes()
    figures = [f"{megabytes:.0f}" for megabytes in (before, largest, after)]
    yield ["slider and one canvas, 1024²", times, *figures, f"{after - before:.1f}"]


MEASUREMENTS = {
    "keys": Measurement(
        "From a key to the picture, ms", ["side", "canvases", "median", "90%", "largest", "missed"], key_to_canvas
    ),
    "first": Measurement("From running a cell to the picture, ms", ["panel", "first", "later"], first_picture),
    "memory": Measurement(
        "Opened and closed one after another: memory of the kernel, MB",
        ["panel", "times", "before", "at most", "after", "stays"], open_and_close,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40, help="steps of a slider (default 40)")
    parser.add_argument("--repeats", type=int, default=3, help="counted runs of what is not stepped (default 3)")
    parser.add_argument("--full", action="store_true", help="also the largest data")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    parser.add_argument("--only", choices=MEASUREMENTS, help="one measurement")
    options = parser.parse_args()
    steps, repeats = (3, 1) if options.quick else (options.steps, options.repeats)
    try:
        with tempfile.TemporaryDirectory() as folder, lab_server(Path(folder) / "server") as server, chromium() as browser:
            print(f"{timing.machine()}, {backend.threads()} threads, Chromium {browser.version}, {datetime.date.today()}\n")
            for name in [options.only] if options.only else MEASUREMENTS:
                notebook = NotebookPage(browser.new_page(viewport={"width": 1280, "height": 900}), server, Path(folder))
                report(MEASUREMENTS[name], Run(notebook, server, steps, repeats, options.full, options.quick))
                notebook.close()
    except NoChromiumError as error:
        print(f"Left out: {error}")


def report(measurement: Measurement, run: Run) -> None:
    """One table."""
    print(f"## {measurement.title}\n")
    print(timing.table(measurement.header, list(measurement.rows(run))), flush=True)



if __name__ == "__main__":
    main()
