"""The panel of a language model under a reader's hands: a bit slides, the map follows, and *play* writes two texts."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

import small_language_model as small
from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import ORIGINAL, copied_code, idle, on_one_screen, opened_panel, prepared

pytestmark = pytest.mark.slow
LAST = "errors"


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
