"""Frames of a file with what belongs to all of them, for the readers of trajectories; those of text share a reader.

A trajectory has the same atoms in every frame, and each frame the same arrays; files where that is not so are refused in a
sentence, since no single array could hold them. A last frame that is cut short is left out, and the metadata say so.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.readers.frame_index import BYTES_OF_ATOM, known_frames, nearest_frame, state_of, text_lines
from workbench.data.readers.leaving import noted
from workbench.data.readers.source import Source
from workbench.data.trajectory import Frame, Frames, Trajectory
from workbench.errors import NoSuchPart, WorkbenchError

Arrays = dict[str, np.ndarray]
Columns = dict[str, np.ndarray]   # of the atoms


def trajectory(
    frames: Frames, atoms: Mapping[str, Any], metadata: Mapping[str, Any], *left_out: list[str]
) -> Trajectory:
    """The trajectory, with what of the file it does not have."""
    return Trajectory.of(frames, atoms, noted(metadata, *left_out))


def require_same_atoms(source: Source, frame: int, count: int, first: int) -> None:
    """Refuse a frame with another number of atoms than the first one."""
    if count != first:
        raise WorkbenchError(
            f"frame {frame} of {source.name} has {count:,} atoms, and frame 0 has {first:,}: a trajectory has the same "
            f"atoms in every frame; read single frames by wb.open(..., frame={frame})"
        )


def frame_of_text(
    source: Source, wanted: int, following: Callable[[Source, Iterator[str], int, int], Any]
) -> tuple[Any, list[str]]:
    """One frame of a text file, read from the nearest one before it that is known, and whether others are left out."""
    nearest, at = nearest_frame(source, wanted)
    with source.path.open("rb") as file:
        file.seek(at)
        lines = text_lines(file)
        for number in range(nearest, wanted + 1):
            found = following(source, lines, wanted, number)
            known_frames(source)[number + 1] = file.tell()
        more = bool(next(lines, "").strip())
    return found, [f"all frames but frame {wanted}"] if more or wanted else []


def atoms_in(source: Source, line: str, number: int) -> int:
    """How many atoms a line says that a frame has; refused if that is no number, or more than the limits allow."""
    count = int(line) if re.fullmatch(r"\s*\d{1,15}\s*", line, re.ASCII) else 0
    if not 0 < count <= source.size:
        raise source.damaged(f"expected the number of atoms of frame {number}; got {line.strip()[:40]!r}")
    source.require_room(f"frame {number}", count * BYTES_OF_ATOM)
    return count


@dataclass(frozen=True)
class Parsed:
    """One frame of a text file: its arrays, and the columns of its atoms."""

    arrays: Arrays
    atoms: Columns
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class TextFormat:
    """How frames of text are found and read: `following` passes one frame of lines, `parsed` makes arrays of it."""

    following: Callable[[Source, Iterator[str], int, int], Any]   # the source, its lines, the frame wanted, its number
    atoms: Callable[[Any], int]
    parsed: Callable[[Source, Any], Parsed]

    def trajectory(self, source: Source, metadata: Mapping[str, Any], *left_out: list[str]) -> Trajectory:
        """All complete frames of a file."""
        count, rest = _counted(self, *state_of(source))
        frames = TextFrames(self, source, count)
        first = frames.first
        metadata = {**metadata, **first.metadata, "frames": count}
        return trajectory(frames, first.atoms, metadata, *left_out, [rest] if rest else [])


class TextFrames(Frames):
    """The frames of a text file, each read from where it begins."""

    def __init__(self, text: TextFormat, source: Source, count: int) -> None:
        self.text, self.source, self.count = text, source, count
        self.first = next(self._parsed(0, 1))
        self.arrays: Mapping[str, Frame] = {
            name: (array.shape, array.dtype) for name, array in self.first.arrays.items()
        }

    def read(self, begin: int, end: int, names: Sequence[str]) -> Arrays:
        """These arrays of the frames from `begin` to `end`."""
        found = {name: np.empty((end - begin, *self.arrays[name][0]), self.arrays[name][1]) for name in names}
        for place, one in enumerate(self._parsed(begin, end)):
            self._require_alike(one, begin + place)
            for name, array in found.items():
                array[place] = one.arrays[name]
        return found

    def _parsed(self, begin: int, end: int) -> Iterator[Parsed]:
        _counted(self.text, *state_of(self.source))   # in a worker, the places of the frames are not known yet
        with self.source.path.open("rb") as file:
            file.seek(known_frames(self.source)[begin])
            lines = text_lines(file)
            for number in range(begin, end):
                yield self.text.parsed(self.source, self.text.following(self.source, lines, number, number))

    def _require_alike(self, one: Parsed, number: int) -> None:
        """Refuse a frame of other arrays or atoms than the first one."""
        name = self.source.name
        if one.arrays.keys() != self.arrays.keys():
            other = ", ".join(sorted(one.arrays.keys() ^ self.arrays.keys()))
            raise WorkbenchError(
                f"only some frames of {name} have {other}, and frame {number} is not as frame 0: read single frames by "
                f"wb.open(..., frame={number})"
            )
        if not all(np.array_equal(column, one.atoms.get(key, column)) for key, column in self.first.atoms.items()):
            raise WorkbenchError(
                f"the atoms of frame {number} of {name} are others than those of frame 0, or in another order: a "
                f"trajectory has the same atoms in every frame; read single frames by wb.open(..., frame={number})"
            )


@functools.lru_cache(maxsize=32)
def _counted(text: TextFormat, path: Path, *state: int) -> tuple[int, str]:
    """How many complete frames there are, and a note on what follows the last; where each begins is remembered."""
    source = Source.at(path)
    known, number, first, last = known_frames(source), 0, 0, None
    with source.path.open("rb") as file:
        lines = text_lines(file)
        while True:
            try:
                found = text.following(source, lines, number, number)
            except NoSuchPart:   # the file has ended
                return _without_cut(text, source, last, number)
            except WorkbenchError as error:
                if not number:
                    raise
                return number, f"the data after frame {number - 1}, which cannot be read: {error}"
            first = first or text.atoms(found)
            require_same_atoms(source, number, text.atoms(found), first)
            number, last = number + 1, found
            known[number] = file.tell()


def _without_cut(text: TextFormat, source: Source, last: Any, count: int) -> tuple[int, str]:
    """The frames without the last one, if its last line is cut: then there are as many lines as it should have."""
    try:
        text.parsed(source, last)
    except WorkbenchError as error:
        if count == 1:
            raise
        return count - 1, f"frame {count - 1}, which cannot be read: {error}"
    return count, ""
