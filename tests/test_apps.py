"""`make app`: panels as pages, for this machine only, without their code."""

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

import nbformat
import psutil
import pytest

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
AFTERWARDS = "panel.close_all()"   # as notebooks do at their end
SPARE_TIME = 60.0   # seconds; a few are enough


@dataclass(frozen=True)
class App:
    address: str
    process: psutil.Process

    def get(self, path: str, host: str | None = None) -> tuple[str, str]:
        """The text of a page, and the policy that comes with it."""
        request = urllib.request.Request(self.address + path, headers={"Host": host} if host else {})
        with urllib.request.urlopen(request, timeout=SPARE_TIME) as answer:
            return answer.read().decode(), answer.headers["Content-Security-Policy"]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """What the Makefile starts, in a folder with a panel and a notebook that is none."""
    pytest.importorskip("voila", reason="needs the lab extra")
    folder = tmp_path_factory.mktemp("app")
    shutil.copytree(ROOT / "notebooks" / ".voila", folder / "notebooks" / ".voila")
    write(folder / "notebooks" / "panel.ipynb", PANEL, AFTERWARDS)
    write(folder / "notebooks" / "plain.ipynb", "name_in_the_code = 1")
    (command,) = re.findall(r"^\t@\.venv/bin/voila (.*) \$\(ARGS\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    port = free_port()
    options = ["--no-browser", f"--port={port}", "--Voila.port_retries=0"]
    own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **own, "IPYTHONDIR": str(folder / "ipython")}
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "voila", *command.split(), *options], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        until_it_answers(started, port, folder / "log")
        yield App(f"http://127.0.0.1:{port}/", psutil.Process(started.pid))
    finally:
        stop(started)


def write(path: Path, *code: str) -> None:
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    cells = [nbformat.v4.new_markdown_cell("# A panel"), *map(nbformat.v4.new_code_cell, code)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


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


def test_the_first_page_lists_the_panels_and_no_other_notebook(app: App) -> None:
    page, policy = app.get("")
    assert asks_only_this_server(policy)
    assert re.findall(r"render/(\w+)\.ipynb", page) == ["panel"]


def test_a_panel_is_shown_without_its_code_to_this_machine_only(app: App) -> None:
    page, policy = app.get("voila/render/panel.ipynb")
    assert asks_only_this_server(policy)
    assert "application/vnd.jupyter.widget-view+json" in page
    assert "A panel" in page
    assert "name_in_the_code" not in page
    kernels = app.process.children(recursive=True)
    sockets = [link for process in [app.process, *kernels] for link in process.net_connections("inet")]
    listening = {link.laddr.ip for link in sockets if link.status == psutil.CONN_LISTEN}
    assert kernels
    assert listening == {"127.0.0.1"}


def test_it_answers_to_no_other_name(app: App) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403"):
        app.get("", host="elsewhere.example")


@pytest.mark.slow
def test_a_browser_shows_the_panel_and_asks_nobody_else(app: App) -> None:
    assert asked_elsewhere(app.address + "voila/render/panel.ipynb", ".widget-slider") == []
    assert asked_elsewhere(app.address, ".voila-notebooks") == []
