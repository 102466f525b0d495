"""How long a reader waits for a picture: measured in the page, from the key to the animation frame that shows the change.

The clock starts with the key's own time stamp and stops in the first frame that finds every canvas changed, so kernel,
server, socket and drawing are all in it; a frame takes 16 ms, which is the resolution. Changes are told by the canvas's
`data-drawn`, which counts drawings of new data, or else by 576 of its pixels.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from playwright.sync_api import Locator

from browser.notebook_page import WAITS, NotebookPage

CHANGES_WITHIN = 5.0   # seconds
PAUSE = 60             # milliseconds between steps, so that each begins when the last is over


@dataclass(frozen=True)
class Latency:
    """The steps that changed the picture, in milliseconds, and how many did not."""

    milliseconds: Sequence[float]
    missed: int = 0

    @property
    def median(self) -> float:
        """Half of the steps are faster."""
        return statistics.median(self.milliseconds) if self.milliseconds else math.nan

    @property
    def p90(self) -> float:
        """Nine tenths of the steps are at least as fast."""
        return sorted(self.milliseconds)[math.ceil(0.9 * len(self.milliseconds)) - 1] if self.milliseconds else math.nan

    @property
    def largest(self) -> float:
        """The slowest step."""
        return max(self.milliseconds, default=math.nan)


def key_to_picture(
    notebook: NotebookPage, slider: Locator, canvases: Locator, steps: int = 25, key: str = "ArrowRight"
) -> Latency:
    """Press the key on a slider so often; each time, wait until all canvases have changed."""
    handles = canvases.element_handles()
    assert handles, "there is no canvas to look at"
    slider.focus()
    taken = []
    for _ in range(steps):
        notebook.page.evaluate("probes.untilChanged", [handles, CHANGES_WITHIN])
        notebook.page.keyboard.press(key)
        taken.append(notebook.page.evaluate("() => probes.change"))
        notebook.page.wait_for_timeout(PAUSE)
    changed = [milliseconds for milliseconds in taken if milliseconds is not None]
    return Latency(changed, steps - len(changed))


def cell_to_picture(
    notebook: NotebookPage, source: str, selector: str = "canvas", canvases: int = 1, seconds: float = WAITS
) -> float:
    """Milliseconds from running a new cell to so many new canvases with something on them."""
    taken = notebook.page.evaluate("probes.untilDrawn", [source, selector, canvases, seconds])
    if taken is None:
        raise TimeoutError(f"{canvases} of {selector} were not drawn {seconds} s after the cell was run")
    return float(taken)


def all_to_picture(notebook: NotebookPage, selector: str = "canvas", seconds: float = WAITS) -> float:
    """Milliseconds from running all cells to the first new canvas with something on it."""
    taken = notebook.page.evaluate("probes.untilDrawn", ["", selector, 1, seconds])
    if taken is None:
        raise TimeoutError(f"no {selector} was drawn {seconds} s after all cells were run")
    return float(taken)
