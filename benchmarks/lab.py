"""Latency of the panels in a real JupyterLab and a real browser: the first picture and the next ones; and memory.

python benchmarks/lab.py [--steps 40] [--repeats 3] [--quick] [--only NAME]

Chromium is driven as a reader would: a key on a slider, then the clock runs until an animation frame has the new picture,
so kernel, server and socket are in it; a frame, 16 ms, is the resolution. Each measurement has a kernel and a page of its
own. It is a function that yields the rows of a table; adding one means writing it and naming it in MEASUREMENTS.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import timing

from workbench import backend

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))   # the browser is driven as in the tests

from browser import toys
from browser.chromium import NoChromiumError, chromium
from browser.lab_server import LabServer, lab_server
from browser.latency import Latency, all_to_picture, cell_to_picture, key_to_picture
from browser.notebook_page import NotebookPage, eventually

Row = list[object]
NUMBERS = itertools.count()   # of notebooks, each with a kernel of its own
STARTS = 120.0   # seconds for a kernel to import everything, on a machine that does other work too


@dataclass(frozen=True)
class Run:
    """The input of a measurement: an empty page with a kernel, and the amount of work."""

    notebook: NotebookPage
    server: LabServer
    steps: int
    repeats: int
    quick: bool

    def start(self, *cells: str) -> None:
        """Open a new notebook and run these cells."""
        self.notebook.write(f"measured-{next(NUMBERS)}.ipynb", *cells)
        self.notebook.run_all(STARTS)

    def kernel_megabytes(self) -> float:
        """The memory of the kernel's process."""
        return float(self.notebook.kernel().memory_info().rss) / 1e6


@dataclass(frozen=True)
class Measurement:
    """A table: its title, its columns, and the function that measures its rows."""

    title: str
    header: list[str]
    rows: Callable[[Run], Iterator[Row]]


@dataclass(frozen=True)
class Panel:
    """A panel to be measured: the code that opens it, the slider that is moved, and the pictures that follow it."""

    name: str
    data: str
    opened: str
    slider: str = "error bound"
    panes: tuple[int, ...] = (1, 2)

    @property
    def pictures(self) -> str:
        """The selector of the pictures."""
        return ", ".join(f".wb-picture[data-pane='{pane}']" for pane in self.panes)


FIELD = Panel("bounds, field of 1024²", "data = wb.synthetic.gaussian_field((1024, 1024), seed=1)", "wb.lab.bounds(data)")
SMALL_CUBE = Panel(
    "bounds, field of 64³", "data = wb.synthetic.gaussian_field((64, 64, 64), seed=1)", "wb.lab.bounds(data)"
)
CUBE = Panel(
    "bounds, slices of 192³", "data = wb.synthetic.gaussian_field((192, 192, 192), seed=1)", "wb.lab.bounds(data)",
    "slice", (0, 1, 2),
)
PARTICLES = Panel("bounds, 2.1 million particles", "data = wb.synthetic.cosmic_web(n=128)", "wb.lab.bounds(data)")
CLUSTERS = Panel(
    "clusters, 2.1 million particles", "data = wb.synthetic.cosmic_web(n=128)", "wb.lab.clusters(data)",
    "error bound ξ", (1,),
)
MILLION = Panel("clusters, 10⁶ particles", "data = wb.synthetic.cosmic_web(n=100)", "wb.lab.clusters(data)")
PROPAGATION = Panel(
    "propagation, power spectrum of 64³",
    "data = wb.synthetic.gaussian_field((64, 64, 64), seed=1).values + 9.0; steps = wb.propagation.power_spectrum(data)",
    "wb.lab.propagation(steps, data, bit=12)", "bit", (2,),
)
SMALL = Panel("clusters, 32,768 particles", "data = wb.synthetic.cosmic_web(n=32)", "wb.lab.clusters(data)")


