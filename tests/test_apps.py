"""`make app`: a front page and panels as pages, for this machine only, without their code."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

import workbench as wb
from browser.accessibility import serious_findings
from conftest import ROOT
from outside import HERE, a_browser

PANEL = """
import workbench as wb
name_in_the_code = wb.synthetic.gaussian_field((16, 16, 16), seed=1)
panel = wb.lab.bounds(name_in_the_code)
panel
"""
BROKEN = "raise ValueError('no data')"
PAGES = sorted((ROOT / "app" / "pages").glob("*.ipynb"))
PICTURES = sorted((ROOT / "app" / "pictures").glob("*.svg"))
TRY = '<h2 id="try">What to try</h2>'
ON_THE_SCREEN = """() => [...document.querySelectorAll(".wb-panel .wb-picture, .wb-panel .wb-chart")]
    .every(part => part.getBoundingClientRect().bottom <= innerHeight)"""
COVERED = """heads => heads
    .map(head => [".wb-chart-name", ".wb-chart-tools"].map(part => head.querySelector(part).getBoundingClientRect()))
    .filter(([name, tools]) => name.right > tools.left && name.bottom > tools.top)"""
SPARE_TIME = 60.0   # seconds; a few are enough


@dataclass(frozen=True)
class App:
    address: str
    process: psutil.Process

    def get(self, path: str, host: str | None = None, token: bool = True) -> tuple[str, str]:
        """The text of a page, and the policy that comes with it."""
        own = {"Authorization": "token secret"} if token else {}
        request = urllib.request.Request(self.address + path, headers={**own, **({"Host": host} if host else {})})
        with urllib.request.urlopen(request, timeout=SPARE_TIME) as answer:
            return answer.read().decode(), answer.headers["Content-Security-Policy"]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """What the Makefile starts, with small pages in place of the real ones."""
    pytest.importorskip("voila", reason="needs the lab extra")
    folder = tmp_path_factory.mktemp("app")
    shutil.copytree(ROOT / "app", folder / "app", ignore=shutil.ignore_patterns("pages"))
    (folder / "app" / "pages").mkdir()
    for place, (name, code) in enumerate({"broken": BROKEN, "panel": PANEL}.items()):
        write(folder / "app" / "pages" / f"{name}.ipynb", place, code)
        shutil.copy(PICTURES[place], folder / "app" / "pictures" / f"{name}.svg")
    (command,) = re.findall(r"^\t@\.venv/bin/voila (.*) \$\(ARGS\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    port = free_port()
    options = ["--no-browser", f"--port={port}", "--Voila.port_retries=0"]
    own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **own, "IPYTHONDIR": str(folder / "ipython"), "JUPYTER_TOKEN": "secret"}
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "voila", *command.split(), *options], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        until_it_answers(started, port, folder / "log")
        yield App(f"http://127.0.0.1:{port}/", psutil.Process(started.pid))
    finally:
        stop(started)


def write(path: Path, place: int, code: str) -> None:
    import nbformat  # takes seconds: not for processes that only collect this file

    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    card = {"place": place, "about": f"About {path.stem}.", "data": "no data", "intro": "What it is about."}
    cells = [nbformat.v4.new_code_cell(code), nbformat.v4.new_markdown_cell(f"{TRY}\n\nEverything.")]
    metadata = {"kernelspec": kernel, "title": path.stem.capitalize(), "lossbench": card}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def until_it_answers(started: subprocess.Popen, port: int, log: Path) -> None:
    until = time.monotonic() + SPARE_TIME
    while time.monotonic() < until and started.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"Voilà does not answer:\n{log.read_text()[-2000:]}")


def stop(started: subprocess.Popen) -> None:
    everyone = psutil.Process(started.pid).children(recursive=True) if started.poll() is None else []
    started.terminate()
    try:
        started.wait(10)
    finally:
        started.kill()
        for child in everyone:
            if child.is_running():
                child.kill()


def asks_only_this_server(policy: str) -> bool:
    sources, frames = policy.split("; ")
    kind, *allowed = sources.split()
    own = {"'self'", "'unsafe-inline'", "'unsafe-eval'", "data:", "blob:"}
    return (kind, set(allowed), frames) == ("default-src", own, "frame-ancestors 'self'")


def test_the_front_page_shows_each_panel_in_order(app: App) -> None:
    page, policy = app.get("")
    assert asks_only_this_server(policy)
    assert re.findall(r'href="/voila/render/(\w+)\.ipynb"', page) == ["broken", "panel"]
    assert page.index("About broken.") < page.index("About panel.")
    assert len(re.findall(r'<img src="data:image/svg\+xml,%3Csvg', page)) == 2


def test_a_panel_is_shown_without_its_code_to_this_machine_only(app: App) -> None:
    page, policy = app.get("voila/render/panel.ipynb")
    assert asks_only_this_server(policy)
    assert "application/vnd.jupyter.widget-view+json" in page
    assert "What it is about." in page
    assert "gaussian_field(" not in page.partition("application/vnd.voila.cell-output")[0]
    assert "data:image/svg+xml,%3Csvg xmlns%3D" not in page   # the pictures are for the front page
    kernels = app.process.children(recursive=True)
    sockets = [link for process in [app.process, *kernels] for link in process.net_connections("inet")]
    listening = {link.laddr.ip for link in sockets if link.status == psutil.CONN_LISTEN}
    assert kernels
    assert listening == {"127.0.0.1"}


def test_it_answers_to_no_other_name(app: App) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403"):
        app.get("", host="elsewhere.example")


@pytest.mark.parametrize("path", ["", "voila/render/panel.ipynb"])
def test_other_users_of_this_machine_are_not_answered(app: App, path: str) -> None:
    page, _ = app.get(path, token=False)
    assert "Password or token" in page
    assert "About" not in page
    assert "widget-view" not in page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with a_browser() as started:
        yield started


@contextlib.contextmanager
def opened(browser: Any, address: str, **kind: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page, and what it complains of or asks of another server."""
    context = browser.new_context(**{"viewport": {"width": 1366, "height": 768}, **kind})
    page, wrong = context.new_page(), []
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: wrong.append(asked.url) if (urlsplit(asked.url).hostname or "") not in HERE else None)
    page.goto(address, wait_until="commit")
    yield page, wrong
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_front_page_shows_its_pictures_and_fits_the_screen(app: App, browser: Any, scheme: str) -> None:
    with opened(browser, f"{app.address}?token=secret", color_scheme=scheme) as (page, wrong):
        page.wait_for_load_state()
        assert page.evaluate("() => [...document.images].every(image => image.complete && image.naturalWidth)")
        assert page.evaluate("() => document.documentElement.scrollHeight") <= 768
        assert page.locator(".card").last.get_attribute("href").endswith(f"theme={scheme}")
        assert serious_findings(page, "body") == []
    assert wrong == []


