"""Everything that can be asked of an archive, and what counts as an answer.

A forged archive may be refused, or decode to values; then `verify(original)` confirms or refuses what the archive says
about them. Every other exception is a finding, and so is too much memory or time.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fuzz.victims import Victim
from workbench.archive import Archive
from workbench.errors import WorkbenchError

OPENED, REFUSED, CONFIRMED, CONTRADICTED = "decodes, unverified", "refused", "confirmed", "contradicted"


@dataclass(frozen=True)
class Finding:
    """An answer that no archive should give."""

    use: str
    error: str
    where: str   # the innermost line of the package
    trace: str


def used(victim: Victim, parts: dict[str, bytes]) -> tuple[str, list[Finding]]:
    """The outcome of a forgery, and what was wrong on the way."""
    findings: list[Finding] = []
    archive = _asked("open", lambda: victim.opened(parts), findings)
    if archive is None:
        return REFUSED, findings
    for name, use in _questions(archive, victim):
        _asked(name, use, findings)
    verified = _asked("verify with the original", lambda: archive.verify(victim.original), findings)
    decoded = _asked("decompress", archive.decompress, findings)
    if decoded is None:
        return REFUSED, findings
    return (CONTRADICTED if verified is None or not verified.passed else CONFIRMED), findings


def _questions(archive: Archive, victim: Victim) -> Iterator[tuple[str, Callable[[], object]]]:
    """All that reads, but the last two."""
    yield "damage", archive.damage
    yield "salvage", archive.salvage
    yield "read a region", lambda: archive.read(**_part(archive))
    yield "read all", lambda: archive.read(**{name: [None] * len(ends) for name, ends in _part(archive).items()})
    yield "permutation", archive.permutation
    yield "permutation of the original", lambda: archive.permutation(victim.original)
    yield "certificate", lambda: str(archive.certificate)
    yield "html", archive._repr_html_
    yield "repr", lambda: repr(archive)
    yield "verify", archive.verify


def _part(archive: Archive) -> dict[str, Sequence[Any]]:
    if archive.kind == "trajectory":
        return {"frames": (1, 4)}
    columns = archive.data.layout.shape[-1] if archive.kind == "particles" else len(archive.data.layout.shape)
    return {"region": [(1, 5)] * columns}


def _asked(name: str, use: Callable[[], object], findings: list[Finding]) -> object:
    """The answer; nothing where it is refused, or is a finding."""
    try:
        return use()
    except WorkbenchError:
        return None
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/workbench/" in f.filename]
        where = f"{frames[-1].filename.split('/workbench/')[-1]}:{frames[-1].lineno}" if frames else "outside the package"
        findings.append(Finding(name, f"{type(error).__name__}: {error}"[:300], where, traceback.format_exc(limit=-6)))
        return None
