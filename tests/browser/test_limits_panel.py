"""The limits panel under a reader's hands."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import (
    CHARTS,
    DECODED,
    ORIGINAL,
    assert_refused,
    chart,
    copied_code,
    fact,
    idle,
    on_one_screen,
    opened_panel,
    prepared,
    unfold,
)

pytestmark = pytest.mark.long
RATES, SPECTRA, STEPS, GAP = range(4)   # the charts
LAST = "news"                           # what is computed last
REGIONS, NEWS = DECODED, ".wb-picture[data-pane='2']"
FIELD = """import workbench as wb
regions = [wb.synthetic.Region(1.0, 0.95), wb.synthetic.Region(0.05, 0.6), wb.synthetic.Region(0.4, 0.1)]
field = wb.synthetic.piecewise_field((256, 256), regions, layout="discs", block=128, seed=3)"""


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "limits-panel", 1300, FIELD)


@pytest.fixture
def panel(page: Opened) -> Iterator[NotebookPage]:
    with opened_panel(page, "wb.lab.limits(field)", LAST, ORIGINAL) as notebook:
        yield notebook


def show(panel: NotebookPage, picture: str) -> None:
    """Put a picture in front by its tab."""
    panel.page.locator(".wb-strip").get_by_text(picture, exact=True).click()
    eventually(lambda: panel.python("panel.state.picture") == repr(picture))


def all_figures(panel: NotebookPage) -> None:
    """Unfold the figures below the answer."""
    panel.page.get_by_text("all figures").click()


def test_regions_and_new_information_are_shown_and_fit_narrow_and_dark_pages(panel: NotebookPage) -> None:
    show(panel, "regions")
    assert panel.drawn(REGIONS).colours > 1
    show(panel, "new information")
    assert panel.drawn(NEWS).colours > 20
    expect(panel.page.get_by_role("button", name="blink")).to_be_hidden()   # no two pictures have one scale
    for number in (RATES, SPECTRA, STEPS):
        assert panel.drawn(chart(panel, number)).colours > 5
    expect(panel.page.get_by_text(re.compile(r"regions \([1-9]"))).to_be_visible()
    code = copied_code(panel)
    assert "wb.rate_distortion(field)" in code
    panel.run_cell(code)
    assert panel.python("limits.rate(distortion) == panel.result['figures'].rate") == "True"
    panel.resize(1366, 768)
    eventually(lambda: on_one_screen(panel))
    eventually(lambda: charts_on_screen(panel))
    panel.dark()
    panel.resize(900, 1300)
    panel.page.wait_for_timeout(500)
    across = panel.page.locator(".wb-panel").evaluate("panel => [panel.scrollWidth, panel.clientWidth]")
    assert across[0] <= across[1] + 2
    panel.portrait("lab-limits-dark")
    panel.dark(False)


def charts_on_screen(panel: NotebookPage) -> bool:
    """Whether all charts are visible together with what stands above them."""
    ends: list[float] = panel.page.locator(".wb-panel").evaluate("""panel => [
        Math.max(...[...panel.querySelectorAll(".wb-chart")].map(chart => chart.getBoundingClientRect().bottom)),
        panel.closest(".jp-WindowedPanel-outer").getBoundingClientRect().bottom]""")
    return ends[0] <= ends[1] + 1


def test_dragging_tiles_changes_figures_and_charts(panel: NotebookPage) -> None:
    all_figures(panel)
    bound = fact(panel, "Gaussian-model bound")
    drawn = {number: panel.picture(chart(panel, number)) for number in (RATES, STEPS)}
    assert fact(panel, "tiles add") == "+0.000"
    panel.move("tiles of", -6)
    eventually(lambda: panel.python("panel.state.tile") == "4")
    idle(panel, LAST)
    eventually(lambda: fact(panel, "tiles add") != "+0.000")
    for number, picture in drawn.items():
        eventually(lambda number=number, picture=picture: panel.picture(chart(panel, number)) != picture)
    assert fact(panel, "Gaussian-model bound") == bound


def test_bounds_for_codes_of_fixed_length_come_on_request(panel: NotebookPage) -> None:
    all_figures(panel)
    unfold(panel)
    expect(panel.page.get_by_text("fixed length ≥")).to_have_count(0)
    panel.press("fixed-length codes")
    idle(panel, "band")
    eventually(lambda: float(fact(panel, "fixed length ≤")) > float(fact(panel, "fixed length ≥")) > 0)
    panel.move("fails at most (ε)", -20)
    eventually(lambda: float(panel.python("panel.state.eps")) < 2e-3)
    expect(panel.page.get_by_text("fixed length ≥")).to_have_count(0)
    assert_refused(panel, "eps", "0.9", "must lie in (0, 0.5]", "1e-20")


def test_dragging_the_bound_moves_the_water_and_the_place(panel: NotebookPage) -> None:
    before = [panel.picture(chart(panel, number)) for number in (RATES, SPECTRA)]
    all_figures(panel)
    bits, error = fact(panel, "Gaussian-model bound"), float(panel.python("panel.state.eb"))
    panel.move("error bound", 10)
    eventually(lambda: float(panel.python("panel.state.eb")) == pytest.approx(10**0.5 * error, rel=0.01))
    idle(panel, LAST)
    eventually(lambda: fact(panel, "Gaussian-model bound") != bits)
    for number, picture in zip((RATES, SPECTRA), before, strict=True):
        eventually(lambda number=number, picture=picture: panel.picture(chart(panel, number)) != picture)


def test_a_cancelled_comparison_can_be_finished_and_looked_at_from_the_bound(panel: NotebookPage) -> None:
    assert panel.page.locator(CHARTS).count() == GAP   # a chart without data is not there
    panel.run_cell("""import threading