def appears(page: Any) -> None:
    """A page says that its panel is loading until it is there."""
    page.get_by_text("Loading the panel").wait_for()
    assert page.get_by_role("heading", name="Panel").is_visible()
    page.locator(".wb-panel .wb-picture").first.wait_for(timeout=1000 * SPARE_TIME)
    assert not page.get_by_text("Loading the panel").is_visible()
    assert not page.get_by_text("as this notebook has kept it").is_visible()
    page.locator(".wb-panel .wb-chart canvas").first.wait_for(timeout=1000 * SPARE_TIME)


def walked_by_arrow_keys(page: Any) -> None:
    page.wait_for_function("() => document.querySelectorAll('.wb-term').length > 2")
    for fold in page.locator(".wb-all").all():
        fold.evaluate("fold => (fold.open = true)")
    page.locator(".wb-term").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("() => [...document.querySelectorAll('.wb-term')].indexOf(document.activeElement)") == 1
    assert page.locator(".wb-term[tabindex='0']").count() == 1


@pytest.mark.slow
def test_a_panel_appears_on_one_screen_and_its_figures_are_walked_by_arrow_keys(app: App, browser: Any) -> None:
    with opened(browser, f"{app.address}voila/render/panel.ipynb?token=secret&theme=light") as (page, wrong):
        appears(page)
        page.wait_for_function(ON_THE_SCREEN, timeout=10_000)
        page.get_by_role("link", name="what to try").click()
        page.get_by_role("heading", name="What to try").wait_for()
        assert serious_findings(page, ".top") == []
        walked_by_arrow_keys(page)
    assert wrong == []


@pytest.mark.slow
def test_tools_are_large_enough_for_fingers_and_cover_no_title(app: App, browser: Any) -> None:
    small = {"viewport": {"width": 800, "height": 1100}, "has_touch": True, "is_mobile": True}
    with opened(browser, f"{app.address}voila/render/panel.ipynb?token=secret&theme=dark", **small) as (page, wrong):
        appears(page)
        assert serious_findings(page, ".top") == []
        tools = page.locator(".wb-panel :is(summary, button:not(.wb-term)):visible")
        sizes = tools.evaluate_all("all => all.map(tool => [tool.title, tool.offsetWidth, tool.offsetHeight])")
        assert len(sizes) > 10
        assert [each for each in sizes if min(each[1:]) < 24] == []
        assert page.locator(".wb-chart-head").evaluate_all(COVERED) == []
    assert wrong == []


@pytest.mark.slow
def test_a_page_whose_panel_cannot_be_made_says_so(app: App, browser: Any) -> None:
    with opened(browser, f"{app.address}voila/render/broken.ipynb?token=secret") as (page, _):
        page.get_by_role("alert").get_by_text("could not be made").wait_for(timeout=1000 * SPARE_TIME)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_speaks_to_people_who_see_no_cells_and_ends_with_its_panel(path: Path) -> None:
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    card = notebook.metadata["lossbench"]
    assert notebook.cells[-1].source.startswith(TRY)
    texts = [card["about"], card["data"], card["intro"], notebook.cells[-1].source]
    assert not [text for text in texts if re.search(r"\bcells?\b|Shift|notebook|Run ", text)]
    (code,) = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    names: dict[str, Any] = {}
    exec(code.rpartition("\n")[0], names)
    with names[code.rpartition("\n")[2]] as panel:
        assert isinstance(panel, wb.lab.Panel)


def test_each_page_has_a_small_picture() -> None:
    assert [path.stem for path in PICTURES] == [path.stem for path in PAGES]
    for path in PICTURES:
        xml.etree.ElementTree.parse(path)
        assert 1_000 < path.stat().st_size < 100_000


def test_the_pages_come_in_an_order() -> None:
    places = [json.loads(path.read_text())["metadata"]["lossbench"]["place"] for path in PAGES]
    assert sorted(places) == [1, 2, 3, 4]
