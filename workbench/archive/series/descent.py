"""`series.descent`: halos of decoded particles followed from step to step, and whether the originals have the same descent.

Memberships are kept at each step where clusters are, and the descent follows from them. The proof does not rest on that:
both descents are made from positions, on their own, and compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import backend
from workbench.archive.archive import IDS, Archive
from workbench.clusters import KeepClusters, friends_of_friends
from workbench.clusters.descent import Descent, followed
from workbench.clusters.friends import Unit
from workbench.clusters.groups import Groups
from workbench.clusters.keep.statement import stated
from workbench.data import Particles
from workbench.data.chunked import POSITIONS, joined
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.metrics.report import Check, Report

if TYPE_CHECKING:
    from workbench.archive.series.series import Series

GAP = 1   # steps that links pass over where the descent is verified; those to the next step are compared, too
Sets = Iterator[tuple[Groups, np.ndarray | None]]   # of each step: its groups, and ids if there are any


def decoded_descent(
    series: Series, min_members: int, linking_length: float | None, unit: Unit, keep_members: bool, gap: int
) -> Descent:
    """The descent of the decoded particles; by default, at the linking length at which clusters are kept."""
    archives = _archives(series)
    lengths = [_kept_length(*numbered) for numbered in enumerate(archives)] if linking_length is None else None
    sets = _decoded(archives, lengths or [linking_length] * len(archives), "length" if lengths else unit)
    return followed(sets, series.times, min_members, keep_members, gap)


def verified_descent(series: Series, originals: Sequence[Any]) -> dict[str, Report]:
    """A report for each linking length at which all steps keep clusters; an error if a descent is not the original's."""
    archives = [one for one in series if isinstance(one, Archive) and one.kind == "particles"]
    if len(archives) < max(len(series), 2) or not all(map(_promised, archives)):
        return {}
    promised = [stated(_promised(one)[0]) for one in archives]
    reports = {}
    for number in range(min(len(one) for one, _, _ in promised)):
        lengths = [one[number] for one, _, _ in promised]
        least = max(2, *(members for _, _, members in promised))
        sets = _decoded(archives, lengths, "length"), _original(archives, originals, lengths)
        here, there = (followed(each, series.times, least, keep_members=False, gap=GAP) for each in sets)
        if not here.equals(there):
            raise GuaranteeBroken(
                f"the descent of groups of at least {least} members at linking length {lengths[-1]:.6g} is not that of the "
                f"originals: {here!r} instead of {there!r}"
            )
        links = sum(int((one.descendant >= 0).sum()) for one in here.successions)
        figures = {
            "steps": len(series), "groups_followed": sum(map(len, here.steps)), "descent_links": links,
            "descent_links_over_a_step": here.counts["over a gap"],
        }
        name = "descent" if len(promised[0][0]) == 1 else f"descent at {lengths[-1]:.6g}"
        reports[name] = Report("the descent and that of the originals", figures, checks=(Check("descent_differs", 0, 0),))
    return reports


def _archives(series: Series) -> list[Archive]:
    """The steps, which must be particles."""
    if not len(series):
        raise WorkbenchError(f"{series.path.name} has no steps yet: a descent needs one")
    archives = list(series)
    for step, archive in enumerate(archives):
        if not isinstance(archive, Archive) or archive.kind != "particles":
            raise WorkbenchError(f"a descent needs particles at each step; step {step} is {archive!r}")
    return archives


def _kept_length(step: int, archive: Archive) -> float:
    """The only linking length at which a step keeps clusters."""
    lengths = [length for kept in _promised(archive) for length in stated(kept)[0]]
    if len(lengths) == 1:
        return lengths[0]
    told = f"{len(lengths)} linking lengths" if lengths else "no clusters"
    raise WorkbenchError(
        f"without a linking_length, each step must keep clusters at one; step {step} keeps {told}: give linking_length="
    )


def _promised(archive: Archive) -> list[Any]:
    return [kept for kept in archive.certificate[POSITIONS].keep if kept.get("kind") == KeepClusters.kind]


def _decoded(archives: Sequence[Archive], lengths: Sequence[Any], unit: Unit) -> Sets:
    for archive, length in zip(archives, lengths, strict=True):
        particles = Particles(backend.read_only(archive.data.values()), archive.box)
        ids = archive.whole(IDS) if IDS in archive.arrays else None
        yield friends_of_friends(particles, length, unit), ids


def _original(archives: Sequence[Archive], originals: Sequence[Any], lengths: Sequence[float]) -> Sets:
    for archive, given, length in zip(archives, originals, lengths, strict=True):
        particles = joined(archive.content.original(given))
        yield friends_of_friends(particles, length, unit="length"), particles.ids if IDS in archive.arrays else None
