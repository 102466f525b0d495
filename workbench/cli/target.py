"""The file or folder that a command writes: refused before any work when it exists, and there entirely or not at all."""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from workbench.errors import WorkbenchError


def add_target(parser: argparse.ArgumentParser, text: str) -> None:
    """Add OUT, and leave to replace what is there."""
    parser.add_argument("out", metavar="OUT", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")


def require_free(path: str, overwrite: bool) -> Path:
    """Where OUT really is, behind links, if it may be written there."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise WorkbenchError(f"the folder {target.parent} does not exist; got OUT {path}")
    if os.path.lexists(target) and not overwrite:
        raise WorkbenchError(f"{path} exists: choose another name, or pass --overwrite")
    return target


@contextmanager
def new_file(path: str, overwrite: bool) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name once it is whole; after an error or an interrupt, nothing is left."""
    target = require_free(path, overwrite)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        require_free(path, overwrite)   # again: writing may have taken long
        partial.replace(target)
    except OSError as error:
        raise WorkbenchError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
