"""Friends-of-friends finders of other packages behind one signature: (positions, linking length, box) -> labels.

Each is used as its authors document it, with everything it needs for labels inside the timing; others take float64.
A finder that is not installed is left out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Finder = Callable[[np.ndarray, float, float], np.ndarray]


def by_scipy(positions: np.ndarray, length: float, box: float) -> np.ndarray:
    """All pairs of a k-d tree, then the connected components of their graph."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    i, j = cKDTree(positions, boxsize=box).query_pairs(length, output_type="ndarray").T
    count = len(positions)
    links = coo_matrix((np.ones(len(i), bool), (i, j)), (count, count))
    labels: np.ndarray = connected_components(links, directed=False)[1]
    return labels


def by_kdcount(positions: np.ndarray, length: float, box: float) -> np.ndarray:
    """The finder of nbodykit, in one process."""
    from kdcount import cluster, models

    labels: np.ndarray = cluster.fof(models.dataset(positions, boxsize=box), length, np=0).labels
    return labels


def by_hfof(positions: np.ndarray, length: float, box: float) -> np.ndarray:
    """Creasey's hashed-grid finder; not on PyPI."""
    import hfof

    labels: np.ndarray = hfof.fof(positions, length, boxsize=box)
    return labels


def by_dbscan(positions: np.ndarray, length: float, box: float) -> np.ndarray:
    """Parallel exact DBSCAN of Wang, Gu and Shun with one point to a core; knows no periodic box."""
    from dbscan import DBSCAN

    labels: np.ndarray = DBSCAN(positions, eps=length, min_samples=1)[0]
    return labels


def by_workbench(positions: np.ndarray, length: float, box: float) -> np.ndarray:
    """Ours, from bare positions."""
    import workbench as wb

    labels: np.ndarray = wb.friends_of_friends(wb.Particles(positions, box), length, unit="length").labels
    return labels


NOT_PERIODIC = {"dbscan"}
_ALL: dict[str, Finder] = {
    "workbench": by_workbench, "scipy": by_scipy, "kdcount": by_kdcount, "hfof": by_hfof, "dbscan": by_dbscan,
}


def installed() -> dict[str, Finder]:
    """The finders that can be imported here."""
    return {name: finder for name, finder in _ALL.items() if importlib.util.find_spec(name) is not None}


@dataclass
class Task:
    """One finder on the positions in a file, so that a fresh process can run it; its first run loads the file."""

    finder: Finder
    path: Path
    as_float64: bool
    length: float
    box: float
    _positions: np.ndarray | None = None

    def __call__(self) -> np.ndarray:
        """The labels that this finder gives."""
        if self._positions is None:
            stored = np.load(self.path)
            self._positions = stored.astype(np.float64) if self.as_float64 else stored
        return self.finder(self._positions, self.length, self.box)
