"""What each step of a search and of archives takes: tasks, files that these open, bytes of their results, readings.

A plan adds this up, and is as true as these numbers, so `tests/subdomains/test_planned_steps.py` runs the steps and counts.
They hold for particles in any order: a file is opened even if it has nothing for the one who asks. What steps open for all
pairs of a chunk and a group of subdomains, and what they read again, decides how far a run goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from workbench.slabs import boxes_of
from workbench.subdomains.curve_order import RANGES, ranges_for
from workbench.subdomains.exchange import FEW, batches_of, groups_of, runs_of
from workbench.subdomains.label_tree import MEMBERS, LabelTree

Order = Literal["keep", "free"]

DONE = 4                # bytes of a result that says that the task is done,
RESULT = 240            # and of one that says little more
NEIGHBOURS = {2: 6, 3: 16}   # subdomains around one, by the number of dimensions
MOST_SHARDS = 2**10     # files of the positions of an archive: more chunks than that are put together
DIGEST = 19             # bytes of a checksum
ENCODED = 660           # bytes for each chunk of an archive: checksum, extent, figures
KEPT_JOINS = 4          # times that labels are merged while clusters are kept
KEPT_STEPS = 14         # steps for each subdomain, after its groups are found
KEPT_FILES = 60         # that these open for each subdomain,
KEPT_READINGS = 24      # times that these read a column of its particles,
KEPT_COMPARED = 5       # and those of its neighbours
KEPT_BORDER = 10        # bytes for each ghost: links that are lost, and constraints that a subdomain leaves to others


@dataclass(frozen=True)
class Step:
    """One step: how many tasks, what all of them open and return, and how often they read all positions of the source."""

    name: str
    tasks: int
    files: int
    results: int   # bytes
    readings: float = 0.0


@dataclass(frozen=True)
class PlannedExchange:
    """An exchange of so many particles from so many chunks; up to `few` subdomains read what chunks have written."""

    particles: int
    chunks: int
    parts: int
    few: int = FEW
    copies: bool = True   # whether subdomains get particles that they do not own

    @cached_property
    def groups(self) -> int:
        """How many groups of subdomains there are."""
        return len(groups_of(self.parts, self.few))

    @cached_property
    def runs(self) -> int:
        """How many files each subdomain gets its particles from."""
        starts = [self.particles * chunk // self.chunks for chunk in range(self.chunks + 1)]
        return len(runs_of(starts, self.groups))

    @property
    def levels(self) -> int:
        """How often all particles are written."""
        return 1 if self.groups == 1 else 2

    @property
    def room(self) -> float:
        """How often all particles are there at once, at most: what was sent is deleted batch by batch."""
        return 1.0 if self.groups == 1 else 1.0 + 1.0 / len(batches_of(self.runs))

    def steps(self, opened: int = 1, readings: float = 1.0) -> Iterator[Step]:
        """Sending, where a chunk opens so many files of its source; and gathering."""
        chunks = self.chunks
        kinds = 2 if self.copies else 1   # all particles, ghosts among them, and those that a subdomain owns
        width = np.min_scalar_type(kinds * self.particles // self.parts).itemsize   # of a file that has all for one
        counts = kinds * width * self.runs * self.parts
        sent = chunks * RESULT + (counts if self.groups == 1 else 0)
        yield Step("send-particles", chunks, chunks * (opened + 1), sent, readings)
        if self.groups > 1:
            files = self.runs * self.groups
            opened = files + chunks * self.groups + len(batches_of(self.runs)) - 1   # what all tasks share, for each batch
            yield Step("gather-particles", files, opened, files * RESULT + counts)


@dataclass(frozen=True)
class RunSize:
    """What the steps depend on."""

    particles: int
    dimensions: int
    chunks: int           # of the source
    parts: int
    ghosts: float         # copies of particles in other subdomains
    archive_chunks: int

    @property
    def ranges(self) -> int:
        """The ranges of keys that a free order is sorted into."""
        return ranges_for(self.archive_chunks)

    def exchanged(self, order: Order | None, keep: bool) -> list[PlannedExchange]:
        """The exchanges: of a search if there is no order, and of an archive otherwise."""
        searched = PlannedExchange(self.particles, self.chunks if order is None else self.archive_chunks, self.parts)
        along = [PlannedExchange(self.particles, self.chunks, self.ranges, RANGES * FEW, False)] if order == "free" else []
        return [*along, searched] if order is None or keep else along

    def sorted_again(self) -> float:
        """How often a particle is read where chunks of an archive in free order are encoded: two may need one range."""
        return (self.archive_chunks + self.ranges - 1) / self.ranges

    def opened_in_order(self) -> int:
        """How often chunks of the source are opened where chunks of an archive are read in order, a file for each."""
        return self.archive_chunks + self.chunks - 1


def steps_of_search(run: RunSize) -> Iterator[Step]:
    """Friends of friends."""
    chunks, parts = run.chunks, run.parts
    (exchange,) = run.exchanged(None, keep=False)
    neighbours = min(parts - 1, NEIGHBOURS[run.dimensions])
    yield Step("sample-particles", chunks, 2 * chunks, chunks * DONE, 1.0)
    yield from exchange.steps()
    yield Step("find-groups", parts, parts * (3 + exchange.runs), parts * DONE)
    yield Step("compare-labels", parts, parts * (4 + neighbours), parts * DONE)
    yield from _merging(parts)
    if exchange.groups > 1:
        yield Step("arrange-labels", exchange.groups, exchange.groups + 3 * parts, exchange.groups * DONE)


def _merging(parts: int) -> Iterator[Step]:
    """The tree of labels: each block opens what its members have written, and then writes to each its final labels."""
    top = LabelTree(Path(), parts).top
    blocks = [-(-parts // MEMBERS**height) for height in range(top + 1)]
    merging, renaming = sum(blocks[1:]), sum(blocks[1:top])
    yield Step("merge-labels", merging, merging + sum(blocks[:top]) + 2 + blocks[top - 1], merging * DONE)
    if renaming:
        yield Step("rename-labels", renaming, 3 * renaming + sum(blocks[: top - 1]), renaming * DONE)


def steps_of_archive(run: RunSize, order: Order, keep: bool) -> Iterator[Step]:
    """An archive, with clusters kept or not; one attempt, where a second bound is not tried."""
    chunks, archive, kept = run.chunks, run.archive_chunks, 2 * keep   # files of each chunk with kept clusters
    if order == "free" or keep:
        yield Step("survey-particles", chunks, 2 * chunks, chunks * RESULT, 1.0)
    else:
        yield Step("find-extent", chunks, chunks, chunks * RESULT, 1.0)
    if order == "free":
        along = run.exchanged(order, keep)[0]
        yield from along.steps()
        pieces = along.runs * (archive + along.groups - 1)
        yield Step("encode-chunks", archive, archive * (3 + kept) + pieces, archive * ENCODED)
    else:
        files = archive * (2 + kept // 2) + run.opened_in_order()
        yield Step("encode-chunks", archive, files, archive * ENCODED, 1.0)
    if keep:
        yield from _keeping(run, order)
    (together,) = boxes_of((archive,), MOST_SHARDS)
    if together > 1:
        shards = -(-archive // together)
        yield Step("assemble-positions", shards, archive + shards, shards * DIGEST)


def _keeping(run: RunSize, order: Order) -> Iterator[Step]:
    """What keeps clusters of chunks that are encoded: an estimate, as it depends on how much there is to repair."""
    archive, parts = run.archive_chunks, run.parts
    exchange, readings = run.exchanged(order, keep=True)[-1], 1.0 if order == "keep" else 0.0
    yield from exchange.steps(opened=2, readings=readings)
    yield Step("find-groups", parts, parts * (4 + 2 * exchange.runs), parts * DONE)
    for _ in range(KEPT_JOINS):
        yield from _merging(parts)
    results = round(KEPT_STEPS * parts * RESULT + KEPT_BORDER * run.ghosts)
    files = KEPT_FILES + KEPT_READINGS * exchange.runs + KEPT_COMPARED * min(parts - 1, NEIGHBOURS[run.dimensions])
    yield Step("keep-clusters", KEPT_STEPS * parts, files * parts, results)
    groups = exchange.groups
    yield Step("arrange-moves", groups, 2 * groups + 5 * parts, groups * DONE)
    yield Step("finish-chunks", archive, archive * (4 + 2 * groups), archive * 2 * RESULT)
    yield Step("write-chunks", archive, 2 * archive, archive * DONE)
