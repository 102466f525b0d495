"""Two buttons to undo and redo, and the keys for them within the panel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from workbench.lab.front_end import widget_script


class HistoryView(anywidget.AnyWidget):
    """Calls `undo` and `redo`; `ends` says whether there is a step back, and one forth.

    >>> view = HistoryView(lambda: print("undone"), lambda: print("redone"))
    >>> view.ends
    [False, False]
    """

    _esm = widget_script("history.js")

    ends: traitlets.List = traitlets.List([False, False]).tag(sync=True)

    def __init__(self, undo: Callable[[], object], redo: Callable[[], object]) -> None:
        super().__init__()
        self._steps = {"undo": undo, "redo": redo}
        self.on_msg(self._asked)

    def _asked(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        self._steps[content["step"]]()
