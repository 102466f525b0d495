"""The command as a process of its own: pipes, terminals and Ctrl-C."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from cli.conftest import damage, names

# A process that was started in the background may ignore Ctrl-C; these must not.
PROGRAM = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
COMMAND = PROGRAM + "from workbench.cli import main; sys.exit(main())"
INTERRUPTED = "workbench: interrupted"


def program(*arguments: object, code: str = COMMAND) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_there_and_back_with_clean_pipes(snapshot: Path, tmp_path: Path) -> None:
    made = program("compress", snapshot, tmp_path / "a.zarr", "--abs", 0.01, "--json")
    assert (made.returncode, made.stderr) == (0, "")
    assert json.loads(made.stdout)["holds"] == "particles"
    back = program("decompress", tmp_path / "a.zarr", tmp_path / "b.npz", "--json")
    assert (back.returncode, back.stderr) == (0, "")
    assert len(wb.open(tmp_path / "b.npz")) == json.loads(back.stdout)["shape"][0]
    good = program("verify", tmp_path / "a.zarr", snapshot, "--json")
    assert (good.returncode, good.stderr) == (0, "")
    damage(tmp_path / "a.zarr" / "positions" / "c" / "0" / "0")
    bad = program("verify", tmp_path / "a.zarr", snapshot, "--json")
    assert bad.returncode == 1
    assert json.loads(bad.stdout)["damaged"][0]["chunk"] == "positions/c/0/0"
    assert bad.stderr.startswith("workbench: ")
    assert bad.stderr.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_error(archive: Path) -> None:
    for arguments in (["info", archive], ["verify", archive, "--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
        ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120)
        os.close(writing)
        assert (ended.returncode, ended.stderr) == (141, "")


def test_wrong_input_ends_with_2_and_without_a_traceback(tmp_path: Path) -> None:
    ended = program("compress", tmp_path / "no.npz", tmp_path / "a.zip", "--abs", 1)
    assert ended.returncode == 2
    assert not ended.stdout
    assert "Traceback" not in ended.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("out", ["a.zip", "a.zarr"])
def test_ctrl_c_in_the_middle_of_writing_leaves_nothing(snapshot: Path, tmp_path: Path, out: str) -> None:
    pressed = PROGRAM + "import os; os.fsync = lambda file: signal.raise_signal(signal.SIGINT); "
    code = pressed + "from workbench.cli import main; sys.exit(main())"
    ended = program("compress", snapshot, tmp_path / out, "--abs", 0.01, code=code)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr.splitlines()[-1] == INTERRUPTED
    assert names(tmp_path) == {"snapshot.npz"}


def test_ctrl_c_while_a_decoded_file_is_written_leaves_nothing(archive: Path, tmp_path: Path) -> None:
    pressed = PROGRAM + "import os; os.fsync = lambda file: signal.raise_signal(signal.SIGINT); "
    code = pressed + "from workbench.cli import main; sys.exit(main())"
    ended = program("decompress", archive, tmp_path / "b.npz", code=code)
    assert (ended.returncode, ended.stderr) == (130, f"{INTERRUPTED}\n")
    assert names(tmp_path) == {"snapshot.zarr"}


def test_ctrl_c_at_a_terminal_while_it_compresses(tmp_path: Path) -> None:
    np.save(tmp_path / "noise.npy", np.random.default_rng(1).random((8, 1024, 1024), np.float32))
    screen, their_end = pty.openpty()
    arguments = ["compress", tmp_path / "noise.npy", tmp_path / "a.zip", "--abs", "1e-6"]
    arguments += ["--codec", "numcodecs", "--option", "codec=lzma"]
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=their_end, start_new_session=True) as process:
        os.close(their_end)
        shown = read_until(screen, "encode chunks  [")
        process.send_signal(signal.SIGINT)
        shown += read_until(screen, "interrupted")
        assert process.stdout is not None
        assert process.stdout.read() == b""
        assert process.wait(60) == 130
    os.close(screen)
    assert shown.index("reading ") < shown.index("encode chunks  [")
    assert shown.split("\x1b[K")[-1].strip() == INTERRUPTED
    assert names(tmp_path) == {"noise.npy"}


def read_until(screen: int, wanted: str) -> str:
    """What a terminal shows, up to and with these words."""
    shown = ""
    while wanted not in shown:
        try:
            shown += os.read(screen, 1024).decode()
        except OSError:   # the program has ended
            pytest.fail(f"no {wanted!r} in {shown!r}")
    return shown


def test_the_package_runs_as_the_command_does() -> None:
    expected = program("--version").stdout
    for module in ("workbench", "workbench.cli"):
        ran = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, expected, "")
