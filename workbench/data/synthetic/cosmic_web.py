"""A simulated universe: the particle sample for demos, tests and benchmarks.

Clustering makes it hard to compress particles and keep their halos. So the sample must be clustered like real data, with
realistic numbers of filaments, voids and dense halos, and not as points scattered around a few centres.
"""

from __future__ import annotations

from dataclasses import asdict

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


def cosmic_web(
    n: int = 64,
    box: float | None = None,
    seed: int = 0,
    *,
    redshift: float = 0.0,
    steps: int = 32,
    cosmology: Cosmology | None = None,
) -> Particles:
    """Simulate n^3 particles of cold matter in a periodic cube, from a Gaussian random field to `redshift`.

    `box` is the side in Mpc/h. The default is n, a mean spacing of 1 Mpc/h, where halos of 20 particles have a mass of
    1.7e12 Msun/h. Velocities are peculiar, in km/s; ids number the lattice that the particles started from.

    The mean force of a particle is Newtonian within 10% beyond two mean spacings, and decreases within one spacing, where
    halos are less dense than real ones. The same arguments give the same bits for any number of threads. On another kind of
    processor the last bits of the transforms may differ, and with time the positions of single particles in halos.

    >>> cosmic_web(n=8)
    Particles(512 in 3-D, float32, box 8 x 8 x 8, velocities, ids)
    """
    n = whole_number("n", n, least=4, most=1024)
    steps = whole_number("steps", steps, least=1)
    box = float(n) if box is None else number("box", box, n * SPACINGS[0], n * SPACINGS[1])
    cosmology = _universe(cosmology)
    end = 1 / (1 + number("redshift", redshift, 0, 20))
    start = _start(cosmology, box / n, end)
    offsets = displacements(generator(seed).standard_normal((n, n, n), dtype=np.float32), box, cosmology)
    positions, momenta = _launch(offsets, n, box, cosmology, start)
    evolve(positions, momenta, CELLS_PER_PARTICLE * n, leapfrog(cosmology, start, end, steps))
    cell = box / (CELLS_PER_PARTICLE * n)
    metadata = {
        "source": "workbench.synthetic.cosmic_web", "cosmology": asdict(cosmology), "sigma8": cosmology.sigma8,
        "redshift": float(redshift), "start_redshift": 1 / start - 1, "seed": int(seed), "steps": steps,
        "mesh": CELLS_PER_PARTICLE * n, "particle_mass": cosmology.particle_mass(box / n), "units": _UNITS,
    }
    velocities = np.float32(_HUBBLE * cell / end) * momenta
    return Particles.wrapped(np.float32(cell) * positions, box, velocities, np.arange(n**3), metadata)


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
