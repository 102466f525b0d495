"""The propagation panel under a reader's hands: an error travels, a bit slides, a campaign fills its map."""

import itertools
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import (
    DECODED,
    ERROR,
    chart,
    copied_code,
    enter,
    entry,
    fact,
    idle,
    on_one_screen,
    opened_panel,
    prepared,
)

pytestmark = pytest.mark.slow
LAST = "trace"   # what is computed last
DENSITY = """import numpy as np
import workbench as wb
waves = wb.synthetic.gaussian_field((32, 32, 32), seed=1)
density = wb.Field(np.exp(waves.values))
pipeline = wb.propagation.power_spectrum(density)"""
COMPLETE = "(panel.known['campaign'] is not None) and panel.known['campaign'].campaign.complete"
SITES = ["input", "contrast", "waves", "power", "spectrum"]


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "propagation-panel", 1300, DENSITY)


@pytest.fixture
def panel(page: Opened) -> Iterator[NotebookPage]:
    with opened_panel(page, "wb.lab.propagation(pipeline, density)", LAST) as notebook:
        yield notebook


def site(panel: NotebookPage, name: str) -> Locator:
    """The button of a site in the graph."""
    return panel.page.locator(".wb-site").nth(SITES.index(name))


def tab(panel: NotebookPage, name: str) -> None:
    """Open a tab beside the pictures."""
    panel.page.get_by_role("radio", name=name).click()
    eventually(lambda: panel.python("panel.state.tab") == repr(name.lower()))


def test_an_error_is_put_in_and_travels(panel: NotebookPage) -> None:
    expect(panel.page.locator(".wb-site")).to_have_count(len(SITES))
    expect(site(panel, "input")).to_have_attribute("aria-pressed", "true")
    difference, before = panel.picture(ERROR), fact(panel, "value after")
    panel.move("bit", 4)
    eventually(lambda: panel.python("panel.state.bit") == "30")
    idle(panel, LAST)
    eventually(lambda: fact(panel, "value after") != before)
    eventually(lambda: panel.picture(ERROR) != difference)
    eventually(lambda: "non-linear" in site(panel, "spectrum").inner_text())
    panel.move("bit", -7)
    idle(panel, LAST)
    eventually(lambda: on_one_screen(panel))
    panel.portrait("lab-propagation-input")
    panel.press("▶ play")
    expect(panel.page.get_by_role("button", name="❚❚ pause")).to_be_visible()
    for name in SITES[1:]:
        expect(site(panel, name)).to_have_attribute("aria-pressed", "true", timeout=8000)
    expect(panel.page.get_by_role("button", name="▶ play")).to_be_visible()
    assert panel.python("panel.state.look") == "'spectrum'"
    eventually(lambda: panel.drawn(chart(panel, 0)).colours > 3)
    site(panel, "waves").click()
    eventually(lambda: panel.python("panel.state.look") == "'waves'")
    panel.drawn(DECODED)
    code = copied_code(panel)
    panel.run_cell(code)
    assert panel.python("trace['waves'].error == panel.result['trace']['waves'].error") == "True"


def test_a_campaign_fills_its_map_and_gives_its_worst_error(panel: NotebookPage) -> None:
    panel.python("panel.change(trials=200)")
    tab(panel, "Campaign")
    panel.press("run campaign")
    eventually(lambda: panel.python("'campaign' in panel.shown.charts") == "True")
    assert panel.python(COMPLETE) == "False"   # it fills while it runs
    eventually(lambda: panel.python(COMPLETE) == "True", 90)
    eventually(lambda: panel.python("panel.status.busy") == "False")
    expect(panel.page.locator(".wb-side")).to_contain_text("bit flips ended silent")
    panel.page.wait_for_timeout(800)
    expect(panel.page.locator(".wb-awaited")).to_have_count(0)   # charts are dimmed until they are drawn
    panel.portrait("lab-propagation")
    assert serious_findings(panel.page, ".wb-panel") == []
    panel.python("panel.row_chosen('campaign', 1)")
    idle(panel, LAST)
    eventually(lambda: fact(panel, "outcome") in ("silent", "detected"))


