"""The browser: whichever Chromium there is, headless, and unable to reach another machine."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium found: apt install chromium, or playwright install chromium, or name one in CHROMIUM"
# No name but this machine's is known to the browser, so a request that should not be made cannot succeed either.
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"


class NoChromiumError(Exception):
    """There is no browser to test with."""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser. While it runs, this thread has an event loop of Playwright's, and no other can be run in it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(playwright.chromium.executable_path), args=[ALONE])
        try:
            yield browser
        finally:
            browser.close()


def executable(of_playwright: str) -> str:
    """The program: the one that CHROMIUM names, else one that is installed, else Playwright's own."""
    named = os.environ.get("CHROMIUM")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, [*NAMES, of_playwright])), None)
    if found is None:
        raise NoChromiumError(f"CHROMIUM names {named}, which is no program" if named else MISSING)
    return found
