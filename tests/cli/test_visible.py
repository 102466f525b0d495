"""A file cannot speak to the terminal: whatever its names and attributes hold is shown, not obeyed."""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from cli.conftest import Run, damage, wave
from workbench.cli.progress import Progress
from workbench.cli.visible import visible, visible_lines

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\u202efdp.exe\nratio  1000\r\u200b\x9b1m"
FORBIDDEN = [*map(chr, range(32)), "\x7f", "\x9b", "\u202e", "\u200b", "\u2028", "\u2066"]


def obeyed(text: str) -> set[str]:
    return {character for character in FORBIDDEN if character in text.replace("\n", "")}


@given(st.text())
def test_one_line_and_nothing_lost(text: str) -> None:
    shown = visible(text)
    assert not obeyed(shown)
    assert "\n" not in shown
    shown.encode()   # no lone surrogates either
    if text.isascii() and text.isprintable():
        assert shown == text


@given(st.text())
def test_lines_stay_lines(text: str) -> None:
    assert visible_lines(text).count("\n") == text.count("\n")
    assert not obeyed(visible_lines(text))


def test_letters_of_other_languages_are_shown_as_they_are() -> None:
    words = "Größe, λ, 温度, عربى, ±0.01 Å"
    assert visible(words) == words


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """An archive whose name, metadata and file name are all hostile."""
    field = wb.Field(wave().values, name=EVIL, metadata={EVIL: EVIL, "units": EVIL})
    made = wb.compress(field, wb.Absolute(0.1), "prequantised").save(tmp_path / "a.zip")
    return made.rename(tmp_path / (EVIL.replace("/", "") + ".zip"))


def test_info_verify_and_decompress_show_it(run: Run, evil: Path, tmp_path: Path) -> None:
    for arguments in (["info", evil], ["verify", evil], ["decompress", evil, tmp_path / "b.npy"], ["fof", evil]):
        ended = run(*arguments)
        assert not obeyed(ended.out + ended.err)
        assert arguments[0] == "verify" or "\\x1b" in ended.out + ended.err
        assert "\nratio  1000" not in ended.out
    assert json.loads(run("info", evil, "--json").out)["name"] == EVIL


def test_errors_about_it_are_one_line(run: Run, evil: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", **{EVIL.replace("/", ""): np.ones((2, 2)), "b": np.ones((2, 2))})
    damage(evil)
    missing = run("info", str(evil) + "x")
    for ended in (missing, run("verify", evil), run("info", tmp_path / "two.npz")):
        assert ended.status in (1, 2)
        assert not obeyed(ended.out + ended.err)
        assert ended.err.count("\n") == 1


def test_progress_shows_it() -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    columns = shutil.get_terminal_size().columns
    with Progress(stream=screen) as progress:
        progress(None, f"reading {EVIL}")
        (line,) = screen.getvalue().split("\r\x1b[K")[1:]
    assert not obeyed(line)
    assert len(line) < columns
