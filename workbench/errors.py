"""The exceptions of the workbench, as one family.

A message says what was expected, what was got, and what to do about it. Everything that a user can cause
is a `WorkbenchError`, so that a script, a panel or the shell needs to catch only one thing. The sentence is the whole
explanation, so notebooks show it without the lines of the package that raised it.
"""

from __future__ import annotations

import itertools
import linecache
import traceback
from collections.abc import Iterable
from pathlib import Path

MOST_SHOWN = 100   # letters

_HERE = str(Path(__file__).parent)


class WorkbenchError(ValueError):
    """Input, options or an installation that cannot work; the message says what to do.

    >>> import workbench as wb
    >>> try:
    ...     wb.Particles([[0.0, 0.0, float("nan")]])
    ... except wb.WorkbenchError as error:
    ...     print(error)
    positions must be finite; got nan or infinity on axis 2
    """

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the line of the user, and the sentence."""
        frames = traceback.StackSummary.extract(traceback.walk_tb(self.__traceback__), lookup_lines=False)
        own = list(itertools.takewhile(lambda frame: not frame.filename.startswith(_HERE), frames))
        return [*(_line(frame) for frame in own[-1:]), f"{type(self).__name__}: {self}"]


class GuaranteeBroken(WorkbenchError):
    """A promise about decoded data does not hold: a damaged or foreign archive, or a bug to report."""


class UnknownName(WorkbenchError, KeyError):
    """A name that is none of a mapping: `in` and `get` of mappings understand it.

    >>> isinstance(UnknownName("no T"), KeyError), str(UnknownName("no T"))
    (True, 'no T')
    """

    __str__ = Exception.__str__


class SeveralArrays(WorkbenchError):
    """A file that holds several arrays of which none was chosen, or one with more axes than a field has."""


class NoSuchPart(WorkbenchError):
    """A part that a file does not have: a type of particles, a frame of a trajectory."""


def briefly(given: object) -> str:
    """What was given, on one line of a message: an array by its shape, anything else by the beginning of its text.

    >>> import numpy as np
    >>> briefly(np.zeros((10, 3))), briefly("a" * 1000)[:8]
    ('an array of float64 with shape (10, 3)', "'aaaaaaa")
    """
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return f"an array of {given.dtype} with shape {tuple(given.shape)}"
    return " ".join(repr(given).split())[:MOST_SHOWN]


def some_of(names: Iterable[str], most: int = 12) -> str:
    """Some names, and how many more there are.

    >>> some_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def _line(frame: traceback.FrameSummary) -> str:
    """A line with its number, and with its file unless it is a cell, whose file exists only by name."""
    file = f"{frame.filename}, " if Path(frame.filename).is_file() else ""
    text = linecache.getline(frame.filename, frame.lineno or 0).strip()
    return f"{file}line {frame.lineno}: {text}"
