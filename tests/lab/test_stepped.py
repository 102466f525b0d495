"""A panel at several steps: alive on pages without a kernel, itself where there is one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from outside import a_browser
from workbench.lab.description import STATIC
from workbench.lab.stepped import MOST_BYTES

BOUNDS = [0.5, 0.2, 0.1]


@pytest.fixture(scope="module")
def panel() -> Iterator[wb.lab.BoundsPanel]:
    with wb.lab.bounds(wb.synthetic.gaussian_field((48, 48), seed=1), eb=0.2) as panel:
        yield panel


@pytest.mark.parametrize(("choice", "complaint"), [
    ({}, "needs one choice with its values, such as eb=.*; got none"),
    ({"eb": BOUNDS, "codec": ["sz3"]}, "needs one choice .* got eb, codec"),
    ({"bound": BOUNDS}, "bound is no choice of this panel: it has codec, kind, eb"),
    ({"eb": 0.1}, "eb needs a list of 2 to 24 values; got 0.1"),
    ({"eb": "0.1 0.2"}, "eb needs a list"),
    ({"eb": [0.1]}, "eb needs a list"),
    ({"eb": [0.1] * 25}, "eb needs a list"),
])
def test_other_choices_are_refused(panel: wb.lab.BoundsPanel, choice: dict[str, Any], complaint: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=complaint):
        wb.lab.stepped(panel, "error bound", **choice)


def test_only_panels_have_steps() -> None:
    with pytest.raises(wb.WorkbenchError, match=r"needs a panel, such as wb\.lab\.bounds\(field\); got 3"):
        wb.lab.stepped(3, "three", eb=BOUNDS)


def test_a_value_that_is_refused_is_named_and_the_panel_stays(panel: wb.lab.BoundsPanel) -> None:
    with pytest.raises(wb.WorkbenchError, match="must be a positive number; -1 is not one"):
        wb.lab.stepped(panel, "error bound", eb=[0.1, -1.0]).html()
    assert panel.state.eb == 0.2


def test_a_page_has_each_step_and_the_panel_returns(panel: wb.lab.BoundsPanel) -> None:
    page = wb.lab.stepped(panel, "ξ < 1", eb=BOUNDS).html()
    assert "ξ &lt; 1" in page
    assert [f'data-step="{eb:g}"' in page for eb in BOUNDS] == 3 * [True]
    assert 'value="1"' in page   # where the panel was
    assert len(page) < 3 * 2 * MOST_BYTES
    assert panel.state.eb == 0.2


def test_with_a_kernel_the_panel_itself_is_shown(panel: wb.lab.BoundsPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(type(panel), "_ipython_display_", lambda self: shown.append(self.title))
    stepped = wb.lab.stepped(panel, "error bound", eb=BOUNDS)
    stepped._ipython_display_()
    assert shown == ["Bounds"]
    monkeypatch.setenv(STATIC, "1")
    with pytest.raises(NotImplementedError):   # IPython then asks for HTML
        stepped._ipython_display_()


@pytest.mark.long
def test_a_browser_shows_one_step_and_follows_the_slider(panel: wb.lab.BoundsPanel, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    stepped = wb.lab.stepped(panel, "error bound", eb=BOUNDS).html()
    page.write_text(f"<!doctype html><meta charset=utf-8>{stepped}", "utf-8")
    with a_browser() as browser:
        shown = browser.new_page()
        wrong: list[str] = []
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.on("request", lambda request: wrong.extend([request.url] if request.url.startswith("http") else []))
        shown.goto(page.as_uri())
        steps, slider = shown.locator("[data-step]:visible"), shown.get_by_label("error bound").first
        first = [steps.first.get_attribute("data-step")]
        slider.press("ArrowRight")
        first.append(steps.first.get_attribute("data-step"))
        assert (first, slider.get_attribute("aria-valuetext")) == (["0.2", "0.1"], "0.1")
        assert wrong == []
