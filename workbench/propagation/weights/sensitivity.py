"""How much each group of tensors can change: its bytes and the loss of quality at rising bounds, all others unchanged.

The bounds of a group are shares of the root mean square of each of its tensors, so that a matrix and a vector, or two
layers, are comparable. A group may also be stored exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.charts.description import Chart
from workbench.charts.table import html_table
from workbench.codecs import Codec
from workbench.guarantees import Absolute, Exact
from workbench.json_values import json_value
from workbench.progress import Progress
from workbench.propagation.weights.bounding import bounded, scale_of
from workbench.propagation.weights.charts import sensitivity_chart
from workbench.propagation.weights.quality import Checked

Groups = Mapping[str, Sequence[str]]   # the names of the tensors of each group



@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """The loss and the bytes of each group (rows) at each bound (columns); NaN where none was measured.

    `shares` are the bounds, in units of the root mean square of each tensor; 0 is exact.
    """

    groups: tuple[str, ...]
    shares: tuple[float, ...]
    loss: np.ndarray
    nbytes: np.ndarray

    def plot(self, chosen: Mapping[str, float] = MappingProxyType({})) -> Chart:
        """The map of losses, with the chosen bounds of groups."""
        return sensitivity_chart(self.groups, self.shares, self.loss, chosen)

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON types."""
        return json_value({
            "groups": list(self.groups), "shares": list(self.shares), "loss": self.loss.tolist(),
            "nbytes": self.nbytes.tolist(),
        })

    def __repr__(self) -> str:
        worst = {name: row[np.isfinite(row)].max(initial=0.0) for name, row in zip(self.groups, self.loss, strict=True)}
        most = max(worst, key=lambda name: worst[name])
        return f"Sensitivity({len(self.groups)} groups x {len(self.shares)} bounds; most sensitive: {most})"

    def _repr_html_(self) -> str:
        head = ["group", *("exact" if share == 0 else f"{share:.3g} rms" for share in self.shares)]
        rows = [
            [name, *("" if math.isnan(loss) else f"{loss:.2e}, {size:,.0f} B" for loss, size in zip(*row, strict=True))]
            for name, *row in zip(self.groups, self.loss, self.nbytes, strict=True)
        ]
        return html_table(head, rows, title="loss and bytes at each bound")


def bound_of(values: np.ndarray, share: float) -> Absolute | Exact:
    """The bound of a tensor that is this share of its size."""
    eb = share * scale_of(values)
    return Absolute(eb) if eb > 0 else Exact()


def scan(
    base: Mapping[str, np.ndarray], pruned: Mapping[str, np.ndarray], groups: Groups, shares: Sequence[float], codec: Codec,
    measure: Checked, enough: float, tell: Progress,
) -> tuple[float, Sensitivity]:
    """The loss of what is pruned, and the table beyond it; a group's bound is raised until its loss is more than `enough`."""
    start = measure.changed(pruned, "the pruned tensors") if pruned else 0.0
    ladder = (0.0, *shares)
    loss, nbytes = np.full((2, len(groups), len(ladder)), math.nan)
    for row, (name, members) in enumerate(groups.items()):
        for column, share in enumerate(ladder):
            tell((row + column / len(ladder)) / len(groups), f"raising the bound of {name}")
            made = {each: bounded(base[each], bound_of(base[each], share), codec) for each in members}
            nbytes[row, column] = sum(each.nbytes for each in made.values())
            if share > 0:
                changes = {**pruned, **{each: one.values for each, one in made.items()}}
                found = measure.changed(changes, f"{name} within {share:.3g} of its root mean square")
                loss[row, column] = max(found - start, 0.0)
            else:
                loss[row, column] = 0.0
            if loss[row, column] > enough:
                break
    return start, Sensitivity(tuple(groups), ladder, loss, nbytes)
