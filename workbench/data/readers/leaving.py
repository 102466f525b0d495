"""The list of contents that a reader does not return, so that nobody mistakes a part of a file for the whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from workbench.data.field import Field
from workbench.data.particles import Particles
from workbench.data.trajectory import Trajectory

KEY = "left_out"   # in the metadata


def left_out(data: Particles | Field | Trajectory) -> list[str]:
    """Contents of the file that are not in the data: other particles, columns, variables, frames.

    >>> left_out(Field([1.0, 2.0], metadata={"left_out": ["the variable area"]}))
    ['the variable area']
    """
    return [str(one) for one in data.metadata.get(KEY, [])]


def named(kind: str, names: Iterable[str]) -> list[str]:
    """One entry with all the names, sorted; none where there are none.

    >>> named("variable", ["b", "a"]), named("variable", ["b"]), named("variable", [])
    (['variables a, b'], ['variable b'], [])
    """
    found = sorted(names)
    return [f"{kind}{'s' if len(found) > 1 else ''} {', '.join(found)}"] if found else []


def other_types(counts: Mapping[int, int], kept: Collection[int]) -> list[str]:
    """The particles of other types.

    >>> other_types({0: 10, 1: 20, 2: 0}, kept=[1])
    ['particle type 0: 10 particles']
    """
    others = {kind: count for kind, count in sorted(counts.items()) if count and kind not in kept}
    return [f"particle type {kind}: {count:,} particles" for kind, count in others.items()]


def other_frames(frame: int, frames: int) -> list[str]:
    """All frames except the one that was read.

    >>> other_frames(0, 102), other_frames(0, 1)
    (['101 of 102 frames (this is frame 0)'], [])
    """
    return [f"{frames - 1:,} of {frames:,} frames (this is frame {frame})"] if frames > 1 else []


def noted(metadata: Mapping[str, Any], *lists: list[str]) -> dict[str, Any]:
    """The metadata, with the list of contents left out if there are any."""
    everything = [entry for one in lists for entry in one]
    return {**metadata, KEY: everything} if everything else dict(metadata)
