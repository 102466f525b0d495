"""The bounds panel under a reader's hands."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.conftest import Opened
from browser.lab_server import LabServer
from browser.notebook_page import NotebookPage, eventually
from browser.panels import (
    CHARTS,
    DECODED,
    ERROR,
    assert_refused,
    chart,
    copied_code,
    enter,
    fact,
    idle,
    on_one_screen,
    opened_panel,
    prepared,
)
from browser.watch import Watch

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


def test_all_that_belongs_to_a_bound_is_on_one_screen_and_what_was_found_is_beside_its_button(panel: NotebookPage) -> None:
    panel.resize(1366, 768)
    eventually(lambda: on_one_screen(panel))
    rates, pictures = panel.page.locator(CHARTS).first.bounding_box(), panel.page.locator(".wb-pictures").bounding_box()
    assert rates is not None
    assert pictures is not None
    assert rates["x"] >= pictures["x"] + pictures["width"]
    assert rates["y"] + rates["height"] <= 768
    expect(panel.page.locator(".wb-panel .wb-answer")).to_contain_text("bits/value")
    expect(panel.page.locator(".wb-panel .wb-answer")).to_contain_text("✓ within")
    panel.press("find")
    idle(panel, "search")
    words = panel.page.locator(".wb-words", has_text="meets 60 dB (60.")
    expect(words).to_be_visible()
    button, told = panel.page.get_by_role("button", name="find").bounding_box(), words.bounding_box()
    assert button is not None
    assert told is not None
    assert 0 <= told["x"] - button["x"] - button["width"] < 20
    assert abs(told["y"] + told["height"] / 2 - button["y"] - button["height"] / 2) < 6


def test_a_second_target_has_a_number_once_it_is_chosen(panel: NotebookPage, artefacts: Path) -> None:
    number = panel.page.locator(".wb-control-second_goal input")
    expect(number).to_be_hidden()
    panel.page.locator(".wb-control-second select").select_option("ratio")
    expect(number).to_have_value("20")
    enter(panel, "second_goal", "2")
    panel.press("find")
    idle(panel, "search")
    expect(panel.page.locator(".wb-words", has_text="meets 60 dB and 2x (60.")).to_be_visible()
    panel.page.screenshot(path=artefacts / "bounds-second-target.png")


@pytest.mark.long
def test_other_codecs_are_compared_and_can_be_chosen(panel: NotebookPage) -> None:
    panel.press("compare codecs")
    eventually(lambda: int(panel.python("len(panel.history)")) >= 5 and panel.python("panel.status.busy") == "False")
    drawer = panel.page.locator(".wb-drawer > summary", has_text="tried so far")
    drawer.focus()
    drawer.press("Enter")   # and it stays open
    table = panel.page.locator(".wb-drawer .wb-table")
    expect(table.locator("tbody tr")).to_have_count(int(panel.python("len(panel.history)")))
    for direction in ("ascending", "descending"):
        table.get_by_role("button", name="ratio").press("Enter")
        expect(table.locator("th[aria-sort]")).to_have_attribute("aria-sort", direction)
    ratios = [float(text) for text in table.locator("tbody tr td:nth-child(4)").all_inner_texts() if text]
    assert ratios == sorted(ratios, reverse=True)
    before = panel.picture(ERROR)
    table.get_by_role("button", name="zfp").press("Enter")   # in a sorted table
    eventually(lambda: panel.picture(ERROR) != before)
    assert panel.python("panel.state.codec") == "'zfp'"
    idle(panel, LAST)
    expect(table.locator("[aria-current=true] button")).to_have_text("zfp")
    panel.portrait("lab-bounds")


@pytest.mark.long
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
    eventually(lambda: panel.python("panel.widget.settings['canvas'].get('blink')") == "False")


def test_nonsense_is_answered_with_a_sentence(panel: NotebookPage) -> None:
    assert_refused(panel, "eb", "a lot", "the error bound must be a positive number", "1e-09")


def test_the_code_that_is_copied_gives_what_is_shown(panel: NotebookPage) -> None:
    code = copied_code(panel)
    assert "wb.compress(field" in code
    panel.run_cell(code)
    assert panel.python("bool((decoded.values == panel.result['trial'].decoded.values).all())") == "True"


def test_archives_and_reports_are_taken_along(panel: NotebookPage, server: LabServer, tmp_path: Path) -> None:
    for button, name in (("download archive", "field.zip"), ("download report", "report.html")):
        with panel.page.expect_download() as waiting:
            panel.press(button)
        waiting.value.save_as(tmp_path / name)
    assert panel.python(f"wb.open({str(tmp_path / 'field.zip')!r}).verify(field).passed") == "True"
    assert_complete(panel.page.context.browser, tmp_path / "report.html")
    saved, question = panel.page.get_by_text("saved as"), panel.page.get_by_text("field.zip exists: replace it?")
    panel.press("save archive")
    expect(saved).to_be_visible()
    panel.press("save archive")
    expect(question).to_be_visible()
    panel.press("replace it")
    expect(saved).to_be_visible()
    eb = float(panel.python("panel.state.eb"))
    panel.move("error bound", 2)
    expect(saved).to_be_hidden()   # as another archive is shown
    eventually(lambda: float(panel.python("panel.state.eb")) == pytest.approx(10**0.1 * eb, rel=0.01))   # after both steps
    idle(panel, LAST)
    panel.press("save report")
    expect(saved).to_be_visible()
    (written,) = server.notebooks.glob("lossbench-bounds-*.html")
    written.unlink()
    (server.notebooks / "field.zip").unlink()


def assert_complete(browser: Browser | None, report: Path) -> None:
    """A report shows everything without scripts and a network; with scripts, its charts are interactive."""
    assert browser is not None
    for scripted in (False, True):
        context = browser.new_context(offline=True, java_script_enabled=scripted, viewport={"width": 1024, "height": 900})
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(report.as_uri())
        assert page.locator("figure").count() == 3
        assert page.locator(".wb-chart .wb-static:visible").count() == (0 if scripted else 3)
        if scripted:
            page.wait_for_function("() => document.querySelectorAll('.bk-Figure').length === 3")
            assert page.evaluate("document.documentElement.scrollWidth") <= 1024
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        context.close()


@pytest.mark.long
def test_what_is_being_computed_is_dimmed(panel: NotebookPage) -> None:
    panel.run_cell("""import threading
