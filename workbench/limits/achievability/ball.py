"""How likely a random Gaussian codeword serves a source vector: the content of a ball, for many vectors at once.

The codeword Y has independent components; the vector x enters by its energy in each class of components of equal variance.
The squared distance is a sum of shifted squares, and P[|x - Y|^2 <= room] its lower tail. `tails.SumOfSquares` computes one
such tail; an expectation over x needs thousands, which differ in shifts and room only. So this is the same integral, along
the same kind of parabola, with all vectors side by side. It bends around every singularity: the exponent is that of a
lower tail, whose poles are all on the left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import WorkbenchError

ACCURACY = 1e-7      # of a sum, relative; its last doubling makes it better by far
FINEST = 2**13       # nodes
PATHS = ((1.0, 9.0), (0.25, 18.0), (0.0625, 36.0), (0.0, 72.0))   # how much they lean, how far they go; most need the first
CHUNK = 2**17        # numbers at a time: what fits the cache


@dataclass(frozen=True, eq=False)
class Ball:
    """Codewords with these variances, so many components of each, that serve within a squared distance of `room`."""

    variances: np.ndarray   # of the codeword; 0 where it says nothing
    counts: np.ndarray
    room: float

    def log_hit(self, energies: np.ndarray) -> np.ndarray:
        """The logarithm of P[|x - Y|^2 <= room] for each row of energies of x; minus infinity where no codeword can serve.

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
        """How fast ln P falls, to first order, with each class's energy, where x has these energies."""
        described = self.variances > 0
        room = np.atleast_1d(self.room - energies[~described].sum())
        saddle = _saddle(energies[None, described], room, self.variances[described], self.counts[described])[0]
        return np.asarray(saddle / (1 + 2 * saddle * self.variances))

    def _of_described(self, energies: np.ndarray, rooms: np.ndarray, described: np.ndarray) -> np.ndarray:
        """The logarithm, given only the components that codewords speak of."""
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
        """Their logarithms."""
        second = 0.5 * self.poles**2 @ self.counts + 2 * (self.pulls * self.poles).sum(axis=1) + 1
        third = -(self.poles**3) @ self.counts - 6 * (self.pulls * self.poles**2).sum(axis=1) - 2
        width = 1 / np.sqrt(second)
        steepest = third * width / (6 * second)   # how much the path of steepest descent leans
        totals = np.full(width.size, np.nan)
        for share, reach in PATHS:
            rows = np.flatnonzero(np.isnan(totals))
            totals[rows] = self._trapezoids(rows, width, share * steepest, reach)
        if np.isnan(totals).any():
            raise WorkbenchError("the content of a ball could not be computed: variances of too many magnitudes")
        return np.asarray(np.log(totals * width / np.pi))

    def _trapezoids(self, rows: np.ndarray, width: np.ndarray, lean: np.ndarray, reach: float) -> np.ndarray:
        """The integrals over y up to `reach`, with twice the nodes until they settle; NaN for those that do not."""
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
        """What the classes add to the exponent; in real numbers, which are several times as fast."""
        real = 1 + poles[:, None, :] * step.real[:, :, None]
        imag = poles[:, None, :] * step.imag[:, :, None]
        square = real**2 + imag**2
        logs = 0.5 * (np.log(square) @ self.counts) + 1j * (np.arctan2(imag, real) @ self.counts)
        real /= square
        imag /= square
        inverse = (real @ pulls[:, :, None])[:, :, 0] - 1j * (imag @ pulls[:, :, None])[:, :, 0]
        return np.asarray(-0.5 * logs - step * inverse)


def _saddle(energies: np.ndarray, rooms: np.ndarray, variances: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Where the exponent of each integral is stationary: 1/s + the mean of the distance, tilted by exp(-s .), is the room.

    Newton's method in ln s and the logarithm of the mean, kept between bounds; near is enough, as any path will do.
    """
    squares = (energies / (4 * variances**2)).sum(axis=1)
    half = 0.5 * counts.sum() + 1
    high = np.log(half + np.sqrt(half**2 + 4 * rooms * squares)) - np.log(2 * rooms)   # where the variances are large
    low = -np.log(rooms)                                                              # and where they are nothing
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
