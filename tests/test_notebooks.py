"""Every notebook is stored without what it printed. That it runs is tested in a browser: `browser/test_notebooks.py`."""

from pathlib import Path
from typing import Any

import nbformat
import pytest

from workbench.lab import chart_library

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


def test_the_map_at_the_start_is_square_and_suits_every_theme() -> None:
    hv = pytest.importorskip("holoviews", reason="needs the lab extra")
    chart_library.load()   # the panels do it where HoloViews is imported before them, as in the first cell
    cells = nbformat.read(NOTEBOOKS[-1], as_version=4).cells
    names: dict[str, Any] = {}
    for source in [cell.source for cell in cells if cell.cell_type == "code"][:4]:
        exec(source, names)
    plot = hv.renderer("bokeh").get_plot(names["figure"]).state
    (bar,) = (part for part in plot.right if type(part).__name__ == "ColorBar")
    assert plot.frame_width == plot.frame_height
    assert (plot.x_range.start, plot.x_range.end) == (plot.y_range.start, plot.y_range.end) == (0, 64)
    assert plot.background_fill_alpha == plot.border_fill_alpha == bar.background_fill_alpha == 0
    assert bar.title == "particles per (Mpc/h)²"
