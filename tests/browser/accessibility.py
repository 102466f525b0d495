"""What axe-core finds in a part of a page: names, roles, keyboard, contrast. It finds about half of all barriers."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

SERIOUS = {"serious", "critical"}
LOOKS, REST = 6, 1000   # what is being replaced is dimmed for a moment; milliseconds between two looks
# The body of JupyterLab has no height, and axe-core takes what lies outside of it for invisible; its contents are placed
# absolutely, so a height changes nothing that is seen.
LOOK = """async selector => {
    document.body.style.minHeight = "100vh";
    try {
        const found = await axe.run(selector);
        const seen = found.passes.filter(({ id }) => id === "color-contrast").flatMap(({ nodes }) => nodes)
            .filter(({ any }) => any.some(({ data }) => data?.contrastRatio));
        return [found.violations, seen.length];
    } finally {
        document.body.style.minHeight = "";
    }
}"""


def serious_findings(page: Page, selector: str) -> list[str]:
    """The serious and critical findings within a selector that stay, each with the rule, the element and the reason."""
    package = pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install axe-playwright-python")
    if page.evaluate("() => typeof axe") == "undefined":
        page.evaluate(resources.files(package).joinpath("axe.min.js").read_text(encoding="utf-8"))
    for look in range(LOOKS):
        if look:
            page.wait_for_timeout(REST)
        if not (findings := _serious(page, selector)):
            break
    return findings


def _serious(page: Page, selector: str) -> list[str]:
    found: list[dict[str, Any]]
    found, readable = page.evaluate(LOOK, selector)
    assert readable, f"axe-core found no text to read within {selector}: is it visible?"
    return [_sentence(finding, node) for finding in found if finding["impact"] in SERIOUS for node in finding["nodes"]]


def _sentence(finding: dict[str, Any], node: dict[str, Any]) -> str:
    element, reason = " ".join(node["html"].split())[:160], node["failureSummary"].splitlines()[-1].strip()
    return f"{finding['id']} ({finding['impact']}): {element}: {reason}"
