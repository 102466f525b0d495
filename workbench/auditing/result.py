"""The result of an audit, for people and for scripts: rows of members, findings, and whether all of it passed."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.archive.collection.names import require_known
from workbench.archive.collection.reports import aligned
from workbench.auditing.finding import FAILED, GRADES, NOTE, Finding
from workbench.auditing.row import HOLDS, IDENTICAL, Row
from workbench.errors import some_of
from workbench.text_files import write_text

if TYPE_CHECKING:
    from workbench.auditing.picture import ErrorPicture

SHOWN = 24   # rows of the table, and notes below it; the page and JSON have all


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What was seen of a lossy copy: `rows` (one for each array), `findings`, and `passed`.

    `audit["T"]` is the row of a member; `str` is a short table, `save` writes a page or JSON.
    """

    original: str
    lossy: str
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    nbytes: int | None = None
    lossy_nbytes: int | None = None
    picture: ErrorPicture | None = None
    tolerances: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every array is identical or keeps a promise, and nothing else is wrong."""
        return bool(self.rows) and all(row.passed for row in self.rows) and not self.failed

    @property
    def failed(self) -> list[Finding]:
        """The findings that are defects."""
        return [finding for finding in self.findings if finding.severity == FAILED]

    @property
    def ratio(self) -> float | None:
        """How many times smaller the lossy file is, where both are files."""
        return self.nbytes / self.lossy_nbytes if self.nbytes and self.lossy_nbytes else None

    def __getitem__(self, name: str) -> Row:
        rows = {row.name: row for row in self.rows}
        require_known(name, rows, "a member of this audit")
        return rows[name]

    @property
    def sentence(self) -> str:
        """The outcome in a sentence."""
        kept = sum(row.outcome == HOLDS for row in self.rows)
        same = sum(row.outcome == IDENTICAL for row in self.rows)
        if self.passed:
            return f"passed: {kept} of {len(self.rows)} arrays within their promises, {same} identical"
        wrong = f"{len(self.rows) - kept - same} of {len(self.rows)} arrays"
        return f"FAILED: {wrong}; {len(self.failed)} defect{'s' if len(self.failed) != 1 else ''}"

    def ordered(self) -> list[Finding]:
        """The findings, the gravest first."""
        return sorted(self.findings, key=lambda one: GRADES.index(one.severity))

    def __str__(self) -> str:
        sizes = f", {self.ratio:.3g} times smaller" if self.ratio else ""
        rows = [row for row in sorted(self.rows, key=lambda one: one.passed) if row.outcome != IDENTICAL]
        table = [aligned([row.in_words() for row in rows[:SHOWN]], {"over", "largest error", "psnr"})] if rows else []
        same = [row.name for row in self.rows if row.outcome == IDENTICAL]
        more = [f"and {len(rows) - SHOWN} more arrays"] if len(rows) > SHOWN else []
        more += [f"identical: {some_of(same, 8)}"] if same else []
        return "\n".join([f"{self.lossy} against {self.original}{sizes}", *table, *more, *self.lines(), self.sentence])

    def lines(self) -> list[str]:
        """The findings, the gravest first; those that say the same of several members together, and some of the notes."""
        together: dict[tuple[str, str], list[Finding]] = {}
        for one in self.ordered():
            together.setdefault((one.severity, one.sentence), []).append(one)
        lines, notes = [], 0
        for alike in together.values():
            notes += alike[0].severity == NOTE
            if notes <= SHOWN:
                lines.append(str(replace(alike[0], member=some_of((one.member for one in alike if one.member), 4))))
        return lines

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from workbench.auditing.page import body

        return body(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "original": self.original, "lossy": self.lossy, "passed": self.passed, "sentence": self.sentence,
            "bytes": self.nbytes, "lossy_bytes": self.lossy_nbytes, "tolerances": list(self.tolerances),
            "rows": [row.to_dict() for row in self.rows], "findings": [one.to_dict() for one in self.ordered()],
        }

    def save(self, path: str | Path) -> Path:
        """Write one self-contained page (.html), or JSON (.json)."""
        from workbench.auditing.page import page

        as_json = str(path).endswith(".json")
        text = json.dumps(self.to_dict(), allow_nan=False, indent=1) if as_json else page(self)
        return write_text(path, text, "an audit", ".html", ".json", ".htm")
