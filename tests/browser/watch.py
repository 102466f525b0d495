"""What must not happen while a page is open, noted from outside: requests to other machines, errors and warnings
nobody shows.

A panel that works here and now may still ask a server far away for a style sheet, or throw where only a console sees it; an
exception in a widget's callback is shown in no cell. All this fails the test.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Page

from browser.lab_server import LabServer

HERE = {"127.0.0.1", "localhost", None}   # no host: data:, blob:, about:
# JupyterLab 4.6 logs no errors of its own to the console. Its extensions open comms from the browser, some of which
# the kernel says it does not know; a name from there has dashes, that of a widget has none. The widgets' own asks for its
# partner in kernels that have not imported ipywidgets yet. The server logs what it could not send to a closed page.
OF_JUPYTERLAB = (
    r"in the kernel: No such comm: \w{8}(-\w{4}){3}-\w{12}\s"
    r"|in the kernel: No such comm target registered: jupyter\.widget\.control"
    r"|in the console: Plugin @jupyterlab\S+ .*(took [\d.]+ms|is taking too long) to activate"   # on a busy machine
    r"|in the console: .*GPU stall due to ReadPixels"   # the browser about pictures that a test compares
)
# anywidget gives each model 2 seconds to load, however slow the machine. A model that was connected again says so, after a
# while. A model that is closed while it loads throws the same, and is not missed.
LATE = "thrown: [anywidget] Failed to initialize model"
REPAIRED = re.compile("lossbench: .* was late, and (listens again|is closed meanwhile)")
GONE = r"in the kernel: No such comm: [0-9a-f]{32}\s"   # a message that crossed the closing of its widget
# A page that was closed before may leave a server that cannot reach it, and a kernel that still had something to draw.
OF_CLOSED_PAGES = re.compile("WebSocketClosedError|Socket operation on non-socket")
PATIENCE, LOOK = 15_000, 100   # milliseconds for models that were late to be connected again, and between two looks
ENTRY = re.compile(r"^(?=\[[A-Z] )", re.MULTILINE)   # of the log
IN_LOG = re.compile(r"^Traceback|^\[[EC] ", re.MULTILINE)   # of the server and its kernels


class Watch:
    """Notes what a page and its kernel should not do, from now on."""

    def __init__(self, page: Page, server: LabServer) -> None:
        self.outside: list[str] = []
        self.errors: list[str] = []
        self._allowed = [OF_JUPYTERLAB, GONE]
        self._repaired = 0
        self._page = page
        self._log = server.log
        self._logged = server.log.stat().st_size
        page.on("request", lambda request: self._note_request(request.url))
        page.on("websocket", lambda socket: self._note_request(socket.url))
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.errors.append(f"thrown: {error}"))

    def allow(self, pattern: str) -> None:
        """Let complaints that match pass. A request outside goes nowhere all the same: no name is known."""
        self._allowed.append(pattern)

    def complaints(self) -> list[str]:
        """Everything noted so far that should not have happened, after late models had time to be connected again."""
        self._page.evaluate("null")   # Playwright tells what has happened while it is asked something
        for _ in range(0, PATIENCE, LOOK):
            if self._repaired >= self._late():
                break
            self._page.wait_for_timeout(LOOK)
        entries = ENTRY.split(self._log.read_bytes()[self._logged:].decode())
        wrong = [entry for entry in entries if IN_LOG.search(entry) and not OF_CLOSED_PAGES.search(entry)]
        tail = [f"in the server's log:\n{wrong[-1][-3000:]}"] if wrong else []
        late = [error for error in self.errors if error.startswith(LATE)]
        errors = [*late[self._repaired:], *(error for error in self.errors if error not in late)]
        noted = [*(f"asked another machine: {url}" for url in self.outside), *errors, *tail]
        return [complaint for complaint in noted if not any(re.search(pattern, complaint) for pattern in self._allowed)]

    def forgive_late_models(self) -> None:
        """All models on the page are closed now: those that were still loading threw that they were late, for nobody."""
        self._page.evaluate("null")
        self._repaired = max(self._repaired, self._late())

    def _late(self) -> int:
        return sum(error.startswith(LATE) for error in self.errors)

    def _note_request(self, url: str) -> None:
        if urlsplit(url).hostname not in HERE:
            self.outside.append(url)

    def _note_message(self, message: ConsoleMessage) -> None:
        source = message.location["url"]
        self._repaired += bool(REPAIRED.match(message.text))
        if message.type in ("error", "warning") and source not in self.outside:   # the request itself is noted already
            self.errors.append(f"in the console: {message.text} ({source})")
