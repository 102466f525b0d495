"""Points to the clusters of k-means: a few rounds of Lloyd's algorithm, in which faults die out or move a centre.

The products of points and centres are sites, as nearly all of the work is done there, and checksums find faults in them.
Labels and centres, which follow from them, are computed twice where checksums are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array, to_host
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.propagation.containers import array_of
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.protection import Findings, Twice
from workbench.propagation.protection.matrices import checked_matmul
from workbench.propagation.stage import Stage
from workbench.propagation.tolerance import shares_equal

LARGEST = 1e150   # squares of larger numbers overflow


def kmeans(points: Particles | Array, clusters: int = 8, rounds: int = 5, seed: int = 0, share: float = 0.001) -> Pipeline:
    """Lloyd's algorithm from fixed first centres: sites `products 1`, `labels 1`, `centres 1`, ..., `labels` at the end.

    The first centres are points of the given data, far from each other (k-means++). Up to this share of the labels may
    change.

    >>> points = np.random.default_rng(0).normal(size=(100, 2)) + 10 * np.arange(2).repeat(50)[:, None]
    >>> np.bincount(kmeans(points, clusters=2)(points)).tolist()
    [50, 50]
    """
    given = to_host(array_of(points))
    if given.ndim != 2 or given.dtype.kind not in "fiu":
        raise WorkbenchError(f"k-means needs points of shape (N, D), as numbers; got {given.dtype} of shape {given.shape}")
    values = given.astype(np.float64)
    if not (abs(values) < LARGEST).all():
        raise WorkbenchError(f"k-means needs finite points below {LARGEST:g}; got others, or NaN: leave those points out")
    clusters = whole_number("clusters", clusters, 1, len(values))
    lloyd = _Lloyd(_spread(values, clusters, np.random.default_rng(whole_number("seed", seed, 0))))
    stages: list[Stage] = []
    before: tuple[str, ...] = ()
    for number in range(1, whole_number("rounds", rounds, 1, 1000) + 1):
        stages += lloyd.assignment(f"products {number}", f"labels {number}", before)
        read = ("input", f"labels {number}", *before)
        stages.append(Stage(f"centres {number}", lloyd.centres, read, verify=Twice(lloyd.centres)))
        before = (f"centres {number}",)
    stages += lloyd.assignment("products", "labels", before)
    return Pipeline(stages, outputs="labels", tolerance=shares_equal(share), name="k-means")


@dataclass(frozen=True, eq=False)
class _Lloyd:
    """Lloyd's algorithm, with its first centres."""

    first: np.ndarray

    def assignment(self, products: str, labels: str, centres: tuple[str, ...]) -> list[Stage]:
        """The stages from points and centres, or the first ones, to labels."""
        return [
            Stage(products, self.products, ("input", *centres), verify=self.products_verified),
            Stage(labels, self.labels, (products, *centres), verify=Twice(self.labels), categorical=True),
        ]

    def products(self, points: Array, centres: Array | None = None) -> Array:
        return points @ self._known(points, centres).T

    def products_verified(self, inputs: Sequence[Any], output: Array) -> tuple[Array, Findings]:
        points = inputs[0]
        if output.dtype not in (np.float32, np.float64) or points.dtype != output.dtype:
            return output, Findings(unchecked=output.size)
        return checked_matmul(points, self._known(*inputs).T, output)

    def labels(self, products: Array, centres: Array | None = None) -> Array:
        xp, known = backend.namespace(products), self._known(products, centres)
        return xp.argmin((known * known).sum(axis=1) - 2 * products, axis=1)

    def _known(self, like: Array, centres: Array | None = None) -> Array:
        """The centres; before the first round, the first ones."""
        return backend.namespace(like).asarray(self.first, _floats(like)) if centres is None else centres

    def centres(self, points: Array, labels: Array, before: Array | None = None) -> Array:
        """The mean of the points with each label; a cluster without points keeps its centre."""
        xp, count = backend.namespace(points), len(self.first)
        known = self._known(points, before)
        if bool((labels < 0).any()) or bool((labels >= count).any()):
            raise ValueError(f"labels must be less than {count}; got {int(labels.min())} to {int(labels.max())}")
        members = xp.bincount(labels, minlength=count)
        sums = xp.stack([xp.bincount(labels, column, count) for column in points.T.astype(np.float64)], axis=1)
        return xp.where(members[:, None] > 0, sums / xp.maximum(members, 1)[:, None], known).astype(_floats(points))


def _floats(points: Array) -> np.dtype:
    """The type of the centres of points: theirs, or float64 for integers."""
    return points.dtype if points.dtype.kind == "f" else np.dtype(np.float64)


def _spread(points: np.ndarray, clusters: int, random: np.random.Generator) -> np.ndarray:
    """Some of the points, each drawn by its squared distance from those before."""
    chosen = [int(random.integers(len(points)))]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < clusters:
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        total: Any = nearest.sum()
        weights: Sequence[float] | None = nearest / total if total > 0 else None
        chosen.append(int(random.choice(len(points), p=weights)))
    return points[chosen]
