"""`workbench lab` opens copies of the notebooks: the originals stay as they are, and so does what the user has changed."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Run, names
from workbench.cli import lab
from workbench.cli.working_copy import RECORD, update

SPARE_TIME = 60.0   # seconds; a few are enough


@pytest.fixture
def notebooks(tmp_path: Path) -> Path:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name in ("start", "bounds"):
        (folder / f"{name}.ipynb").write_text(f"{name}, version 1")
    return folder


@pytest.fixture
def copies(tmp_path: Path, notebooks: Path) -> Path:
    folder = tmp_path / "my-notebooks"
    assert update(notebooks, folder) == []
    return folder


def text(folder: Path, name: str) -> str:
    return (folder / f"{name}.ipynb").read_text()


def test_the_first_time_everything_is_copied(copies: Path) -> None:
    assert names(copies) == {"start.ipynb", "bounds.ipynb", RECORD}
    assert text(copies, "start") == "start, version 1"


def test_changes_are_kept_and_nothing_is_said_while_there_is_no_newer_version(notebooks: Path, copies: Path) -> None:
    (copies / "start.ipynb").write_text("mine")
    assert update(notebooks, copies) == []
    assert text(copies, "start") == "mine"
    assert names(copies) == {"start.ipynb", "bounds.ipynb", RECORD}


def test_a_newer_version_replaces_an_untouched_copy_and_stands_beside_a_changed_one(notebooks: Path, copies: Path) -> None:
    (copies / "start.ipynb").write_text("mine")
    for name in ("start", "bounds"):
        (notebooks / f"{name}.ipynb").write_text(f"{name}, version 2")
    (note,) = update(notebooks, copies)
    assert text(copies, "start") == "mine"
    assert text(copies, "bounds") == "bounds, version 2"
    (beside,) = copies.glob("start-newer-*.ipynb")
    assert beside.read_text() == "start, version 2"
    assert "start.ipynb" in note
    assert beside.name in note
    beside.write_text("also mine")
    assert update(notebooks, copies) == []   # said once
    assert beside.read_text() == "also mine"


def test_notebooks_in_a_folder_are_copied_into_one_and_hidden_folders_are_not(notebooks: Path, copies: Path) -> None:
    for folder in ("class", ".ipynb_checkpoints"):
        (notebooks / folder).mkdir()
        (notebooks / folder / "start.ipynb").write_text("lesson, version 1")
    assert update(notebooks, copies) == []
    assert text(copies / "class", "start") == "lesson, version 1"
    assert text(copies, "start") == "start, version 1"
    assert not (copies / ".ipynb_checkpoints").exists()
    (copies / "class" / "start.ipynb").write_text("mine")
    (notebooks / "class" / "start.ipynb").write_text("lesson, version 2")
    (note,) = update(notebooks, copies)
    assert note.startswith("class/start.ipynb has a newer version")
    assert text(copies / "class", "start") == "mine"


def test_a_deleted_copy_is_made_again(notebooks: Path, copies: Path) -> None:
    (copies / "start.ipynb").unlink()
    assert update(notebooks, copies) == []
    assert text(copies, "start") == "start, version 1"


def test_a_copy_of_unknown_origin_is_not_touched(notebooks: Path, copies: Path) -> None:
    (copies / RECORD).unlink()
    (copies / "start.ipynb").write_text("mine")
    (note,) = update(notebooks, copies)
    assert "start.ipynb" in note
    assert text(copies, "start") == "mine"


def test_where_copies_cannot_be_written_another_folder_is_asked_for(
    run: Run, notebooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setattr(lab, "NOTEBOOKS", notebooks)
    monkeypatch.setattr(lab, "COPIES", tmp_path / "a file" / "my-notebooks")
    ended = run("lab", "--no-browser")
    assert ended.status == 2
    assert "name a folder to open instead" in ended.err


@pytest.fixture
def served(notebooks: Path, tmp_path: Path) -> Iterator[str]:
    """The address of what `workbench lab` started."""
    pytest.importorskip("jupyterlab", reason="needs the lab extra")
    for notebook in notebooks.glob("*.ipynb"):
        notebook.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    code = (
        "import sys; from pathlib import Path; from workbench.cli import lab, main; "
        f"lab.NOTEBOOKS = Path({str(notebooks)!r}); "
        f"lab.COPIES = Path({str(tmp_path / 'my-notebooks')!r}); sys.exit(main(['lab', '--no-browser']))"
    )
    own = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **own, "JUPYTER_TOKEN": "secret", "JUPYTER_PORT": str(port), "JUPYTER_PORT_RETRIES": "0"}
    command, quiet = [sys.executable, "-c", code], subprocess.DEVNULL
    for name in ("jupyterlab", "jupyter_server", "ipykernel_launcher"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('code of the folder was run')")
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=quiet) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            until = time.monotonic() + SPARE_TIME
            while not answers(address):
                assert time.monotonic() < until
                assert process.poll() is None
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()


def answers(address: str) -> bool:
    try:
        urllib.request.urlopen(f"{address}/api", timeout=SPARE_TIME).close()
    except urllib.error.URLError:
        return False
    return True


@pytest.mark.slow
def test_the_server_opens_the_first_notebook_and_saving_it_changes_no_original(
    served: str, notebooks: Path, tmp_path: Path
) -> None:
    with urllib.request.urlopen(f"{served}/?token=secret", timeout=SPARE_TIME) as page:
        assert page.url.split("?")[0] == f"{served}/lab/tree/start.ipynb"
    before = text(notebooks, "start")
    content = {"cells": [], "metadata": {"mine": True}, "nbformat": 4, "nbformat_minor": 5}
    body = json.dumps({"type": "notebook", "format": "json", "content": content}).encode()
    headers = {"Authorization": "token secret", "Content-Type": "application/json"}
    save = urllib.request.Request(f"{served}/api/contents/start.ipynb", body, headers, method="PUT")
    urllib.request.urlopen(save, timeout=SPARE_TIME).close()
    assert '"mine"' in text(tmp_path / "my-notebooks", "start")
    assert text(notebooks, "start") == before


def test_a_kernel_runs_nothing_of_the_folder_of_its_notebook(tmp_path: Path) -> None:
    kernels = pytest.importorskip("workbench.cli.kernels", reason="needs the lab extra")
    (tmp_path / "ipykernel_launcher.py").write_text("print('code of the folder was run')")
    command = kernels.KernelManager(kernel_name="python3").format_kernel_cmd()
    assert command[1:4] == ["-P", "-m", "ipykernel_launcher"]
    ended = subprocess.run([*command[:4], "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "code of the folder" not in ended.stdout
