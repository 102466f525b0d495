"""The descent of halos: who comes from whom, as arrays, as plain values, as tables and as charts."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arguments import whole_number
from workbench.charts.table import data_frame, html_table
from workbench.clusters.descent.step import NOBODY, StepHalos
from workbench.clusters.descent.succession import FATES, MERGES, ORIGINS, SPLIT_OFF, Succession
from workbench.errors import WorkbenchError, briefly

if TYPE_CHECKING:
    from workbench.charts.description import Chart
    from workbench.clusters.descent.differences import DescentDifferences

SHOWN = 24   # steps in the table of a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Descent:
    """Halos of at least `min_members` at each of the `steps`, and `successions` from each step to the next.

    Links pass over up to `gap` steps at which a halo is not found. A halo is named by its step and the smallest id of its
    members. A step is a number, from the end if it is negative.

    >>> from workbench.clusters import Groups
    >>> import workbench as wb
    >>> labels = [0, 0, 0, 1, 1, 2], [0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 1, 1]
    >>> descent = wb.descent([Groups.from_labels(each, 0.2) for each in labels], min_members=2)
    >>> [(row["step"], row["halo"], row["members"]) for row in descent.main_branch(0)]
    [(0, 0, 3), (1, 0, 5), (2, 0, 4)]
    >>> descent.mergers()
    [{'step': 1, 'time': 1.0, 'halo': 3, 'members': 2, 'into': 0, 'shared': 2, 'ratio': 0.6666666666666666}]
    """

    steps: tuple[StepHalos, ...]
    successions: tuple[Succession, ...]
    min_members: int
    gap: int = 0

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def times(self) -> tuple[float, ...]:
        """The time of each step."""
        return tuple(step.time for step in self.steps)

    @property
    def unit_of_time(self) -> str:
        """What times are called: steps, where they are the numbers of the steps."""
        return "step" if self.times == tuple(range(len(self))) else "time"

    @property
    def counts(self) -> dict[str, int]:
        """How many halos continue as main progenitors, merge and dissolve, and how many split off and form, in all.

        With a gap, also how many links pass over a step.
        """
        fates, origins = (
            np.bincount(np.concatenate([[], *(getattr(each, name) for each in self.successions)]).astype(int), minlength=3)
            for name in ("fate", "origin")
        )
        kinds = "continue", "merge", "dissolve", "split off", "form"
        passed = {"over a gap": sum(int((one.over > 0).sum()) for one in self.successions)} if self.gap else {}
        return dict(zip(kinds, [*fates.tolist(), *origins.tolist()[1:]], strict=True)) | passed

    def largest(self, most: int = 10, step: int = -1) -> list[int]:
        """The names of the largest halos of a step."""
        return [int(name) for name in self.steps[self.place(step)].halos[: whole_number("most", most, least=0)].tolist()]

    def members(self, halo: int, step: int = -1) -> np.ndarray:
        """The ids of the members of a halo, rising."""
        at = self.steps[self.place(step)]
        number = at.number(halo)
        if at.ids is None:
            raise WorkbenchError("this descent was made without the members of halos: make it with keep_members=True")
        return at.ids[at.starts[number] : at.starts[number + 1]]

    def progenitors(self, halo: int, step: int = -1) -> list[dict[str, Any]]:
        """The halos of the step before whose descendant this one is, the main progenitor first; last those over a gap."""
        at = self.place(step)
        return [row for _, row in self._progenitors(at, self.steps[at].number(halo))]

    def descendant(self, halo: int, step: int = -1) -> dict[str, Any] | None:
        """The halo of the next step, or over a gap, that has most members of this one; None if there is none."""
        at = self.place(step)
        number = self.steps[at].number(halo)
        if at == len(self) - 1 or (next_one := int(self.successions[at].descendant[number])) == NOBODY:
            return None
        until = self.successions[at]
        return self._row(at + 1 + int(until.over[number]), next_one, int(until.passed[number]))

    def main_branch(self, halo: int, step: int = -1) -> list[dict[str, Any]]:
        """A halo and its main progenitors, the earliest first; `shared` with the next of the branch."""
        at = self.place(step)
        rows = [self._row(at, self.steps[at].number(halo))]
        for place, number in self.main_progenitors(at, self.steps[at].number(halo)):
            rows.append(self._row(place, number, int(self.successions[place].passed[number])))
        return rows[::-1]

    def tree(self, halo: int, step: int = -1) -> dict[str, Any]:
        """A halo with all its `progenitors`, each with its own, as nested plain values; the main progenitor comes first."""
        at = self.place(step)
        top = self._row(at, self.steps[at].number(halo))
        waiting = [(at, self.steps[at].number(halo), top)]
        while waiting:
            place, number, node = waiting.pop()
            found = self._progenitors(place, number)
            node["progenitors"] = [row for _, row in found]
            waiting += [(row["step"], each, row) for each, row in found]
        return top

    def mergers(self, least_ratio: float = 0.0) -> list[dict[str, Any]]:
        """Every halo that merges, and `into` which halo; `ratio` compares its members with those of the main progenitor."""
        rows = []
        for at, one in enumerate(self.successions):
            before = self.steps[at]
            for number in np.flatnonzero(one.fate == MERGES).tolist():
                into, there = int(one.descendant[number]), at + 1 + int(one.over[number])
                after, (main_at, main) = self.steps[there], next(self.main_progenitors(there, into))
                ratio = float(before.members[number] / self.steps[main_at].members[main])
                if ratio >= least_ratio:
                    rows.append({
                        "step": there, "time": after.time, "halo": int(before.halos[number]),
                        "members": int(before.members[number]), "into": int(after.halos[into]),
                        "shared": int(one.passed[number]), "ratio": ratio,
                    })
        return rows

    def splits(self) -> list[dict[str, Any]]:
        """Every halo that has split off, at the step where it is there first: `of` which halo of the step before."""
        rows = []
        for at, one in enumerate(self.successions):
            before, after = self.steps[at], self.steps[at + 1]
            for number in np.flatnonzero(one.origin == SPLIT_OFF).tolist():
                of = int(one.split_from[number])
                shared = one.pairs.shared[(one.pairs.first == of) & (one.pairs.second == number)]
                rows.append({
                    "step": at + 1, "time": after.time, "halo": int(after.halos[number]),
                    "members": int(after.members[number]), "of": int(before.halos[of]), "shared": int(shared[0]),
                })
        return rows

    def equals(self, other: Descent) -> bool:
        """Whether both have the same halos at each step and the same numbers of shared particles; times are not compared.

        Where both know the members of their halos, these are compared, too.
        """
        _require_descent(other)
        return (
            (self.min_members, self.gap, len(self)) == (other.min_members, other.gap, len(other))
            and all(map(_same_step, self.steps, other.steps))
            and all(
                np.array_equal(getattr(one.pairs, name), getattr(two.pairs, name))
                for one, two in zip(self.successions, other.successions, strict=True)
                for name in ("first", "second", "shared")
            )
            and all(
                np.array_equal(getattr(one, name), getattr(two, name))
                for one, two in zip(self.successions, other.successions, strict=True)
                for name in ("descendant", "passed", "over", "main", "main_over")   # those over a gap
            )
        )

    def differences(self, other: Descent) -> DescentDifferences:
        """Which links of this descent break in another one of the same particles, such as that of decoded positions."""
        from workbench.clusters.descent.differences import differences

        _require_descent(other)
        return differences(self, other)

    def plot(self, halo: int, step: int = -1, other: Descent | None = None, most: int = 24) -> Chart:
        """The merger tree of a halo as a chart, with that of `other` below, where links that broke are marked.

        A branch is as wide as the square root of its members. Of the branches that merge, the `most` largest are drawn.
        """
        from workbench.clusters.descent.tree_chart import tree_chart

        return tree_chart(self, halo, self.place(step), other, whole_number("most", most, least=0))

    def table(self) -> list[dict[str, Any]]:
        """One row for each halo of each step, the largest first; None where there is no other halo.

        `origin` says where it comes from (continued, split off, formed), `fate` what becomes of it (continues, merges,
        dissolves), and `passed` how many particles its descendant gets, `over` how many steps at which it is not found;
        `label` is that in the groups. The first step has no origins, the last no fates.
        """
        return [row for at in range(len(self)) for row in self._table(at)]

    def to_dataframe(self) -> Any:
        """The rows of `table` as a pandas DataFrame."""
        rows = self.table()
        names = rows[0] if rows else ()
        return data_frame({name: _column([row[name] for row in rows]) for name in names})

    def place(self, step: Any) -> int:
        """The number of a step, counted from the beginning."""
        number = whole_number("step", step, least=-len(self), most=len(self) - 1)
        return number % len(self)

    def _progenitors(self, at: int, number: int) -> list[tuple[int, dict[str, Any]]]:
        """The numbers and the rows of the progenitors of a halo, the main one first."""
        return [
            (each, self._row(place, each, int(self.successions[place].passed[each])))
            for place, each in self.progenitors_of(at, number)
        ]

    def progenitors_of(self, at: int, number: int) -> list[tuple[int, int]]:
        """The steps and numbers of the progenitors of a halo, the main one first; those over a gap come last."""
        places = range(at - 1, max(at - 2 - self.gap, -1), -1)
        return [
            (place, each) for place in places
            for each in self.successions[place].linked_to(number, at - 1 - place).tolist()
        ]

    def main_progenitors(self, at: int, number: int) -> Iterator[tuple[int, int]]:
        """Steps and numbers of the main progenitors, the latest first."""
        while at and (main := int(self.successions[at - 1].main[number])) != NOBODY:
            at, number = at - 1 - int(self.successions[at - 1].main_over[number]), main
            yield at, number

    def _row(self, at: int, number: int, shared: int | None = None) -> dict[str, Any]:
        step = self.steps[at]
        row = {"step": at, "time": step.time, "halo": int(step.halos[number]), "members": int(step.members[number])}
        return row if shared is None else {**row, "shared": shared}

    def _table(self, at: int) -> Iterator[dict[str, Any]]:
        step = self.steps[at]
        since = self.successions[at - 1] if at else None
        until = self.successions[at] if at < len(self.successions) else None
        for number in range(len(step)):
            row = {**self._row(at, number), "label": int(step.labels[number]), "origin": None, "progenitors": 0,
                   "main_progenitor": None, "fate": None, "descendant": None, "passed": None, "over": None}
            if since is not None:
                row |= {"origin": ORIGINS[since.origin[number]], "progenitors": int(since.progenitors[number])}
                for place, main in itertools.islice(self.main_progenitors(at, number), 1):
                    row["main_progenitor"] = int(self.steps[place].halos[main])
            if until is not None:
                row["fate"] = FATES[until.fate[number]]
                if until.descendant[number] != NOBODY:
                    over = int(until.over[number])
                    row["descendant"] = int(self.steps[at + 1 + over].halos[until.descendant[number]])
                    row |= {"passed": int(until.passed[number]), "over": over}
            yield row

    @property
    def _title(self) -> str:
        counts = self.counts
        ends = f"{len(self.steps[0]):,} at first, {len(self.steps[-1]):,} at last"
        fates = ", ".join(f"{counts[fate]:,} {fate}" for fate in ("continue", "merge", "dissolve"))
        passed = f"; {counts['over a gap']:,} over a gap" if self.gap else ""
        return (
            f"{len(self)} step{'s' * (len(self) > 1)}, halos of at least {self.min_members:,}: {ends}; {fates}; "
            f"{counts['split off']:,} split off, {counts['form']:,} form{passed}"
        )

    def __repr__(self) -> str:
        return f"Descent({self._title})"

    def _repr_html_(self) -> str:
        """A table for notebooks: one row for each step."""
        heads = ["step", "time", "halos", "continued", "split off", "formed", "continue", "merge", "dissolve"]
        rows = [self._summary(at) for at in range(len(self))]
        shown = rows if len(rows) <= SHOWN else [*rows[: SHOWN // 2], ["…"] + [""] * (len(heads) - 1), *rows[-SHOWN // 2 :]]
        return f"<div><strong>{html.escape(self._title)}</strong>{html_table(heads, shown, texts=())}</div>"

    def _summary(self, at: int) -> list[str]:
        step = self.steps[at]
        before = np.bincount(self.successions[at - 1].origin, minlength=3).tolist() if at else [""] * 3
        after = np.bincount(self.successions[at].fate, minlength=3).tolist() if at + 1 < len(self) else [""] * 3
        return [str(at), f"{step.time:.4g}", f"{len(step):,}", *(f"{n:,}" if n != "" else "" for n in [*before, *after])]


def _column(values: list[Any]) -> Any:
    """A column for pandas, which would turn integers beside None into floats."""
    return np.array(values, object) if None in values else values


def _same_step(one: StepHalos, other: StepHalos) -> bool:
    return (
        np.array_equal(one.halos, other.halos) and np.array_equal(one.members, other.members)
        and (one.ids is None or other.ids is None or np.array_equal(one.ids, other.ids))
    )


def _require_descent(other: Any) -> None:
    if not isinstance(other, Descent):
        raise WorkbenchError(f"a descent is compared with another one, of wb.descent(...); got {briefly(other)}")
