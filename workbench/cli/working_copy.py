"""The user's own copies of the notebooks, which `workbench lab` opens.

Running a notebook changes its file, and JupyterLab saves without being asked. In a checkout that would be a change of the
project, in conflict with the next version of the notebooks. So people work on copies. A copy that was changed in any way is
never overwritten: a newer version is placed beside it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

RECORD = ".copied.json"   # the checksum of each notebook as it was copied last; JupyterLab hides such names


def update(notebooks: Path, folder: Path) -> list[str]:
    """Copy the notebooks that are missing, renew untouched copies, place newer versions beside changed ones.

    Returns a sentence for each newer version that was placed beside a changed copy. A copy that was deleted is made again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / RECORD
    copied: Mapping[str, str] = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    notes, now = [], dict(copied)
    for notebook in sorted([*notebooks.glob("*.ipynb"), *notebooks.glob("[!.]*/*.ipynb")]):
        name, version = notebook.relative_to(notebooks).as_posix(), _checksum(notebook)
        copy, now[name] = folder / name, version
        copy.parent.mkdir(exist_ok=True)
        if not copy.exists() or _checksum(copy) == copied.get(name):
            shutil.copyfile(notebook, copy)
        elif version not in (copied.get(name), _checksum(copy)):
            beside = copy.with_stem(f"{copy.stem}-newer-{version[:8]}")
            if not beside.exists():
                shutil.copyfile(notebook, beside)
            notes.append(f"{name} has a newer version, {beside.name}; yours is as you left it")
    record.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    return notes


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
