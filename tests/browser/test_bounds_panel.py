"""The bounds panel under a reader's hands."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.conftest import Opened
from browser.lab_server import LabServer
from browser.notebook_page import NotebookPage, eventually
from browser.panels import DECODED, ERROR, assert_refused, chart, copied_code, fact, idle, opened_panel, prepared

pytestmark = pytest.mark.slow
SPECTRUM, LAST = 2, "spectra"   # the third chart, and what is computed last
FIELD = "import numpy as np\nimport workbench as wb\nfield = wb.synthetic.gaussian_field((256, 256), seed=3)"


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "bounds-panel", 1300, FIELD)


@pytest.fixture
def panel(page: Opened) -> Iterator[NotebookPage]:
    with opened_panel(page, "wb.lab.bounds(field)", LAST) as notebook:
        yield notebook


def test_dragging_the_bound_changes_pictures_figures_and_state(panel: NotebookPage) -> None:
    pictures = [panel.picture(where) for where in (DECODED, ERROR)]
    ratio, eb = fact(panel, "ratio"), float(panel.python("panel.state.eb"))
    spectrum = panel.drawn(chart(panel, SPECTRUM))
    panel.move("error bound", 20)
    eventually(lambda: float(panel.python("panel.state.eb")) == pytest.approx(10 * eb, rel=0.01))
    idle(panel, LAST)
    eventually(lambda: fact(panel, "ratio") != ratio)
    for where, before in zip((DECODED, ERROR), pictures, strict=True):
        eventually(lambda where=where, before=before: panel.picture(where) != before)
    eventually(lambda: panel.picture(chart(panel, SPECTRUM)) != spectrum)
    assert panel.python("bool(panel.result['trial'].run['max_error'] <= panel.state.eb)") == "True"
    expect(panel.page.get_by_text(re.compile(r"tried so far \((?!1\))"))).to_be_visible()


def test_other_codecs_are_compared_and_can_be_chosen(panel: NotebookPage) -> None:
    panel.press("compare codecs")
    eventually(lambda: int(panel.python("len(panel.history)")) >= 5 and panel.python("panel.status.busy") == "False")
    panel.page.get_by_text(re.compile(r"tried so far \(")).click()   # and it stays open
    expect(panel.page.locator(".wb-table td", has_text="zfp").first).to_be_visible()
    before = panel.picture(ERROR)
    panel.page.locator(".wb-control-codec select").select_option("zfp")
    eventually(lambda: panel.picture(ERROR) != before)
    assert panel.python("panel.state.codec") == "'zfp'"
    idle(panel, LAST)
    panel.portrait("lab-bounds")


def test_pictures_zoom_together_and_blink(panel: NotebookPage) -> None:
    before = [panel.picture(where) for where in (DECODED, ERROR)]
    panel.page.locator(DECODED).press("+")
    panel.page.locator(DECODED).press("+")
    eventually(lambda: panel.python("panel.state.window is None") == "False")
    assert all(panel.picture(where) != whole for where, whole in zip((DECODED, ERROR), before, strict=True))
    panel.page.locator(DECODED).press("0")
    eventually(lambda: panel.python("panel.state.window is None") == "True")
    title = panel.page.locator(".wb-pane", has=panel.page.locator(DECODED)).locator(".wb-name")
    panel.press("blink")
    expect(title).to_have_text("original")
    expect(title).to_have_text("decoded")
    panel.page.locator(DECODED).press("b")
    eventually(lambda: panel.python("panel._view.canvas.blink") == "False")


def test_nonsense_is_answered_with_a_sentence(panel: NotebookPage) -> None:
    assert_refused(panel, "eb", "a lot", "the error bound must be a positive number", "1e-09")


def test_the_code_that_is_copied_gives_what_is_shown(panel: NotebookPage) -> None:
    code = copied_code(panel)
    assert "wb.compress(field" in code
    panel.run_cell(code)
    assert panel.python("bool((decoded.values == panel.result['trial'].decoded.values).all())") == "True"


def test_a_report_opens_anywhere(panel: NotebookPage, browser: Browser, server: LabServer) -> None:
    panel.press("save report")
    expect(panel.page.get_by_text("saved as")).to_be_visible()
    (written,) = server.notebooks.glob("lossbench-bounds-*.html")
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(written.as_uri())
    page.wait_for_function("() => document.querySelectorAll('.bk-Figure').length === 3")
    assert page.locator("figure svg image").count() == 3
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    page.close()
    context.close()
    written.unlink()


def test_particles_are_seen_by_their_density(panel: NotebookPage) -> None:
    notebook = panel
    notebook.run_cell("panel.close()")
    notebook.delete_cells_after(1)
    notebook.run_cell("panel = wb.lab.bounds(wb.synthetic.cosmic_web(n=32))\npanel")
    notebook.drawn(ERROR)
    idle(notebook, LAST)
    before, bits = notebook.picture(DECODED), fact(notebook, "bits per particle")
    notebook.page.locator(".wb-control-order select").select_option("free")
    eventually(lambda: fact(notebook, "bits per particle") != bits)
    assert float(fact(notebook, "bits per particle")) < float(bits)
    notebook.page.locator(".wb-control-axis select").select_option("along x")
    eventually(lambda: notebook.picture(DECODED) != before)


def test_a_page_that_is_loaded_again_shows_the_panel_as_it_is(notebook: NotebookPage) -> None:
    panel = notebook   # in a kernel of its own: what is loaded again is all that the kernel has
    panel.write("again.ipynb", FIELD, "panel = wb.lab.bounds(field)\npanel")
    panel.run_all()
    panel.drawn(ERROR)
    idle(panel, LAST)
    begun = float(panel.python("panel.state.eb"))
    panel.move("error bound", 30)
    eventually(lambda: float(panel.python("panel.state.eb")) == pytest.approx(10**1.5 * begun, rel=0.01))
    idle(panel, LAST)
    size = panel.python("panel.state.eb")
    panel.save()
    panel.reload()
    panel.screenshot("reloaded")
    assert panel.drawn(ERROR).colours > 20
    assert panel.page.locator(".wb-control-eb input[type=text]").input_value() == size
    ratio, spectrum = fact(panel, "ratio"), panel.drawn(chart(panel, SPECTRUM))
    panel.move("error bound", -10)
    eventually(lambda: fact(panel, "ratio") != ratio)
    eventually(lambda: panel.picture(chart(panel, SPECTRUM)) != spectrum)


def test_narrow_and_dark(panel: NotebookPage) -> None:
    panel.dark()
    panel.resize(900, 1300)
    panel.page.wait_for_timeout(500)
    across = panel.page.locator(".wb-panel").evaluate("panel => [panel.scrollWidth, panel.clientWidth]")
    assert across[0] <= across[1] + 2
    panel.portrait("lab-bounds-dark")
    panel.dark(False)


def test_a_closed_panel_is_gone_and_has_written_nothing(panel: NotebookPage, server: LabServer) -> None:
    panel.run_cell("panel.close()")
    eventually(lambda: panel.page.locator(".wb-panel").count() == 0)
    assert not list(Path(server.notebooks).glob("lossbench-*"))
