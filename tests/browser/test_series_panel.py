"""The clusters panel of a series under a reader's hands: it plays, and a halo's tree is followed."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import DECODED, enter, idle, opened_panel, prepared

pytestmark = pytest.mark.slow
SERIES = """import tempfile, workbench as wb
snapshots = list(wb.synthetic.cosmic_web_series(32, [1, 0.8, 0.6, 0.4, 0.2, 0], seed=1, steps=24))
series = wb.Series(tempfile.mkdtemp() + "/series", wb.Absolute(0.02))
for snapshot in snapshots: series.append(snapshot)
seen = []
def noted(draw):
    return lambda state, results: (seen.append(state.step), draw(state, results))[1]"""


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "series-panel", 1500, SERIES)


@pytest.fixture
def panel(page: Opened) -> Iterator[NotebookPage]:
    with opened_panel(page, "wb.lab.clusters(series, snapshots)", "descents") as notebook:
        yield notebook


def test_it_plays_from_the_first_step_to_the_last(panel: NotebookPage) -> None:
    button = panel.page.get_by_role("button", name="play step")
    before = panel.picture(DECODED)
    enter(panel, "step", "0.5")
    idle(panel, "snapshot")
    eventually(lambda: panel.picture(DECODED) != before)
    assert panel.python("panel.state.step") == "0"
    panel.python("setattr(panel, 'draw', noted(panel.draw))")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(button).to_have_attribute("aria-pressed", "false")   # at the end
    eventually(lambda: panel.python("panel.state.step") == "5")
    assert panel.python("sorted(set(seen))") == "[1, 2, 3, 4, 5]"   # each was seen
    panel.python("delattr(panel, 'draw')")
    panel.portrait("lab-series")


def test_a_text_that_is_no_time_is_answered_by_the_times_and_forgotten_with_the_next(panel: NotebookPage) -> None:
    enter(panel, "step", "soon")
    expect(panel.page.get_by_role("alert")).to_contain_text("the step must be a time from 0.5 to 1; 'soon' is not one")
    enter(panel, "step", "0.5")
    eventually(lambda: panel.python("panel.state.step") == "0")
    expect(panel.page.get_by_role("alert")).to_have_count(0)


def test_another_halo_shows_another_tree(panel: NotebookPage) -> None:
    title = panel.page.locator(".wb-panel").get_by_text("Merger tree of halo")
    first = title.first.inner_text()
    panel.python("panel.row_chosen('halos', 3)")
    eventually(lambda: title.first.inner_text() != first)
    assert not serious_findings(panel.page, ".wb-panel")
