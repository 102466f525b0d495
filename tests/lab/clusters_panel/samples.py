"""Sets of particles of every kind, and everything that the panel computes for them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

import workbench as wb
from workbench.lab.clusters_panel.breakage import Breakage, Halos, break_halos, groups_of
from workbench.lab.clusters_panel.keeping import Kept, keep_halos
from workbench.lab.clusters_panel.state import ClustersState


def clumps(dimensions: int, dtype: type, box: float | None, seed: int = 0, count: int = 3000) -> wb.Particles:
    """Clumps of a few dozen, so near to each other that errors tear and join many."""
    random = np.random.default_rng(seed)
    centres = random.random((count // 40, dimensions))
    around = centres[random.integers(0, len(centres), count)]
    points = (around + 0.02 * random.normal(size=around.shape)).astype(dtype)
    return wb.Particles.wrapped(points, box) if box else wb.Particles(points + 5)


def apart() -> wb.Particles:
    """Particles that are nobody's friends."""
    return wb.Particles(np.stack(np.meshgrid(*[np.arange(8.0)] * 3), axis=-1).reshape(-1, 3) + 0.25, box=8.0)


def pile() -> wb.Particles:
    """All particles in one halo."""
    return wb.Particles(0.5 + 0.01 * np.random.default_rng(0).random((500, 3)), box=1.0)


SETS = {
    "periodic 3-D": lambda: clumps(3, np.float32, 1.0),
    "periodic 2-D": lambda: clumps(2, np.float64, 1.0),
    "open 3-D": lambda: clumps(3, np.float64, None),
    "open 2-D": lambda: clumps(2, np.float32, None),
    "no halos": apart,
    "one halo": pile,
    "a single particle": lambda: wb.Particles([[0.5, 0.5, 0.5]], box=1.0),
    "one place, open": lambda: wb.Particles(np.full((40, 3), 3.0)),
}


def ignore(share: float, text: str) -> None:
    """Progress that nobody wants to see."""


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """Particles, a state, and all that is computed for them."""

    particles: wb.Particles
    state: ClustersState
    halos: Halos
    breakage: Breakage
    kept: Kept

    @classmethod
    def of(cls, particles: wb.Particles, **fields: Any) -> Case:
        state = dataclasses.replace(ClustersState.for_(particles), **fields)
        halos = groups_of(particles, state, ignore)
        breakage = break_halos(particles, state, halos, ignore)
        return cls(particles, state, halos, breakage, keep_halos(particles, state, halos, ignore))

    def changed(self, **fields: Any) -> ClustersState:
        """The state with some fields changed."""
        return dataclasses.replace(self.state, **fields)


@functools.cache
def case(name: str) -> Case:
    """The case of one of the sets, with a bound that breaks something if anything can break."""
    particles = SETS[name]()
    return Case.of(particles, bound=0.25 * ClustersState.for_(particles).length(particles))
