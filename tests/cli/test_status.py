"""What exit statuses mean: 1 is damage, 2 wrong input, 70 a bug, 143 an end by SIGTERM; `--json` says each in JSON."""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import workbench as wb
from cli.conftest import Run, names, wave
from cli.test_as_a_program import COMMAND, PROGRAM, program
from workbench.cli import main
from workbench.cli.damaged import was_archive
from workbench.cli.ending import Ended, ended_by_signals
from workbench.cli.failure import failed

OPENED = ("verify", "info", "decompress")


def opening(command: str, path: Path) -> list[object]:
    return [command, path, *([path.parent / "back.npz"] if command == "decompress" else [])]


@pytest.mark.parametrize("command", OPENED)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_a_cut_zip_is_damage(run: Run, field_archive: Path, command: str, share: float) -> None:
    whole = field_archive.read_bytes()
    field_archive.write_bytes(whole[: int(len(whole) * share)])
    ended = run(*opening(command, field_archive), "--json")
    assert ended.status == 1, ended.err
    assert ended.json["status"] == 1
    assert "field.zip" in ended.json["error"]
    assert names(field_archive.parent) == {"field.zip"}


@pytest.mark.parametrize("command", OPENED)
@pytest.mark.parametrize("damage", ["bit", "syntax", "cut", "missing"])
def test_a_damaged_document_is_damage(run: Run, archive: Path, command: str, damage: str) -> None:
    for document in (*archive.glob("*.json*"), *archive.glob("*/*.json*")):   # all copies of them
        text = document.read_bytes()
        changed = {
            "bit": text.replace(b"float32", b"float64"), "syntax": text.replace(b"{", b"[", 1),
            "cut": text[: len(text) // 2], "missing": None,
        }[damage]
        if changed == text:   # the copy that is deflated
            changed = text[:-1]
        document.unlink() if changed is None else document.write_bytes(changed)
    ended = run(*opening(command, archive), "--json")
    assert (ended.status, ended.json["status"]) == ((2, 2) if damage == "missing" else (1, 1)), ended.err


def test_one_damaged_document_fails_the_check(run: Run, archive: Path) -> None:
    document = archive / "zarr.json"
    document.write_bytes(document.read_bytes().replace(b"{", b"[", 1))
    assert run("verify", archive).status == 1


def test_a_torn_directory_of_a_zip_is_damage(run: Run, field_archive: Path) -> None:
    whole = field_archive.read_bytes()
    start = whole.rindex(b"PK\x01\x02")
    field_archive.write_bytes(whole[:start] + b"XXXX" + whole[start + 4 :])
    assert run("verify", field_archive).status == 1


def test_what_was_no_archive_is_wrong_input(run: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as photos:
        photos.writestr("holiday.txt", "sun" * 100)
    cut = tmp_path / "cut.zip"
    cut.write_bytes((tmp_path / "photos.zip").read_bytes()[:200])
    (tmp_path / "noise.zip").write_bytes(random.Random(1).randbytes(1000))
    (tmp_path / "empty.zip").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / name for name in ("photos.zip", "cut.zip", "noise.zip", "empty.zip", "folder")):
        assert not was_archive(path)
        for command in OPENED:
            assert run(*opening(command, path)).status == 2, (command, path)


def test_an_archive_of_a_newer_format_is_no_damage(run: Run, field: Path, tmp_path: Path) -> None:
    """It is whole, and cannot be read here: wrong input."""
    from workbench.archive import document
    made = wb.compress(wave(), wb.Absolute(0.1)).save(tmp_path / "a.zarr")
    root = document.from_bytes((made / "zarr.json").read_bytes(), "zarr.json")
    attributes = {key: value for key, value in root["attributes"].items() if key != document.SEAL}
    newer = document.sealed({**root, "attributes": {**attributes, "format": 99}})
    (made / "zarr.json").write_bytes(document.to_bytes(newer))
    assert run("verify", made).status == 2


@pytest.mark.parametrize("debug", ["no", "--debug", "LOSSBENCH_DEBUG"])
def test_an_unexpected_error_is_one_sentence_and_70(
    run: Run, field: Path, monkeypatch: pytest.MonkeyPatch, debug: str
) -> None:
    monkeypatch.setattr("workbench.cli.info.open_all_frames", lambda options: {}["nothing"])
    if debug == "LOSSBENCH_DEBUG":
        monkeypatch.setenv(debug, "1")
    ended = run("info", field, *([debug] if debug == "--debug" else []))
    assert (ended.status, ended.out) == (70, "")
    *traceback, last = ended.err.splitlines()
    reason = "unexpected error, KeyError: 'nothing': please report it, with the traceback that --debug shows"
    assert last == f"workbench: {reason}"
    assert any("Traceback" in line for line in traceback) == (debug != "no")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["info", "missing", "--json"], 2), (["info", "--json"], 2), (["--json"], 2), (["fof", "missing", "--json"], 2),
        (["fof", "x", "-b", "far", "--json"], 2), (["verify", "missing", "--json"], 2), (["nonsense", "--json"], 2),
        (["decompress", "missing", "b.npz", "--json"], 2), (["compress", "missing", "a.zip", "--abs", "1", "--json"], 2),
        (["compress", "missing", "a.zip", "--json"], 2), (["doctor", "--jsno", "--json"], 2),
    ],
)
def test_errors_are_json_too(
    run: Run, tmp_path: Path, arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run(*arguments)
    assert (ended.status, ended.json["status"]) == (status, status)
    assert ended.err.splitlines()[-1] == f"workbench: {ended.json['error']}"
    assert ended.out.count("\n") == 1


def test_sigterm_in_the_middle_of_writing_leaves_nothing(snapshot: Path, tmp_path: Path) -> None:
    ended_here = PROGRAM + "import os; os.fsync = lambda file: signal.raise_signal(signal.SIGTERM); "
    code = ended_here + "from workbench.cli import main; sys.exit(main())"
    for out in ("a.zip", "a.zarr"):
        ended = program("compress", snapshot, tmp_path / out, "--abs", 0.01, code=code)
        assert (ended.returncode, ended.stdout) == (143, "")
        assert ended.stderr.splitlines()[-1] == "workbench: ended by SIGTERM"
        assert names(tmp_path) == {"snapshot.npz"}


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)])
def test_a_server_is_asked_to_end(number: int, status: int, tmp_path: Path) -> None:
    """`lab` ends what it has started, which then ends what that has started."""
    server = (
        "import pathlib, signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path('asked').touch(), sys.exit())); "
        "pathlib.Path('ready').touch(); time.sleep(60)"
    )
    code = COMMAND.replace("sys.exit(main())", "import workbench.cli.lab as lab; ") + (
        f"run = lab._until_stopped; lab._until_stopped = lambda _: run([sys.executable, '-c', {server!r}]); "
        "sys.exit(main())"
    )
    command = [sys.executable, "-c", code, "lab", ".", "--no-browser"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(30) == status
    assert names(tmp_path) == {"ready", "asked"}


def test_signals_are_as_before_when_a_command_is_done(run: Run, field: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert run("info", field).status == 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_handler_that_is_there_is_kept() -> None:
    def mine(number: int, frame: object) -> None: ...

    before, hangup = signal.signal(signal.SIGTERM, mine), signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with ended_by_signals():
            assert signal.getsignal(signal.SIGTERM) is mine
            assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
            with pytest.raises(Ended, match="ended by SIGHUP"):
                os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGHUP, hangup)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_a_finaliser_swallows_is_sent_again(number: int) -> None:
    class Finalised:
        def __del__(self) -> None:
            signal.raise_signal(number)

    def work() -> None:
        with ended_by_signals():
            Finalised()
            time.sleep(30)

    before = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt) as ended:
        work()
    assert getattr(ended.value, "number", signal.SIGINT) == number
    assert sys.unraisablehook is before


def test_ctrl_c_while_a_class_is_defined_is_no_bug(capsys: pytest.CaptureFixture) -> None:
    class Named:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises((RuntimeError, KeyboardInterrupt)) as ended:   # a RuntimeError before Python 3.12
        type("Owner", (), {"named": Named()})
    assert failed(ended.value, argparse.Namespace()) == 130
    assert capsys.readouterr().err == "workbench: interrupted\n"


def test_other_errors_of_finalisers_are_reported_as_before(capsys: pytest.CaptureFixture) -> None:
    class Finalised:
        def __del__(self) -> None:
            raise ValueError("a finaliser failed")

    with ended_by_signals():
        Finalised()
    assert "ValueError: a finaliser failed" in capsys.readouterr().err


def test_a_full_disk_behind_standard_output_is_one_sentence(field: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    code = COMMAND.replace("sys.exit(main())", "sys.stdout = open('/dev/full', 'w'); sys.exit(main())")
    ended = program("info", field, code=code)
    assert ended.returncode != 0
    assert "workbench: the operating system reports an error: [Errno 28]" in ended.stderr


def test_help_is_no_failure(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fof", "--help"])
    assert ended.value.code == 0
    assert "--debug" in capsys.readouterr().out
