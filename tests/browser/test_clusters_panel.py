"""The clusters panel under a reader's hands: halos break, are looked at, and are kept."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import CHARTS, DECODED, chart, fact, idle, on_one_screen, opened_panel, prepared, unfold

pytestmark = pytest.mark.slow
DESCENT, LAST = 1, "breakage"   # the second chart, and what is computed last
MAP, CLOSE_UP = ".wb-picture:visible", ".wb-detail .wb-picture"
SNAPSHOT = "import workbench as wb\nsnapshot = wb.synthetic.cosmic_web(n=48)"
# Where on the page the centre of the largest halo is: the canvas shows its home whole, in its own proportions.
HALO = """canvas => {
    const [x, y, length] = %s;
    const box = canvas.getBoundingClientRect();
    const scale = Math.min(box.width, box.height) / length;
    return {x: box.width / 2 + scale * (x - length / 2), y: box.height / 2 - scale * (y - length / 2)};
}"""


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "clusters-panel", 1500, SNAPSHOT)


@pytest.fixture
def panel(page: Opened) -> Iterator[NotebookPage]:
    with opened_panel(page, "wb.lab.clusters(snapshot)", LAST) as notebook:
        yield notebook


def test_dragging_the_bound_breaks_more_halos(panel: NotebookPage) -> None:
    before, broken = panel.picture(DECODED), int(fact(panel, "broken").strip("✓✗ "))
    panel.move("error bound ξ", -30)
    eventually(lambda: fact(panel, "broken") != f"✗ {broken}")
    idle(panel, LAST)
    fewer = int(fact(panel, "broken").strip("✓✗ "))
    assert 0 < fewer < broken
    assert panel.picture(DECODED) != before


@pytest.mark.long
def test_the_linking_length_is_told_in_both_units(panel: NotebookPage) -> None:
    unfold(panel)
    panel.page.locator(".wb-control-unit select").select_option("unit of the box")
    eventually(lambda: panel.python("panel.state.unit") == "'length'")
    assert panel.python("panel.state.length(snapshot) == 0.2 * snapshot.spacing") == "True"
    halos = fact(panel, "halos")
    panel.move("linking length b", 3)
    eventually(lambda: fact(panel, "halos") != halos)


def test_a_click_looks_closely_at_a_halo_and_keys_go_through_its_links(panel: NotebookPage) -> None:
    centre = panel.python("[*map(float, panel.result['halos'].catalogue.centres[0][:2]), snapshot.box[0]]")
    canvas = panel.page.locator(MAP).first
    canvas.click(position=canvas.evaluate(HALO % centre))
    eventually(lambda: panel.python("panel.state.chosen is not None and panel.state.chosen.kind") == "'halo'")
    detail = panel.page.locator(CLOSE_UP)
    expect(detail).to_be_visible()
    assert panel.drawn(detail).colours > 3
    panel.portrait("lab-clusters-halo")
    panel.python("panel.row_chosen('halos', 0)")
    expect(panel.page.locator(".wb-name").filter(has_text="halo 1: 4,511")).to_be_visible()
    panel.portrait("lab-clusters-largest")
    place = panel.page.locator(".wb-over .wb-words")
    canvas.focus()
    for key, number in (("n", 1), ("n", 2), ("n", 3), ("p", 2)):
        panel.page.keyboard.press(key)
        expect(place).to_have_text(re.compile(rf"^missing link {number} of [\d,]+$"))
    expect(panel.page.locator(".wb-name").filter(has_text="missing link 2 of")).to_be_visible()
    assert fact(panel, "distance after").endswith(" b")
    assert fact(panel, "one particle moved").endswith(" ξ")
    panel.page.locator(".wb-control-bound input[type=text]").press("n")   # typed, and no step
    panel.press("◀ previous")
    expect(place).to_have_text(re.compile("^missing link 1 of "))
    panel.press("no close-up")
    expect(detail).to_be_hidden()


def test_halos_are_kept_while_one_watches(panel: NotebookPage) -> None:
    panel.press("next ▶")
    panel.portrait("lab-clusters-broken")
    none = ("broken", "split", "merged", "missing links", "false links")
    found = [int(fact(panel, name).strip("✓✗ ").replace(",", "")) for name in none[:3]]
    assert found[0] == found[1] + found[2] > 0
    assert panel.page.locator(CHARTS).count() == DESCENT   # nothing to draw in that of the descent
    expect(tab(panel, "halos kept")).to_have_count(0)   # before they are
    panel.press("preserve")
    eventually(lambda: panel.page.locator(".wb-panel").get_by_text("groups verified").count() == 1)
    assert fact(panel, "groups verified") == "✓ equal"
    panel.drawn(chart(panel, DESCENT))
    eventually(lambda: {fact(panel, name) for name in none} == {"✓ 0"})
    assert fact(panel, "cost of keeping").startswith("+0.")
    answer = expect(panel.page.locator(".wb-panel .wb-answer"))   # whose figures have hidden explanations
    answer.to_have_text(re.compile(r"^✓ all \d+ halos equal · .* for keeping$"), use_inner_text=True)
    tab(panel, "decoded").click()
    answer.to_have_text(re.compile(r"halos broken .* keeping costs \+0\.\d\d$"), use_inner_text=True)
    tab(panel, "halos kept").click()
    eventually(lambda: fact(panel, "broken") == "✓ 0")
    eventually(lambda: panel.python("len(panel.result['kept'].trace) > 5") == "True")
    panel.portrait("lab-clusters")
    assert serious_findings(panel.page, ".wb-panel") == []
    panel.press("save archive")
    expect(panel.page.get_by_text("saved as")).to_be_visible()
    assert panel.python("wb.open('snapshot-halos-kept.zip').verify(snapshot).passed") == "True"
    panel.run_cell(panel.run_cell("print(panel.code())"))
    assert panel.python("after.equals(before)") == "True"
    panel.python("panel.change(bound=panel.state.bound / 2)")   # which nothing was kept at
    expect(panel.page.locator(".wb-name").filter(has_text="halos kept")).to_have_count(0)
    expect(panel.page.locator(".wb-panel").get_by_text("groups verified")).to_have_count(0)
    expect(panel.page.get_by_text("saved as")).to_have_count(0)
    idle(panel, LAST)


def tab(panel: NotebookPage, title: str) -> Locator:
    """The tab of a picture."""
    return panel.page.get_by_role("radio", name=title, exact=True)


def place_of(panel: NotebookPage, button: str) -> dict[str, float] | None:
    box: dict[str, float] | None = panel.page.get_by_role("button", name=button, exact=True).bounding_box()
    return box


def test_all_is_on_one_screen_and_buttons_stay_where_they_are(panel: NotebookPage) -> None:
    panel.resize(1366, 768)
    try:
        panel.press("next ▶")
        close_up = panel.page.locator(CLOSE_UP)
        expect(close_up).to_be_visible()
        eventually(lambda: on_one_screen(panel))
        eventually(lambda: panel.page.locator(MAP).first.bounding_box()["height"] == close_up.bounding_box()["height"])
        bottoms = [box["y"] + box["height"] for box in (
            panel.page.locator(part).bounding_box() for part in (".wb-side", ".wb-strip")) if box]
        assert max(bottoms) < 745   # where JupyterLab's line of status begins
        before = [place_of(panel, button) for button in ("◀ previous", "next ▶", "no close-up")]
        words = panel.page.locator(".wb-over .wb-words")
        for number in range(2, 12):
            panel.press("next ▶")
            expect(words).to_have_text(re.compile(f"^missing link {number} of "))
        panel.python("panel.row_chosen('halos', 0)")
        expect(words).to_have_text(re.compile("broken links$"))
        assert [place_of(panel, button) for button in ("◀ previous", "next ▶", "no close-up")] == before
    finally:
        panel.resize(1380, 1500)


def test_the_cloud_takes_the_place_of_the_map(panel: NotebookPage) -> None:
    panel.press("in 3-D")
    expect(panel.page.locator(MAP)).to_have_count(0)
    cloud = panel.page.locator(".wb-pictures .wb-cloud-points")
    eventually(lambda: cloud.get_attribute("data-points") == str(48**3))
    assert panel.drawn(cloud).colours > 100
    panel.resize(1366, 768)
    try:
        eventually(lambda: on_one_screen(panel))
        panel.portrait("lab-clusters-cloud")
    finally:
        panel.resize(1380, 1500)
    panel.press("in 3-D")
    expect(panel.page.locator(MAP)).to_have_count(1)
    expect(cloud).to_have_count(0)


ENDLESS = """
import time
import workbench.lab.clusters_panel.panel as module
usual = module.keep_halos

def endless(particles, state, halos, progress, trace):
    while True:
        progress(0.5, "descending for ever")
        time.sleep(0.01)

module.keep_halos = endless
"""


@pytest.mark.long
def test_keeping_can_be_cancelled_and_leaves_other_cells_alone(panel: NotebookPage) -> None:
    panel.run_cell(ENDLESS)
    panel.press("preserve")
    expect(panel.page.get_by_role("status").filter(has_text="descending for ever")).to_be_visible()
    assert panel.run_cell("print(panel.status.busy)") == "True"   # another cell, meanwhile
    panel.press("cancel")
    expect(panel.page.get_by_role("status").filter(has_text="cancelled")).to_be_visible()
    eventually(lambda: panel.python("panel._engine._asked.busy") == "False")
    assert panel.python("'kept' in panel.result") == "False"
    assert fact(panel, "broken").startswith("✗")
    panel.run_cell("module.keep_halos = usual")
    panel.press("preserve")   # and can be done after all
    eventually(lambda: panel.page.locator(".wb-panel").get_by_text("groups verified").count() == 1)
    panel.drawn(chart(panel, DESCENT))   # a chart that arrives while the panel closes asks one that is gone
