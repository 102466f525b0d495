"""How far long work has come: one line on standard error that is drawn over and over, and gone in the end.

Where standard error is not a terminal, a log file for instance, a line is written every half minute, so that short work
leaves no trace. Standard output is for results alone.
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
BAR = 30   # characters
ERASE = "\r\x1b[K"


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option that silences progress."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")


class Progress:
    """Call it with the share that is done and what is being done; without a share when nobody knows.

    >>> with Progress(quiet=True) as progress:
    ...     progress(0.5, "positions")
    """

    def __init__(
        self, quiet: bool = False, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._quiet, self._clock = quiet, clock
        self._what = ""
        self._last = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live and not self._quiet and self._what:
            print(ERASE, end="", file=self._stream, flush=True)

    def __call__(self, share: float | None, what: str) -> None:
        """Show how far it is, unless that was shown a moment ago."""
        if self._quiet or not self._is_due(what):
            return
        self._what, self._last = what, self._clock()
        shown = visible(what)
        if self._live:
            columns = shutil.get_terminal_size().columns
            print(ERASE + _bar(share, shown)[: columns - 1], end="", file=self._stream, flush=True)
        else:
            print(shown if share is None else f"{shown}: {share:.0%}", file=self._stream, flush=True)

    def _is_due(self, what: str) -> bool:
        passed = self._clock() - self._last
        return what != self._what or passed >= REDRAW_SECONDS if self._live else passed >= LOG_SECONDS


def _bar(share: float | None, what: str) -> str:
    """A bar of text.

    >>> _bar(0.5, "positions")
    'positions  [###############               ]  50%'
    """
    if share is None:
        return f"{what} ..."
    return f"{what}  [{'#' * int(share * BAR):<{BAR}}] {share:4.0%}"
