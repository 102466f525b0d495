"""What each step of a search and of archives takes: tasks, files that these open, bytes of their results.

A plan adds this up, and is as true as these numbers, so `tests/subdomains/test_planned_steps.py` runs the steps and counts.
They hold for particles in no order, of which every subdomain gets some from each chunk; those in the order of a curve take
fewer files. What a step opens for every pair of a task and a chunk decides how far a search goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from workbench.subdomains.curve_order import MOST_RANGES, RANGES
from workbench.subdomains.sources import SAMPLE, SAMPLED_CHUNKS

Order = Literal["keep", "free"]

RESULT = 260            # bytes of a result that says little
COUNTS = 16             # bytes for each pair of a chunk and a subdomain: how many particles it is sent, and owns
LABELS = 20             # bytes for each ghost: the pairs of labels that differ, and the labels that others know
KEPT_LABELS = 150       # the same for all comparisons while clusters are kept, which have wider ghosts
NEIGHBOURS = 26         # subdomains around one
KEPT_STEPS = 13         # steps for each subdomain while clusters are kept, after its groups are found
KEPT_FILES = 210        # that these open for each subdomain


@dataclass(frozen=True)
class Extent:
    """What the steps depend on."""

    particles: int
    dimensions: int
    chunks: int           # of the source
    parts: int
    ghosts: float         # copies of particles in other subdomains
    archive_chunks: int


@dataclass(frozen=True)
class Step:
    """One step: how many tasks, and what all of them open and return."""

    name: str
    tasks: int
    files: int
    results: int   # bytes


def steps_of_search(run: Extent) -> Iterator[Step]:
    """Friends of friends."""
    chunks, parts = run.chunks, run.parts
    neighbours = min(parts - 1, NEIGHBOURS)
    yield _sample(run)
    yield Step("send-particles", chunks, 2 * chunks, chunks * (COUNTS * parts + RESULT))
    yield Step("find-groups", parts, parts * (16 + 3 * chunks), parts * (8 * parts + RESULT))
    yield Step("compare-labels", parts, parts * (10 + neighbours + chunks), round(parts * RESULT + LABELS * run.ghosts))


def steps_of_archive(run: Extent, order: Order, keep: bool) -> Iterator[Step]:
    """An archive, with clusters kept or not; one attempt, where a second bound is not tried."""
    chunks, parts, archive = run.chunks, run.parts, run.archive_chunks
    if order == "free":
        ranges = min(RANGES * archive, MOST_RANGES)
        yield _sample(run)
        yield Step("sort-particles", chunks, 2 * chunks, chunks * (COUNTS * ranges + RESULT))
        yield Step("encode-chunks", archive, archive * (15 + 2 * chunks), archive * 4 * RESULT)
    else:
        if keep:
            yield _sample(run)
        yield Step("encode-chunks", archive, 3 * archive + chunks, archive * 4 * RESULT)
    if keep:
        yield Step("send-decoded", archive, 3 * archive, archive * (COUNTS * parts + RESULT))
        yield Step("find-groups", parts, parts * (32 + 3 * archive), parts * (8 * parts + RESULT))
        kept = round(KEPT_STEPS * parts * RESULT + KEPT_LABELS * run.ghosts)
        yield Step("keep-clusters", KEPT_STEPS * parts, KEPT_FILES * parts, kept)
        yield Step("finish-chunks", archive, archive * (6 + 5 * parts), archive * 2 * RESULT)
        yield Step("write-chunks", archive, 3 * archive, archive * RESULT)


def _sample(run: Extent) -> Step:
    """Positions from some chunks, by which space or a curve is divided."""
    chunks = min(run.chunks, SAMPLED_CHUNKS)
    return Step("sample-particles", chunks, chunks, 8 * run.dimensions * min(run.particles, SAMPLE) + chunks * RESULT)
