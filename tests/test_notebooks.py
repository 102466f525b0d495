"""Every notebook is stored without what it printed. That it runs is tested in a browser: `browser/test_notebooks.py`."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted([*FOLDER.glob("*.ipynb"), *FOLDER.glob("class/*.ipynb")])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs(path: Path) -> None:
    import nbformat  # takes seconds: not for processes that only collect this file

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


def test_the_map_at_the_start_is_one_public_call() -> None:
    cells = json.loads(next(path for path in NOTEBOOKS if path.stem == "start").read_text())["cells"]
    names: dict[str, Any] = {}
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][:4]
    for source in code[:3]:
        exec(source, names)
    drawn = eval(code[3], names)
    assert "largest of 686 groups (60)" in drawn.svg
    assert "from workbench." not in "".join(code)
