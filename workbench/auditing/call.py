"""What all members of one audit share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.archive.collection.rules import matching
from workbench.auditing.promised import Statements
from workbench.auditing.sides import Side
from workbench.guarantees import Bound
from workbench.progress import Progress


@dataclass(frozen=True, eq=False)
class Call:
    """Both sides, the bounds of members by name, and how the work is done; `quick` leaves out spectra and halos."""

    original: Side
    lossy: Side
    bounds: Mapping[str, Bound]
    statements: tuple[Statements, Statements]
    quick: bool = False
    client: Any = None
    scratch: str | Path | None = None
    linking_length: float = 0.2
    only: tuple[str, ...] = ()   # names and patterns; none means all
    progress: Progress | None = None

    def wants(self, name: str) -> bool:
        """Whether an array of particles is audited: it, its kind in all members, or all of its member is named."""
        return not self.only or any(matching(one, [name]) or matching(one, [name.rpartition("/")[2]]) for one in self.only)
