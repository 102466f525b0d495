"""Progress of long work: one line on standard error, redrawn in place and erased at the end.

If standard error is not a terminal but, for instance, a log file, a line is written every 30 seconds, so that short work
writes none. Standard output is for results only.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

from workbench.cli.visible import visible

REDRAW_SECONDS = 0.1
LOG_SECONDS = 30.0
SOON = 2.0   # seconds before the remaining time is shown
BAR = 30   # characters
ERASE = "\r\x1b[K"


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option that silences progress."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")


class Progress:
    """Call it with the completed share (None if unknown) and the name of the current step.

    >>> with Progress(quiet=True) as progress:
    ...     progress(0.5, "positions")
    """

    def __init__(
        self, quiet: bool = False, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._quiet, self._clock = quiet, clock
        self._shown = self._what = ""
        self._last = self._began = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live and not self._quiet and self._shown:
            print(ERASE, end="", file=self._stream, flush=True)

    def __call__(self, share: float | None, what: str) -> None:
        """Show the progress, unless it was shown a moment ago."""
        now = self._clock()
        if what != self._what:
            self._what, self._began = what, now
        if self._quiet or not self._is_due(now):
            return
        left = _left(share, now - self._began)
        self._shown, self._last = what, now
        shown = visible(what)
        if self._live:
            columns = shutil.get_terminal_size().columns
            print(ERASE + (_bar(share, shown) + left)[: columns - 1], end="", file=self._stream, flush=True)
        else:
            print(shown if share is None else f"{shown}: {share:.0%}{left}", file=self._stream, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if not self._quiet:
            print((ERASE if self._live else "") + visible(text), file=self._stream, flush=True)

    def _is_due(self, now: float) -> bool:
        passed = now - self._last
        return self._what != self._shown or passed >= REDRAW_SECONDS if self._live else passed >= LOG_SECONDS


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
