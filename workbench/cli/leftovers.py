"""What a killed run leaves beside a target NAME: `.NAME.xxxxxxxx.partial`, and what it was replacing, `.NAME.xxxxxxxx.old`.

Ctrl-C and SIGTERM leave nothing, `kill -9` and a power cut do. Whoever writes the same target again removes partial files
that are the user's own and in which nothing has changed for an hour: until then, another process may be writing. The
`.old` ones are only named, since they may be the last copy.
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
_KIND = re.compile(r"\.[0-9a-f]{8}\.(partial|old)")


def clear_leftovers(target: Path) -> list[str]:
    """Remove abandoned partial files of a target; what was removed, and what was found and left, in a sentence each."""
    return [_cleared(path, kind) for path, kind in sorted(_leftovers(target))]


def _leftovers(target: Path) -> Iterator[tuple[Path, str]]:
    for path in target.parent.glob(f".{glob.escape(target.name)}.*"):
        if found := _KIND.fullmatch(path.name[len(target.name) + 1 :]):
            yield path, found[1]


def _cleared(path: Path, kind: str) -> str:
    if kind == "old":
        return f"{path} is what an interrupted run was about to replace: rename it if it is needed, else remove it"
    try:
        if not _is_abandoned(path):
            return f"{path} belongs to a run that may still be writing: remove it if there is none"
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        return f"{path} is left from a killed run, and cannot be removed ({error.strerror or error})"
    return f"{path} was left from a killed run, and is removed"


def _is_abandoned(path: Path) -> bool:
    """Whether it is the user's own, no link, and nothing in it has changed for an hour."""
    status = path.lstat()
    if path.is_symlink() or status.st_uid != os.getuid():
        return False
    inside = [Path(folder, name) for folder, *names in os.walk(path) for name in (*names[0], *names[1])]
    newest = max(part.lstat().st_mtime for part in (path, *inside))
    return time.time() - newest > ABANDONED
