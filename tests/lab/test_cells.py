from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lab.toy import ToyPanel
from workbench.lab import cells


class Notebook:
    """The shell of a kernel, as far as panels ask it."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.parent: dict[str, Any] = {}

    def get_parent(self) -> dict[str, Any]:
        return self.parent

    def run(self, cell: str, request: str) -> ToyPanel:
        self.parent = {"metadata": {"cellId": cell}, "header": {"msg_id": request}}
        panel = ToyPanel(np.zeros((3, 2)))
        panel.widget   # noqa: B018
        return panel


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Any:
    shell = Notebook()
    monkeypatch.setattr(cells, "_shell", lambda: shell)
    monkeypatch.setattr(cells, "_panels", {})
    yield shell
    for _, panels in list(cells._panels.values()):
        for panel in panels:
            panel.close()


def closed(panel: ToyPanel) -> bool:
    return panel._view is None


def test_a_cell_that_is_run_again_replaces_its_panels(notebook: Notebook) -> None:
    first = notebook.run("a", "1")
    other = notebook.run("b", "2")
    again = notebook.run("a", "3")
    assert [closed(panel) for panel in (first, other, again)] == [True, False, False]


def test_one_run_may_make_several(notebook: Notebook) -> None:
    panels = [notebook.run("a", "1") for _ in range(3)]
    assert not any(map(closed, panels))
    notebook.run("a", "2")
    assert all(map(closed, panels))


def test_closed_panels_are_forgotten(notebook: Notebook) -> None:
    notebook.run("a", "1").close()
    assert cells._panels == {"a": ("1", [])}


def test_without_a_notebook_every_panel_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell in (None, SimpleNamespace(user_ns={})):
        monkeypatch.setattr(cells, "_shell", lambda shell=shell: shell)
        with ToyPanel(np.zeros((3, 2))) as one, ToyPanel(np.zeros((3, 2))) as other:
            assert one.widget is not other.widget


def test_the_name_of_data_is_that_of_the_variable(notebook: Notebook) -> None:
    data = [1]
    notebook.user_ns = {"_12": data, "snapshot": data, "equal": [1]}
    assert cells.name_of(data, "particles") == "snapshot"
    assert cells.name_of([2], "particles") == "particles"
