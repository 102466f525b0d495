"""The panel of a language model under a reader's hands: a bit slides, the map follows, and *play* writes two texts."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

import small_language_model as small
from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import ORIGINAL, copied_code, idle, on_one_screen, opened_panel, prepared
from workbench.propagation.weights.charts import named

pytestmark = pytest.mark.slow
LAST = "errors"
# Pairs of texts of one drawing that overlap by more than a pixel.
OVERLAPPING = """drawings => drawings.flatMap(drawing => {
    const texts = [...drawing.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()]);
    return texts.flatMap(([one, a], n) => texts.slice(n + 1)
        .filter(([, b]) => a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 5 && b.bottom > a.top + 5)
        .map(([other]) => [one, other]));
})"""


@pytest.fixture(scope="module")
def page(shared: Opened, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    path = small.write_model(tmp_path_factory.mktemp("model") / "small.gguf")
    code = f"""import workbench as wb
lm = wb.propagation.language_model({str(path)!r})
text = "the other 12 theories on the inside"
"""
    return prepared(shared, "language-panel", 1300, code)


@pytest.fixture
def panel(page: Opened) -> Iterator[NotebookPage]:
    with opened_panel(page, "wb.lab.propagation(lm, text, layer=1, token=4)", LAST, ORIGINAL) as notebook:
        yield notebook


def test_the_map_follows_a_bit_and_two_texts_are_written(panel: NotebookPage) -> None:
    before = panel.picture(ORIGINAL)
    assert panel.drawn(panel.page.locator("canvas:visible").first).colours > 5
    axes = panel.page.locator(".wb-pane svg:has(text)")
    assert axes.count()
    assert axes.evaluate_all(OVERLAPPING) == []
    panel.move("bit", -1)
    eventually(lambda: panel.python("panel.state.bit") == "29")
    idle(panel, LAST)
    eventually(lambda: panel.picture(ORIGINAL) != before)
    panel.press("▶ play")
    idle(panel, "texts")
    expect(panel.page.get_by_text("without the error", exact=True)).to_be_visible()
    written = panel.python("lm.text(panel.result['texts'].original).strip()[:4]").strip("'")
    eventually(lambda: written in panel.page.locator(".wb-panel").first.inner_text())
    eventually(lambda: on_one_screen(panel))
    panel.screenshot("lab-language")
    assert "language.token_errors" in copied_code(panel)
    assert not serious_findings(panel.page, ".wb-panel")


@pytest.mark.long
def test_bounds_of_the_weights_and_their_figures_follow_a_dragged_budget(panel: NotebookPage) -> None:
    panel.press("scan the weights")
    idle(panel, "weights")
    eventually(lambda: follows(panel))
    mouse, slider, seen = panel.page.mouse, panel.slider("within"), [shown(panel)]
    box, chart, table = (part.bounding_box() for part in (slider, beside(panel).locator("xpath=../preceding-sibling::div"),
                                                          beside(panel).locator("table")))
    assert box is not None
    assert chart is not None
    assert table is not None
    assert table["x"] > chart["x"] + chart["width"]   # on this screen of 1380 pixels
    middle = box["y"] + box["height"] / 2
    mouse.move(box["x"] + box["width"] / 2, middle)
    mouse.down()
    for share in (0.1, 0.9):   # from few nats to many, without letting go
        mouse.move(box["x"] + share * box["width"], middle, steps=8)
        eventually(lambda: follows(panel) and shown(panel) != seen[-1])
        seen.append(shown(panel))
    mouse.up()
    (_, strict, fewer), (_, loose, more) = seen[1:]
    assert strict != loose
    assert 0 < fewer < more
    panel.move("within", -20)
    eventually(lambda: follows(panel) and shown(panel) != seen[-1])
    assert not serious_findings(panel.page, ".wb-panel")


def beside(panel: NotebookPage) -> Locator:
    """The table beside the map of losses, with its title."""
    return panel.page.locator(".wb-panel div:has(> strong):has(> table)", has_text="the sum of divergences")


def shown(panel: NotebookPage) -> tuple[str, list[list[str]], float]:
    """Beside the map of losses: the sentence on the sums, the bound of each block, and the sum of their nats."""
    cells = [row.split("\t") for row in beside(panel).locator("tbody tr").all_inner_texts()]
    return beside(panel).locator("strong").inner_text(), [row[:2] for row in cells], sum(float(row[2]) for row in cells)


def follows(panel: NotebookPage) -> bool:
    """Whether this is what the scan says of the budget that is chosen."""
    found = "panel.result['weights'].within(panel.state.budget)"
    parts = f"(list({found}.chosen.items()), {found}.loss, panel.state.budget)"
    bounds, loss, budget = json.loads(panel.python(f"__import__('json').dumps({parts})").strip("'"))
    sentence, rows, _ = shown(panel)
    return f" is {loss:.3g} of {budget:.3g} nats; " in sentence and rows == [[name, named(share)] for name, share in bounds]
