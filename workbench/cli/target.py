"""The output of a command: refused before any work if it cannot be written, and written atomically."""

from __future__ import annotations

import argparse
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from workbench.archive.placing import remove, swap
from workbench.archive.recognition import is_archive
from workbench.data.readers.zarr_files import MARKS
from workbench.errors import WorkbenchError

STANDARD_OUTPUT = "-"
OF_GROUPS = ("zarr.json", ".zgroup", ".zattrs", ".zmetadata")   # the files of a group of Zarr 3 or 2


def add_target(parser: argparse.ArgumentParser, text: str) -> None:
    """Add OUT and the option to overwrite it."""
    parser.add_argument("out", metavar="OUT", help=text)
    add_overwrite(parser)


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add the option to overwrite OUT."""
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")


def require_free(path: str, overwrite: bool, source: str | None = None) -> Path:
    """The path of OUT with links resolved; refused if it cannot be written or is the input `source`."""
    if path == STANDARD_OUTPUT:
        raise WorkbenchError("OUT must be a file or folder; standard output (-) is for results only: give a name")
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
    """A file to write to, renamed to `path` when complete; after an error or an interrupt, nothing is left."""
    with new_path(path, overwrite, source) as partial, partial.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def new_path(path: str, overwrite: bool, source: str | None = None) -> Iterator[Path]:
    """The same for libraries that take a path: a name for a file or a folder that is not there yet."""
    target = require_free(path, overwrite, source)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.lossbench.partial")
    try:
        try:
            yield partial
            require_free(path, overwrite, source)   # again: writing may have taken long
            if target.is_dir() and partial.is_dir():
                swap(partial, target, is_plain_store)
            else:
                partial.replace(target)
        finally:
            remove(partial)
    except OSError as error:
        raise WorkbenchError(f"cannot write {path}: {error.strerror or error}") from error


def is_plain_store(path: Path) -> bool:
    """Whether a folder is empty, or one of Zarr and no archive: what `--overwrite` may replace by another of Zarr."""
    return path.is_dir() and (not any(path.iterdir()) or (_holds_zarr_alone(path) and not is_archive(path)))


def _holds_zarr_alone(folder: Path) -> bool:
    """Whether a folder is a group or an array of Zarr without foreign files; those in the folders of arrays are chunks."""
    if not any((folder / mark).is_file() for mark in MARKS):
        return False
    if (folder / ".zarray").is_file() or _is_array(folder / "zarr.json"):
        return True
    return all(_holds_zarr_alone(place) if place.is_dir() else place.name in OF_GROUPS for place in folder.iterdir())


def _is_array(document: Path) -> bool:
    try:
        stated = json.loads(document.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(stated, dict) and stated.get("node_type") == "array"


def _require_other(target: Path, source: Path, path: str) -> None:
    """Refuse to replace the input under any name, a part of it, or a folder that contains it."""
    inside = source.resolve()
    if target == inside or target in inside.parents or inside in target.parents or _same_file(target, source):
        raise WorkbenchError(f"OUT {path} is the input, contains it or is part of it: choose another name")


def _same_file(target: Path, source: Path) -> bool:
    try:
        return os.path.samefile(target, source)   # hard links, too
    except OSError:   # one of them does not exist
        return False
