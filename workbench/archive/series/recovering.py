"""What is left of a damaged series: its steps, without the document; or the whole steps, without the others.

Each step states which series it is of, so that steps are readable without the document, which holds what new steps are made
with. A step that cannot be read takes those with it that were predicted from it, and no others.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.archive.frame import Damaged
from workbench.archive.placing import on_disk, remove
from workbench.archive.root import intact_root
from workbench.archive.series.requested import DOCUMENT, DamagedDocument, read_document
from workbench.archive.series.steps import About, Steps
from workbench.archive.store import open_store
from workbench.archive.trust import Trust
from workbench.errors import GuaranteeBroken, WorkbenchError

if TYPE_CHECKING:
    from workbench.archive.series.series import Series


def name_in_steps(folder: Path) -> str:
    """The name of the series that the first readable step states; empty where there is none."""
    steps = Steps(folder, "", Trust())
    try:
        numbers = steps.numbers()
    except WorkbenchError:
        return ""
    for number in numbers:
        try:
            return About.of(intact_root(open_store(steps.path(number))).root, "").series
        except WorkbenchError:
            continue
    return ""


def stated_or_known(folder: Path) -> tuple[Mapping[str, Any] | None, str, str]:
    """What the document states, the name of the series, and why it has none though there are steps of it."""
    try:
        stated = read_document(folder)
    except DamagedDocument as error:
        if not (name := name_in_steps(folder)):
            raise
        return None, name, str(error)
    if stated is not None:
        return stated, stated["name"], ""
    name = name_in_steps(folder)
    return None, name, f"{folder.name} has no {DOCUMENT}" if name else ""


def salvaged(series: Series, steps: Steps, target: Path) -> list[Damaged]:
    """Copy the document, and the steps that can be read or that these need, into a new folder; returns the others."""
    lost, kept = {}, []
    for number in range(len(series)):
        try:
            series[number].verify()
        except WorkbenchError as error:
            lost[number] = Damaged(f"step {number}", str(error))
        if number not in lost or _has_all_data(series, number):
            kept.append(number)
    if not kept:
        raise GuaranteeBroken(f"nothing of {series.path.name} can be read: {lost[0].reason if lost else 'it has no steps'}")
    there, others = set(steps.numbers()), lost.keys() - set(kept)
    kept += [number for number in others & there if not set(kept).isdisjoint(steps.needing(number))]   # damaged in part
    stated, _, reason = stated_or_known(series.path)
    files = [*map(steps.path, kept), *([series.path / DOCUMENT] if stated is not None else [])]
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with on_disk(target):
            partial.mkdir()
            for file in files:
                shutil.copy2(file, partial / file.name)
                with (partial / file.name).open("rb") as copy:
                    os.fsync(copy.fileno())
            partial.rename(target)   # refused if there is something by now
    finally:
        remove(partial)
    return [*lost.values(), *([Damaged(DOCUMENT, reason)] if reason else [])]


def _has_all_data(series: Series, number: int) -> bool:
    """Whether all data of a step can be read, though something in its file is damaged that is there twice."""
    try:
        series[number].decompress()
    except WorkbenchError:
        return False
    return True
