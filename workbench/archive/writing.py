"""Atomic writing of an archive: it exists completely or not at all.

Parts go to a hidden file or directory beside the target, the root last. Once everything is on the disk it is renamed in
one step. So a reader finds the old archive, the new one or none, never a part of one. After an error nothing remains.
After a kill there may be a hidden `.NAME.xxxxxxxx.partial` that can be deleted or, where a directory was being replaced on
a file system that cannot exchange names, the old archive as `.NAME.xxxxxxxx.old`. The same parts make the same bytes: a
zip file carries no times.

The parts are in a folder of their own within that of the draft. What else is there, the lock and the records of what is
done, stays until the archive has its name, and never comes under it.

A `Draft` takes parts from any thread or process. A part may be written twice, for example when a killed worker is replaced.
A zip file is assembled from the parts at the end. With a token, a draft has always the same hidden name, so that a run that
was killed, or that ended with an error, can be continued: it finds the parts that are done. A lock (`lock.py`) keeps
a second run of the same call out.

`placing.py` says what may be replaced.
"""

from __future__ import annotations

import mmap
import os
import secrets
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from workbench.archive.key import COPY, ROOT, is_document, is_key, require_key
from workbench.archive.lock import LOCK, held
from workbench.archive.members import LEVEL, written
from workbench.archive.placing import flush, on_disk, partial_of, remove, require_free, require_own, take_name, target_of
from workbench.archive.recognition import require_suffix
from workbench.archive.store import DirectoryStore, Store, open_store
from workbench.errors import WorkbenchError

PARTS = "parts"   # of a draft: the folder that becomes the archive

Put = Callable[[str, Any], None]


class Place(Protocol):
    """Where the parts of an archive go while it is made: memory, a draft, or a member's part of either."""

    @property
    def unfinished(self) -> Path | None:
        """The folder for what the same call goes on from, if this one is killed; None in memory."""

    def put(self, key: str, data: bytes) -> None:
        """Add a part."""

    def put_blocks(self, key: str, blocks: Iterable[bytes]) -> None:
        """Add a part that is given in blocks."""

    def remove(self, key: str) -> None:
        """Remove a part, if it is there."""

    def parts(self) -> Store:
        """What was put so far."""

    def finished(self, documents: Mapping[str, bytes], chunks: Iterable[str]) -> Store:
        """The archive of these documents and chunks."""


class Draft:
    """An archive that is being written, by any number of threads and processes: drafts can be pickled.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> draft = Draft(Path(folder.name) / "some.zarr")
    >>> draft.put("values/c/0", b"LBC1...")
    >>> draft.commit(b"{}").name
    'some.zarr'
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], overwrite: bool = False, token: str | None = None) -> None:
        self.target, self.overwrite, self.token = require_writable(path, overwrite), overwrite, token
        self.folder = partial_of(self.target, token)
        self.partial = self.folder / PARTS
        with on_disk(self.target):
            self.folder.mkdir(exist_ok=token is not None)
            require_own(self.folder)

    @property
    def unfinished(self) -> Path:
        """The folder for what the same call goes on from, if this one is killed."""
        return self.folder

    def parts(self) -> DirectoryStore:
        """What was put so far."""
        with on_disk(self.target):
            self.partial.mkdir(exist_ok=True)
        return DirectoryStore(self.partial)

    def finished(self, documents: Mapping[str, bytes], chunks: Iterable[str]) -> Store:
        """The archive under its name."""
        for key, data in documents.items():
            if key != ROOT:
                self.put(key, data)
        return open_store(self.commit(documents[ROOT], chunks))

    def put(self, key: str, data: bytes) -> None:
        """Write a part; repeating it is harmless. It is on the disk when this returns."""
        self.put_blocks(key, [data])

    def put_blocks(self, key: str, blocks: Iterable[bytes]) -> None:
        """Write a part that is given in blocks."""
        place = self.partial / require_key(key)
        written = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        with on_disk(self.target):
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                with _new_file(written, self.target) as file:
                    for block in blocks:
                        file.write(block)
                os.replace(written, place)
            except BaseException:   # a failed write must not keep the room that it needed
                written.unlink(missing_ok=True)
                raise

    def remove(self, key: str) -> None:
        """Remove a part, if it is there."""
        with on_disk(self.target):
            (self.partial / key).unlink(missing_ok=True)

    @contextmanager
    def continued(self) -> Iterator[None]:
        """Keep other runs with this token out; after an error, what is done stays for the next one."""
        with ExitStack() as lock:
            with on_disk(self.target):
                lock.enter_context(held(self.folder, self.target))
                self._remove_replaced()
            try:
                yield
            except BaseException as error:
                if any(place.is_file() and place.name != LOCK for place in self.folder.rglob("*")):
                    error.add_note(f"What is done stays in {self.folder}: the same call goes on from there.")
                else:
                    self.discard()
                raise

    def commit(self, root: bytes, parts: Iterable[str] = ()) -> Path:
        """Write the root and give the archive its name; returns where it is.

        If the chunks are named, all must be there, and others are removed: they are of a run with another plan.
        """
        chunks = set(parts)
        self._require(chunks)
        try:
            with on_disk(self.target):
                (self.folder / ROOT).write_bytes(root)   # whose parts these are
            self.put(ROOT, root)
            with on_disk(self.target):
                self._remove_others(chunks)
                done = self._gathered() if self.target.suffix == ".zip" else self.partial
                for folder, _, _ in os.walk(self.partial):
                    flush(Path(folder))
            take_name(done, self.target, self.overwrite)
        except BaseException:
            with on_disk(self.target):
                remove(self._zip_file)   # it cannot be continued, and the disk may be full
            if self.token is None:
                self.discard()
            raise
        self.discard()
        return self.target

    def discard(self) -> None:
        """Remove everything that the draft has written, from a name where no other run of the same call looks for it."""
        try:
            left = self.folder.rename(partial_of(self.target))
        except FileNotFoundError:
            return
        except OSError:
            left = self.folder
        with on_disk(self.target):
            remove(left)

    def _remove_replaced(self) -> None:
        """Remove the old archive, if an earlier run was killed when that had changed places with the parts."""
        there, ours = self.partial / ROOT, self.folder / ROOT
        if there.is_file() and not (ours.is_file() and there.read_bytes() == ours.read_bytes()):
            remove(self.partial)

    def _remove_others(self, chunks: set[str]) -> None:
        """Remove unfinished parts of writers that were killed, and all but these chunks and the documents."""
        for place in list(self.partial.rglob(".*")):
            remove(place)
        for place in [place for place in self.partial.rglob("*") if chunks and place.is_file()]:
            key = place.relative_to(self.partial).as_posix()
            if key not in chunks and not is_document(key):
                remove(place)

    def _require(self, parts: set[str]) -> None:
        """Refuse to call an archive complete that is not."""
        if missing := [key for key in sorted(parts) if not (self.partial / key).is_file()]:
            raise WorkbenchError(
                f"{self.target} must have {len(parts)} parts; {len(missing)} are missing, such as {missing[0]}: did "
                "another program delete files? Call again"
            )

    @property
    def _zip_file(self) -> Path:
        return self.folder / "archive.zip"

    def _gathered(self) -> Path:
        """One zip file of all parts: the copy of the root first, so that a truncated file has it."""
        found = [place.relative_to(self.partial).as_posix() for place in self.partial.rglob("*") if place.is_file()]
        parts = ((key, _mapped(self.partial / key)) for key in in_order(filter(is_key, found)))
        remove(self._zip_file)   # of a run with this token that was killed here
        _fill_zip(self._zip_file, self.target, parts)
        return self._zip_file


def require_writable(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Where an archive with this path would be; refused if it cannot be written there."""
    target = require_suffix(target_of(path))
    with on_disk(target):
        require_free(target, overwrite)
    return target


