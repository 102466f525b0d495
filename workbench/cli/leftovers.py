"""Files left beside a target NAME by a killed run: `.NAME.xxxxxxxx.partial`, and the replaced data, `.NAME.xxxxxxxx.old`.

What is no archive is named `.NAME.xxxxxxxx.lossbench.partial`, as its bytes do not say which program has written it.
Ctrl-C and SIGTERM leave nothing; `kill -9` and a power cut do. The next run with the same target removes partial files
that the user owns and that have not changed for an hour; a newer one may belong to a process that is still writing. `.old`
files are only reported, because they may be the last copy.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

ABANDONED = 3600.0   # seconds without a change
_KIND = re.compile(r"\.[0-9a-f]{8}(?:\.lossbench)?\.(partial|old)")


def clear_leftovers(target: Path) -> list[str]:
    """Remove abandoned partial files of a target; returns a sentence for each file that was removed or found."""
    return [_cleared(path, kind) for path, kind in sorted(_leftovers(target))]


def _leftovers(target: Path) -> Iterator[tuple[Path, str]]:
    for path in target.parent.glob(f".{glob.escape(target.name)}.*"):
        if found := _KIND.fullmatch(path.name[len(target.name) + 1 :]):
            yield path, found[1]


def _cleared(path: Path, kind: str) -> str:
    if kind == "old":
        return f"{path} is the data that an interrupted run was replacing: rename it if you need it, otherwise remove it"
    try:
        if not is_abandoned(path):
            return f"{path} may belong to a run that is still writing: remove it if there is no such run"
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        return f"{path} was left by a killed run and cannot be removed ({error.strerror or error})"
    return f"{path} was left by a killed run and has been removed"


def is_abandoned(path: Path, seconds: float = ABANDONED) -> bool:
    """Whether the user owns it, it is not a link, and nothing in it has changed for so long."""
    status = path.lstat()
    if path.is_symlink() or status.st_uid != os.getuid():
        return False
    inside = [Path(folder, name) for folder, *names in os.walk(path) for name in (*names[0], *names[1])]
    newest = max(part.lstat().st_mtime for part in (path, *inside))
    return time.time() - newest > seconds
