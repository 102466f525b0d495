"""Sentences of the library in the words of the shell, for the options that a command has and no others."""

import argparse
import re
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Run
from workbench.cli import COMMANDS, _parser
from workbench.cli.words import in_options, options_of


def parser_of(command: str) -> argparse.ArgumentParser:
    parser = next(action for action in _parser(COMMANDS)._actions if isinstance(action, argparse._SubParsersAction))
    return parser.choices[command]


@pytest.mark.parametrize(
    ("command", "said", "shown"),
    [
        ("info", "choose one by name=...; it has a, b", "choose one by --name; it has a, b"),
        ("fof", "pass box=None to read, or box=(...) with lengths", "pass --box open to read, or --box with lengths"),
        ("info", "pass shape=(nz, ny, nx), slowest axis first", "pass --shape nz,ny,nx, slowest axis first"),
        ("info", "check shape= and dtype=, or whether", "check --shape and --dtype, or whether"),
        ("info", "leave it out, or say kind='field'", "leave it out, or say --kind field"),
        ("compress", "choose another name, or pass overwrite=True", "choose another name, or pass --overwrite"),
        ("compress", "use order='free', or another codec", "use --order free, or another codec"),
        ("compress", 'give unit="length", or a box', "give --cluster-unit length, or a box"),
        ("fof", 'give unit="length", or a box', "give --unit length, or a box"),
        ("fof", "linking_length must be positive", "--linking-length must be positive"),
        ("compress", "linking_length must be positive", "--keep-clusters must be positive"),
        ("compress", "velocities= bounds the velocities", "--velocities-abs bounds the velocities"),
        ("info", "'frame' makes no sense for a.npy, which is read as NumPy: it takes kind, scaled, box",
         "--frame makes no sense for a.npy, which is read as NumPy: it takes --kind, --box"),
        ("info", "'frame' makes no sense for a: it takes scaled", "--frame makes no sense for a: it takes no options"),
        ("compress", """add a rule, such as 'P': wb.Absolute(...), or "*": wb.Exact() for all others""",
         "add a rule, such as --abs 'P=EB', or --exact '*' for all others"),
        ("decompress", "choose one by name=...", "choose one by name=..."),   # which it cannot
        ("info", "got Bound(name=3)", "got Bound(name=3)"),
        ("info", "missing.npz is not there", "missing.npz is not there"),
    ],
)
def test_a_sentence_in_options(command: str, said: str, shown: str) -> None:
    assert in_options(said, options_of(parser_of(command))) == shown


def test_what_is_proposed_works(run: Run, tmp_path: Path) -> None:
    """The sentences lead to a command that runs."""
    np.savez(tmp_path / "two.npz", first=np.ones((4, 5), np.float32), second=np.zeros((4, 5), np.float32))
    refused = run("fof", tmp_path / "two.npz", "--linking-length", "0.2")
    assert refused.status == 2
    assert "--name" in refused.err
    assert run("info", tmp_path / "two.npz", "--name", "first").status == 0
    np.ones((4, 5), np.float32).tofile(tmp_path / "raw.f32")
    refused = run("info", tmp_path / "raw.f32")
    assert "--shape nz,ny,nx" in refused.err
    assert re.search(r"\b(shape|format|name)=", refused.err) is None
    np.savez(tmp_path / "out.npz", positions=np.array([[0.5, 9.0, 0.5]], np.float32), box=1.0)
    refused = run("fof", tmp_path / "out.npz", "--box", "1", "--frame", "2")
    assert "--frame makes no sense" in refused.err
