"""Time for each part of the run: what does not fit is left out, and the report says so."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Budget:
    """A part's own time, within what is left of the whole run.

    >>> whole = Budget(60)
    >>> part = whole.part(20)
    >>> 19 < part.left() <= 20, whole.part(100).left() <= 60
    (True, True)
    """

    seconds: float
    begin: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        """The seconds that are left; never negative."""
        return max(self.seconds - (time.monotonic() - self.begin), 0.0)

    def used(self) -> float:
        """The seconds since the beginning."""
        return time.monotonic() - self.begin

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.left() == 0

    def part(self, seconds: float) -> Budget:
        """Time for one part of this."""
        return Budget(min(seconds, self.left()))
