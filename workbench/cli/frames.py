"""`--frames` and `--atoms`: a part of a trajectory; frames are decoded while they are written."""

from __future__ import annotations

import argparse
import re
from typing import Any

from workbench.archive import Archive
from workbench.data import Trajectory
from workbench.errors import WorkbenchError


def add_frames(parser: argparse.ArgumentParser) -> None:
    """Add the choice of frames and atoms."""
    text = "of a trajectory, only these frames, from 0: first:end or first:end:step, as in 10:20"
    parser.add_argument("--frames", type=_span, metavar="A:B", help=text)
    text = "of a trajectory, only these atoms: names, as in CA,CB; or indices from 0 and ranges of them, as in 0:100,205"
    parser.add_argument("--atoms", metavar="NAMES", help=text)


def require_for_frames(archive: Any, options: argparse.Namespace) -> None:
    """Refuse the choice of frames where there are none, and that of a region of space where there are."""
    is_trajectory = isinstance(archive, Archive) and archive.kind == "trajectory"
    if not is_trajectory and (options.frames is not None or options.atoms is not None):
        option = "--frames" if options.frames is not None else "--atoms"
        raise WorkbenchError(f"{option} is for trajectories; {options.archive} holds something else: leave it out")
    if is_trajectory and options.region is not None:
        raise WorkbenchError("--region is for particles and fields; of a trajectory, choose --frames and --atoms")


def chosen_frames(archive: Archive, options: argparse.Namespace) -> Trajectory:
    """The frames and atoms that were chosen, of which none is decoded yet."""
    whole: Trajectory = archive.content.source(archive)
    part = whole if options.frames is None else whole[options.frames]
    return part if options.atoms is None else part.select(atoms_of(options.atoms, part.n_atoms))


def atoms_of(text: str, count: int) -> list[str] | list[int]:
    """Names of atoms, or their indices.

    >>> atoms_of("CA,CB", 10), atoms_of("0:3,7", 10)
    (['CA', 'CB'], [0, 1, 2, 7])
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(re.fullmatch(r"\d+|\d*:\d*", word) for word in words):
        return words
    found: list[int] = []
    for word in words:
        first, colon, end = word.partition(":")
        if colon and int(end or count) > count:
            raise WorkbenchError(f"--atoms must end at most at {count}, the number of atoms; got {word}")
        found += range(int(first or 0), int(end or count)) if colon else [int(first)]
    return found


def _span(text: str) -> slice:
    """The frames as a slice; a number alone is one frame."""
    try:
        ends = [int(part) if part.strip() else None for part in text.split(":")]
        if len(ends) == 1 and ends[0] is not None:
            return slice(ends[0], ends[0] + 1 or None)
        if 2 <= len(ends) <= 3:
            return slice(*ends)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected first:end, first:end:step or a number; got {text!r}")
