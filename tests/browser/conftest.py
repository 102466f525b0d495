"""One JupyterLab for all tests in a browser; a page and a kernel of its own for each, watched until it closes."""

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="tests in a browser need Playwright: pip install playwright")
if importlib.util.find_spec("jupyterlab") is None:   # importing it takes seconds
    pytest.skip("tests in a browser need the lab extra", allow_module_level=True)

from playwright.sync_api import Browser, expect

from browser.chromium import NoChromiumError, chromium
from browser.lab_server import LabServer, lab_server
from browser.notebook_page import WAITS, NotebookPage
from browser.watch import Watch

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
expect.set_options(timeout=1e3 * WAITS)   # a slow machine is not a wrong page; it is 5 seconds otherwise


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """JupyterLab with copies of the project's notebooks."""
    with lab_server(tmp_path_factory.mktemp("lab") / "server", sorted(NOTEBOOKS.glob("*.ipynb"))) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the whole session: other tests run event loops, and there is none beside Playwright's in one thread."""
    try:
        with chromium() as running:
            yield running
    except NoChromiumError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go."""
    named = os.environ.get("LOSSBENCH_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


Opened = tuple[NotebookPage, Watch]


@contextlib.contextmanager
def a_page(browser: Browser, server: LabServer, artefacts: Path) -> Iterator[Opened]:
    """A page of its own, to open a notebook in, and what notes what it does."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    watch = Watch(page, server)
    notebook = NotebookPage(page, server, artefacts)
    yield notebook, watch
    notebook.close()
    context.close()


@pytest.fixture
def opened(browser: Browser, server: LabServer, artefacts: Path) -> Iterator[Opened]:
    with a_page(browser, server, artefacts) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(browser: Browser, server: LabServer, artefacts: Path) -> Iterator[Opened]:
    """One page for the tests of a file: opening JupyterLab takes longer than what they do there."""
    with a_page(browser, server, artefacts) as opened:
        yield opened


@pytest.fixture
def watch(opened: Opened) -> Watch:
    """What the page should not have done."""
    return opened[1]


@pytest.fixture
def notebook(opened: Opened) -> Iterator[NotebookPage]:
    """A page to open a notebook in. At the end nothing may have gone wrong unseen, or have left the machine."""
    page, watch = opened
    yield page
    assert not (complaints := watch.complaints()), "\n".join(complaints)
