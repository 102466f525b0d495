"""Faults for k-means: which bits to flip, where and when. For tests, benchmarks and campaigns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError


@dataclass(frozen=True, eq=False)
class ProductFlips:
    """Bits flipped in products of points and centres, in one assignment step; entry i of every row is one flip.

    Bit 0 is the lowest of the mantissa. A product is a sum over axes; the flip happens after axis `axis` has been added,
    by default the last.

    >>> ProductFlips([3, 9], centre=[0, 1], bit=[30, 23])
    ProductFlips(2)
    """

    point: Any
    centre: Any
    bit: Any
    axis: Any = None

    def __post_init__(self) -> None:
        rows = {name: _whole(name, getattr(self, name)) for name in ("point", "centre", "bit")}
        rows["axis"] = np.full(rows["point"].shape, -1) if self.axis is None else _whole("axis", self.axis)
        if len({row.shape for row in rows.values()}) > 1:
            lengths = ", ".join(f"{name} {row.size}" for name, row in rows.items())
            raise WorkbenchError(f"point, centre, bit and axis must have one entry per flip each; got {lengths}")
        for name, row in rows.items():
            object.__setattr__(self, name, row)

    def __repr__(self) -> str:
        return f"ProductFlips({len(self.point)})"

    def check(self, points: Array, k: int) -> None:
        """Refuse flips that hit nothing."""
        count, axes = points.shape
        limits = {"point": count, "centre": k, "bit": 8 * points.dtype.itemsize, "axis": axes}
        for name, limit in limits.items():
            row, least = getattr(self, name), -1 if name == "axis" else 0
            if row.size and not (least <= row.min() and row.max() < limit):
                raise WorkbenchError(f"{name} of a flip must be less than {limit}; got {row.min()} to {row.max()}")

    def arguments(self, points: Array, rows: int, blocks: int) -> dict[str, Any]:
        """What the kernel takes: flips sorted by block."""
        xp, order = backend.namespace(points), np.argsort(self.point, kind="stable")
        point, axis = self.point[order], self.axis[order]
        return {
            "flips": len(point),
            "flip_first": xp.asarray(np.searchsorted(point, rows * np.arange(blocks + 1))),
            "flip_point": xp.asarray(point),
            "flip_centre": xp.asarray(self.centre[order].astype(np.int32)),
            "flip_axis": xp.asarray(np.where(axis < 0, points.shape[1] - 1, axis).astype(np.int32)),
            "flip_bit": xp.asarray(self.bit[order].astype(np.int32)),
        }


@dataclass(frozen=True)
class SumFlip:
    """A bit flipped in the sum of the coordinates of a cluster, in one centre update.

    Sums are whole numbers of 64 bits.

    >>> SumFlip(cluster=2, axis=0, bit=40)
    SumFlip(cluster=2, axis=0, bit=40)
    """

    cluster: int
    axis: int
    bit: int

    def strike(self, sums: Array) -> None:
        """Flip the bit in sums of shape (clusters, axes)."""
        clusters, axes = sums.shape
        if not (0 <= self.cluster < clusters and 0 <= self.axis < axes and 0 <= self.bit < 64):
            raise WorkbenchError(f"a flip must hit one of {clusters} clusters, {axes} axes and 64 bits; got {self}")
        mask = np.array([1 << self.bit], np.uint64).view(np.int64)[0]
        sums[self.cluster, self.axis] ^= mask


Fault = ProductFlips | SumFlip


def _whole(name: str, values: Any) -> np.ndarray:
    row = np.atleast_1d(np.asarray(values))
    if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
        raise WorkbenchError(f"{name} of flips must be a row of whole numbers; got {row.dtype} of shape {row.shape}")
    return row.astype(np.int64)
