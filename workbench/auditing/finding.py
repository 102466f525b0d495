"""What an audit has to say about a member, with evidence: a defect, a doubt, or a fact to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.json_values import json_value

Severity = Literal["failed", "warning", "note"]
FAILED: Severity = "failed"
WARNING: Severity = "warning"
NOTE: Severity = "note"
GRADES = (FAILED, WARNING, NOTE)


@dataclass(frozen=True)
class Finding:
    """One finding: how grave it is, about which member, of what kind, in a sentence, with numbers and places.

    >>> print(Finding("failed", "T", "unit", "every value is 100 times the original", {"factor": 100.0}))
    failed   T: every value is 100 times the original
    """

    severity: Severity
    member: str
    kind: str
    sentence: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        about = f"{self.member}: " if self.member else ""
        return f"{self.severity:<8} {about}{self.sentence}"

    def to_dict(self) -> dict[str, Any]:
        """The finding, ready for JSON."""
        return {name: json_value(entry) for name, entry in vars(self).items()}
