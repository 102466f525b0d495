"""Progress of a command, on standard error; standard output is for results only."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TextIO

from workbench.cli.visible import visible
from workbench.progress import ERASE, ProgressBar


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option that silences progress."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")


class Progress(ProgressBar):
    """Progress that can be silenced; names from files cannot command the terminal.

    >>> with Progress(quiet=True) as progress:
    ...     progress(0.5, "positions")
    """

    def __init__(
        self, quiet: bool = False, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(stream, clock)
        self._quiet = quiet

    def __call__(self, share: float | None, what: str) -> None:
        """Show the progress, unless it was shown a moment ago."""
        if not self._quiet:
            super().__call__(share, what)

    def text(self, what: str) -> str:
        """The name of a step as it is shown."""
        return visible(what)

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if not self._quiet:
            self._write((ERASE if self._live else "") + visible(text) + "\n")
