"""`wb.compare_groups`: which halos differ between two runs of one simulation, or between two finders.

Groups in memory are compared in one pass over the particles. Groups on a cluster are compared chunk by chunk: only pairs of
labels leave the workers, never the labels of particles.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.charts.description import Axis, Chart, Series
from workbench.charts.looks import colour, marker
from workbench.charts.table import data_frame, html_table
from workbench.clusters import Groups
from workbench.clusters.matching import Halos, Match, Pairs, match
from workbench.data import Particles
from workbench.data.ids import common
from workbench.errors import WorkbenchError, briefly
from workbench.run.submission import submittable
from workbench.subdomains.fof import Labels
from workbench.subdomains.groups import DistributedGroups

SHOWN = 12   # rows of the table in a notebook
COLUMNS = {
    "first": "halo in the first", "first_members": "members", "second": "group in the second", "second_members": "members",
    "shared": "shared", "different": "different", "state": "", "matched": "matched",
}


@submittable
def compare_groups(
    first: Groups | DistributedGroups, second: Groups | DistributedGroups, ids: Sequence[Any] | None = None,
    min_members: int = 20,
) -> GroupComparison:
    """Which halos of two runs of one simulation, or of two finders, have the same particles, and which differ.

    Halos are groups of at least `min_members`. Without `ids`, particle i of the first set is particle i of the second.
    Otherwise `ids` has two entries, the ids of all particles of either set, or the `Particles` themselves; their order may
    differ, and particles that one set lacks are members of a halo that the other cannot have. Groups found on a cluster are
    compared there; with ids, their labels are gathered.

    >>> first, second = Groups.from_labels([0, 0, 0, 1, 1, 2], 0.2), Groups.from_labels([0, 0, 5, 1, 1, 1], 0.2)
    >>> compare_groups(first, second, min_members=2)
    GroupComparison(2 and 2 halos of at least 2: 0 identical, 1 split, 1 merged, 0 lost, 0 new)
    """
    min_members = whole_number("min_members", min_members, least=1)
    for groups in (first, second):
        if not isinstance(groups, Groups | DistributedGroups):
            raise WorkbenchError(f"groups must be found by friends of friends, or wb.Groups; got {type(groups).__name__}")
    if isinstance(first, DistributedGroups) and isinstance(second, DistributedGroups) and ids is None:
        return _compared_on_workers(first, second, min_members)
    here = [one.gathered() if isinstance(one, DistributedGroups) else one for one in (first, second)]
    return _compared(here[0], here[1], ids, min_members)


@dataclass(frozen=True, eq=False, repr=False)
class GroupComparison:
    """The halos of two sets: `match` has those of the first with their counterparts, `new` those of the second without.

    In `new`, the groups found are those of the first set that most members come from. `pairs` are all pairs of halos that
    share particles. A halo of the first set that is not matched is *lost*; it may be split or merged, too.
    """

    match: Match
    new: Match
    pairs: Pairs
    halos: tuple[int, int]
    min_members: int

    @property
    def counts(self) -> dict[str, int]:
        """How many halos have exactly the same members, and how many are split, merged, lost or new."""
        kinds = {kind: int(getattr(self.match, kind).sum()) for kind in ("identical", "split", "merged", "lost")}
        return {**kinds, "new": len(self.new)}

    @property
    def equal(self) -> bool:
        """Whether all halos have exactly the same members."""
        return bool(self.match.identical.all()) and not len(self.new)

    def most_different(self, most: int = 10) -> list[dict[str, Any]]:
        """The rows whose two groups differ by most particles, those first."""
        rows = self._columns()
        order = np.argsort(-rows["different"], kind="stable")[:most]
        return [{name: values[place].item() for name, values in rows.items()} for place in order.tolist()]

    def to_dataframe(self) -> Any:
        """One row for each halo of the first set, the largest first, then one for each new halo, as a pandas DataFrame.

        `first` and `second` are labels, -1 for none. `shared` particles are in both groups, `different` ones in one
        of them only; `absent` members of the halo are not among the particles of the other set.
        """
        return data_frame(self._columns())

    def plot(self) -> Chart:
        """A chart of the number of halos by their members: of all, and of those that are split, merged, lost and new."""
        found, new = self.match, self.new
        kinds = {"all of the first": found.members, "identical": found.members[found.identical]}
        kinds |= {kind: found.members[getattr(found, kind)] for kind in ("split", "merged", "lost")}
        kinds["new"] = new.members
        largest = max([self.min_members, *found.members.tolist(), *new.members.tolist()])
        edges = self.min_members * 2 ** np.arange((largest // self.min_members).bit_length() + 1)
        lines = [_line(number, kind, members, edges) for number, (kind, members) in enumerate(kinds.items())]
        across, up = ([place for line in lines for place in getattr(line, axis)] for axis in "xy")
        axes = Axis.around("members", across, None), Axis.around("halos", up, None)
        return Chart("Halos by their members", *axes, tuple(lines), height=340)

    def _columns(self) -> dict[str, np.ndarray]:
        """The columns of the table."""
        found, new = self.match, self.new
        state = np.where(found.identical, "identical", np.where(found.split, "split", "merged"))
        return {
            "first": np.concatenate([found.labels, new.counterpart]),
            "first_members": np.concatenate([found.members, new.counterpart_members]),
            "second": np.concatenate([found.counterpart, new.labels]),
            "second_members": np.concatenate([found.counterpart_members, new.members]),
            "shared": np.concatenate([found.shared, new.shared]),
            "different": np.concatenate([found.different, new.different]),
            "absent": np.concatenate([found.absent, new.absent]),
            "state": np.concatenate([state, np.full(len(new), "new")]),
            "matched": np.concatenate([found.matched, np.zeros(len(new), bool)]),
        }

    def __repr__(self) -> str:
        return f"GroupComparison({self._title})"

    @property
    def _title(self) -> str:
        told = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items())
        return f"{self.halos[0]:,} and {self.halos[1]:,} halos of at least {self.min_members:,}: {told}"

    def _repr_html_(self) -> str:
        """A table for notebooks, in the colours of the page: the halos that differ most."""
        rows = [row for row in self.most_different(SHOWN) if row["different"]]
        cells = [[_cell(row[name]) for name in COLUMNS] for row in rows]
        shown = html_table(list(COLUMNS.values()), cells, texts=(6, 7)) if rows else ""
        differing = int((self._columns()["different"] > 0).sum())
        rest = f"<p>the {len(rows)} that differ most, of {differing:,}</p>" if differing > len(rows) else ""
        return f"<div><strong>{html.escape(self._title)}</strong>{shown}{rest}</div>"


def _line(number: int, kind: str, members: np.ndarray, edges: np.ndarray) -> Series:
    """The number of halos in each bin that has some."""
    counted = zip(edges[:-1].tolist(), edges[1:].tolist(), np.histogram(members, edges)[0].tolist(), strict=True)
    bins = [(low, count, f"{kind}, {low:,} to {high - 1:,} members: {count:,}") for low, high, count in counted if count]
    low, count, tooltips = zip(*bins, strict=True) if bins else ((), (), ())
    return Series(kind, low, count, colour(number), marker=marker(number), tooltips=tooltips)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:,}"


def _compared(first: Groups, second: Groups, ids: Sequence[Any] | None, min_members: int) -> GroupComparison:
    """The comparison of groups in memory."""
    labels = [backend.to_host(groups.labels) for groups in (first, second)]
    if ids is None:
        _require_same_number(len(labels[0]), len(labels[1]))
        one, other = labels
    else:
        places = common(*_ids(ids, [len(found) for found in labels]))
        one, other = (found[place] for found, place in zip(labels, places, strict=True))
    halos = Halos.of(first, min_members), Halos.of(second, min_members)
    in_halo = [np.zeros(len(found), bool) for found in labels]
    for marks, of in zip(in_halo, halos, strict=True):
        marks[of.labels] = True
    wanted = in_halo[0][one] | in_halo[1][other]
    pairs = Pairs.counted(one[wanted], other[wanted])
    sizes = [_sizes_of(groups) for groups in (first, second)]
    return _put_together(halos, pairs, sizes, min_members)


def _sizes_of(groups: Groups) -> Any:
    ids, sizes = backend.to_host(groups.ids), backend.to_host(groups.sizes)
    return lambda labels: sizes[np.searchsorted(ids, labels)]


def _put_together(halos: tuple[Halos, Halos], pairs: Pairs, sizes: Sequence[Any], min_members: int) -> GroupComparison:
    """The comparison from all pairs of groups of which one is a halo."""
    first, second = halos
    found = match(first, second, pairs, sizes[1])
    unmatched = ~np.isin(second.labels, found.counterpart[found.matched])
    new = match(Halos(second.labels[unmatched], second.members[unmatched]), first, pairs.reversed(), sizes[0])
    of_halos = pairs.chosen(first.has(pairs.first) & second.has(pairs.second))
    return GroupComparison(found, new, of_halos, (len(first.labels), len(second.labels)), min_members)


def _ids(given: Sequence[Any], counts: Sequence[int]) -> list[Any]:
    """The ids of both sets."""
    if not isinstance(given, list | tuple) or len(given) != 2:
        got = f"{len(given)} entries" if isinstance(given, list | tuple) else briefly(given)
        raise WorkbenchError(
            f"ids must have two entries, the ids of the first and of the second set; got {got}: give ids=(first, second)"
        )
    found = []
    for which, one, count in zip(("first", "second"), given, counts, strict=True):
        ids = one.ids if isinstance(one, Particles) else one
        if ids is None:
            raise WorkbenchError(f"the particles of the {which} set have no ids: give ids=(ids, ids), or the same order")
        if not hasattr(ids, "__len__") or getattr(ids, "ndim", 1) == 0:
            raise WorkbenchError(f"the ids of the {which} set must be a row of integers, or Particles; got {briefly(ids)}")
        if len(ids) != count:
            raise WorkbenchError(f"the {which} set must have one id for each of {count:,} particles; got {len(ids):,} ids")
        found.append(ids)
    return found


def _require_same_number(first: int, second: int) -> None:
    if first != second:
        raise WorkbenchError(
            f"without ids, both sets must have the same particles in one order; got {first:,} and {second:,} particles: "
            "give ids=(first.ids, second.ids)"
        )


def _compared_on_workers(first: DistributedGroups, second: DistributedGroups, min_members: int) -> GroupComparison:
    """The comparison of groups whose labels are in files of the workers."""
    _require_same_number(len(first.source), len(second.source))
    labels = first._labels, second._labels
    catalogues = [groups.catalogue(min_members, ()) for groups in (first, second)]
    halos = Halos(catalogues[0].labels, catalogues[0].members), Halos(catalogues[1].labels, catalogues[1].members)
    chunks = range(len(first.source.sizes))
    map_chunks = first._executor.map
    pairs = Pairs.together(map_chunks("pair-groups", _pairs, chunks, shared=(labels, halos)))

    def sizes(which: int, wanted: np.ndarray) -> np.ndarray:
        named = np.unique(wanted)
        parts = range(labels[which].division.parts)
        counted = map_chunks("count-members", _count, parts, shared=(labels[which], named))
        return np.sum(counted, axis=0)[np.searchsorted(named, wanted)]

    return _put_together(halos, pairs, [functools.partial(sizes, which) for which in (0, 1)], min_members)


def _pairs(shared: tuple[tuple[Labels, Labels], tuple[Halos, Halos]], chunk: int) -> Pairs:
    """The pairs of the particles in a chunk of the first source."""
    labels, halos = shared
    start, end = labels[0].source.starts[chunk : chunk + 2]
    one, other = (of.between(start, end) for of in labels)
    wanted = halos[0].has(one) | halos[1].has(other)
    return Pairs.counted(one[wanted], other[wanted])


def _count(shared: tuple[Labels, np.ndarray], part: int) -> np.ndarray:
    """How many particles of a subdomain have each of these labels (rising)."""
    label, named = shared[0].own(part), shared[1]
    if not len(named):
        return np.zeros(0, np.int64)
    place = np.minimum(np.searchsorted(named, label), len(named) - 1)
    return np.bincount(place[named[place] == label], minlength=len(named))
