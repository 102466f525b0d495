"""How much each group of tensors can change: its bytes and the loss of quality at rising bounds, all others unchanged.

The bounds of a group are shares of the root mean square of each of its tensors, so that a matrix and a vector, or two
layers, are comparable. A group may also be stored exactly.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from workbench.charts.description import Chart
from workbench.charts.table import html_table
from workbench.codecs import Codec
from workbench.guarantees import Absolute, Exact
from workbench.json_values import json_value
from workbench.progress import Progress
from workbench.propagation.weights.allocation import allocated
from workbench.propagation.weights.bounding import Bounded, bounded, scale_of
from workbench.propagation.weights.charts import named, sensitivity_chart
from workbench.propagation.weights.quality import Checked

SIX_DIGITS = Context(prec=6, rounding=ROUND_DOWN)
Groups = Mapping[str, Sequence[str]]   # the names of the tensors of each group


class Solution(NamedTuple):
    """The bound of each group for a budget, in units of root mean squares; the sums of their losses and of their bytes."""

    chosen: dict[str, float]
    loss: float
    nbytes: float


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """The loss and the bytes (`sizes`) of each group (rows) at each bound (columns); NaN where none was measured.

    `shares` are the bounds, in units of the root mean square of each tensor; 0 is exact. `unit` is that of the losses.

    >>> loss, sizes = np.array([[0.0, 0.2], [0.0, 0.4]]), np.array([[9.0, 4.0], [9.0, 3.0]])
    >>> Sensitivity(("first", "second"), (0.0, 0.1), loss, sizes).within(0.5)
    Solution(chosen={'first': 0.0, 'second': 0.1}, loss=0.4, nbytes=12.0)
    """

    groups: tuple[str, ...]
    shares: tuple[float, ...]
    loss: np.ndarray
    sizes: np.ndarray
    unit: str = ""

    @property
    def nbytes(self) -> int:
        """What the table takes in memory."""
        return self.loss.nbytes + self.sizes.nbytes

    def within(self, budget: float) -> Solution:
        """The bounds with the fewest bytes, of those whose losses add up to the budget at most."""
        columns = allocated(self.loss, self.sizes, budget)
        rows = range(len(columns))
        chosen = {name: self.shares[column] for name, column in zip(self.groups, columns, strict=True)}
        return Solution(chosen, float(self.loss[rows, columns].sum()), float(self.sizes[rows, columns].sum()))

    def plot(self, chosen: Mapping[str, float] = MappingProxyType({})) -> Chart:
        """The map of losses, with the chosen bounds of groups."""
        return sensitivity_chart(self.groups, self.shares, self.loss, chosen, self.unit)

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON types."""
        return json_value({
            "groups": list(self.groups), "shares": list(self.shares), "loss": self.loss.tolist(),
            "sizes": self.sizes.tolist(), "unit": self.unit,
        })

    def __repr__(self) -> str:
        worst = {name: row[np.isfinite(row)].max(initial=0.0) for name, row in zip(self.groups, self.loss, strict=True)}
        most = max(worst, key=lambda name: worst[name])
        return f"Sensitivity({len(self.groups)} groups x {len(self.shares)} bounds; most sensitive: {most})"

    def _repr_html_(self) -> str:
        head = ["group", *map(named, self.shares)]
        rows = [
            [name, *("" if math.isnan(loss) else f"{loss:.2e}, {size:,.0f} B" for loss, size in zip(*row, strict=True))]
            for name, *row in zip(self.groups, self.loss, self.sizes, strict=True)
        ]
        return html_table(head, rows, title=f"loss{f' ({self.unit})' if self.unit else ''} and bytes at each bound")


def bound_of(values: np.ndarray, share: float) -> Absolute | Exact:
    """The bound of a tensor that is this share of its size, rounded down to six digits: documents state it."""
    eb = min(share * scale_of(values), sys.float_info.max)
    eb = float(SIX_DIGITS.create_decimal(repr(eb)))
    return Absolute(eb) if eb > 0 else Exact()


@dataclass(frozen=True, eq=False)
class Scanned:
    """The tensors of a model, of which some may be pruned, in groups; and what measures the loss of changes of them."""

    base: Mapping[str, np.ndarray]
    pruned: Mapping[str, np.ndarray]
    groups: Groups
    codec: Codec
    measure: Checked
    start: float = 0.0   # the loss of what is pruned

    @property
    def values(self) -> int:
        """How many values are in all groups."""
        return sum(self.base[name].size for members in self.groups.values() for name in members)

    def joint(self, share: float) -> float:
        """The loss beyond that of what is pruned with one bound for all groups."""
        every = [name for members in self.groups.values() for name in members]
        return self._loss(self._within(every, share), f"all tensors within {share:.3g} of their root mean squares")

    def scan(self, shares: Sequence[float], enough: float, tell: Progress) -> Sensitivity:
        """The table of all groups; a group's bound is raised until its loss is more than `enough`."""
        ladder = (0.0, *shares)
        loss, sizes = np.full((2, len(self.groups), len(ladder)), math.nan)
        loss[:, 0] = 0.0
        for row, (name, members) in enumerate(self.groups.items()):
            for column, share in enumerate(ladder):
                tell((row + column / len(ladder)) / len(self.groups), f"raising the bound of {name}")
                made = self._within(members, share)
                sizes[row, column] = sum(each.nbytes for each in made.values())
                if share > 0:
                    loss[row, column] = self._loss(made, f"{name} within {share:.3g} of its root mean square")
                if loss[row, column] > enough:
                    break
        return Sensitivity(tuple(self.groups), ladder, loss, sizes, self.measure.unit)

    def _within(self, names: Sequence[str], share: float) -> dict[str, Bounded]:
        return {name: bounded(self.base[name], bound_of(self.base[name], share), self.codec) for name in names}

    def _loss(self, made: Mapping[str, Bounded], what: str) -> float:
        changes = {**self.pruned, **{name: each.values for name, each in made.items()}}
        return max(self.measure.changed(changes, what) - self.start, 0.0)
