"""Where the frames of a trajectory begin in its file, as far as they have been passed in this process.

Frames of text, XTC and TRR files have no fixed size, so the first look for a frame passes those before it. What was passed
is remembered for as long as the file does not change, so that frames read by number, one after the other, cost the same
each. Nothing is written beside the data.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from workbench.data.readers.source import Source

BYTES_OF_ATOM = 24   # of a position in float64


def state_of(source: Source) -> tuple[Path, int, int, int]:
    """The file and what changes when it is written again: a key for what is remembered of it."""
    status = source.path.stat()
    return source.path.absolute(), status.st_size, status.st_mtime_ns, status.st_ino


def known_frames(source: Source) -> dict[int, int]:
    """The byte at which each frame begins that is known; the first one begins the file. Readers add to it."""
    return _known(*state_of(source))


@functools.lru_cache(maxsize=32)
def _known(*file: object) -> dict[int, int]:
    return {0: 0}


def nearest_frame(source: Source, wanted: int) -> tuple[int, int]:
    """The last known frame that is not behind the one wanted, and where it begins."""
    known = known_frames(source)
    number = wanted if wanted in known else max(each for each in tuple(known) if each <= wanted)
    return number, known[number]


def text_lines(file: BinaryIO) -> Iterator[str]:
    r"""The lines from the present place on, as text; `file.tell()` stays the end of the last one.

    >>> import io
    >>> file = io.BytesIO(b"one\ntwo\n")
    >>> next(text_lines(file)), file.tell()
    ('one\n', 4)
    """
    return (line.decode("utf-8", "replace") for line in file)
