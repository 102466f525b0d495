"""Particle-mesh gravity: the cheapest simulation with realistic halos.

A step deposits the mass of the particles on a mesh (cloud-in-cell, CIC), solves Poisson's equation with one forward and one
inverse Fourier transform, and interpolates the gradient of the potential to the particles (`kernels/mesh.cu`). Deposit and
interpolation each smooth the force by the CIC window. The solver deconvolves both for all waves that the mesh resolves in
every direction. So a mesh of two cells per particle and axis gives realistic numbers of halos.

Units: lengths in mesh cells, momenta are a^2 dx/dt with the Hubble constant as the unit of inverse time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.data.synthetic.cosmology import Cosmology
from workbench.slabs import over_slabs

_UNIT_MASS = 2.0**-45   # one particle in fixed point, as in kernels/mesh.cu


@dataclass(frozen=True, slots=True)
class Move:
    """One leapfrog step: momenta lose `kick` times the gradient of the potential, positions gain `drift` times momenta."""

    kick: float
    drift: float


def leapfrog(cosmology: Cosmology, start: float, end: float, steps: int) -> list[Move]:
    """The moves of a kick-drift-kick leapfrog in equal steps of the scale factor.

    Kicks and drifts are those of Feng et al. (2016, FastPM): a particle on the linear growing mode follows linear theory
    exactly for any step length. The closing kick of a step and the opening kick of the next use the same forces, so they
    are one move; the last move has no drift.

    >>> moves = leapfrog(Cosmology(), 0.1, 1.0, steps=4)
    >>> len(moves), moves[-1].drift
    (5, 0.0)
    """
    edges = np.linspace(start, end, steps + 1).tolist()
    middles = [float(np.sqrt(a * b)) for a, b in itertools.pairwise(edges)]
    moves = []
    for a, kick_from, kick_to, after in zip(edges, [start, *middles], [*middles, end], [*edges[1:], end], strict=True):
        kick = (cosmology.linear_momentum(kick_to) - cosmology.linear_momentum(kick_from)) / cosmology.growth(a)
        drift = (cosmology.growth(after) - cosmology.growth(a)) / cosmology.linear_momentum(kick_to)
        moves.append(Move(kick, drift))
    return moves


class Mesh:
    """A periodic cube of `cells`^3 points, and the gravitational potential of particles on it.

    >>> Mesh(4).potential(np.zeros((1, 3), np.float32), mean=1 / 64).argmin()
    np.int64(0)
    """

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self._mass: np.ndarray = np.zeros((cells, cells, cells), np.int64)
        self._spectrum: np.ndarray = np.empty((cells, cells, cells // 2 + 1), np.complex64)
        self._potential: np.ndarray = np.empty((cells, cells, cells), np.float32)
        self._response = _response(cells)

    def potential(self, positions: np.ndarray, mean: float) -> np.ndarray:
        """The potential whose Laplacian is the density contrast; `mean` is the number of particles per cell.

        The next call overwrites the array.
        """
        backend.kernel("mesh", "deposit")(len(positions), self.cells, positions, self._mass)
        layer_bytes = 4 * self.cells**2
        unit = np.float32(_UNIT_MASS / mean)
        over_slabs(lambda slab: self._transform_planes(slab, unit), self.cells, layer_bytes)
        over_slabs(self._solve_columns, self.cells, layer_bytes)
        over_slabs(self._restore_planes, self.cells, layer_bytes)
        return self._potential

    def move(self, potential: np.ndarray, move: Move, positions: np.ndarray, momenta: np.ndarray) -> None:
        """Kick the particles, let them drift, and wrap them, in place."""
        kick_and_drift = backend.kernel("mesh", "kick_and_drift")
        kick_and_drift(len(positions), self.cells, potential, move.kick, move.drift, positions, momenta)

    def _transform_planes(self, slab: slice, unit: np.float32) -> None:
        density = self._mass[slab].astype(np.float32) * unit   # includes the mean, whose response is zero
        self._mass[slab] = 0
        spectrum = self._spectrum[slab]
        np.fft.rfft(density, axis=2, out=spectrum)
        np.fft.fft(spectrum, axis=1, out=spectrum)

    def _solve_columns(self, slab: slice) -> None:
        columns = np.fft.fft(self._spectrum[:, slab], axis=0)
        columns *= self._response[:, slab]
        np.fft.ifft(columns, axis=0, out=self._spectrum[:, slab])

    def _restore_planes(self, slab: slice) -> None:
        planes = np.fft.ifft(self._spectrum[slab], axis=1)
        np.fft.irfft(planes, self.cells, axis=2, out=self._potential[slab])


def _response(cells: int) -> np.ndarray:
    """The Green's function of each wave, -1 / k^2, divided by the square of the CIC window.

    Waves shorter than two cells exist only in the corners of the mesh in Fourier space. There the window is so small that
    deconvolution would amplify the particle lattice into a force that slows linear growth by a quarter. So these waves are
    left out, with a smooth cutoff: a sharp one would ring and affect pairs ten cells apart.
    """
    full, half = np.fft.fftfreq(cells), np.fft.rfftfreq(cells)
    waves = full[:, None, None], full[None, :, None], half[None, None, :]
    k_squared = sum(((2 * np.pi * wave) ** 2 for wave in waves), np.zeros(()))
    resolved = np.exp(-((k_squared / np.pi**2) ** 4))
    k_squared[0, 0, 0] = np.inf
    window = np.sinc(waves[0]) ** 2 * np.sinc(waves[1]) ** 2 * np.sinc(waves[2]) ** 2
    return (-resolved / (k_squared * window**2)).astype(np.float32)


def evolve(positions: np.ndarray, momenta: np.ndarray, cells: int, moves: Sequence[Move]) -> None:
    """Integrate the particles in place: float32 positions in [0, cells) and momenta (N, 3)."""
    mesh = Mesh(cells)
    mean = len(positions) / cells**3
    for move in moves:
        mesh.move(mesh.potential(positions, mean), move, positions, momenta)
