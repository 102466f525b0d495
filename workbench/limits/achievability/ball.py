"""The probability that a random Gaussian codeword lies in the distortion ball of a source vector, for many vectors.

The codeword Y has independent components. The probability depends on x only through its energy in each class of components
of equal variance. The squared distance is a noncentral sum of squares, and P[|x - Y|^2 <= room] is its lower tail.
`tails.SumOfSquares` computes one such tail, but an expectation over x needs thousands with different shifts and room. So
this module computes the same integral along the same kind of parabola, vectorised. The parabola avoids all singularities:
the poles of a lower tail are all on the left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import WorkbenchError

ACCURACY = 1e-7      # of a sum, relative, before its last doubling, which improves it by far
FINEST = 2**13       # nodes
PATHS = ((1.0, 9.0), (0.25, 18.0), (0.0625, 36.0), (0.0, 72.0))   # curvature and length; mostly the first suffices
CHUNK = 2**17        # numbers processed together, to fit the cache


@dataclass(frozen=True, eq=False)
class Ball:
    """Gaussian codewords with these variances and counts, and the squared distance allowed, `room`."""

    variances: np.ndarray   # of the codeword; 0 in components left out
    counts: np.ndarray
    room: float

    def log_hit(self, energies: np.ndarray) -> np.ndarray:
        """The logarithm of P[|x - Y|^2 <= room] for each row of energies of x; minus infinity if it is impossible.

        >>> interval = Ball(np.array([1.0]), np.array([1.0]), 1.0)   # P[|Z - 1| < 1]
        >>> interval.log_hit(np.array([[1.0]])).round(9).tolist()
        [-0.739715093]
        """
        described = self.variances > 0
        rooms = self.room - energies[:, ~described].sum(axis=1)
        result = np.full(len(energies), -np.inf)
        able = rooms > 0
        result[able] = self._of_described(energies[np.ix_(able, described)], rooms[able], described)
        return result

    def slopes(self, energies: np.ndarray) -> np.ndarray:
        """Minus the derivative of ln P by the energy of each class, to first order, at these energies of x."""
        described = self.variances > 0
        room = np.atleast_1d(self.room - energies[~described].sum())
        saddle = _saddle(energies[None, described], room, self.variances[described], self.counts[described])[0]
        return np.asarray(saddle / (1 + 2 * saddle * self.variances))

    def _of_described(self, energies: np.ndarray, rooms: np.ndarray, described: np.ndarray) -> np.ndarray:
        """The logarithm of the probability over the components with nonzero codeword variance."""
        variances, counts = self.variances[described], self.counts[described]
        saddles = _saddle(energies, rooms, variances, counts)[:, None]
        growth = 1 + 2 * saddles * variances
        path = _Paths(
            counts=counts,
            poles=2 * saddles * variances / growth,
            pulls=saddles * energies / growth**2,
            turning=saddles[:, 0] * rooms,
        )
        top = -0.5 * np.log1p(2 * saddles * variances) @ counts - (saddles * energies / growth).sum(axis=1) + path.turning
        return np.asarray(top + path.log_integrals())


@dataclass(frozen=True, eq=False)
class _Paths:
    """The integrals of exp(exponent) / (2 pi i (1 + step)) upwards through step 0, in units of each saddle point.

    exponent = sum of -counts/2 ln(1 + poles step) - pulls step / (1 + poles step), plus turning step.
    """

    counts: np.ndarray
    poles: np.ndarray     # (vectors, classes), in [0, 1)
    pulls: np.ndarray     # (vectors, classes)
    turning: np.ndarray   # (vectors,)

    def log_integrals(self) -> np.ndarray:
        """The logarithms of the integrals."""
        second = 0.5 * self.poles**2 @ self.counts + 2 * (self.pulls * self.poles).sum(axis=1) + 1
        third = -(self.poles**3) @ self.counts - 6 * (self.pulls * self.poles**2).sum(axis=1) - 2
        width = 1 / np.sqrt(second)
        steepest = third * width / (6 * second)   # curvature of the path of steepest descent
        totals = np.full(width.size, np.nan)
        for share, reach in PATHS:
            rows = np.flatnonzero(np.isnan(totals))
            totals[rows] = self._trapezoids(rows, width, share * steepest, reach)
        if np.isnan(totals).any():
            raise WorkbenchError("the probability of a ball could not be computed: the variances span too many magnitudes")
        return np.asarray(np.log(totals * width / np.pi))

    def _trapezoids(self, rows: np.ndarray, width: np.ndarray, lean: np.ndarray, reach: float) -> np.ndarray:
        """The integrals over y up to `reach`, with doubled nodes until they converge; NaN for those that do not."""
        result = np.full(rows.size, np.nan)
        open_ = np.flatnonzero(np.abs(self._heights(rows, np.array([reach]), width, lean)) < 0.01 * ACCURACY)
        nodes, rows = round(reach), rows[open_]
        spacing = reach / nodes
        sums = 0.5 + self._heights(rows, np.arange(1, nodes + 1) * spacing, width, lean)   # the height at step 0 is 1
        while open_.size and nodes <= FINEST:
            between = self._heights(rows, (np.arange(nodes) + 0.5) * spacing, width, lean)
            settled = np.abs(between - sums) <= ACCURACY * np.abs(sums)
            sums, nodes, spacing = sums + between, 2 * nodes, spacing / 2
            result[open_[settled]] = sums[settled] * spacing
            open_, rows, sums = open_[~settled], rows[~settled], sums[~settled]
        return np.where(result > 0, result, np.nan)

    def _heights(self, rows: np.ndarray, y: np.ndarray, width: np.ndarray, lean: np.ndarray) -> np.ndarray:
        """The sums of the integrands over y, for each of the rows."""
        sums = np.empty(rows.size)
        at_once = max(1, CHUNK // (y.size * self.counts.size))
        for first in range(0, rows.size, at_once):
            part = rows[first : first + at_once]
            leaning = lean[part, None] * y
            step = width[part, None] * (1j * y + leaning * y)
            exponent = self.turning[part, None] * step - np.log(1 + step)
            exponent += self._of_classes(self.poles[part], self.pulls[part], step)
            with np.errstate(over="ignore", invalid="ignore"):
                sums[first : first + at_once] = (np.exp(exponent) * (1 - 2j * leaning)).real.sum(axis=1)
        return sums

    def _of_classes(self, poles: np.ndarray, pulls: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The contribution of the classes to the exponent, in real arithmetic, which is several times faster."""
        real = 1 + poles[:, None, :] * step.real[:, :, None]
        imag = poles[:, None, :] * step.imag[:, :, None]
        square = real**2 + imag**2
        logs = 0.5 * (np.log(square) @ self.counts) + 1j * (np.arctan2(imag, real) @ self.counts)
        real /= square
        imag /= square
        inverse = (real @ pulls[:, :, None])[:, :, 0] - 1j * (imag @ pulls[:, :, None])[:, :, 0]
        return np.asarray(-0.5 * logs - step * inverse)


