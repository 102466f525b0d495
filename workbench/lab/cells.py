"""The notebook around a panel: the user's variable name of the data, and the cell that the panel belongs to.

A cell that is run again makes new panels. The old ones are no longer visible, but widgets and their results live until they
are closed, so the old panels of a cell are closed when it makes new ones.
"""

from __future__ import annotations

from typing import Any, Protocol


class Closable(Protocol):
    """An object with a `close` method."""

    def close(self) -> None:
        """Release everything."""


def name_of(data: Any, otherwise: str) -> str:
    """The variable of the notebook that holds this object; `otherwise` if there is none.

    >>> name_of([1, 2], "data")
    'data'
    """
    shell = _shell()
    variables = {} if shell is None else shell.user_ns
    names = [name for name, value in list(variables.items()) if value is data and not name.startswith("_")]
    return min(names, default=otherwise)


def replace_in_cell(panel: Closable) -> None:
    """Close the panels made by an earlier run of the same cell, and register this one."""
    cell, request = _running()
    if not cell:
        return
    made_by, panels = _panels.get(cell, (request, []))
    if made_by != request:
        for old in panels:
            old.close()
        panels = []
    _panels[cell] = request, [*panels, panel]


def forget(panel: Closable) -> None:
    """Remove a closed panel from the register."""
    for cell, (request, panels) in list(_panels.items()):
        if any(held is panel for held in panels):
            _panels[cell] = request, [held for held in panels if held is not panel]


def _running() -> tuple[str, str]:
    """The identity of the running cell, and of the request to run it; empty outside a notebook."""
    shell = _shell()
    request = shell.get_parent() if hasattr(shell, "get_parent") else {}
    return str(request.get("metadata", {}).get("cellId", "")), str(request.get("header", {}).get("msg_id", ""))


def _shell() -> Any:
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()


_panels: dict[str, tuple[str, list[Closable]]] = {}
