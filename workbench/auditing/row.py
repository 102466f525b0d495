"""What an audit has measured of one array."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.json_values import json_value

IDENTICAL, HOLDS, BROKEN, UNPROMISED = "identical", "holds", "broken", "no promise"


@dataclass(frozen=True, eq=False)
class Row:
    """An array: its outcome, the promise and who made it, counts, figures, places, and bytes where it is stored.

    `outcome` is "identical", "holds", "broken" or "no promise"; `over` values break the promise.
    """

    name: str
    outcome: str
    shape: tuple[int, ...]
    dtype: str
    lossy_dtype: str
    promise: str = ""
    promised_by: str = ""
    limit: float = math.nan
    over: int = 0
    lost: int = 0
    gained: int = 0
    largest_error: float = 0.0
    largest_at: Mapping[str, Any] = field(default_factory=dict)
    worst_at: Mapping[str, Any] = field(default_factory=dict)   # of the values that break the promise
    share_of_limit: float = math.nan   # of the worst value beyond the limit
    figures: Mapping[str, float] = field(default_factory=dict)
    nbytes: int | None = None
    lossy_nbytes: int | None = None
    notes: tuple[str, ...] = ()
    curves: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether it is identical, or within its promise."""
        return self.outcome in (IDENTICAL, HOLDS)

    def to_dict(self) -> dict[str, Any]:
        """The row, ready for JSON."""
        entries = {name: json_value(entry) for name, entry in vars(self).items() if name != "curves"}
        return {**entries, "bits_per_value": json_value(self.bits_per_value)}

    @property
    def bits_per_value(self) -> float:
        """Bits of the lossy file for each value, where it is known how many bytes the array takes."""
        count = math.prod(self.shape)
        return math.nan if self.lossy_nbytes is None or not count else 8 * self.lossy_nbytes / count

    def in_words(self) -> dict[str, str]:
        """The row, for people."""
        psnr = self.figures.get("psnr")
        return {
            "name": self.name, "outcome": self.outcome, "promise": self.promise or "-",
            "over": f"{self.over:,}" if self.over else "-",
            "largest error": f"{self.largest_error:.4g}", "at": in_place(self.largest_at),
            "psnr": f"{psnr:.1f}" if psnr is not None and math.isfinite(psnr) else "-",
        }


def in_place(place: Mapping[str, Any]) -> str:
    """A place in words.

    >>> in_place({"index": [3, 4], "time": "2001-01", "lat": 12.5})
    'time 2001-01, lat 12.5'
    """
    named = {name: entry for name, entry in place.items() if name != "index"}
    if not named and "index" in place:
        return f"[{', '.join(map(str, place['index']))}]"
    shown = {name: f"{entry:.6g}" if isinstance(entry, float) else entry for name, entry in named.items()}
    return ", ".join(f"{name} {entry}" for name, entry in shown.items())
