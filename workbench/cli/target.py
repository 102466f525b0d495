"""The file or folder that a command writes: refused before any work if it may not be, and there entirely or not at all."""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from workbench.errors import WorkbenchError

STANDARD_OUTPUT = "-"


def add_target(parser: argparse.ArgumentParser, text: str) -> None:
    """Add OUT, and leave to replace what is there."""
    parser.add_argument("out", metavar="OUT", help=text)
    add_overwrite(parser)


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add leave to replace what is there."""
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")


def require_free(path: str, overwrite: bool, source: str | None = None) -> Path:
    """Where OUT really is, behind links, if it may be written there and is not the input `source`."""
    if path == STANDARD_OUTPUT:
        raise WorkbenchError("OUT must be a file or folder; standard output (-) is for results alone: give a name")
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise WorkbenchError(f"the folder {target.parent} does not exist; got OUT {path}")
    if source is not None:
        _require_other(target, Path(source).expanduser(), path)
    if os.path.lexists(target) and not overwrite:
        raise WorkbenchError(f"{path} exists: choose another name, or pass --overwrite")
    return target


@contextmanager
def new_file(path: str, overwrite: bool, source: str | None = None) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name once it is whole; after an error or an interrupt, nothing is left."""
    target = require_free(path, overwrite, source)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            require_free(path, overwrite, source)   # again: writing may have taken long
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise WorkbenchError(f"cannot write {path}: {error.strerror or error}") from error


def _require_other(target: Path, source: Path, path: str) -> None:
    """Refuse to replace the input, by whatever name, a part of it, or a folder that it is in."""
    inside = source.resolve()
    if target == inside or target in inside.parents or inside in target.parents or _same_file(target, source):
        raise WorkbenchError(f"OUT {path} is the input, holds it or is part of it: choose another name")


def _same_file(target: Path, source: Path) -> bool:
    try:
        return os.path.samefile(target, source)   # hard links, too
    except OSError:   # one of them does not exist
        return False
