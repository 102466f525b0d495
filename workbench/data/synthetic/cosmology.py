"""Linear cosmology: expansion, growth of structure, and the linear power spectrum.

A flat universe of matter and a cosmological constant is enough for samples. Lengths are in Mpc/h and wave numbers in h/Mpc;
time is measured by the scale factor a (1 today), and the Hubble constant is the unit of inverse time.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from workbench.errors import WorkbenchError

CRITICAL_DENSITY = 2.7754e11            # of the universe today, in (Msun/h) / (Mpc/h)^3
_BACKGROUND_TEMPERATURE = 2.7255 / 2.7   # of the microwave background, in the unit of Eisenstein & Hu
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True, slots=True)
class Cosmology:
    """A flat universe: densities in units of the critical density, the primordial slope, and the amplitude at 8 Mpc/h.

    >>> round(Cosmology().growth(0.5), 3)   # in a universe of matter alone it would be 0.5
    0.612
    """

    omega_m: float = 0.3
    """The density of matter, including baryons; the rest to 1 is the cosmological constant."""
    omega_b: float = 0.045
    """The density of baryons."""
    h: float = 0.7
    """The Hubble constant in 100 km/s/Mpc."""
    n_s: float = 0.96
    """The logarithmic slope of the primordial spectrum."""
    sigma8: float = 0.8
    """The linear rms contrast today in spheres of 8 Mpc/h."""

    def __post_init__(self) -> None:
        limits = {"omega_m": (0.01, 1), "omega_b": (0, self.omega_m), "h": (0.1, 2), "n_s": (-2, 3), "sigma8": (0.01, 3)}
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise WorkbenchError(f"{name} must lie in [{low:g}, {high:g}]; got {value!r}")

    def expansion(self, a: float) -> float:
        """The Hubble rate E(a) in units of its present value."""
        return float(np.sqrt(self.omega_m / a**3 + 1 - self.omega_m))

    def matter(self, a: float) -> float:
        """The density of matter at `a` in units of the critical density at that time."""
        return self.omega_m / (a**3 * self.expansion(a) ** 2)

    def growth(self, a: float) -> float:
        """The amplitude D(a) of linear structure, 1 today: Heath's (1977) integral."""
        return self._growing_mode(a) / self._growing_mode(1.0)

    def growth_rate(self, a: float) -> float:
        """The slope d ln D / d ln a: the derivative of Heath's integral."""
        return 1 / ((a * self.expansion(a)) ** 2 * self._growing_mode(a)) - 1.5 * self.matter(a)

    def linear_momentum(self, a: float) -> float:
        """The momentum a^2 dx/dt of a particle per unit of its linear displacement today."""
        return a**2 * self.expansion(a) * self.growth(a) * self.growth_rate(a)

    def _growing_mode(self, a: float) -> float:
        """E(a) times the integral of da / (a E)^3 from 0 to a."""
        x = 0.5 * a * (_NODES + 1)
        return self.expansion(a) * 0.5 * a * float(_WEIGHTS @ (x / (self.omega_m + (1 - self.omega_m) * x**3)) ** 1.5)

    def particle_mass(self, spacing: float) -> float:
        """The mass in Msun/h of one particle among particles with this mean spacing in Mpc/h."""
        return self.omega_m * CRITICAL_DENSITY * spacing**3

    def power(self, k: np.ndarray) -> np.ndarray:
        """The linear power spectrum today, in (Mpc/h)^3, at wave numbers k in h/Mpc; 0 at k = 0.

        >>> Cosmology().power(np.array([0.0, 0.1])).round(-2).tolist()
        [0.0, 5600.0]
        """
        return _amplitude(self) * self._shape(k)

    def sigma(self, radius: float) -> float:
        """The linear rms contrast today in spheres of this radius."""
        return float(np.sqrt(_amplitude(self))) * self._unnormalised_sigma(radius)

    def _unnormalised_sigma(self, radius: float) -> float:
        k = np.geomspace(1e-5, 300 / radius, 4096)
        x = k * radius
        window = 3 * (np.sin(x) - x * np.cos(x)) / x**3
        return float(np.sqrt(np.trapezoid(k**3 * self._shape(k) * window**2, np.log(k)) / (2 * np.pi**2)))

    def _shape(self, k: np.ndarray) -> np.ndarray:
        safe = np.where(k > 0, k, 1.0)
        return np.where(k > 0, safe**self.n_s * self._transfer(safe) ** 2, 0.0)

    def _transfer(self, k: np.ndarray) -> np.ndarray:
        """The transfer function of Eisenstein & Hu (1998) without acoustic wiggles: their equations 26 and 28 to 31."""
        matter, baryons = self.omega_m * self.h**2, self.omega_b * self.h**2
        fraction = self.omega_b / self.omega_m
        horizon = 44.5 * np.log(9.83 / matter) / np.sqrt(1 + 10 * baryons**0.75)   # of sound, in Mpc
        alpha = 1 - 0.328 * np.log(431 * matter) * fraction + 0.38 * np.log(22.3 * matter) * fraction**2
        gamma = self.omega_m * self.h * (alpha + (1 - alpha) / (1 + (0.43 * k * self.h * horizon) ** 4))
        q = k * _BACKGROUND_TEMPERATURE**2 / gamma
        logarithm = np.log(2 * np.e + 1.8 * q)
        return logarithm / (logarithm + (14.2 + 731 / (1 + 62.5 * q)) * q**2)


@functools.lru_cache(maxsize=16)
def _amplitude(cosmology: Cosmology) -> float:
    return (cosmology.sigma8 / cosmology._unnormalised_sigma(8.0)) ** 2
