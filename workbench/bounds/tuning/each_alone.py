"""Bounds of the variables of a dataset that meet qualities, each found on its variable alone; a ratio is of all together.

Where every variable has the largest bound that meets the qualities, the archive is as small as they allow: a ratio that it
misses excludes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.archive import Archive, Dataset, compress
from workbench.archive.collection.collection import share_of
from workbench.archive.collection.compressing import gathered
from workbench.bounds.sources import source_of
from workbench.bounds.tuning.allocated import Allocation
from workbench.bounds.tuning.find import find_bound
from workbench.bounds.tuning.found import Found
from workbench.bounds.tuning.notes import documents_of
from workbench.bounds.tuning.several import All
from workbench.bounds.tuning.slack import Slack, slacks_of
from workbench.codecs import Codec
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.progress import Progress


def require_each(members: Dataset, names: list[str], target: All) -> None:
    """Refuse targets that make no sense for a variable, which is named."""
    if target.promises:
        raise WorkbenchError(f"targets of a dataset must be of fields; got {target}: keep clusters by a rule in others=")
    for name in names:
        try:
            target.require(source_of(members[name], None))
        except WorkbenchError as error:
            raise WorkbenchError(f"{name!r}: {error}") from error


def searched_alone(
    members: Dataset, names: list[str], target: All, codec: str | Codec, kept: Mapping[str, Archive],
    others: Mapping[str, Any], most_runs: int, progress: Progress | None, end: float,
) -> Allocation:
    """The largest bound of each variable that meets the qualities, and what is left of a ratio; progress ends at 1."""
    falling = target.only(target.leading)
    found: dict[str, Found] = {}
    archives = dict(kept)
    for number, name in enumerate(names):
        own = _progress_of(progress, end, name, number, len(names))
        found[name] = find_bound(members[name], falling, codec, most_runs=most_runs, progress=own)
        archives[name] = _archive_of(found[name], members[name])
    archive = gathered({name: archives[name] for name in members}, members.groups)
    rising = target.only(target.rising) if target.rising else None
    figures = {"ratio": archive.ratio}
    reached = rising is None or rising.room_of(figures) >= 0
    met = reached and all(own.met for own in found.values())
    slacks = [
        Slack(f"{name}: {each.target}", each.figure, each.value, each.slack, each.met, each.decides and met)
        for name, own in found.items() for each in own.slacks
    ] + ([] if rising is None else list(slacks_of(rising, figures)))
    return Allocation(
        target, {name: found[name].nearest.bound if name in found else others[name] for name in members}, archive, met,
        sum(len(own.runs) for own in found.values()), {name: own.codec for name, own in found.items()}, tuple(slacks),
        tuple(_notes(found, archive, falling, None if reached else rising)),
    )


def _archive_of(found: Found, member: Any) -> Archive:
    """The archive at the bound that was found, or at the nearest one; that of a field in parts is made again."""
    if found.met and isinstance(member, Field):
        return found.archive
    return compress(member, found.nearest.bound, found.codec)


def _notes(found: Mapping[str, Found], archive: Any, falling: All, missed: All | None) -> list[str]:
    each = {name: own.notes if own.met else (own.sentence, *own.notes) for name, own in found.items()}
    notes = [f"{name}: {note}" for name, own in each.items() for note in own]
    if missed is None:
        return notes
    ratio = f"the largest bounds with {falling} have a ratio of {archive.ratio:.4g} in all, which misses {missed}"
    return [*notes, ratio, *documents_of(missed, archive)]


def _progress_of(progress: Progress | None, start: float, name: str, number: int, count: int) -> Progress | None:
    """The progress of the search for one variable."""
    if progress is None:
        return None
    return share_of(lambda share, what: progress(start + (1 - start) * (share or 0.0), what), name, number, count)
