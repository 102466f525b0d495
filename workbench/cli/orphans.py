"""What runs that were killed have left in a folder: scratch folders and unfinished archives. What lives stays.

A scratch folder names its process (`workbench/run/owner.py`): nobody needs it once that has ended; one that is empty has
none yet, or none any more. An unfinished archive may be continued by the same call, so it is left until it is old; its lock
names the run that writes it. An old archive that was being replaced is needed until a new one has its name.

Names alone prove nothing, as other programs write `.NAME.20240101.partial`, too: what is inside must be of this package.
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

from workbench.archive.collection.member import MEMBERS
from workbench.archive.encoded import RECORDS
from workbench.archive.lock import LOCK, STALE_SECONDS, held
from workbench.archive.recognition import is_archive
from workbench.archive.writing import PARTS
from workbench.cli.leftovers import is_abandoned
from workbench.run.owner import OWNER, lives, remove_owned

SCRATCH = re.compile(r"lossbench-\w+")
NUMBERED = re.compile(r"lossbench-[0-9a-f]{12}")   # scratch folders in a folder that was given
PART_OF_DRAFT = re.compile(
    rf"{PARTS}|{re.escape(RECORDS)}|{re.escape(MEMBERS)}|{re.escape(LOCK)}(\.[0-9a-f]{{16}})?|\.(within|kept)-0x[0-9a-f.]+p[+-]\d+"
)
DRAFT = re.compile(r"\.(?P<target>.+)\.[0-9a-f]{8,64}\.(?P<kind>partial|old|lossbench\.partial)")


@dataclass(frozen=True)
class Orphan:
    """A folder or a file whose run has ended, why it is one, and whether a run may come to continue it."""

    path: Path
    why: str
    continued: bool = False

    @property
    def nbytes(self) -> int:
        """The size of its files, as far as they can be seen."""
        total = 0
        for path in (self.path, *(Path(folder, name) for folder, _, names in os.walk(self.path) for name in names)):
            with contextlib.suppress(OSError):
                total += path.lstat().st_size if path.is_file() else 0
        return total

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
        with contextlib.suppress(FileNotFoundError, PermissionError):   # it has just gone, or nobody may look inside
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
        return Orphan(path, "it is empty") if _is_empty_scratch(path) else None
    if draft["kind"] == "old":
        replaced = is_archive(path) and path.with_name(draft["target"]).exists()
        return Orphan(path, "an archive that was replaced") if replaced else None
    if draft["kind"] == "partial" and not _is_draft(path):
        return None
    lock = path / LOCK
    if lock.is_file() and lives(lock.read_text(errors="replace")):
        return None
    what = "archive" if draft["kind"] == "partial" else "file"
    return Orphan(path, f"an unfinished {what} without a change for {age / 86400:g} days", path.is_dir())


def _is_empty_scratch(path: Path) -> bool:
    """Whether a run was killed when it had made this scratch folder, perhaps when it wrote the name of its process."""
    inside = [place.name for place in path.iterdir()] if path.is_dir() else ["a file"]
    return all(name.startswith(f".{OWNER}.") for name in inside) and bool(inside or NUMBERED.fullmatch(path.name))


def _is_draft(path: Path) -> bool:
    """Whether this is an unfinished archive, perhaps of a run that was killed when it began one or removed one."""
    return is_archive(path) or (path.is_dir() and any(PART_OF_DRAFT.fullmatch(place.name) for place in path.iterdir()))
