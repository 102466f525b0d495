"""Triclinic cells: kept in the metadata of particles, which lie in an open space then, since boxes are rectangular.

The edges are vectors, one a row. Without the periods, distances across faces are wrong, so searches for clusters refuse
such particles, until the caller decides on an open space or on a box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError

KEY = "cell"   # in the metadata
RIGHT = 1e-3   # degrees that an angle may differ from a right one: files have few digits


def is_triclinic(edges: np.ndarray) -> bool:
    """Whether edges are not along the axes.

    >>> is_triclinic(np.diag([1.0, 2.0, 3.0]))
    False
    """
    return bool(np.count_nonzero(edges - np.diag(np.diag(edges))))


def edges_of(lengths: Sequence[float] | np.ndarray, angles: Sequence[float] | np.ndarray) -> np.ndarray:
    """The edges of a cell from their lengths and its angles alpha, beta, gamma, in degrees; the first lies along x.

    >>> edges_of((2.0, 2.0, 3.0), (90, 90, 60)).round(3).tolist()
    [[2.0, 0.0, 0.0], [1.0, 1.732, 0.0], [0.0, 0.0, 3.0]]
    """
    degrees = np.asarray(angles, np.float64)
    alpha, beta, gamma = np.where(abs(degrees - 90) <= RIGHT, 0.0, np.cos(np.radians(degrees)))
    a, b, c = (float(length) for length in lengths)
    height = np.sqrt(max(1 - gamma**2, 0.0))
    across = (alpha - beta * gamma) / height if height else np.nan
    rest = 1 - beta**2 - across**2
    edges = np.array([[a, 0, 0], [b * gamma, b * height, 0], [c * beta, c * across, c * np.sqrt(max(rest, 0.0))]])
    if not (np.isfinite(edges).all() and rest > 0):
        raise WorkbenchError(f"the angles of a cell must enclose a volume; got {', '.join(f'{one:g}' for one in degrees)}")
    return edges


def lengths_and_angles(edges: np.ndarray) -> np.ndarray:
    """The lengths of edges, and the angles alpha, beta, gamma between them in degrees.

    >>> lengths_and_angles(np.diag([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0, 90.0, 90.0, 90.0]
    """
    a, b, c = rows = np.asarray(edges, np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = [one @ other / (np.linalg.norm(one) * np.linalg.norm(other)) for one, other in ((b, c), (a, c), (a, b))]
    angles = np.degrees(np.arccos(np.nan_to_num(np.clip(cosines, -1, 1))))
    return np.concatenate([lengths, angles])


def kept_cell(edges: Any, periodic: bool) -> dict[str, Any]:
    """The entry of metadata for a cell: its edges, and whether the particles are in it or in a space that the caller chose.

    >>> kept_cell(np.eye(2), periodic=True)
    {'cell': {'edges': [[1.0, 0.0], [0.0, 1.0]], 'periodic': True}}
    """
    return {KEY: {"edges": np.asarray(edges, np.float64).tolist(), "periodic": periodic}}


def in_triclinic_cell(metadata: Mapping[str, Any]) -> bool:
    """Whether particles with these metadata are in a triclinic cell, which they know only there.

    >>> in_triclinic_cell(kept_cell([[1, 0], [1, 1]], periodic=True))
    True
    """
    cell = metadata.get(KEY)
    return isinstance(cell, Mapping) and cell.get("periodic") is True


def require_no_triclinic_cell(particles: Any, what: str) -> None:
    """Refuse particles in a triclinic cell where distances count."""
    metadata = getattr(particles, "metadata", {})
    if in_triclinic_cell(metadata):
        raise WorkbenchError(
            f"{what} needs a rectangular box or an open space; these particles are in a triclinic cell, whose periods are "
            "not supported: open the file with box=None to ignore them, or with box=(...)"
        )
