"""A JupyterLab of the tests' own: a real server on loopback, in folders that nobody else uses.

What a panel does in a browser depends on the server, its extensions and the kernel, so all three are the real ones, of the
Python that runs the tests. Settings, history, running servers and notebooks of whoever runs the tests stay out of it: the
folders are new, only what is installed in the environment is found through `sys.prefix`. A token keeps other users of the
machine out, as whoever reaches a server can run any program.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

STARTS_WITHIN = 180.0   # seconds; it takes 2 to 4, and a minute on a machine that does much else
STOPS_WITHIN = 10.0
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"checkForUpdates": False, "fetchNews": "false"},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}


@dataclass(frozen=True)
class LabServer:
    """A server that answers; `notebooks` is the folder that it shows, `log` has what it and its kernels reported."""

    address: str
    token: str
    notebooks: Path
    log: Path
    process: psutil.Process

    def lab(self, notebook: str) -> str:
        """The address of a notebook in JupyterLab, with nothing else open there."""
        return f"{self.address}lab/tree/{quote(notebook)}?token={self.token}&reset"

    def api(self, path: str) -> object:
        """What the server's own interface answers, as from JSON: `kernels`, `sessions`, `status`."""
        request = urllib.request.Request(f"{self.address}api/{path}", headers={"Authorization": f"token {self.token}"})
        with urllib.request.urlopen(request, timeout=STOPS_WITHIN) as answer:
            return json.load(answer)

    def kernels(self) -> list[psutil.Process]:
        """The kernels that run, oldest first."""
        running = [child for child in self.process.children(recursive=True) if "ipykernel_launcher" in child.cmdline()]
        return sorted(running, key=lambda kernel: kernel.create_time())


@contextlib.contextmanager
def lab_server(folder: Path, notebooks: Iterable[Path] = (), threads: int = 2) -> Iterator[LabServer]:
    """A server in an empty folder, with copies of notebooks; kernels may use so many threads.

    It has stopped when the block ends, and so have all processes that it started.
    """
    root = folder / "notebooks"
    root.mkdir(parents=True)
    for notebook in notebooks:
        shutil.copy(notebook, root)
    environment = _environment(folder, threads)
    token = environment["JUPYTER_TOKEN"]
    log = folder / "server.log"
    with log.open("wb") as output:
        started = subprocess.Popen(_command(root), cwd=root, env=environment, stdout=output, stderr=output)
    process = psutil.Process(started.pid)
    try:
        yield LabServer(_address(started, Path(environment["JUPYTER_RUNTIME_DIR"]), log), token, root, log, process)
    finally:
        _stop(started, process)


def _command(root: Path) -> list[str]:
    options = [
        "--no-browser", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={root}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=",
    ]
    if os.geteuid() == 0:
        options.append("--allow-root")   # in a container
    return [sys.executable, "-m", "jupyterlab", *options]


def _environment(folder: Path, threads: int) -> dict[str, str]:
    """This environment, but for the folders of Jupyter and IPython; the settings are written there."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON"))}
    for name in ("config", "data", "runtime", "ipython"):
        (folder / name).mkdir()
    overrides = folder / "config" / "labconfig" / "default_setting_overrides.json"
    overrides.parent.mkdir()
    overrides.write_text(json.dumps(SETTINGS))
    return mine | {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PREFER_ENV_PATH": "1",   # the kernel of this Python, whatever else is installed for the user
        "JUPYTER_TOKEN": secrets.token_hex(),
        "IPYTHONDIR": str(folder / "ipython"),
        "OMP_NUM_THREADS": str(threads),
    }


def _address(started: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Where the server answers; it says so in a file, once it has found a free port."""
    until = time.monotonic() + STARTS_WITHIN
    announced = runtime / f"jpserver-{started.pid}.json"
    while time.monotonic() < until and started.poll() is None:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError, urllib.error.URLError):
            address = json.loads(announced.read_text())["url"]
            with urllib.request.urlopen(f"{address}login", timeout=1):
                return str(address)
        time.sleep(0.1)
    state = f"ended with {started.returncode}" if started.returncode is not None else "did not answer"
    raise RuntimeError(f"JupyterLab {state} within {STARTS_WITHIN:.0f} s of its start:\n{log.read_text()[-3000:]}")


def _stop(started: subprocess.Popen[bytes], process: psutil.Process) -> None:
    """Ask the server to stop, which ends its kernels; kill what is left of them all."""
    everyone = [process, *process.children(recursive=True)] if started.poll() is None else []
    started.terminate()
    _, left = psutil.wait_procs(everyone, STOPS_WITHIN)
    for survivor in left:
        survivor.kill()
    psutil.wait_procs(left, STOPS_WITHIN)
    started.wait()
