"""A folder that workers fill: under a hidden name beside its own, which it gets when it is complete."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.run.clients import require_shared
from workbench.run.executors import Executor


@contextmanager
def new_folder(path: str | os.PathLike[str], executor: Executor) -> Iterator[Path]:
    """A folder to write to, which all workers see; it gets its name at the end, and is removed after an error.

    >>> import tempfile
    >>> from workbench.run.executors import InProcess
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with new_folder(Path(place) / "labels", InProcess()) as folder:
    ...         _ = (folder / "part-0").write_text("0 0 2")
    ...     sorted(path.name for path in Path(place).rglob("*"))
    ['labels', 'part-0']
    """
    target = Path(path).absolute()
    _require_free(target)
    folder = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        folder.mkdir()
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        require_shared(executor, folder, f"the folder of {target.name}", "choose a place on a shared file system")
        yield folder
        for left in folder.glob(".*"):   # by workers that were killed
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        _require_free(target)   # again: writing may have taken hours
        try:
            folder.replace(target)
        except OSError as error:
            raise _unwritable(target, error) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _require_free(target: Path) -> None:
    if os.path.lexists(target):
        raise WorkbenchError(f"{target} exists: choose another name, or remove it")


def _unwritable(target: Path, error: OSError) -> WorkbenchError:
    return WorkbenchError(f"{target} cannot be written: {error.strerror or error}")
