"""The bounds panel of a dataset under a reader's hands: one variable after the other, and one archive of all."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.lab_server import LabServer
from browser.notebook_page import NotebookPage, eventually
from browser.panels import (
    CHARTS,
    DECODED,
    ORIGINAL,
    assert_refused,
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
LAST = "spectra"
OCEAN = """import numpy as np, xarray
import workbench as wb
random, at = np.random.default_rng(0), ("time", "lat", "lon")
def waves(seed, scale): return scale * wb.synthetic.gaussian_field((12, 96, 144), seed=seed).values
ocean = xarray.Dataset({
    "T": (at, 288 + waves(1, 4).astype("f4"), {"units": "K"}), "salt": (at, 35 + waves(2, 0.5), {"units": "g/kg"}),
    "depth": (at[1:], 4000 + 900 * waves(3, 1)[0], {"units": "m"}), "basin": (at[1:], random.integers(0, 5, (96, 144)))},
    coords={"time": np.arange("2026-01", "2027-01", dtype="M8[M]").astype("M8[ns]"),
            "lat": ("lat", np.linspace(60, -60, 96), {"units": "degrees_north"})})"""


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "dataset-panel", 768, OCEAN)


@pytest.fixture
def panel(page: Opened) -> Iterator[NotebookPage]:
    page[0].resize(1366, 768)
    with opened_panel(page, "wb.lab.bounds(ocean)", LAST) as notebook:
        yield notebook


def row(panel: NotebookPage, name: str) -> Locator:
    """The row of a variable."""
    return panel.page.locator(".wb-stand tbody tr", has=panel.page.get_by_text(name, exact=True))


def buttons_of_foot(panel: NotebookPage) -> object:
    """Where the buttons of the foot are in the panel, and its height."""
    return panel.page.locator(".wb-saving").evaluate("""foot => {
        const top = foot.getBoundingClientRect().top;
        const buttons = [...foot.querySelectorAll("button")].filter(button => !button.closest(".wb-asked"));
        const places = buttons.map(button => button.getBoundingClientRect()).map(({ x, y }) => [x, y - top]);
        return [foot.closest(".wb-panel").offsetHeight, places];
    }""")


def test_variables_are_chosen_tried_and_taken_along_together(panel: NotebookPage, server: LabServer) -> None:
    assert on_one_screen(panel)
    expect(row(panel, "T")).to_have_attribute("aria-current", "true")
    expect(row(panel, "salt")).to_contain_text("not tried yet")
    expect(row(panel, "time")).to_contain_text("dates")
    expect(row(panel, "time").get_by_role("button")).to_have_count(0)
    assert not serious_findings(panel.page, ".wb-panel")
    kept = [panel.picture(ORIGINAL), fact(panel, "ratio"), panel.python("panel.state.eb")]

    row(panel, "depth").click()   # by the mouse
    eventually(lambda: panel.python("panel.state.variable") == "'depth'")
    idle(panel, LAST)
    eventually(lambda: panel.picture(ORIGINAL) != kept[0])
    expect(panel.page.locator(".wb-axes").first).to_contain_text("lat [°N]")
    expect(row(panel, "depth")).to_have_attribute("aria-current", "true")
    expect(row(panel, "depth")).not_to_contain_text("not tried yet")
    expect(panel.page.locator(".wb-control-index")).to_have_count(0)   # it has no slices
    eventually(lambda: panel.page.locator(CHARTS).count() == 3)
    before, eb = panel.picture(DECODED), float(panel.python("panel.state.eb"))
    panel.move("error bound", 20)
    eventually(lambda: float(panel.python("panel.state.eb")) == pytest.approx(10 * eb, rel=0.01))
    idle(panel, LAST)
    eventually(lambda: panel.picture(DECODED) != before)
    expect(row(panel, "depth")).to_contain_text(f"{10 * eb:g} m")
    assert_refused(panel, "eb", "a lot", "the error bound must be a positive number", "75.0")

    row(panel, "T").get_by_role("button").press("Enter")   # by the keyboard, and all is as it was
    eventually(lambda: fact(panel, "ratio") == kept[1])
    eventually(lambda: panel.picture(ORIGINAL) == kept[0])
    assert panel.python("panel.state.eb") == kept[2]
    expect(panel.page.locator(".wb-stand button:focus")).to_have_text("T")
    expect(panel.page.locator(".wb-undo")).to_be_disabled()   # the steps were those of another variable
    enter(panel, "index", "2026-03")
    eventually(lambda: panel.python("panel.state.index") == "2")
    expect(entry(panel, "index")).to_have_value("2026-03-01")
    panel.page.locator(".wb-control-axis select").select_option("lon")
    expect(panel.page.locator(".wb-axes").first).to_contain_text("2026-")
    panel.portrait("lab-dataset-dates")

    panel.press("compress all")
    eventually(lambda: panel.python("panel.status.busy") == "False")
    expect(panel.page.locator(".wb-stand tfoot")).to_contain_text("everything included")
    panel.portrait("lab-dataset")
    places = buttons_of_foot(panel)
    code = copied_code(panel)
    assert buttons_of_foot(panel) == places   # "copied" stands in the room of the button's own label
    panel.run_cell(code)
    assert panel.python("archive.verify(ocean).passed") == "True"
    total = f"{int(panel.python('archive.nbytes')):,}"
    expect(panel.page.locator(".wb-stand tfoot")).to_contain_text(total)
    places = buttons_of_foot(panel)
    panel.press("save archive")
    expect(panel.page.get_by_text(re.compile("^saved as"))).to_be_visible()
    assert buttons_of_foot(panel) == places   # messages move nothing
    panel.press("save archive")
    expect(panel.page.get_by_role("button", name="replace it")).to_be_visible()
    assert buttons_of_foot(panel) == places
    panel.press("keep it")
    assert panel.python("wb.open('ocean.zip').nbytes == archive.nbytes") == "True"
    (server.notebooks / "ocean.zip").unlink()

    panel.dark()
    panel.resize(800, 768)
    panel.page.locator(".wb-panel").evaluate("panel => panel.scrollIntoView({block: 'start'})")
    assert not serious_findings(panel.page, ".wb-panel")
    assert panel.page.locator(".wb-panel").evaluate("panel => panel.scrollWidth <= panel.clientWidth + 1")
    panel.dark(False)