from workbench.lab.limits_panel import measuring
sweep, go = measuring.iter_sweep, threading.Event()
def slow(*arguments, **options):
    for number, run in enumerate(sweep(*arguments, **options)):
        if number == 3:
            go.wait(20)
        yield run
measuring.iter_sweep = slow""")
    panel.press("compare codecs")
    eventually(lambda: int(panel.python("len(panel.measured.get('auto', ()))")) == 3)
    panel.press("cancel")
    eventually(lambda: "cancelled" in panel.python("panel.status.text + panel.status.error"))
    panel.python("go.set()")
    eventually(lambda: panel.python("panel.status.busy") == "False")
    assert panel.python("'points' in panel._engine.results()") == "False"
    expect(panel.page.get_by_text(re.compile(r"operating points \([34]\)"))).to_be_visible()
    panel.run_cell("measuring.iter_sweep = sweep")
    panel.press("compare codecs")
    eventually(lambda: panel.python("(panel.status.busy, 'points' in panel._engine.results())") == "(False, True)", 90)
    assert panel.drawn(chart(panel, GAP)).colours > 5
    expect(panel.page.locator(".wb-panel .wb-answer")).to_contain_text("best codec: ")
    key = panel.page.locator(".wb-chart-key", has_text="Gaussian-model bound").first
    expect(key).to_contain_text("zfp")   # an entry for each codec, although the chart began without them
    assert key.evaluate("key => key.scrollHeight <= key.clientHeight")   # all in sight
    runs = int(panel.python("len(panel.result['points'])"))
    assert runs >= 12
    expect(panel.page.get_by_text(f"operating points ({runs})")).to_be_visible()
    panel.page.wait_for_timeout(1000)
    panel.portrait("lab-limits")
    rates = panel.picture(chart(panel, RATES))
    panel.page.get_by_role("radio", name="bits above the bound").click()
    eventually(lambda: panel.picture(chart(panel, RATES)) != rates)
    panel.page.wait_for_timeout(500)
    panel.portrait("lab-limits-above")
