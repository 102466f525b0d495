"""The live page (`workbench page`) in a real browser: the first picture, and a step of each slider.

python benchmarks/live_page.py [--steps 20] [--quick]

A step lasts until the frame of the screen after it; its processor time is that of the page's main thread, which a busy
machine does not lengthen. The page is a file.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import sys
import tempfile
from pathlib import Path

import timing

from workbench.lab.live.examples import ABOUT, TITLE, random_field, universe
from workbench.lab.live.page import page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))   # the browser is driven as in the tests

from playwright.sync_api import Browser, CDPSession, Page

from browser.chromium import NoChromiumError, chromium

HEADER = ["slider", "step, median ms", "95%", "processor time, median ms", "95%"]
SLIDERS = {"particles": "error bound of each coordinate", "field": "error bound of each value"}
# One step of a slider, until it is drawn: the second frame begins after the first has been.
STEP = """async slider => {
    const frame = () => new Promise(requestAnimationFrame);
    await frame();
    const start = performance.now();
    slider.value = Number(slider.value) + 1;
    slider.dispatchEvent(new Event("input"));
    await frame();
    await frame();
    return performance.now() - start;
}"""


def busy(session: CDPSession) -> float:
    """Milliseconds that the main thread of the page has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1e3 * next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def measured(live: Page, name: str, steps: int) -> list[object]:
    """One row of the table."""
    session = live.context.new_cdp_session(live)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    slider, wall, worked = live.get_by_label(SLIDERS[name], exact=True), [], []
    slider.evaluate("slider => { slider.value = Number(slider.value) - 10; }")
    for number in range(steps + 3):
        before = busy(session)
        took = slider.evaluate(STEP)
        if number >= 3:   # by then, the browser has compiled all scripts
            wall.append(took)
            worked.append(busy(session) - before)
    return [name, *(f"{value:.0f}" for times in (wall, worked) for value in (statistics.median(times), late(times)))]


def late(times: list[float]) -> float:
    """The time that one in twenty exceeds."""
    return sorted(times)[int(0.95 * len(times))]


def first_picture(browser: Browser, address: str) -> tuple[Page, float]:
    """The page, and the milliseconds from its start until all of it is drawn."""
    live = browser.new_page(viewport={"width": 1280, "height": 900})
    live.goto(address)
    live.locator("#live[data-ready]").wait_for(timeout=120_000)
    return live, float(live.evaluate("performance.getEntriesByName('first picture')[0].duration"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="steps of each slider (default 20)")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    n, size, steps = (20, 64, 3) if options.quick else (64, 512, options.steps)
    try:
        with tempfile.TemporaryDirectory() as folder, chromium() as browser:
            made = Path(folder, "page.html")
            made.write_text(page([universe(n), random_field(size)], TITLE, ABOUT))
            print(f"{timing.machine()}, Chromium {browser.version}, {datetime.date.today()}; "
                  f"load before: {os.getloadavg()[0]:.1f}")
            opened = [first_picture(browser, made.as_uri()) for _ in range(3)]
            firsts = ", ".join(f"{milliseconds:.0f}" for _, milliseconds in opened)
            print(f"{n}^3 particles, {size}^2 values: a page of {made.stat().st_size / 1e6:.1f} MB; "
                  f"first picture after {firsts} ms\n")
            print(timing.table(HEADER, [measured(opened[-1][0], name, steps) for name in SLIDERS]))
            print(f"load after: {os.getloadavg()[0]:.1f}")
    except NoChromiumError as error:
        print(f"Left out: {error}")


if __name__ == "__main__":
    main()
