"""Statistics for each place along some axes, from the metadata of staged blocks with one place along these.

Blocks of planes, and those of fields of four axes, have a single place along the first axis. So the exact sums of blocks
at each place are those of a slice of the field, such as a time step.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from workbench.archive.statistics.chunk_parts import ChunkPart, FieldPart
from workbench.archive.statistics.figure import interval
from workbench.archive.statistics.moments import Bounded
from workbench.archive.statistics.reductions import KNOWN
from workbench.archive.statistics.sums import Sums
from workbench.slabs import Slices

MOST_PLACES = 2**12   # of a chunk; its values are sooner decoded than so many sums made

Place = tuple[int, ...]


def has_places(field: FieldPart, axes: tuple[int, ...]) -> bool:
    """Whether blocks, judged by the first chunk, have one place along each axis that is kept, and places are few."""
    return ChunkPart(field, field.indices[0]).is_one_place(axes, MOST_PLACES)


def by_place(field: FieldPart, names: Sequence[str], axes: tuple[int, ...], kept: tuple[int, ...]) -> list[Bounded]:
    """Values and bounds along axes, for each statistic; NaN where nothing is valid."""
    sums: dict[Place, list[Sums]] = defaultdict(list)
    for several in field.each(functools.partial(_of_chunk, axes)):
        for place, parts in several:
            sums[place] += parts
    answers = []
    for name in names:
        values, bounds = np.full(kept, np.nan), np.full(kept, np.nan)
        for place, parts in sums.items():
            if parts:
                values[place], bounds[place] = interval(name, KNOWN[name](parts))
        answers.append((values, bounds))
    return answers


def _of_chunk(axes: tuple[int, ...], part: ChunkPart) -> list[tuple[Place, list[Sums]]]:
    """The sums of a chunk at each place of the region."""
    ranges = [range(1) if axis in axes else range(one.start, one.stop) for axis, one in enumerate(part.place)]
    pairs = zip(part.in_region, part.place, strict=True)
    moved = [0 if axis in axes else there.start - here.start for axis, (there, here) in enumerate(pairs)]
    several = []
    for place in itertools.product(*ranges):
        cells: Slices = tuple(
            whole if axis in axes else slice(at, at + 1)
            for axis, (at, whole) in enumerate(zip(place, part.place, strict=True))
        )
        several.append((tuple(at + by for at, by in zip(place, moved, strict=True)), part.sums(cells)))
    return several
