"""What a user should know though the command succeeds: lines on standard error, also when progress is silenced."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from workbench.cli.visible import visible
from workbench.cli.words import in_options, options_of


def show_notes(notes: Iterable[str], parser: argparse.ArgumentParser | None = None) -> None:
    """Print each note on a line of its own; those of the library in the options of this command.

    >>> from contextlib import redirect_stderr
    >>> with redirect_stderr(sys.stdout):
    ...     show_notes(["the bound is larger than the range of the data"])
    note: the bound is larger than the range of the data
    """
    options = {} if parser is None else options_of(parser)
    for note in notes:
        print(f"note: {visible(in_options(note, options))}", file=sys.stderr, flush=True)
