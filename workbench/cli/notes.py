"""Remarks of a command that succeeds: lines on standard error, even with --quiet."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from workbench.cli.visible import visible
from workbench.cli.words import in_options, options_of


def show_notes(notes: Iterable[str], parser: argparse.ArgumentParser | None = None) -> None:
    """Print each note on its own line, with the options of this command in place of the library's keywords.

    >>> from contextlib import redirect_stderr
    >>> with redirect_stderr(sys.stdout):
    ...     show_notes(["the bound is larger than the range of the data"])
    note: the bound is larger than the range of the data
    """
    options = {} if parser is None else options_of(parser)
    for note in notes:
        print(f"note: {visible(in_options(note, options))}", file=sys.stderr, flush=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print what the library warns of as notes.

    >>> from contextlib import redirect_stderr
    >>> with redirect_stderr(sys.stdout), warnings_as_notes():
    ...     warnings.warn("the document is lost")
    note: the document is lost
    """
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        yield
    show_notes(str(one.message) for one in warned)
