"""Progress of long work: one line in a terminal, or one bar in a notebook, for all steps of it.

Long functions take `progress=`, anything that is called with the completed share of a step (None if unknown) and the
step's name. In a terminal the line is redrawn in place and erased at the end. If standard error is not a terminal but, for
instance, a log file, a line is written every 30 seconds, so that short work writes none.
"""

from __future__ import annotations

import html
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, Self, TextIO

REDRAW_SECONDS = 0.1
LOG_SECONDS = 30.0
SOON = 2.0   # seconds before the remaining time is shown
BAR = 30   # characters
ERASE = "\r\x1b[K"

Progress = Callable[[float, str], object]   # called with the completed share of a step, from 0 to 1, and its name


class Stoppable(Protocol):
    """A cancellation flag, for instance a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether to stop."""


class Cancelled(Exception):
    """The result is no longer needed."""


class ProgressBar:
    """Shows progress on standard error or, in a notebook, below the cell.

    >>> with ProgressBar() as bar:
    ...     bar(0.5, "find groups")
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._notebook = _display() if stream is None else None
        self._live = self._notebook is not None or self._stream.isatty()
        self._clock = clock
        self._shown = self._what = ""
        self._last = self._began = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live and self._shown:
            self._draw("", "")

    def __call__(self, share: float | None, what: str) -> None:
        """Show the progress, unless it was shown a moment ago."""
        now = self._clock()
        if what != self._what:
            self._what, self._began = what, now
        if not self._is_due(now):
            return
        left = _left(share, now - self._began)
        self._shown, self._last = what, now
        if self._live:
            self._draw(_bar(share, self.text(what)) + left, _element(share, self.text(what) + left))
        else:
            self._write((self.text(what) if share is None else f"{self.text(what)}: {share:.0%}{left}") + "\n")

    def text(self, what: str) -> str:
        """The name of a step as it is shown."""
        return what

    def _draw(self, line: str, element: str) -> None:
        if self._notebook is not None:
            self._notebook(line, element)
        else:
            self._write(ERASE + line[: shutil.get_terminal_size().columns - 1])

    def _write(self, text: str) -> None:
        print(text, end="", file=self._stream, flush=True)

    def _is_due(self, now: float) -> bool:
        passed = now - self._last
        return self._what != self._shown or passed >= REDRAW_SECONDS if self._live else passed >= LOG_SECONDS


def _display() -> Callable[[str, str], None] | None:
    """What shows text and HTML at one place of a notebook; None outside of one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    handle: list[Any] = []

    def show(line: str, element: str) -> None:
        from IPython.display import display

        data = {"text/plain": line, "text/html": element}
        if handle:
            handle[0].update(data, raw=True)
        else:
            handle.append(display(data, raw=True, display_id=True))   # type: ignore[no-untyped-call]

    return show


def _element(share: float | None, what: str) -> str:
    """A bar of a notebook.

    >>> _element(0.5, "a < b")
    '<progress max="1" value="0.5"></progress> a &lt; b'
    """
    value = "" if share is None else f' value="{share:g}"'
    return f'<progress max="1"{value}></progress> {html.escape(what)}'


def _left(share: float | None, passed: float) -> str:
    """The remaining time at the pace so far, once it can be estimated.

    >>> _left(0.25, 30.0), _left(0.5, 7200.0), _left(0.9, 0.2), _left(None, 10.0)
    (', 1:30 left', ', 2:00:00 left', '', '')
    """
    if not share or share >= 1 or passed < SOON:
        return ""
    minutes, seconds = divmod(round(passed * (1 - share) / share), 60)
    hours, minutes = divmod(minutes, 60)
    return f", {hours}:{minutes:02}:{seconds:02} left" if hours else f", {minutes}:{seconds:02} left"


def _bar(share: float | None, what: str) -> str:
    """A bar of text.

    >>> _bar(0.5, "positions")
    'positions  [###############               ]  50%'
    """
    if share is None:
        return f"{what} ..."
    return f"{what}  [{'#' * int(share * BAR):<{BAR}}] {share:4.0%}"