def _saddle(energies: np.ndarray, rooms: np.ndarray, variances: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The saddle point s of each integral, where 1/s plus the mean distance, tilted by exp(-s .), equals the room.

    Safeguarded Newton iterations in ln s and the logarithm of the mean; an approximate result is enough, as the integral
    does not depend on the path.
    """
    squares = (energies / (4 * variances**2)).sum(axis=1)
    half = 0.5 * counts.sum() + 1
    high = np.log(half + np.sqrt(half**2 + 4 * rooms * squares)) - np.log(2 * rooms)   # the limit of large variances
    low = -np.log(rooms)                                                              # the limit of zero variances
    place = high
    for _ in range(60):
        s = np.exp(place)[:, None]
        free = 1 / (1 + 2 * s * variances)
        mean = (free * variances) @ counts + (energies * free**2).sum(axis=1) + 1 / s[:, 0]
        fall = 2 * (free * variances) ** 2 @ counts + 4 * (energies * free**3 * variances).sum(axis=1) + 1 / s[:, 0] ** 2
        excess = np.log(mean / rooms)
        low, high = np.where(excess > 0, place, low), np.where(excess > 0, high, place)
        newton = place + excess * mean / (s[:, 0] * fall)
        moved = np.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
        settled = np.abs(moved - place).max(initial=0.0) < 1e-5
        place = moved
        if settled:
            break
    return np.asarray(np.exp(place))
