"""A small partial differential equation in which errors grow: that of Kuramoto and Sivashinsky, which is chaotic.

u_t = -u u_x - u_xx - u_xxxx on a periodic line, by the exponential Runge-Kutta method of fourth order of Cox and Matthews
in the form of Kassam and Trefethen (2005, SIAM J. Sci. Comput. 26, 1214). On a line of length 22, a small error grows by a
factor e in about 21 units of time (Lyapunov exponent 0.048).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench import backend
from workbench.arguments import positive, whole_number
from workbench.backend import Array
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.stage import Stage
from workbench.propagation.tolerance import within

CONTOUR = 32   # points of the circle over which the coefficients are averaged


def kuramoto_sivashinsky(
    points: int = 64,
    length: float = 22.0,
    time: float = 200.0,
    snapshots: int = 10,
    step: float = 0.25,
    share: float = 0.01,
) -> Pipeline:
    """Time integration of a chaotic equation from `points` values on a line: sites `t=20`, `t=40`, ... .

    >>> pipeline = kuramoto_sivashinsky(points=32, time=2.0, snapshots=2)
    >>> pipeline.sites
    ['input', 't=1', 't=2']
    """
    points = whole_number("points", points, 8, 2**16)
    snapshots = whole_number("snapshots", snapshots, 1, 10_000)
    every = positive("time", time) / snapshots
    steps = max(1, math.ceil(every / positive("step", step)))
    line = _Line(points, positive("length", length), every / steps, steps)
    digits = 4 if snapshots < 1000 else 6   # that tell the times apart
    stages = [Stage(f"t={number * every:.{digits}g}", line.advance) for number in range(1, snapshots + 1)]
    return Pipeline(stages, tolerance=within(share), name="Kuramoto-Sivashinsky")


@dataclass(frozen=True)
class _Line:
    """A periodic line, and the coefficients of a step in time."""

    points: int
    length: float
    step: float
    steps: int

    @cached_property
    def _coefficients(self) -> tuple[np.ndarray, ...]:
        k = 2 * np.pi * np.fft.rfftfreq(self.points, self.length / self.points)
        growth, h = k**2 - k**4, self.step
        circle = np.exp(1j * np.pi * (np.arange(1, CONTOUR + 1) - 0.5) / CONTOUR)
        z = h * growth[:, None] + circle
        half = h * ((np.exp(z / 2) - 1) / z).mean(axis=1).real
        one = h * ((-4 - z + np.exp(z) * (4 - 3 * z + z**2)) / z**3).mean(axis=1).real
        two = h * ((2 + z + np.exp(z) * (-2 + z)) / z**3).mean(axis=1).real
        three = h * ((-4 - 3 * z - z**2 + np.exp(z) * (4 - z)) / z**3).mean(axis=1).real
        derivative = -0.5j * np.where(np.arange(len(k)) == self.points / 2, 0.0, k)   # no sign at the Nyquist wave number
        return np.exp(h * growth), np.exp(h * growth / 2), half, one, two, three, derivative

    def advance(self, values: Array) -> Array:
        """The values some steps later."""
        xp = backend.namespace(values)
        whole, part, half, one, two, three, derivative = (xp.asarray(each) for each in self._coefficients)

        def forcing(waves: Array) -> Array:
            return derivative * xp.fft.rfft(xp.fft.irfft(waves, self.points) ** 2)

        v = xp.fft.rfft(values.astype(np.float64))
        for _ in range(self.steps):
            start = forcing(v)
            a = part * v + half * start
            first = forcing(a)
            b = part * v + half * first
            second = forcing(b)
            c = part * a + half * (2 * second - start)
            v = whole * v + one * start + 2 * two * (first + second) + three * forcing(c)
        return xp.fft.irfft(v, self.points)
