"""Initial conditions: displacements from a lattice by a Gaussian random field, to second order.

First-order displacements alone (Zel'dovich approximation) cause transients that take a factor of ten in scale factor to
decay. With the second order (2LPT; Bouchet et al. 1995) a run may start at a = 0.1, which saves half of the steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.data.synthetic.cosmology import Cosmology


@dataclass(frozen=True, slots=True)
class Displacements:
    """Displacements (n, n, n, 3) of lattice particles, in Mpc/h, for a linear growth of 1."""

    first: np.ndarray
    second: np.ndarray

    def positions(self, cosmology: Cosmology, a: float) -> np.ndarray:
        """The displacements of the particles from their lattice sites at `a`."""
        second = second_order_growth(cosmology, a)
        return np.float32(cosmology.growth(a)) * self.first + np.float32(second) * self.second

    def momenta(self, cosmology: Cosmology, a: float) -> np.ndarray:
        """The momenta a^2 dx/dt at `a`, with the second-order growth rate fitted by Bouchet et al. (1995)."""
        second_rate = 2 * cosmology.matter(a) ** (6 / 11)
        second = a**2 * cosmology.expansion(a) * second_order_growth(cosmology, a) * second_rate
        return np.float32(cosmology.linear_momentum(a)) * self.first + np.float32(second) * self.second


def second_order_growth(cosmology: Cosmology, a: float) -> float:
    """The amplitude of second-order displacements, as fitted by Bouchet et al. (1995)."""
    return -3 / 7 * cosmology.growth(a) ** 2 * cosmology.matter(a) ** (-1 / 143)


def displacements(noise: np.ndarray, box: float, cosmology: Cosmology) -> Displacements:
    """The displacements for the density field of the cosmology, from white noise (n, n, n) of unit variance."""
    n = len(noise)
    waves = _wave_vector(n, box)
    k_squared = waves[0] ** 2 + waves[1] ** 2 + waves[2] ** 2
    inverse = _inverse(k_squared)
    contrast = np.fft.rfftn(noise) * np.sqrt(cosmology.power(np.sqrt(k_squared)) * (n / box) ** 3).astype(np.float32)
    potential = -inverse * contrast
    first = _gradient(-potential, waves)
    second = _gradient(-inverse * np.fft.rfftn(_second_order_source(potential, waves)), waves)
    return Displacements(first, second)


def _second_order_source(potential: np.ndarray, waves: list[np.ndarray]) -> np.ndarray:
    """The second invariant of the tidal tensor: the sum over pairs of axes of phi_ii phi_jj - phi_ij^2."""
    def curvature(i: int, j: int) -> np.ndarray:
        return _to_space(-waves[i] * waves[j] * potential)

    diagonal = [curvature(axis, axis) for axis in range(3)]
    source = diagonal[0] * (diagonal[1] + diagonal[2]) + diagonal[1] * diagonal[2]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        source -= curvature(i, j) ** 2
    return source


def _gradient(spectrum: np.ndarray, waves: list[np.ndarray]) -> np.ndarray:
    n = len(spectrum)
    result = np.empty((n, n, n, 3), np.float32)
    for axis, wave in enumerate(waves):
        slope = wave.copy()
        if n % 2 == 0:
            slope.flat[n // 2] = 0   # Nyquist wave: its gradient on the lattice is zero
        result[..., axis] = _to_space(np.complex64(1j) * slope * spectrum)
    return result


def _wave_vector(n: int, box: float) -> list[np.ndarray]:
    """The wave numbers of a real transform along each axis, shaped for broadcasting."""
    full, half = np.fft.fftfreq(n, box / n), np.fft.rfftfreq(n, box / n)
    waves = full[:, None, None], full[None, :, None], half[None, None, :]
    return [(2 * np.pi * wave).astype(np.float32) for wave in waves]


def _inverse(k_squared: np.ndarray) -> np.ndarray:
    """1 / k^2, and 0 for the mean."""
    inverse = 1 / np.where(k_squared > 0, k_squared, 1)
    inverse[0, 0, 0] = 0
    return inverse


def _to_space(spectrum: np.ndarray) -> np.ndarray:
    n = len(spectrum)
    return np.fft.irfftn(spectrum, s=(n, n, n), axes=(0, 1, 2))
