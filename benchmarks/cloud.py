"""Clouds of particles in a real JupyterLab and a real browser: the first picture, frames while turning, all points at rest.

python benchmarks/cloud.py [--n 128] [--seconds 5] [--quick]

Without a GPU, Chromium draws with SwiftShader on the processor. Frames are counted by animation frames, which Chromium
holds back while a picture is not done; the first second is left out, in which the number of points adapts.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import timing

from workbench import backend

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))   # the browser is driven as in the tests

from browser.chromium import NoChromiumError, chromium
from browser.lab_server import lab_server
from browser.latency import cell_to_picture
from browser.notebook_page import NotebookPage, eventually

CANVAS = ".wb-cloud-points"
HEADER = [
    "cloud", "first picture, ms", "all sent and drawn, s", "frame, median ms", "95%", "frames per second",
    "points while turning", "at rest", "all at rest again, s",
]
# The intervals between animation frames, and the points of each, for so many milliseconds.
FRAMES = """async milliseconds => {
    const canvas = document.querySelector(".wb-cloud-points");
    const [taken, points] = [[], []];
    const frame = () => new Promise(requestAnimationFrame);
    let last = await frame();
    const until = last + milliseconds;
    while (last < until) {
        const now = await frame();
        taken.push(now - last);
        points.push(Number(canvas.dataset.points));
        last = now;
    }
    return [taken, points, canvas.width, canvas.height];
}"""
# Seconds until a cloud that is stopped has all points again.
RESTS = """async count => {
    const canvas = document.querySelector(".wb-cloud-points");
    const start = performance.now();
    const done = () => canvas.dataset.moving === "false" && Number(canvas.dataset.points) === count;
    while (!done()) await new Promise(requestAnimationFrame);
    return (performance.now() - start) / 1e3;
}"""


@dataclass(frozen=True)
class Case:
    """A cloud to be measured: its name in the table, and the code that opens it."""

    name: str
    opened: str


CASES = (
    Case("one side", "wb.lab.cloud(snapshot, groups=groups, rotate=False, height=600)"),
    Case("two sides", "wb.lab.cloud(snapshot, decoded, groups, after, rotate=False, height=600)"),
)
DATA = """import workbench as wb
snapshot = wb.synthetic.cosmic_web(n={n})
groups = wb.friends_of_friends(snapshot, 0.2)
positions = wb.Particles(snapshot.positions, snapshot.box)
decoded = wb.compress(positions, wb.Absolute(0.1 * groups.linking_length), order="keep").decompress()
after = wb.friends_of_friends(decoded, groups.linking_length, "length")
wb.lab"""


def measured(notebook: NotebookPage, case: Case, seconds: float) -> list[object]:
    """One row of the table."""
    start = time.perf_counter()
    first = cell_to_picture(notebook, f"cloud = {case.opened}\ncloud.layout.width = '800px'\ncloud", CANVAS, 1, 120)
    canvas = notebook.page.locator(CANVAS)
    count = int(notebook.python("len(cloud.scene)"))
    eventually(lambda: canvas.get_attribute("data-points") == str(count), 120)
    sent = time.perf_counter() - start
    canvas.scroll_into_view_if_needed()
    canvas.press("Space")
    notebook.page.wait_for_timeout(1000)
    taken, points, width, height = notebook.page.evaluate(FRAMES, 1e3 * seconds)
    assert (width, height) == (800, 600), f"the canvas must have 800 x 600 pixels; it has {width} x {height}"
    canvas.press("Space")
    rested = notebook.page.evaluate(RESTS, count)
    notebook.run_cell("cloud.close()")
    notebook.delete_cells_after(1)
    median, late = statistics.median(taken), sorted(taken)[int(0.95 * len(taken))]
    return [
        f"{case.name}, {count:,} particles", f"{first:.0f}", f"{sent:.1f}", f"{median:.0f}", f"{late:.0f}",
        f"{len(taken) / sum(taken) * 1e3:.0f}", f"{statistics.median(points):,.0f}", f"{count:,}", f"{rested:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=128, help="particles along each side of the box (default 128)")
    parser.add_argument("--seconds", type=float, default=5.0, help="time of turning that is measured (default 5)")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    n, seconds = (32, 1.0) if options.quick else (options.n, options.seconds)
    try:
        with tempfile.TemporaryDirectory() as folder, lab_server(Path(folder) / "server") as server, chromium() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 1000})
            notebook = NotebookPage(page, server, Path(folder))
            notebook.write("measured.ipynb", DATA.format(n=n))
            notebook.run_all(600)
            print(f"{timing.machine()}, {backend.threads()} threads, Chromium {browser.version}, {datetime.date.today()}; "
                  f"load before: {os.getloadavg()[0]:.1f}\n")
            print(timing.table(HEADER, [measured(notebook, case, seconds) for case in CASES]))
            print(f"load after: {os.getloadavg()[0]:.1f}")
            notebook.close()
    except NoChromiumError as error:
        print(f"Left out: {error}")


if __name__ == "__main__":
    main()