def test_switches_stop_the_error_and_protect_the_worst_sites(panel: NotebookPage) -> None:
    panel.page.get_by_label("at", exact=True).select_option("waves")
    panel.python("panel.change(bit=61)")
    idle(panel, LAST)
    eventually(lambda: fact(panel, "outcome") != "…" and "masked" not in fact(panel, "outcome"))
    tab(panel, "Protect")
    panel.page.get_by_role("checkbox", name="checksums").click()
    idle(panel, LAST)
    eventually(lambda: (fact(panel, "faults found"), fact(panel, "outcome")) == ("1", "✓ masked"))
    panel.run_cell(copied_code(panel))
    assert panel.python("trace['spectrum'].error") == "0.0"
    panel.page.get_by_role("checkbox", name="checksums").click()
    expect(panel.page.get_by_role("button", name="compare", exact=True)).to_be_hidden()
    panel.python("panel.change(trials=60)")
    panel.press("only the worst")   # by a campaign that it runs
    eventually(lambda: panel.python(COMPLETE) == "True", 90)
    eventually(lambda: "'waves'" in panel.python("panel.state.protect"))
    idle(panel, LAST)
    eventually(lambda: on_one_screen(panel))
    panel.page.wait_for_timeout(800)
    expect(panel.page.locator(".wb-awaited")).to_have_count(0)   # charts are dimmed until they are drawn
    assert serious_findings(panel.page, ".wb-panel") == []
    panel.portrait("lab-propagation-protected")


def test_the_answer_has_the_tolerance_which_is_edited_there(panel: NotebookPage) -> None:
    answer = panel.page.locator(".wb-figures")
    expect(answer).to_contain_text("The result changes by")
    expect(answer).to_contain_text("✗ silent")
    expect(answer).to_contain_text("of each value of spectrum")
    expect(entry(panel, "tolerance")).to_have_value("0.01")
    enter(panel, "tolerance", "1e6")
    expect(answer).to_contain_text("✓ benign")
    enter(panel, "tolerance", "")
    expect(answer).to_contain_text("✗ silent")
    expect(entry(panel, "tolerance")).to_have_value("0.01")


@pytest.mark.long
def test_a_sweep_needs_compression_and_its_bound_is_used(panel: NotebookPage) -> None:
    tab(panel, "Sweep")
    side = panel.page.locator(".wb-side")
    expect(side).to_contain_text("A sweep raises the bound of a compression; now a bit is flipped.")
    side.get_by_role("button", name="compress", exact=True).click()
    idle(panel, LAST)
    panel.press("sweep the bound")
    expect(side).to_contain_text("too much at", timeout=60000)
    eventually(lambda: panel.python("panel.status.busy") == "False", 60)   # it comes closer to the limit
    panel.press("use this bound")
    eventually(lambda: panel.python("panel.state.bound == panel.known['doses'].best.bound.eb") == "True")
    idle(panel, LAST)
    expect(panel.page.locator(".wb-figures")).to_contain_text("✓ benign")
    expect(panel.page.get_by_role("button", name="use this bound")).to_be_hidden()


def test_the_keyboard_reaches_the_pictures_soon_and_walks_through_the_graph(panel: NotebookPage) -> None:
    panel.page.get_by_label("kind of error", exact=True).focus()
    stops = 0
    while not panel.page.evaluate("() => document.activeElement.matches('.wb-picture')"):
        panel.page.keyboard.press("Tab")
        stops += 1
        assert stops <= 12
    site(panel, "input").focus()
    panel.page.keyboard.press("ArrowRight")
    eventually(lambda: panel.python("panel.state.look") == "'contrast'")
    expect(site(panel, "contrast")).to_be_focused()
    panel.page.keyboard.press("End")
    eventually(lambda: panel.python("panel.state.look") == "'spectrum'")
    expect(site(panel, "spectrum")).to_have_attribute("tabindex", "0")
    assert [site(panel, name).get_attribute("tabindex") for name in SITES[:-1]] == ["-1"] * 4


@pytest.mark.long
def test_sites_share_the_width_and_none_is_cut(panel: NotebookPage) -> None:
    page = panel.page
    boxes = [site(panel, name).bounding_box() for name in SITES]
    area = page.locator(".wb-graph-area").bounding_box()
    assert area is not None
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes if box is not None]
    assert len(ends) == len(SITES)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))
    assert ends[-1][1] == pytest.approx(area["x"] + area["width"], abs=1)


@pytest.mark.long
def test_compression_is_an_error_too_in_the_dark(panel: NotebookPage) -> None:
    panel.page.get_by_label("kind of error", exact=True).select_option("compress")
    idle(panel, LAST)
    eventually(lambda: fact(panel, "ratio") not in ("…", ""))
    ratio = fact(panel, "ratio")
    panel.move("within", 20)
    eventually(lambda: float(panel.python("panel.state.bound")) == pytest.approx(0.01))
    idle(panel, LAST)
    eventually(lambda: fact(panel, "ratio") not in (ratio, "…"))
    panel.dark()
    panel.page.wait_for_timeout(500)
    assert serious_findings(panel.page, ".wb-panel") == []
    panel.portrait("lab-propagation-dark")
    panel.dark(False)
