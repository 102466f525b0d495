"""What the tests of all panels do: open one in a page that they share, read its figures, and close it without a trace."""

import contextlib
import itertools
from collections.abc import Iterator

from playwright.sync_api import Locator, expect

from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually

ORIGINAL, DECODED, ERROR = (f".wb-picture[data-pane='{pane}']" for pane in range(3))
CHARTS = ".wb-panel .bk-Figure"


def prepared(shared: Opened, name: str, height: int, data: str) -> Opened:
    """The shared page with a notebook whose only cell makes the data."""
    notebook, _ = shared
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    notebook.resize(1380, height)
    notebook.write(f"{name}.ipynb", data)
    notebook.run_all()
    return shared


@contextlib.contextmanager
def opened_panel(page: Opened, source: str, last: str, seen: str = DECODED) -> Iterator[NotebookPage]:
    """A panel as it is in the beginning, with its result `last` and the picture that is `seen`; at the end nothing may have
    gone wrong unseen.
    """
    notebook, watch = page
    notebook.run_cell(f"panel = {source}\npanel")
    notebook.drawn(seen)
    idle(notebook, last)
    eventually(lambda: int(notebook.python("len(panel._view.charts)")) == notebook.page.locator(CHARTS).count() > 0)
    yield notebook
    notebook.page.wait_for_timeout(400)   # what the browser still has to say arrives before the panel is closed
    if not notebook.page.locator(".wb-panel").count():   # the test itself has closed it
        watch.forgive_late_models()
    assert not (complaints := watch.complaints()), "\n".join(complaints)
    notebook.run_cell("panel.close()")
    notebook.delete_cells_after(1)
    watch.forgive_late_models()
    assert not (complaints := watch.complaints()), "\n".join(complaints)


def idle(notebook: NotebookPage, last: str) -> None:
    """Wait until the panel has this result for its state, and does nothing more."""
    eventually(lambda: notebook.python(f"(panel.status.busy, {last!r} in panel._engine.results())") == "(False, True)")


def entry(panel: NotebookPage, field: str) -> Locator:
    """The field in which the value of this field of the state can be typed."""
    return panel.page.locator(f".wb-control-{field} input[type=text]")


def enter(panel: NotebookPage, field: str, text: str) -> None:
    """Type a text into a field, and press Enter."""
    entry(panel, field).fill(text)
    entry(panel, field).press("Enter")


def assert_refused(panel: NotebookPage, field: str, nonsense: str, told: str, unusual: str) -> None:
    """What cannot be is answered with a sentence, changes nothing, and stays to be corrected; what is unusual is taken."""
    before = panel.python(f"panel.state.{field}")
    enter(panel, field, nonsense)
    expect(panel.page.get_by_role("alert")).to_contain_text(told)
    expect(entry(panel, field)).to_have_value(nonsense)
    expect(entry(panel, field)).to_have_attribute("aria-invalid", "true")
    assert panel.python(f"panel.state.{field}") == before
    enter(panel, field, unusual)
    eventually(lambda: panel.python(f"panel.state.{field}") == unusual)
    expect(panel.page.get_by_role("alert")).to_have_count(0)
    expect(entry(panel, field)).to_have_attribute("aria-invalid", "false")


def copied_code(panel: NotebookPage) -> str:
    """What is on the clipboard after a press on "copy code"."""
    panel.press("copy code")
    expect(panel.page.get_by_role("button", name="copied")).to_be_visible()
    code: str = panel.page.evaluate("() => navigator.clipboard.readText()")
    return code


def chart(notebook: NotebookPage, number: int) -> Locator:
    """What is drawn in a chart, without the axes' layer above it."""
    return notebook.page.locator(CHARTS).nth(number).locator("canvas.bk-layer")


def unfold(notebook: NotebookPage) -> None:
    """Show the controls that are folded away, if any are."""
    more = notebook.page.locator(".wb-panel .wb-more")
    if more.is_visible() and more.get_attribute("aria-expanded") == "false":
        more.click()


def on_one_screen(notebook: NotebookPage) -> bool:
    """Whether controls, figures and pictures are visible at once, when the panel begins at the top of the screen."""
    panel = notebook.page.locator(".wb-panel")
    panel.evaluate("panel => panel.scrollIntoView({block: 'start'})")
    ends: list[float] = panel.evaluate("""panel => {
        const screen = panel.closest(".jp-WindowedPanel-outer").getBoundingClientRect();
        const box = selector => panel.querySelector(selector).getBoundingClientRect();
        return [screen.top, box(".wb-above").top, box(".wb-figures").bottom, box(".wb-pictures").bottom, screen.bottom];
    }""")
    return all(one <= other + 1 for one, other in itertools.pairwise(ends))


def fact(notebook: NotebookPage, name: str) -> str:
    """The figure beside this name, which may be folded."""
    entry = notebook.page.locator(".wb-fact", has=notebook.page.get_by_text(name, exact=True))
    return entry.locator("b").text_content() or ""
