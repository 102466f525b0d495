"""What a user should know though the command succeeds: lines on standard error, also when progress is silenced."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from workbench.cli.visible import visible


def show_notes(notes: Iterable[str]) -> None:
    """Print each note on a line of its own.

    >>> from contextlib import redirect_stderr
    >>> with redirect_stderr(sys.stdout):
    ...     show_notes(["the bound is larger than the range of the data"])
    note: the bound is larger than the range of the data
    """
    for note in notes:
        print(f"note: {visible(note)}", file=sys.stderr, flush=True)
