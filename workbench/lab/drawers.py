"""The drawers below the charts: tables and code, in elements that a keyboard and a screen reader know.

The accordion of ipywidgets cannot be reached by the keyboard, and its HTML tables can be neither sorted nor chosen from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anywidget
import traitlets

from workbench.lab import markup
from workbench.lab.description import Table
from workbench.lab.front_end import front_end, widget_script

Chosen = Callable[[str, int], object]


class Drawers(anywidget.AnyWidget):
    """Tables that are sorted in the browser, and a text of code; `chosen(table, row)` is called for a row that was chosen.

    >>> drawers = Drawers(print)
    >>> drawers.show({"runs": Table(("codec", "ratio"), (("sz3", "8.1"),), action="show")}, "import workbench as wb")
    >>> drawers.tables[0]["title"]
    'runs (1)'
    """

    _esm = widget_script("drawers.js")
    _css = front_end("drawers.css")
    tables: traitlets.List = traitlets.List().tag(sync=True)
    code = traitlets.Unicode("").tag(sync=True)
    bare = traitlets.Bool(False).tag(sync=True)   # tables alone, which cannot be closed

    def __init__(self, chosen: Chosen, *, bare: bool = False) -> None:
        super().__init__(bare=bare)
        self._chosen = chosen
        self.on_msg(self._heard)

    def show(self, tables: Mapping[str, Table], code: str = "") -> None:
        """Show these tables and this code; drawers stay open or closed."""
        with self.hold_sync():
            self.tables = [_described(name, table) for name, table in tables.items()]
            self.code = code

    def _heard(self, _: Any, content: dict[str, Any], buffers: list[Any]) -> None:
        self._chosen(str(content["table"]), int(content["row"]))


def _described(name: str, table: Table) -> dict[str, Any]:
    return {
        "name": name, "title": f"{name} ({table.extent})",
        "columns": list(table.columns), "rows": list(map(list, table.rows)),
        "numeric": markup.numeric_columns(table), "chosen": table.chosen, "action": table.action,
        "foot": list(table.foot), "fixed": sorted(table.fixed),
    }
