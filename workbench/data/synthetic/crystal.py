"""A crystal with thermal noise: the molecular-dynamics sample, ordered in contrast to the cosmic web.

Its coordinates are predictable up to the noise, which codecs for trajectories exploit. Sites lie on the faces of the box,
so about half of the atoms there are wrapped to the opposite face.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.arguments import number, positive, whole_number
from workbench.data.particles import Particles
from workbench.data.synthetic.random_numbers import generator
from workbench.errors import WorkbenchError

LATTICES: dict[str, tuple[tuple[float, float, float], ...]] = {
    "sc": ((0, 0, 0),),
    "bcc": ((0, 0, 0), (0.5, 0.5, 0.5)),
    "fcc": ((0, 0, 0), (0, 0.5, 0.5), (0.5, 0, 0.5), (0.5, 0.5, 0)),
}
"""Where the atoms of a cubic cell are, in units of its side."""


def molecular_lattice(
    cells: int | Sequence[int] = 10, lattice: str = "fcc", noise: float = 0.05, seed: int = 0, *, constant: float = 1.0
) -> Particles:
    """Atoms on a cubic lattice in a periodic box, each displaced from its site by Gaussian noise.

    `cells` is the number of cubic cells along each axis, `constant` their side, and `noise` the rms displacement along each
    axis in units of the side. A crystal melts if the rms displacement is about a tenth of the distance between neighbours
    (Lindemann's rule): a noise of 0.04 for fcc, 0.05 for bcc, 0.06 for sc.

    >>> molecular_lattice(cells=4, lattice="bcc")
    Particles(128 in 3-D, float32, box 4 x 4 x 4, ids)
    """
    if lattice not in LATTICES:
        raise WorkbenchError(f"lattice must be one of {', '.join(LATTICES)}; got {lattice!r}")
    counts = _counts(cells)
    side, rms = positive("constant", constant), number("noise", noise, 0, 1)
    corners = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 1, 3)
    sites = (corners + np.array(LATTICES[lattice])).reshape(-1, 3)
    positions = side * (sites + rms * generator(seed).standard_normal(sites.shape))
    box = tuple(side * count for count in counts)
    metadata = {"lattice": lattice, "cells": counts, "constant": side, "noise": rms, "seed": int(seed)}
    return Particles.wrapped(positions.astype(np.float32), box, ids=np.arange(len(sites)), metadata=metadata)


def _counts(cells: int | Sequence[int]) -> tuple[int, int, int]:
    counts = tuple(cells) if isinstance(cells, Sequence | np.ndarray) else (cells,) * 3
    if len(counts) != 3:
        raise WorkbenchError(f"cells must be a whole number or three of them; got {cells!r}")
    a, b, c = (whole_number("each number of cells", count, least=1) for count in counts)
    return a, b, c
