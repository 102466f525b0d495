"""Writing an archive so that it is there entirely or not at all.

Parts come one by one and go straight to a hidden file or directory beside the target, the description of the whole last.
Once everything is on the disk it gets its name in one step. So whoever looks finds the old archive, the new one or none,
never half of one. After an error nothing is left behind. After a kill there may be a hidden `.NAME.xxxxxxxx.partial` that
can be deleted or, where a directory was being replaced, the old archive as `.NAME.xxxxxxxx.old`. The same parts make the
same bytes: a zip file carries no times.

A target that exists is only replaced when asked for, and a directory only when it is an archive of ours: nobody loses a
folder to a mistyped path.
"""

from __future__ import annotations

import os
import secrets
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from workbench.archive.layout import ROOT, is_archive
from workbench.archive.store import require_key
from workbench.archive.suffix import require_suffix
from workbench.errors import WorkbenchError

_FIRST_DATE = (1980, 1, 1, 0, 0, 0)   # the earliest that a zip file knows
_PLAIN_FILE = 0o100644 << 16
_UNIX = 3

Put = Callable[[str, bytes], None]


def write(path: str | os.PathLike[str], entries: Iterable[tuple[str, bytes]], overwrite: bool = False) -> Path:
    """Write the parts of an archive to a `.zip` file, or to a directory (`.zarr`, or no suffix); returns where.

    `zarr.json` must be among the parts. Of the others, one at a time is in memory.
    """
    target = _target(path)
    require_suffix(target)
    with _on_disk(target):
        _check_target(target, overwrite)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    fill = _fill_zip if target.suffix == ".zip" else _fill_directory
    try:
        fill(partial, target, entries)
        with _on_disk(target):
            _check_target(target, overwrite)   # again: writing may have taken hours
            (_swap if _exists(target) else _claim)(partial, target)
            _flush(target.parent)
    except BaseException:
        with _on_disk(target):
            _remove(partial)
        raise
    return target


def _target(path: str | os.PathLike[str]) -> Path:
    """Where the archive really goes: behind links, in a directory that exists."""
    try:
        target = Path(path).expanduser().resolve()
        if target.name and target.parent.is_dir():
            return target
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise WorkbenchError(f"cannot write to {path!r}: {error}") from None
    raise WorkbenchError(f"an archive must be written into a directory that exists; got {path}")


def _check_target(target: Path, overwrite: bool) -> None:
    """Refuse to replace anything that was not meant, or that is not an archive."""
    if not _exists(target):
        return
    if not overwrite:
        raise WorkbenchError(f"{target} exists: choose another name, or say overwrite=True")
    if target.suffix == ".zip":
        kind, fits = "a zip file", target.is_file() and zipfile.is_zipfile(target)
    else:
        kind, fits = "an archive written by lossbench", target.is_dir() and is_archive(target)
    if not fits:
        raise WorkbenchError(f"only {kind} is overwritten; {target} is not: move it away, or choose another name")


def _fill_directory(partial: Path, target: Path, entries: Iterable[tuple[str, bytes]]) -> None:
    with _on_disk(target):
        partial.mkdir()

    def put(key: str, data: bytes) -> None:
        place = partial / key
        place.parent.mkdir(parents=True, exist_ok=True)
        with _new_file(place, target) as file:
            file.write(data)

    _put_all(put, target, entries)
    with _on_disk(target):
        for folder, _, _ in os.walk(partial):
            _flush(Path(folder))


def _fill_zip(partial: Path, target: Path, entries: Iterable[tuple[str, bytes]]) -> None:
    with _new_file(partial, target) as file:
        opened = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

        def put(key: str, data: bytes) -> None:
            member = zipfile.ZipInfo(key, _FIRST_DATE)
            member.create_system, member.external_attr = _UNIX, _PLAIN_FILE
            opened.writestr(member, data)

        try:
            _put_all(put, target, entries)
            with _on_disk(target):
                opened.close()
        finally:
            opened.fp = None   # after an error, do not write the directory of a file that is given up


@contextmanager
def _new_file(place: Path, target: Path) -> Iterator[BinaryIO]:
    """A file that is on the disk when it is left."""
    with _on_disk(target):
        file = place.open("xb")
    try:
        yield file
        with _on_disk(target):
            file.flush()
            os.fsync(file.fileno())
    finally:
        with _on_disk(target):
            file.close()


def _put_all(put: Put, target: Path, entries: Iterable[tuple[str, bytes]]) -> None:
    """Put every part where it belongs, the root document last; only our own trouble with the disk is put in our words."""
    root, seen = None, set()
    for key, data in entries:
        if require_key(key) in seen:
            raise WorkbenchError(f"the parts of an archive must have different keys; got {key} twice")
        seen.add(key)
        if key == ROOT:
            root = data
            continue
        with _on_disk(target):
            put(key, data)
    if root is None:
        raise WorkbenchError(f"an archive needs a {ROOT}; got {len(seen)} other parts")
    with _on_disk(target):
        put(ROOT, root)


def _claim(partial: Path, target: Path) -> None:
    """Give the archive its name, unless someone else has just taken it.

    An empty file or directory is made first, which fails when there is one: of two writers one is told. It is no
    archive, and is replaced in one step.
    """
    try:
        target.mkdir() if partial.is_dir() else target.open("xb").close()
    except FileExistsError:
        raise WorkbenchError(f"{target} was written by someone else meanwhile: choose another name") from None
    try:
        partial.replace(target)
    except BaseException:
        _remove(target)
        raise


def _swap(partial: Path, target: Path) -> None:
    """Put the archive in place of an old one. A directory has to step aside first, and comes back if that is all it did."""
    if not partial.is_dir():
        partial.replace(target)
        return
    old = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
    target.rename(old)
    try:
        partial.rename(target)
    except BaseException:
        old.rename(target)
        raise
    try:
        _remove(old)
    except OSError as error:
        raise WorkbenchError(f"{target} is written, but of the one before it {old} is left ({error}): remove it") from error


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _flush(folder: Path) -> None:
    """Have the names in a directory on the disk, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif _exists(path):
        path.unlink()


@contextmanager
def _on_disk(target: Path) -> Iterator[None]:
    """Say in one sentence what the operating system has against writing here."""
    try:
        yield
    except OSError as error:
        raise WorkbenchError(f"cannot write {target}: {error.strerror or error}") from error
