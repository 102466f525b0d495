"""`make app`: a front page and panels as pages, for this machine only, without their code."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

import workbench as wb
from conftest import ROOT
from outside import asked_elsewhere

PANEL = """
import ipywidgets
import holoviews as hv
from workbench.lab import chart
name_in_the_code = None   # as wb.lab.bounds(...) would
panel = ipywidgets.VBox([ipywidgets.IntSlider(description="bits", value=7), chart(hv.Curve([3, 1, 2]))])
panel
"""
PAGES = sorted((ROOT / "app" / "pages").glob("*.ipynb"))
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
    """What the Makefile starts, with two small pages in place of the real ones."""
    pytest.importorskip("voila", reason="needs the lab extra")
    folder = tmp_path_factory.mktemp("app")
    shutil.copytree(ROOT / "app", folder / "app", ignore=shutil.ignore_patterns("pages"))
    shutil.copytree(ROOT / "docs" / "images", folder / "docs" / "images")
    (folder / "app" / "pages").mkdir()
    write(folder / "app" / "pages" / "panel.ipynb", 2, PANEL)
    write(folder / "app" / "pages" / "zeroth.ipynb", 1, "name_in_the_code = 1")
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
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    card = {"place": place, "about": f"About {path.stem}.", "data": "no data", "picture": "lab-limits.png"}
    cells = [nbformat.v4.new_markdown_cell("# A panel"), nbformat.v4.new_code_cell(code)]
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
    assert re.findall(r'href="/voila/render/(\w+)\.ipynb"', page) == ["zeroth", "panel"]
    assert page.index("About zeroth.") < page.index("About panel.")
    assert len(re.findall(r'<img src="data:image/png;base64,\w', page)) == 2


def test_a_panel_is_shown_without_its_code_to_this_machine_only(app: App) -> None:
    page, policy = app.get("voila/render/panel.ipynb")
    assert asks_only_this_server(policy)
    assert "application/vnd.jupyter.widget-view+json" in page
    assert "A panel" in page
    assert "name_in_the_code" not in page
    assert "data:image/png" not in page   # the cards are for the front page
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


@pytest.mark.slow
def test_a_browser_shows_the_panel_and_asks_nobody_else(app: App) -> None:
    assert asked_elsewhere(app.address + "voila/render/panel.ipynb?token=secret", ".widget-slider") == []
    assert asked_elsewhere(app.address + "?token=secret", ".card img") == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_speaks_to_people_who_see_no_cells_and_ends_with_its_panel(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    card = notebook.metadata["lossbench"]
    assert notebook.metadata["title"] in notebook.cells[0].source
    assert (ROOT / "docs" / "images" / card["picture"]).is_file()
    texts = [card["about"], card["data"], *(cell.source for cell in notebook.cells if cell.cell_type == "markdown")]
    assert not [text for text in texts if re.search(r"\bcells?\b|Shift|notebook|Run ", text)]
    (code,) = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    names: dict[str, Any] = {}
    exec(code.rpartition("\n")[0], names)
    with names[code.rpartition("\n")[2]] as panel:
        assert isinstance(panel, wb.lab.Panel)


def test_the_pages_come_in_an_order() -> None:
    places = [nbformat.read(path, as_version=4).metadata["lossbench"]["place"] for path in PAGES]
    assert sorted(places) == [1, 2, 3, 4]