from workbench.lab.bounds_panel import panel as module
usual, go = module.try_bound, threading.Event()
def slow(data, state, progress):
    while not go.wait(0.01):
        progress(0.5, "waiting")
    return usual(data, state, progress)
module.try_bound = slow""")
    content, shown = panel.page.locator(".wb-content"), fact(panel, "ratio")
    panel.move("error bound", 3)
    expect(content).to_have_attribute("aria-busy", "true")
    expect(panel.page.locator(".wb-figures")).to_have_css("opacity", "0.4")
    assert fact(panel, "ratio") == shown
    panel.python("go.set()")
    expect(content).to_have_attribute("aria-busy", "false")
    expect(panel.page.locator(".wb-figures")).to_have_css("opacity", "1")
    assert fact(panel, "ratio") != shown
    panel.run_cell("module.try_bound = usual")


@pytest.mark.long
def test_particles_are_seen_by_their_density(page: Opened) -> None:
    with opened_panel(page, "wb.lab.bounds(wb.synthetic.cosmic_web(n=32))", LAST) as notebook:
        before, bits = notebook.picture(DECODED), fact(notebook, "bits per particle")
        notebook.page.locator(".wb-control-order select").select_option("free")
        eventually(lambda: fact(notebook, "bits per particle") != bits)
        assert float(fact(notebook, "bits per particle")) < float(bits)
        notebook.page.locator(".wb-control-axis select").select_option("along x")
        eventually(lambda: notebook.picture(DECODED) != before)


@pytest.mark.long
def test_a_model_is_left_out_and_chosen_again(page: Opened) -> None:
    page[0].run_cell("trained = wb.codecs.train(field, bounds=1e-3, steps=100)")
    with opened_panel(page, "wb.lab.bounds(field, model=trained)", LAST) as panel:
        chosen = panel.page.locator(".wb-control-model select")
        expect(chosen.locator("option:checked")).to_have_text("trained")
        without = fact(panel, "without the model")
        assert panel.python("f\"{panel.result['plain'][0]['bits_per_value']:.3g}\"") == repr(without)
        assert "model=trained)" in copied_code(panel)
        chosen.select_option("none")
        idle(panel, LAST)
        expect(panel.page.locator(".wb-figures")).not_to_contain_text("without the model")
        assert fact(panel, "bits per value") == without
        assert panel.python("panel.state.model is None") == "True"
        chosen.select_option("trained")
        idle(panel, LAST)
        expect(panel.page.locator(".wb-figures")).to_contain_text("without the model")


@pytest.mark.long
def test_a_page_that_is_loaded_again_shows_the_panel_or_its_last_picture(notebook: NotebookPage, watch: Watch) -> None:
    watch.allow("widget model not found")   # which JupyterLab logs, and the picture replaces
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
    last = panel.page.locator(".wb-last")
    expect(last).to_contain_text(f"ratio {fact(panel, 'ratio')}")   # hidden, in what is saved
    panel.save()
    panel.reload()
    panel.screenshot("reloaded")
    assert panel.drawn(ERROR).colours > 20
    assert panel.page.locator(".wb-control-eb input[type=text]").input_value() == size
    ratio, spectrum = fact(panel, "ratio"), panel.drawn(chart(panel, SPECTRUM))
    panel.move("error bound", -10)
    eventually(lambda: fact(panel, "ratio") != ratio)
    eventually(lambda: panel.picture(chart(panel, SPECTRUM)) != spectrum)
    idle(panel, LAST)
    expect(last).to_be_hidden()
    panel.end_kernel()
    panel.reload()
    expect(last).to_be_visible()
    expect(last.get_by_alt_text("decoded: ")).to_be_visible()
    expect(last).to_contain_text("ratio")
    error = panel.page.get_by_text("model not found")
    expect(error).to_be_attached()
    expect(error).to_be_hidden()
    panel.screenshot("without-kernel")


@pytest.mark.long
def test_small_narrow_and_dark(panel: NotebookPage) -> None:
    panel.resize(1366, 768)
    eventually(lambda: on_one_screen(panel))
    panel.page.locator(".wb-all > summary").click()
    ratio = panel.page.locator(".wb-fact", has=panel.page.get_by_text("ratio", exact=True))
    ratio.get_by_role("button").focus()
    expect(ratio.get_by_role("tooltip")).to_be_visible()
    panel.dark()
    panel.resize(900, 1300)
    panel.page.wait_for_timeout(500)
    across = panel.page.locator(".wb-panel").evaluate("panel => [panel.scrollWidth, panel.clientWidth]")
    assert across[0] <= across[1] + 2
    panel.portrait("lab-bounds-dark")
    panel.dark(False)
    panel.resize(1380, 1300)   # for the tests after it


def test_a_closed_panel_is_gone_and_has_written_nothing(panel: NotebookPage, server: LabServer) -> None:
    panel.run_cell("panel.close()")
    eventually(lambda: panel.page.locator(".wb-panel").count() == 0)
    assert not list(Path(server.notebooks).glob("lossbench-*"))
