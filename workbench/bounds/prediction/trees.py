"""Gradient-boosted regression trees in NumPy: small, deterministic, and evaluated for all trees at once.

All trees are complete and of one depth, so that an ensemble is three arrays: the feature and the threshold of every inner
node, and the value of every leaf. A row passes through all trees together, level by level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.errors import WorkbenchError

DEPTH = 3
TREES = 160
RATE = 0.08
BINS = 24            # of each feature, of equal counts
LEAST_ROWS = 8       # in a leaf
SHRINKAGE = 4.0      # rows of no residual that every leaf counts in addition
CLIP = 2.5           # of residuals, in units of their median size: outliers do not lead


@dataclass(frozen=True, eq=False)
class Trees:
    """The sum of many trees.

    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> trees = Trees.fitted(x, np.sin(6 * x[:, 0]))
    >>> bool(np.abs(trees(x) - np.sin(6 * x[:, 0])).mean() < 0.05)
    True
    """

    start: float
    features: np.ndarray     # (trees, inner nodes)
    thresholds: np.ndarray   # the same
    leaves: np.ndarray       # (trees, leaves)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The value for each row of features."""
        found: np.ndarray = Ensembles.of([self])(rows)[0]
        return found

    @classmethod
    def fitted(cls, rows: np.ndarray, wanted: np.ndarray, trees: int = TREES, rate: float = RATE) -> Trees:
        """Trees whose sum comes close to the wanted values, little impressed by outliers."""
        if len(rows) != len(wanted) or not len(rows):
            raise WorkbenchError(f"training needs a value for each row of features; got {len(wanted)} for {len(rows)}")
        rows, shares = _single(rows), np.linspace(0, 1, BINS + 1)[1:-1]
        edges = [np.unique(np.quantile(column, shares, method="lower")) for column in rows.T]
        binned = np.stack([np.searchsorted(edge, column) for edge, column in zip(edges, rows.T, strict=True)], axis=1)
        start = float(np.median(wanted))
        residual = wanted - start
        grown = []
        for _ in range(trees):
            limit = CLIP * float(np.median(np.abs(residual))) + 1e-12
            tree, places = _grown(binned, edges, np.clip(residual, -limit, limit))
            tree = tree[0], tree[1], rate * tree[2]
            residual = residual - tree[2][places]
            grown.append(tree)
        return cls(start, *(np.stack([tree[part] for tree in grown]) for part in range(3)))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The trees as arrays of few bytes."""
        return {
            "start": np.array(self.start), "features": self.features.astype(np.uint8),
            "thresholds": self.thresholds.astype(np.float32), "leaves": self.leaves.astype(np.float32),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Trees:
        """The trees from the result of `to_arrays`."""
        features, leaves = arrays["features"].astype(np.int64), arrays["leaves"].astype(np.float64)
        return cls(float(arrays["start"]), features, arrays["thresholds"].astype(np.float64), leaves)


@dataclass(frozen=True, eq=False)
class Ensembles:
    """Several sums of trees on the same features, evaluated at once: calls on small arrays take longer than the arithmetic.

    Nodes come first, and trees second.

    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> both = Ensembles.of([Trees.fitted(x, x[:, 0]), Trees.fitted(x, -x[:, 0])])
    >>> bool(np.abs(both(x).sum(axis=0)).max() < 0.01)
    True
    """

    starts: np.ndarray       # of each ensemble
    first: np.ndarray        # the number of its first tree, and of all trees
    features: np.ndarray     # of all nodes of all trees
    thresholds: np.ndarray
    leaves: np.ndarray       # (leaves, trees)

    @classmethod
    def of(cls, several: Sequence[Trees]) -> Ensembles:
        """These, each of at least one tree."""
        features, thresholds, leaves = (
            np.concatenate([getattr(each, name) for each in several]).T for name in ("features", "thresholds", "leaves")
        )
        starts = np.array([each.start for each in several])
        first = np.cumsum([0, *(len(each.leaves) for each in several)])
        return cls(starts, first, features.ravel(), thresholds.ravel().astype(np.float32), np.ascontiguousarray(leaves))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The values of each ensemble, a row each, for each row of features."""
        leaves, trees = self.leaves.shape
        found = np.empty((len(self.starts), len(rows)))
        backend.kernel("imitation", "sum_trees")(
            found.size, *rows.shape, trees, len(self.starts), leaves.bit_length() - 1,
            np.ascontiguousarray(rows, np.float32), self.features, self.thresholds, self.leaves, self.first, self.starts,
            found
        )
        return found


def _single(rows: np.ndarray) -> np.ndarray:
    """Features in single precision, as thresholds are kept: both sides of a comparison are rounded alike."""
    return rows.astype(np.float32).astype(np.float64)


def _grown(
    binned: np.ndarray, edges: list[np.ndarray], residual: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """One tree, and the leaf of each row."""
    inner = 2**DEPTH - 1
    features, thresholds = np.zeros(inner, np.int64), np.full(inner, np.inf)
    node = np.zeros(len(residual), np.int64)
    for number in range(inner):
        inside = np.flatnonzero(node == number)
        split = _split(binned[inside], residual[inside])
        right = np.zeros(len(inside), bool)
        if split is not None:
            features[number], last = split
            thresholds[number] = edges[split[0]][last]
            right = binned[inside, split[0]] > last
        node[inside] = 2 * number + 1 + right
    place = node - inner
    sums = np.bincount(place, residual, 2**DEPTH)
    counts = np.bincount(place, minlength=2**DEPTH)
    return (features, thresholds, sums / (counts + SHRINKAGE)), place


def _split(binned: np.ndarray, residual: np.ndarray) -> tuple[int, int] | None:
    """The feature and the last bin on its left side that explain most; None where too few rows are left."""
    if len(residual) < 2 * LEAST_ROWS:
        return None
    rows, columns = binned.shape
    place = (binned + BINS * np.arange(columns)).ravel()
    counts = np.bincount(place, minlength=BINS * columns).reshape(columns, BINS).cumsum(axis=1)[:, :-1]
    weights = np.repeat(residual, columns)
    sums = np.bincount(place, weights, BINS * columns).reshape(columns, BINS).cumsum(axis=1)[:, :-1]
    others, rest = rows - counts, residual.sum() - sums
    gain = sums**2 / (counts + SHRINKAGE) + rest**2 / (others + SHRINKAGE)
    gain[(counts < LEAST_ROWS) | (others < LEAST_ROWS)] = -1.0
    best = int(gain.argmax())
    column, last = divmod(best, BINS - 1)
    return (column, last) if gain[column, last] > residual.sum() ** 2 / (rows + SHRINKAGE) else None
