"""The drawers below the charts: tables and code, in elements that a keyboard and a screen reader know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.lab import markup
from workbench.lab.description import Table
from workbench.lab.part import Part

Chosen = Callable[[str, int], object]


class Drawers(Part):
    """Tables that are sorted in the browser, and a text of code; `chosen(table, row)` is called for a row that was chosen.

    Tables that are `bare` cannot be closed, and have no code.

    >>> drawers = Drawers(print)
    >>> drawers.show({"runs": Table(("codec", "ratio"), (("sz3", "8.1"),), action="show")}, "import workbench as wb")
    >>> drawers.content["tables"][0]["title"]
    'runs (1)'
    """

    kind = "drawers"

    def __init__(self, chosen: Chosen, *, bare: bool = False) -> None:
        super().__init__(tables=[], code="", bare=bare)
        self._chosen = chosen

    def show(self, tables: Mapping[str, Table], code: str = "") -> None:
        """Show these tables and this code; drawers stay open or closed."""
        self.set(tables=[_described(name, table) for name, table in tables.items()], code=code)

    def heard(self, content: Mapping[str, Any]) -> None:
        """A row was chosen."""
        self._chosen(str(content["table"]), int(content["row"]))


def _described(name: str, table: Table) -> dict[str, Any]:
    return {
        "name": name, "title": f"{name} ({table.extent})",
        "columns": list(table.columns), "rows": list(map(list, table.rows)),
        "numeric": markup.numeric_columns(table), "chosen": table.chosen, "action": table.action,
        "foot": list(table.foot), "fixed": sorted(table.fixed),
    }
