"""One simulation of a universe: its checked arguments, and its particles at one or several times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from workbench.arguments import number, whole_number
from workbench.data.particles import Particles
from workbench.data.synthetic.cosmology import Cosmology
from workbench.data.synthetic.initial_conditions import Displacements, displacements
from workbench.data.synthetic.particle_mesh import evolve, leapfrog
from workbench.data.synthetic.random_numbers import generator
from workbench.errors import WorkbenchError

CELLS_PER_PARTICLE = 2   # of the mesh, along each axis
SPACINGS = 1e-5, 1e6     # Mpc/h between particles for which the spectrum of the initial waves is known
_HUBBLE = 100.0          # km/s per Mpc/h
_UNITS = {"positions": "comoving Mpc/h", "velocities": "peculiar km/s", "particle_mass": "Msun/h"}


@dataclass(frozen=True, slots=True)
class Simulation:
    """n^3 particles in a periodic cube of side `box`, and the number of steps up to their last time."""

    n: int
    box: float
    seed: int
    steps: int
    cosmology: Cosmology

    @classmethod
    def checked(cls, n: Any, box: Any, seed: Any, steps: Any, cosmology: Cosmology | None) -> Simulation:
        """The simulation with these arguments; those that make no sense are refused."""
        n = whole_number("n", n, least=4, most=1024)
        steps = whole_number("steps", steps, least=1)
        box = float(n) if box is None else number("box", box, n * SPACINGS[0], n * SPACINGS[1])
        return cls(n, box, whole_number("seed", seed, least=0), steps, _universe(cosmology))

    def snapshots(self, redshifts: Sequence[float], source: str, with_times: bool = False) -> Iterator[Particles]:
        """The particles at each of these redshifts, which fall; with the scale factor as their time, if wanted."""
        ends = [1 / (1 + redshift) for redshift in redshifts]
        start = _start(self.cosmology, self.box / self.n, ends[0])
        positions, momenta = self._launched(start)
        before, total = start, ends[-1] - start
        for redshift, end in zip(redshifts, ends, strict=True):
            steps = max(1, round(self.steps * (end - before) / total))
            evolve(positions, momenta, self._mesh, leapfrog(self.cosmology, before, end, steps))
            metadata = self._metadata(source, redshift, start) | ({"time": end} if with_times else {})
            cell = self.box / self._mesh
            velocities = np.float32(_HUBBLE * cell / end) * momenta
            yield Particles.wrapped(np.float32(cell) * positions, self.box, velocities, np.arange(self.n**3), metadata)
            before = end

    @property
    def _mesh(self) -> int:
        return CELLS_PER_PARTICLE * self.n

    def _launched(self, start: float) -> tuple[np.ndarray, np.ndarray]:
        waves = generator(self.seed).standard_normal((self.n, self.n, self.n), dtype=np.float32)
        return _launch(displacements(waves, self.box, self.cosmology), self.n, self.box, self.cosmology, start)

    def _metadata(self, source: str, redshift: float, start: float) -> dict[str, Any]:
        return {
            "source": source, "cosmology": asdict(self.cosmology), "sigma8": self.cosmology.sigma8,
            "redshift": float(redshift), "start_redshift": 1 / start - 1, "seed": self.seed, "steps": self.steps,
            "mesh": self._mesh, "particle_mass": self.cosmology.particle_mass(self.box / self.n), "units": _UNITS,
        }


def _universe(given: Cosmology | None) -> Cosmology:
    if given is None:
        return Cosmology()
    if not isinstance(given, Cosmology):
        raise WorkbenchError(f"cosmology must be a synthetic.Cosmology(...); got {given!r}")
    return given


def _start(cosmology: Cosmology, spacing: float, end: float) -> float:
    """The initial scale factor, early enough that the smallest waves are far from collapse."""
    return min(0.1, end / 4, 0.3 / cosmology.sigma(spacing))


def _launch(
    offsets: Displacements, n: int, box: float, cosmology: Cosmology, start: float
) -> tuple[np.ndarray, np.ndarray]:
    """Positions in [0, mesh) and momenta in mesh cells, (N, 3), of the displaced lattice particles."""
    mesh = np.float32(CELLS_PER_PARTICLE * n)
    cells = mesh / np.float32(box)
    sites = CELLS_PER_PARTICLE * np.arange(n, dtype=np.float32) + np.float32(0.5)   # a uniform lattice is a uniform mesh
    positions = cells * offsets.positions(cosmology, start)
    positions += np.stack(np.meshgrid(sites, sites, sites, indexing="ij"), axis=-1)
    positions -= np.floor(positions / mesh) * mesh
    positions[positions >= mesh] = 0   # rounded up to the far face, which is the near face
    momenta = cells * offsets.momenta(cosmology, start)
    return positions.reshape(-1, 3), momenta.reshape(-1, 3)
