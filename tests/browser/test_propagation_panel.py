"""The propagation panel under a reader's hands: an error travels, a bit slides, a campaign fills its map."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import DECODED, ERROR, chart, copied_code, fact, idle, on_one_screen, opened_panel, prepared, unfold

pytestmark = pytest.mark.slow
LAST = "trace"   # what is computed last
DENSITY = """import numpy as np
import workbench as wb
waves = wb.synthetic.gaussian_field((32, 32, 32), seed=1)
density = wb.Field(np.exp(waves.values))
pipeline = wb.propagation.power_spectrum(density)"""
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
    assert panel.python("trace['waves'].error == panel.result['trace'].trace['waves'].error") == "True"


def test_a_campaign_fills_its_map_and_gives_its_worst_error(panel: NotebookPage) -> None:
    unfold(panel)
    panel.python("panel.change(trials=200)")
    panel.press("run campaign")
    eventually(lambda: panel.python("panel.counted is not None and 'campaign' in panel.shown.charts") == "True")
    assert panel.python("panel.counted.campaign.complete") == "False"   # it fills while it runs
    eventually(lambda: panel.python("panel.counted.campaign.complete") == "True", 90)
    eventually(lambda: panel.python("panel.status.busy") == "False")
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
    panel.page.get_by_role("checkbox", name="checksums").click()
    idle(panel, LAST)
    eventually(lambda: (fact(panel, "faults found"), fact(panel, "outcome")) == ("1", "✓ masked"))
    panel.run_cell(copied_code(panel))
    assert panel.python("trace['spectrum'].error") == "0.0"
    panel.page.get_by_role("checkbox", name="checksums").click()
    expect(panel.page.get_by_role("button", name="protect the worst sites")).to_be_hidden()
    panel.python("panel.change(trials=60)")
    panel.press("run campaign")
    eventually(lambda: panel.python("panel.counted is not None and panel.counted.campaign.complete") == "True", 90)
    panel.press("protect the worst sites")
    eventually(lambda: "'waves'" in panel.python("panel.state.protect"))
    idle(panel, LAST)
    eventually(lambda: on_one_screen(panel))
    panel.page.wait_for_timeout(800)
    expect(panel.page.locator(".wb-awaited")).to_have_count(0)   # charts are dimmed until they are drawn
    assert serious_findings(panel.page, ".wb-panel") == []
    panel.portrait("lab-propagation-protected")


@pytest.mark.long
def test_compression_is_an_error_too_in_the_dark(panel: NotebookPage) -> None:
    panel.page.get_by_label("error", exact=True).select_option("compression")
    idle(panel, LAST)
    eventually(lambda: fact(panel, "ratio") not in ("…", ""))
    ratio = fact(panel, "ratio")
    panel.move("error bound", 20)
    eventually(lambda: float(panel.python("panel.state.bound")) == pytest.approx(0.01))
    idle(panel, LAST)
    eventually(lambda: fact(panel, "ratio") not in (ratio, "…"))
    panel.dark()
    panel.page.wait_for_timeout(500)
    assert serious_findings(panel.page, ".wb-panel") == []
    panel.portrait("lab-propagation-dark")
    panel.dark(False)
