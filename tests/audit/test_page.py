"""The page of an audit has no barrier that axe-core finds, in light and dark, and asks no other host."""

import pytest

import workbench as wb
from browser.accessibility import serious_findings
from outside import a_browser

pytest.importorskip("xarray")
from audit.planted import BOUNDS, DEFECTS, good_copy, small_dataset

pytestmark = pytest.mark.long


def test_the_page_has_no_barriers_and_asks_nobody(tmp_path):
    original = small_dataset()
    lossy = DEFECTS["a lost unit"][0](DEFECTS["one missing chunk"][0](good_copy(original)))
    page = wb.audit(original, lossy, BOUNDS, tolerance={"T": {"ssim": 0.99}}).save(tmp_path / "audit.html")
    asked: list[str] = []
    with a_browser() as browser:
        for scheme in ("light", "dark"):
            shown = browser.new_page(color_scheme=scheme)
            shown.on("request", lambda request: asked.append(request.url))
            shown.goto(page.as_uri())
            assert serious_findings(shown, "body") == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
