"""The table of all variables of a dataset: what is chosen for each, and what is known of it.

A row has only figures that were measured with what is chosen now: by a trial, or as a part of an archive of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.archive.collection.reports import Row
from workbench.bounds.run import Run
from workbench.lab.bounds_panel.dataset_state import DatasetState, key_of, rule_of
from workbench.lab.bounds_panel.examined import run_of
from workbench.lab.bounds_panel.members import Members
from workbench.lab.bounds_panel.number_texts import short
from workbench.lab.bounds_panel.state import PARTS, BoundsState
from workbench.lab.description import Table

NAME = "variables"
COLUMNS = ("variable", "size", "bound", "codec", "bits/value", "ratio", "largest error", "bytes", "remarks")
UNTRIED = "not tried yet"
Measured = Mapping[tuple[str, str], Row]   # by name and rule


@dataclass(frozen=True)
class Total:
    """The sizes of an archive of the whole dataset, and of the data."""

    nbytes: int
    original_nbytes: int


def variables_table(members: Members, state: DatasetState, measured: Measured, total: Total | None) -> Table:
    """A row for each variable, and one below for all of them."""
    names = list(members.dataset)
    rows = tuple(_row(members, name, state.choices.get(name), measured) for name in names)
    fixed = frozenset(place for place, name in enumerate(names) if members.why_not[name])
    return Table(
        COLUMNS, rows, names.index(state.variable), action="look at this variable", foot=_foot(len(names), total),
        fixed=fixed, above=True,
    )


def _row(members: Members, name: str, choices: BoundsState | None, measured: Measured) -> tuple[str, ...]:
    unit = members.unit(name)
    bound = "exact" if choices is None else bound_text(choices, unit)
    codec = "" if choices is None else choices.given.id
    run = None if choices is None else run_of(members.runs(name), choices.question)
    row = measured.get((name, key_of({} if choices is None else rule_of(choices, members.usual(name)))))
    figures, remarks = ("",) * 4, [members.why_not[name]]   # type: tuple[str, ...], list[str]
    if run is not None and not run.error:
        figures = _of_run(run, unit)
        remarks += ["positions alone"] if members.has_riders(name) else []
    elif run is None and row is not None:
        figures, codec = _of_row(row, members.bits(name), unit), row.codec
    else:
        remarks.append(UNTRIED if run is None else "failed")
    return name, members.shape(name), bound, codec, *figures, "; ".join(filter(None, remarks))


def bound_text(choices: BoundsState, unit: str) -> str:
    """The bound in the unit of the variable.

    >>> bound_text(BoundsState("sz3", eb=0.01), "K"), bound_text(BoundsState("sz3", "relative", 1e-3), "K")
    ('0.01 K', '0.001 of the range')
    """
    if choices.exact:
        return "exact"
    return f"{choices.eb:.4g} {unit if choices.kind == 'absolute' else PARTS[choices.kind]}".strip()


def _of_run(run: Run, unit: str) -> tuple[str, ...]:
    """Bits, ratio, largest error, bytes."""
    size = "bits_per_particle" if "bits_per_particle" in run.figures else "bits_per_value"
    return short(run[size]), short(run["ratio"]), _error(run["max_error"], unit), f"{int(run['nbytes']):,}"


def _of_row(row: Row, given: int, unit: str) -> tuple[str, ...]:
    """The same, for values of so many bits."""
    bits = short(given / row.ratio) if given and row.ratio else ""
    return bits, short(row.ratio), _error(row.largest_error, unit), f"{row.nbytes:,}"


def _error(largest: float, unit: str) -> str:
    return f"{largest:.3g} {unit}".strip() if largest else "0"


def _foot(count: int, total: Total | None) -> tuple[str, ...]:
    """What the archive of all of them costs; without one, nothing is claimed."""
    ratio, nbytes = ("", "") if total is None else (short(total.original_nbytes / total.nbytes), f"{total.nbytes:,}")
    remark = "not compressed yet" if total is None else "everything included"
    return f"all {count:,}", "", "", "", "", ratio, "", nbytes, remark