def key_to_picture_of_panels(run: Run) -> Iterator[Row]:
    """From a key on the slider to all pictures that it changes.

    `visited` are positions where the slider has been before; the others are compressed anew, which is the codec's time.
    The first rows are the floor under every panel: a callback that only sends bytes to a canvas that only draws them.
    """
    run.start(toys.SLIDER_AND_CANVAS)
    for canvases in (1, 3):
        cell_to_picture(run.notebook, f"panel = toy(1024, {canvases})\npanel", "canvas.toy", canvases)
        taken = key_to_picture(
            run.notebook, run.notebook.slider("Bound"), run.notebook.page.locator("canvas.toy"), run.steps
        )
        yield [f"nothing but {canvases} of 1024² bytes", "", *_milliseconds(taken)]
        run.notebook.delete_cell()
    for panel in (FIELD, CUBE) if run.quick else (SMALL_CUBE, PARTICLES, FIELD, CUBE, CLUSTERS, PROPAGATION):
        yield from _keys(run, panel)


def propagation_targets(run: Run) -> Iterator[Row]:
    """From a key on the slider for the bit to the picture, and from running the cell to the first one."""
    first = _open(run, PROPAGATION)
    slider, pictures = run.notebook.slider(PROPAGATION.slider), run.notebook.page.locator(PROPAGATION.pictures)
    new = key_to_picture(run.notebook, slider, pictures, max(run.steps // 4, 3))
    eventually(lambda: run.notebook.python("panel.status.busy") == "False", 60)
    back = key_to_picture(run.notebook, slider, pictures, max(run.steps // 4, 3), "ArrowLeft")
    for what, measured, limit in (
        ("slider to picture, visited, ms", back.median, 100.0), ("slider to picture, new, ms", new.median, 100.0),
        ("first picture, ms", first, 3000.0),
    ):
        yield [what, f"{measured:.0f}", f"<= {limit:g}", "yes" if measured <= limit else "NO"]


def _keys(run: Run, panel: Panel) -> Iterator[Row]:
    _open(run, panel)
    slider, pictures = run.notebook.slider(panel.slider), run.notebook.page.locator(panel.pictures)
    new = key_to_picture(run.notebook, slider, pictures, max(run.steps // 4, 3))
    eventually(lambda: run.notebook.python("panel.status.busy") == "False", 60)
    yield [panel.name, "new", *_milliseconds(new)]
    here, there = max(run.steps // 4, 3), max(run.steps // 2, 3)
    back = key_to_picture(run.notebook, slider, pictures, min(here, there), "ArrowLeft")
    forth = key_to_picture(run.notebook, slider, pictures, min(here, there))
    again = key_to_picture(run.notebook, slider, pictures, min(here, there), "ArrowLeft")
    taken = [*back.milliseconds, *forth.milliseconds, *again.milliseconds]
    yield [panel.name, "visited", *_milliseconds(Latency(taken, back.missed + forth.missed + again.missed))]
    if panel is FIELD:
        run.notebook.run_cell("panel.change(pixels=1024)")
        run.notebook.delete_cell()
        for key in ("ArrowRight", "ArrowLeft"):   # the first makes pictures of this size, the second finds them
            taken_at_most = key_to_picture(run.notebook, slider, pictures, min(here, there), key)
        yield [f"{panel.name}, pictures of 1024²", "visited", *_milliseconds(taken_at_most)]


def _milliseconds(taken: Latency) -> list[object]:
    return [f"{taken.median:.0f}", f"{taken.p90:.0f}", f"{taken.largest:.0f}", taken.missed]


def _open(run: Run, panel: Panel) -> float:
    """Open a panel in a kernel of its own; milliseconds from running the cell to its first picture."""
    run.start(f"import workbench as wb\n{panel.data}")
    taken = cell_to_picture(run.notebook, f"panel = {panel.opened}\npanel", ".wb-picture", 1, 60)
    eventually(lambda: run.notebook.python("panel.status.busy") == "False", 60)
    return taken


def first_picture(run: Run) -> Iterator[Row]:
    """From running a cell to its picture: the first time in a kernel, when libraries are loaded, and later."""
    for panel in (FIELD, SMALL) if run.quick else (FIELD, CUBE, PARTICLES, MILLION, CLUSTERS):
        first, later = _open(run, panel), []
        for _ in range(run.repeats):
            run.notebook.run_cell("panel.close()")
            run.notebook.delete_cells_after(1)
            later.append(cell_to_picture(run.notebook, f"panel = {panel.opened}\npanel", ".wb-picture", 1, 60))
        yield [panel.name, f"{first:.0f}", f"{statistics.median(later):.0f}"]


def memory(run: Run) -> Iterator[Row]:
    """The memory of a kernel with a panel, after its slider was moved and its halos kept."""
    panel = SMALL if run.quick else MILLION
    run.start("import workbench as wb")
    before = run.kernel_megabytes()
    _open(run, panel)
    opened = run.kernel_megabytes()
    run.notebook.move("error bound ξ", 5)
    eventually(lambda: run.notebook.python("panel.status.busy") == "False", 60)
    run.notebook.press("preserve")
    eventually(lambda: run.notebook.python("'kept' in panel.result") == "True", 120)
    peak = max(run.kernel_megabytes(), float(run.notebook.python(PEAK)))
    yield [panel.name, *(f"{megabytes:.0f}" for megabytes in (before, opened, peak))]


PEAK = "__import__('resource').getrusage(__import__('resource').RUSAGE_SELF).ru_maxrss / 1e3"


LIMITS = Panel("limits, field of 64²", "data = wb.synthetic.gaussian_field((64, 64), seed=1)", "wb.lab.limits(data)")
SPECTRUM = Panel(
    "propagation, power spectrum of 16³",
    "data = wb.synthetic.gaussian_field((16, 16, 16), seed=1).values + 9.0; steps = wb.propagation.power_spectrum(data)",
    "wb.lab.propagation(steps, data)",
)
FLAT = Panel("bounds, field of 256²", "data = wb.synthetic.gaussian_field((256, 256), seed=1)", "wb.lab.bounds(data)")
HALOS = Panel("clusters, 4,096 particles", "data = wb.synthetic.cosmic_web(n=16)", "wb.lab.clusters(data)")
FOUR_KINDS = (FLAT, HALOS, LIMITS, SPECTRUM)


def open_and_close(run: Run) -> Iterator[Row]:
    """Memory of the kernel and of the page's scripts while panels of all kinds are opened, drawn with charts, and closed.

    The panels before the first row load libraries and let the allocator take the memory that it will keep. Each repetition
    is 20 panels.
    """
    warm, times = (1, 2) if run.quick else (5, 5 * run.repeats)
    turn = f"turn = (globals().get('turn', -1) + 1) % {len(FOUR_KINDS)}"
    data = [panel.data.replace("data", f"data_{i}") for i, panel in enumerate(FOUR_KINDS)]
    opened = ", ".join(f"lambda: {panel.opened.replace('data', f'data_{i}')}" for i, panel in enumerate(FOUR_KINDS))
    cells = "import workbench as wb", *data, f"{turn}\npanel = [{opened}][turn]()\ndisplay(panel)"
    run.notebook.write(f"measured-{next(NUMBERS)}.ipynb", *cells)
    before: tuple[float, float] | None = None
    for cycle in range(warm + times):
        for _ in FOUR_KINDS:
            _open_and_close(run)
        if (cycle + 1) % 5 and cycle + 1 not in (warm, warm + times):
            continue
        here = run.kernel_megabytes(), run.notebook.in_use().megabytes
        before = before or (here if cycle + 1 == warm else None)
        if before:
            shares = [f"{now / then - 1:+.1%}" for now, then in zip(here, before, strict=True)]
            yield [4 * (cycle + 1), f"{here[0]:.0f}", shares[0], f"{here[1]:.1f}", shares[1]]


def _open_and_close(run: Run) -> None:
    """Show the next panel until its pictures and all its charts are drawn, and close it.

    The cells are run again, since JupyterLab keeps what belonged to deleted ones; IPython's Out would keep a panel.
    """
    notebook = run.notebook
    all_to_picture(notebook, ".wb-picture", STARTS)
    eventually(lambda: notebook.python("panel.status.busy") == "False", 120)
    drawn = notebook.page.locator(".wb-panel .bk-Figure")
    eventually(lambda: int(notebook.python("len(panel._view.charts)")) == drawn.count() > 0, 120)
    notebook.python("panel.close()")
    eventually(lambda: notebook.page.locator(".wb-picture").count() == 0)


def first_after_run_all(run: Run) -> Iterator[Row]:
    """From *run all* to the first picture, in a kernel in which panels were open before, and in a new one."""
    for panel in (SMALL_CUBE,) if run.quick else (SMALL_CUBE, FLAT, HALOS, LIMITS, PROPAGATION):
        cells = "import workbench as wb", panel.data, f"panel = {panel.opened}\npanel"
        run.notebook.write(f"measured-{next(NUMBERS)}.ipynb", *cells)
        taken = []
        for _ in range(1 + run.repeats):
            taken.append(all_to_picture(run.notebook, ".wb-picture", STARTS))
            run.notebook.run_cell("panel.close()")
            run.notebook.delete_cells_after(len(cells))
            eventually(lambda: run.notebook.page.locator(".wb-picture").count() == 0)
        later = statistics.median(taken[1:])
        yield [panel.name, f"{taken[0]:.0f}", f"{later:.0f}", f"{max(taken[1:]):.0f}", "yes" if later <= 4000 else "NO"]


def importing(run: Run) -> Iterator[Row]:
    """The time that a new process takes to import the panels."""
    program = "import time; start = time.perf_counter(); import workbench.lab; print(time.perf_counter() - start)"
    taken = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
        for _ in range(max(run.repeats, 3))
    ]
    yield ["import workbench.lab", f"{min(taken):.2f}", f"{statistics.median(taken):.2f}"]


MEASUREMENTS = {
    "keys": Measurement(
        "From a key to the pictures, ms", ["panel", "positions", "median", "90%", "largest", "missed"],
        key_to_picture_of_panels,
    ),
    "first": Measurement("From running a cell to its first picture, ms", ["panel", "first", "later"], first_picture),
    "all": Measurement(
        "From running all cells to the first picture, ms", ["panel", "new kernel", "warm kernel", "slowest", "<= 4 s"],
        first_after_run_all,
    ),
    "propagation": Measurement(
        "What the propagation panel must reach", ["what", "measured", "must be", "reached"], propagation_targets
    ),
    "memory": Measurement("Memory of the kernel, MB", ["panel", "before", "opened", "at most, halos kept"], memory),
    "leaks": Measurement(
        "Panels of all four kinds, opened and closed: memory of the kernel (RSS) and of the page's scripts, MB",
        ["panels", "kernel", "since the first row", "scripts", "since the first row"], open_and_close,
    ),
    "import": Measurement("Import, s", ["", "fastest", "median"], importing),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40, help="steps of a slider (default 40)")
    parser.add_argument("--repeats", type=int, default=3, help="counted runs of what is not stepped (default 3)")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    parser.add_argument("--only", choices=MEASUREMENTS, help="one measurement")
    options = parser.parse_args()
    steps, repeats = (3, 1) if options.quick else (options.steps, options.repeats)
    try:
        with tempfile.TemporaryDirectory() as folder, lab_server(Path(folder) / "server") as server, chromium() as browser:
            print(f"{timing.machine()}, {backend.threads()} threads, Chromium {browser.version}, {datetime.date.today()}\n")
            for name in [options.only] if options.only else MEASUREMENTS:
                notebook = NotebookPage(browser.new_page(viewport={"width": 1280, "height": 900}), server, Path(folder))
                report(MEASUREMENTS[name], Run(notebook, server, steps, repeats, options.quick))
                notebook.close()
    except NoChromiumError as error:
        print(f"Left out: {error}")


def report(measurement: Measurement, run: Run) -> None:
    """One table."""
    print(f"## {measurement.title}\n")
    print(timing.table(measurement.header, list(measurement.rows(run))), flush=True)



if __name__ == "__main__":
    main()
