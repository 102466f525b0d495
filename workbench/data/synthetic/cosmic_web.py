"""A simulated universe: the particle sample for demos, tests and benchmarks.

Clustering makes it hard to compress particles and keep their halos. So the sample must be clustered like real data, with
realistic numbers of filaments, voids and dense halos, and not as points scattered around a few centres.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from workbench.arguments import number
from workbench.data.particles import Particles
from workbench.data.synthetic.cosmology import Cosmology
from workbench.data.synthetic.simulation import Simulation
from workbench.errors import WorkbenchError, briefly

_EARLIEST = 20.0   # redshift


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
    simulation = Simulation.checked(n, box, seed, steps, cosmology)
    return next(simulation.snapshots([number("redshift", redshift, 0, _EARLIEST)], "workbench.synthetic.cosmic_web"))


def cosmic_web_series(
    n: int = 64,
    redshifts: Sequence[float] = (3, 2, 1.5, 1, 0.75, 0.5, 0.25, 0),
    box: float | None = None,
    seed: int = 0,
    *,
    steps: int = 32,
    cosmology: Cosmology | None = None,
) -> Iterator[Particles]:
    """Snapshots of one such simulation at these redshifts, which fall: one at a time, the same ids in the same order.

    `steps` are those up to the last redshift, of nearly equal length in the scale factor; there is at least one between
    two snapshots. The metadata have the scale factor as `time`. One redshift alone gives the arrays of `cosmic_web`.

    >>> for snapshot in cosmic_web_series(n=8, redshifts=[1, 0]):
    ...     print(snapshot.metadata["redshift"], snapshot.metadata["time"], len(snapshot))
    1.0 0.5 512
    0.0 1.0 512
    """
    simulation = Simulation.checked(n, box, seed, steps, cosmology)
    return simulation.snapshots(_falling(redshifts), "workbench.synthetic.cosmic_web_series", with_times=True)


def _falling(redshifts: Any) -> list[float]:
    """The redshifts, if each is smaller than the one before."""
    try:
        given = [number("each of redshifts", redshift, 0, _EARLIEST) for redshift in redshifts]
    except TypeError:
        raise WorkbenchError(f"redshifts must be a row of numbers; got {briefly(redshifts)}") from None
    if not given or any(later >= earlier for earlier, later in itertools.pairwise(given)):
        raise WorkbenchError(
            f"redshifts must be one or more numbers that fall, as time rises: [3, 2, 1, 0]; got {briefly(redshifts)}"
        )
    return given
