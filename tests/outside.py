"""What a page asks of other servers than its own, found out by a real browser."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HERE = {"", "127.0.0.1"}   # no host at all: file:, data:, blob:


@contextlib.contextmanager
def a_browser() -> Iterator[Browser]:
    """The browser that is there; without one, the test is skipped."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the test extra")
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        pytest.skip("no browser is there: apt install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        yield browser
        browser.close()


def asked_elsewhere(address: str, shows: str) -> list[str]:
    """The addresses elsewhere that the browser tried to reach while it loaded a page, until it showed a CSS selector.

    What the page's own policy kept the browser from asking never left it, and does not count.
    """
    asked: list[str] = []
    kept_back: list[str] = []
    with a_browser() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("requestfailed", lambda request: kept_back.append(request.url) if request.failure == "csp" else None)
        page.goto(address)
        page.wait_for_selector(shows, timeout=60_000)
        page.evaluate("() => new Promise(done => setTimeout(done, 300))")   # for what this in turn asks for
    return [url for url in asked if (urlsplit(url).hostname or "") not in HERE and url not in kept_back]
