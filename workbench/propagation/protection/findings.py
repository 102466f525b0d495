"""What a protection has found: counts that add up over stages and runs."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Findings:
    """How many checks were made, and what they found.

    `detected` counts checks that have found a fault, `corrected` values that were replaced, and `recomputed` whole results
    that were computed again. `unchecked` counts values that no check covers, because of input that is not finite.

    >>> Findings(checks=4, detected=1, corrected=1) + Findings(checks=4)
    Findings(checks=8, detected=1, corrected=1, recomputed=0, unchecked=0)
    """

    checks: int = 0
    detected: int = 0
    corrected: int = 0
    recomputed: int = 0
    unchecked: int = 0

    def __add__(self, other: Findings) -> Findings:
        return Findings(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def clean(self) -> bool:
        """Whether all was checked, and no check failed.

        >>> Findings(checks=4).clean, Findings(checks=4, detected=1).clean
        (True, False)
        """
        return self.detected == 0 and self.unchecked == 0
