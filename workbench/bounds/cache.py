"""A cache of measured runs, by everything that they depend on: the content of the data, and the question.

Names of files or variables are not part of the key, so a cache cannot be out of date: other data, another option, another
version of a library or other code, of this package or of a third-party codec, give another key. Failed runs are not kept,
because a missing library may be installed later.
"""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import threading
from collections import OrderedDict
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from workbench.archive import provenance
from workbench.bounds.code import code_of
from workbench.bounds.run import Question, Run
from workbench.errors import WorkbenchError

MOST_RUNS = 4096   # in memory; one takes a few kilobytes
FORMAT = 3

Where = str | os.PathLike[str] | bool | None


class Cache(Protocol):
    """A store of runs."""

    def find(self, key: str) -> Run | None:
        """The run of this key, if there is one."""

    def keep(self, key: str, run: Run) -> Run:
        """Keep a run; returns it, with a note when it could not be kept."""


def key_of(digest: str, question: Question) -> str:
    """The key of a run: a hash of the digest of the data and of everything else that its figures depend on."""
    asked = question.to_dict()
    made_by = provenance.of(question.codec)   # the codec, the versions of its libraries, the kind of machine
    return _hash(json.dumps([FORMAT, digest, asked, made_by, code_of(question.codec)], sort_keys=True))


def cache_at(where: Where) -> Cache | None:
    """The requested cache: that of this process by default, a folder, or none (False)."""
    if where is None or where is True:
        return _MEMORY
    return None if where is False else FolderCache(where)


class MemoryCache:
    """The most recently used runs of this process."""

    def __init__(self, most: int = MOST_RUNS) -> None:
        self._most = most
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()   # panels sweep in threads

    def find(self, key: str) -> Run | None:
        """The run of this key, which becomes the most recently used one."""
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
            return self._runs.get(key)

    def keep(self, key: str, run: Run) -> Run:
        """Keep a run, and drop the least recently used one."""
        with self._lock:
            self._runs[key] = run
            self._runs.move_to_end(key)
            while len(self._runs) > self._most:
                self._runs.popitem(last=False)
        return run

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._runs.clear()


class FolderCache:
    """A file for each run in a folder, which any number of processes may use at the same time.

    Files are written atomically. A damaged file is ignored: its run is measured again, and the file replaced.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            self.folder = Path(folder).expanduser()
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, TypeError, RuntimeError) as error:
            raise WorkbenchError(f"cache must be a writable folder; got {folder!r}: {error}") from None

    def find(self, key: str) -> Run | None:
        """The run of this key, if its file exists and is undamaged."""
        try:
            held = json.loads(self._path(key).read_text(encoding="utf-8"))
            return Run.from_dict(held["run"]) if held["checksum"] == _checksum(key, held["run"]) else None
        except (OSError, ValueError, KeyError, TypeError):   # absent or damaged: `keep` will say when it cannot write
            return None

    def keep(self, key: str, run: Run) -> Run:
        """Write a run; a failure becomes one of its notes, so that one failed write does not lose the other runs."""
        described = run.to_dict()
        partial = self.folder / f".{key}.{secrets.token_hex(4)}.partial"
        try:
            try:
                held = {"checksum": _checksum(key, described), "run": described}
                with partial.open("x", encoding="utf-8") as file:
                    json.dump(held, file, indent=1)
                partial.replace(self._path(key))
            finally:
                partial.unlink(missing_ok=True)
        except OSError as error:
            return dataclasses.replace(run, notes=(*run.notes, f"not kept in the cache: {error}"))
        return run

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def _checksum(key: str, described: dict[str, Any]) -> str:
    return _hash(json.dumps([key, described], sort_keys=True))


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


_MEMORY = MemoryCache()