def in_order(keys: Iterable[str]) -> list[str]:
    """Keys in the order in which a zip file holds them: the copy of the root first, the root last.

    >>> in_order(["zarr.json", "a/c/0", "a/root.json.z"])
    ['a/root.json.z', 'a/c/0', 'zarr.json']
    """
    return sorted(keys, key=lambda key: (key == ROOT, not key.endswith(f"/{COPY}"), key))


def write(path: str | os.PathLike[str], entries: Iterable[tuple[str, bytes]], overwrite: bool = False) -> Path:
    """Write the parts of an archive to a `.zip` file, or to a directory (`.zarr`, or no suffix); returns where.

    `zarr.json` must be among the parts. Only one other part is in memory at a time.
    """
    target = require_suffix(target_of(path))
    if target.suffix == ".zip":
        return _write_zip(target, entries, overwrite)
    draft = Draft(target, overwrite)
    try:
        root = _put_all(draft.put, entries)
    except BaseException:
        draft.discard()
        raise
    return draft.commit(root)


def _write_zip(target: Path, entries: Iterable[tuple[str, bytes]], overwrite: bool) -> Path:
    """Write parts straight into a zip file."""
    with on_disk(target):
        require_free(target, overwrite)
    partial = partial_of(target)
    try:
        _fill_zip(partial, target, entries)
        take_name(partial, target, overwrite)
    except BaseException:
        with on_disk(target):
            remove(partial)
        raise
    return target


def _fill_zip(partial: Path, target: Path, entries: Iterable[tuple[str, Any]]) -> None:
    with _new_file(partial, target) as file:
        opened = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

        def put(key: str, data: Any) -> None:
            opened.writestr(written(key), data, compresslevel=LEVEL)

        try:
            root = _put_all(_worded(put, target), entries)
            with on_disk(target):
                put(ROOT, root)
                opened.close()
        finally:
            opened.fp = None   # after an error, do not write the directory of a file that is given up


def _worded(put: Put, target: Path) -> Put:
    """The same, with our message for disk errors."""

    def worded(key: str, data: Any) -> None:
        with on_disk(target):
            put(key, data)

    return worded


@contextmanager
def _new_file(place: Path, target: Path) -> Iterator[BinaryIO]:
    """A new file, flushed to the disk on exit."""
    with on_disk(target):
        file = place.open("xb")
    try:
        yield file
        with on_disk(target):
            file.flush()
            os.fsync(file.fileno())
    finally:
        with on_disk(target):
            file.close()


def _mapped(place: Path) -> bytes | mmap.mmap:
    """The bytes of a file, which may be larger than the memory."""
    with place.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if place.stat().st_size else b""


def _put_all(put: Put, entries: Iterable[tuple[str, Any]]) -> Any:
    """Write every part except the root; returns the root, which is written last."""
    root, seen = None, set()
    for key, data in entries:
        if require_key(key) in seen:
            raise WorkbenchError(f"the parts of an archive must have different keys; got {key} twice")
        seen.add(key)
        if key == ROOT:
            root = data
        else:
            put(key, data)
    if root is None:
        raise WorkbenchError(f"an archive needs a {ROOT}; got {len(seen)} other parts")
    return root
