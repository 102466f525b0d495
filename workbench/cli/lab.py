"""`workbench lab`: JupyterLab with the user's copies of the notebooks; opening a folder runs nothing that lies in it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from workbench.cli import working_copy
from workbench.cli.ending import Ended
from workbench.cli.notes import show_notes
from workbench.errors import WorkbenchError

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
COPIES = NOTEBOOKS.with_name("my-notebooks")
FIRST = "start.ipynb"


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "lab", help="start JupyterLab with the notebooks", description="Start JupyterLab, reachable from this machine only."
    )
    where = "folder to open (default: my-notebooks in the checkout, with copies of its notebooks; without one, this folder)"
    parser.add_argument("folder", nargs="?", help=where)
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Start JupyterLab on loopback and wait for it."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise WorkbenchError("JupyterLab is not installed: pip install 'lossbench[lab]', or run `make lab` in a checkout")
    folder = Path(options.folder) if options.folder else _copies() if NOTEBOOKS.is_dir() else Path.cwd()
    if not folder.is_dir():
        raise WorkbenchError(f"the folder {folder} does not exist")
    command = [sys.executable, "-P", "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={folder}"]
    command.append("--MultiKernelManager.kernel_manager_class=workbench.cli.kernels.KernelManager")
    if (folder / FIRST).is_file():
        command.append(f"--LabApp.default_url=/lab/tree/{FIRST}")
    if options.no_browser:
        command.append("--no-browser")
    if os.geteuid() == 0:
        command.append("--allow-root")   # as in a container; the server listens on loopback only
    return _until_stopped(command)


def _copies() -> Path:
    """The folder with the user's copies of the notebooks, up to date."""
    try:
        notes = working_copy.update(NOTEBOOKS, COPIES)
    except OSError as error:
        raise WorkbenchError(
            f"copies of the notebooks must be written to {COPIES}; {error}: name a folder to open instead"
        ) from None
    print(f"Your copies of the notebooks are in {COPIES}: change them as you like.", file=sys.stderr, flush=True)
    show_notes(notes)
    return COPIES


def _until_stopped(command: list[str]) -> int:
    """Run a server until it ends or is stopped; SIGTERM lets it end its kernels first."""
    server = subprocess.Popen(command)
    try:
        return server.wait()
    except KeyboardInterrupt as stopped:
        server.terminate()
        server.wait()
        if isinstance(stopped, Ended):
            raise
        return 0
