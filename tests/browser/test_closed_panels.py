"""Closed panels leave nothing in the page: who works for a day opens hundreds."""

import pytest

from browser.notebook_page import InUse, NotebookPage, eventually
from browser.panels import CHARTS

pytestmark = pytest.mark.long
# Run again and again, since JupyterLab keeps what belonged to a deleted cell.
NEXT_KIND = """import workbench as wb
turn = globals().get("turn", -1) + 1
field = wb.synthetic.gaussian_field((64, 64), seed=1)
cube = wb.synthetic.gaussian_field((16, 16, 16), seed=1).values + 9.0
panel = (
    lambda: wb.lab.bounds(field), lambda: wb.lab.clusters(wb.synthetic.cosmic_web(n=16)),
    lambda: wb.lab.limits(field), lambda: wb.lab.propagation(wb.propagation.power_spectrum(cube), cube),
)[turn % 4]()
display(panel)"""
KINDS = 4
OF_ONE_PANEL = 500   # nodes, at least


def open_and_close(notebook: NotebookPage, panels: int) -> None:
    for _ in range(panels):
        notebook.run_all(120)
        eventually(lambda: notebook.page.locator(".wb-picture").count() > 0, 60)
        eventually(lambda: notebook.python("panel.status.busy") == "False", 120)
        eventually(lambda: int(notebook.python("len(panel._view.charts)")) == notebook.page.locator(CHARTS).count() > 0, 60)
        notebook.python("panel.close()")
        eventually(lambda: notebook.page.locator(".wb-panel").count() == 0)


def test_closed_panels_are_let_go(notebook: NotebookPage) -> None:
    notebook.write("closed.ipynb", NEXT_KIND)
    open_and_close(notebook, 2 * KINDS)   # which load libraries
    before = notebook.in_use()
    open_and_close(notebook, 2 * KINDS)
    eventually(lambda: let_go(before, notebook.in_use()))   # what is under way holds closed panels for a moment


def let_go(before: InUse, after: InUse) -> bool:
    print(before, after)   # for who reads a failure
    return (
        after.nodes - before.nodes < OF_ONE_PANEL
        and after.listeners - before.listeners < 100
        and after.megabytes < 1.05 * before.megabytes
    )
