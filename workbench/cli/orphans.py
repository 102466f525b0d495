"""What runs that were killed have left in a folder: scratch folders and unfinished archives. What lives stays.

A scratch folder names its process (`workbench/run/owner.py`): nobody needs it once that has ended; one that is empty has
none yet, or none any more. An unfinished archive may be continued by the same call, so it is left until it is old; its lock
names the run that writes it. An old archive that was being replaced is needed until a new one has its name.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from workbench.archive.lock import LOCK, STALE_SECONDS, held
from workbench.cli.leftovers import is_abandoned
from workbench.run.owner import OWNER, lives, remove_owned

SCRATCH = re.compile(r"lossbench-\w+")
DRAFT = re.compile(r"\.(.+)\.[0-9a-f]{8,64}\.(partial|old)")


@dataclass(frozen=True)
class Orphan:
    """A folder or a file whose run has ended, why it is one, and whether a run may come to continue it."""

    path: Path
    why: str
    continued: bool = False

    @property
    def nbytes(self) -> int:
        """The size of its files."""
        inside = (Path(folder, name) for folder, _, names in os.walk(self.path) for name in names)
        return sum(path.lstat().st_size for path in (self.path, *inside) if path.is_file())

    def remove(self) -> None:
        """Remove it; refused if a run has begun to continue it."""
        lock: AbstractContextManager[None] = held(self.path, self.path) if self.continued else nullcontext()
        with lock:
            remove_owned(self.path)
            if os.path.lexists(self.path):
                shutil.rmtree(self.path) if self.path.is_dir() else self.path.unlink()


def orphans_in(folder: Path, age: float) -> Iterator[Orphan]:
    """The orphans in a folder, sorted by name; of unfinished archives those without a change for `age` seconds."""
    for path in sorted(folder.iterdir()):
        with contextlib.suppress(FileNotFoundError):   # it has just gone
            if orphan := _judged(path, age):
                yield orphan


def _judged(path: Path, age: float) -> Orphan | None:
    """What an entry of a folder is, if it is an orphan of this user."""
    draft = DRAFT.fullmatch(path.name)
    if not (draft or SCRATCH.fullmatch(path.name)) or path.is_symlink() or path.lstat().st_uid != os.getuid():
        return None
    if (owner := path / OWNER).is_file():
        return Orphan(path, "its process has ended") if lives(owner.read_text(errors="replace")) is False else None
    if not is_abandoned(path, max(age, STALE_SECONDS)):
        return None
    if draft is None:
        named = all(place.name.startswith(f".{OWNER}.") for place in path.iterdir())   # by a run that was killed then
        return Orphan(path, "it is empty") if named else None
    if draft[2] == "old":
        return Orphan(path, "an archive that was replaced") if path.with_name(draft[1]).exists() else None
    lock = path / LOCK
    if lock.is_file() and lives(lock.read_text(errors="replace")):
        return None
    return Orphan(path, f"an unfinished archive without a change for {age / 86400:g} days", path.is_dir())
