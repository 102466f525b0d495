"""What is learned of a field before anything is compressed: samples of prediction errors, and entropies of their numbers.

Codecs for fields predict each value from others and code the prediction error, rounded by the bound. Which values they
predict from is imitated at a few thousand random places. An interpolating codec refines a grid by a factor of two along one
axis after the other; each place is drawn with the stride and the axis in the shares in which they occur, so that one
histogram is that of the whole field. What the codec predicts from are decoded values, so their errors are imitated by
uniform noise within the bound: without it, entropies at large bounds are far too small.

Coarse levels of the grid hold few values, but at large bounds nearly all that is left to code. So they get more samples
than their share, and every sample has the weight of the values for which it stands.

A wavelet codec is imitated by a transform of whole patches (`patches.py`). Samples are taken once for each field; a bound
then costs a few passes over them.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from workbench.bounds.prediction.patches import Coefficients, coefficients
from workbench.data import Field

PLACES = 6144          # of each sample: entropies below 8 bits are then accurate to about a percent
FEWEST, SHARE = 2048, 128   # but fewer in small fields, of which one value in so many is looked at
WINDOWS = 256
FEW = 1024             # to choose between orders of axes
BLOCKS = 192           # of 4 points along each axis
MOST_NUMBER = 1 << 20  # a rounded prediction error beyond it counts as this: the codec stores such values otherwise
LEVELS = 6             # of grid refinement that are told apart,
FIRST_LEVELS = 2       # and to choose between orders of axes
WINDOWS_TOLD = (0.1, 0.5, 0.9)   # quantiles of the variance in windows: calm, usual and stormy ones
SEED = 20_260


@dataclass(eq=False)
class Errors:
    """Prediction errors at sampled places, the noise that a bound of 1 adds, and the weights, which add up to one.

    `beside` has three rows: errors at some of the places, those of the values that a codec predicts next to them, and the
    weights of these pairs.
    """

    here: np.ndarray
    beside: np.ndarray
    noise: np.ndarray
    weight: np.ndarray

    @functools.cached_property
    def sizes(self) -> tuple[float, float, float]:
        """The median, the 90th and the 99th percentile of their size."""
        size = np.abs(self.here)
        order = np.argsort(size)
        places = np.searchsorted(np.cumsum(self.weight[order]), (0.5, 0.9, 0.99))
        middle, far, farther = size[order[np.minimum(places, len(order) - 1)]]
        return float(middle), float(far), float(farther)

    @functools.cached_property
    def exact(self) -> float:
        """The share of errors that are zero."""
        return float((self.here == 0) @ self.weight)


class Survey:
    """Samples of a field, each taken when it is first needed.

    >>> survey = Survey(Field(np.sin(np.arange(4096.0)).reshape(64, 64)))
    >>> survey.interpolation[0].here.shape
    (2048,)
    """

    def __init__(self, field: Field, valid: np.ndarray | None = None) -> None:
        values = field.values
        found = field.valid if valid is None else valid
        valid = None if bool(found.all()) else found
        self.shape = tuple(n for n in values.shape if n > 1) or (1,)
        self.size = values.size
        self.valid_share = 1.0 if valid is None else float(valid.mean())
        self._values = values.reshape(self.shape)
        self._valid = None if valid is None else valid.reshape(self.shape)
        self._steps = [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        self._flat = self._values.reshape(-1)
        self._rng = np.random.default_rng(SEED)
        self.places = min(max(self.size // SHARE, FEWEST), PLACES)

    @functools.cached_property
    def values(self) -> np.ndarray:
        """Values at random places."""
        return self._at(self._places([0] * len(self.shape)))

    @functools.cached_property
    def interpolation(self) -> tuple[Errors, Errors]:
        """Cubic and linear interpolation, refining the axes in the order, forwards or backwards, of smaller errors."""
        axes = tuple(range(len(self.shape)))
        orders = (axes, axes[::-1]) if len(axes) > 1 else (axes,)
        sizes = [self._interpolated(order, FEW, FIRST_LEVELS)[0].sizes[0] for order in orders]
        return self._interpolated(orders[int(np.argmin(sizes))], self.places)

    @functools.cached_property
    def deviation(self) -> float:
        """The standard deviation of the values."""
        return float(self.values.std())

    @functools.cached_property
    def reach(self) -> float:
        """The range of the values that were sampled."""
        return float(np.ptp(self.values))

    @functools.cached_property
    def corners(self) -> np.ndarray:
        """The values of unit cells, one row for each corner; the first is the one that is predicted."""
        places = self._places([1] * len(self.shape))
        shifts = (np.dot(shift, self._steps) for shift in itertools.product((0, 1), repeat=len(self.shape)))
        return np.stack([self._at(np.maximum(places - shift, 0)) for shift in shifts])

    @functools.cached_property
    def variances(self) -> np.ndarray:
        """The variance in windows of up to 7 points along each axis, thinned out; for four axes, of the last three."""
        inside = np.zeros(1, np.int64)
        margin = []
        for axis, (points, step) in enumerate(zip(self.shape, self._steps, strict=True)):
            side = 1 if len(self.shape) == 4 and axis == 0 else min(7, points)
            shifts = np.arange(0, side, 2) - (side - 1) // 2
            margin.append((side + 1) // 2)
            inside = (inside[:, None] + shifts * step).reshape(-1)
        places = np.clip(self._places(margin, WINDOWS)[:, None] + inside, 0, self.size - 1)
        return self._at(places).var(axis=1)

    @functools.cached_property
    def storminess(self) -> np.ndarray:
        """The standard deviation in calm, usual and stormy windows."""
        return np.sqrt(np.quantile(self.variances, WINDOWS_TOLD))

    @functools.cached_property
    def step(self) -> float:
        """The 90th percentile of the change from one value to the next."""
        return float(np.quantile(np.abs(self.corners[0] - self.corners[1]), 0.9))

    @functools.cached_property
    def blocks(self) -> np.ndarray:
        """Blocks of 4 points along each axis, stacked along the first."""
        shape, steps = self.shape, self._steps
        count = int(BLOCKS * (4.0 ** (3 - len(shape)) if len(shape) > 1 else 8))
        rng = self._rng
        corner = np.zeros(count, np.int64)
        for points, step in zip(shape, steps, strict=True):
            corner += 4 * rng.integers(0, -(-points // 4), count) * step
        inside = np.zeros((1,), np.int64)
        shifts = [np.arange(4) * step for step in steps]
        for shift in shifts:
            inside = (inside[:, None] + shift[None, :]).reshape(-1)
        places = np.minimum(corner[:, None] + inside[None, :], self.size - 1)
        return np.ascontiguousarray(self._flat[places]).reshape(count * 4, *[4] * (len(shape) - 1))

    @functools.cached_property
    def wavelets(self) -> Coefficients:
        """The wavelet coefficients of patches."""
        return coefficients(self._values, self._rng)

    def _interpolated(self, axes: tuple[int, ...], total: int, levels: int = LEVELS) -> tuple[Errors, Errors]:
        """The errors of cubic and linear interpolation at so many places, the axes refined in this order."""
        shares, choices = [], []
        for level in range(levels):
            for turn, axis in enumerate(axes):
                if self.shape[axis] > 2 << level:
                    shares.append(2.0**turn / 2.0 ** (len(axes) * (level + 1)))
                    choices.append((axis, 1 << level))
        if not choices:
            nothing = Errors(np.zeros(1), np.array([[0.0], [0.0], [1.0]]), np.zeros(1), np.ones(1))
            return nothing, nothing
        drawn = np.sqrt(shares)
        ends = np.floor(total * np.cumsum(drawn) / drawn.sum() + 0.5).astype(int)
        counts = np.diff(ends, prepend=0)
        held = sum(share for share, count in zip(shares, counts, strict=True) if count)
        uniform = self._rng.uniform(-1, 1, (4, total)).astype(np.float32)
        halves = 0.5 * (uniform[0] + uniform[1])
        noise = 0.5625 * (uniform[0] + uniform[1]) - 0.0625 * (uniform[2] + uniform[3])
        parts = []
        for (axis, stride), share, count, end in zip(choices, shares, counts, ends, strict=True):
            if not count:
                continue
            step, wide = stride * self._steps[axis], self.shape[axis] > 8 * stride
            margin = [(3 if wide else 1) * stride if other == axis else 0 for other in range(len(self.shape))]
            places = self._places(margin, count)
            here, some = self._errors(places, step, wide), places[: max(count // 4, 1)]
            beside = self._errors(np.where(some + 5 * step < self.size, some + 2 * step, some), step, wide)
            if not wide:
                noise[end - count : end] = halves[end - count : end]
            weights = np.full(count, share / (held * count)), np.full(len(some), share / (held * len(some)))
            parts.append((*here, *beside, here[0][: len(some)], here[1][: len(some)], *weights))
        cubic, linear, *others, weight, of_pairs = (np.concatenate([part[place] for part in parts]) for place in range(8))
        beside = np.stack([others[2], others[0], of_pairs]), np.stack([others[3], others[1], of_pairs])
        return Errors(cubic, beside[0], noise, weight), Errors(linear, beside[1], halves, weight)

    def _errors(self, places: np.ndarray, step: int, wide: bool) -> tuple[np.ndarray, np.ndarray]:
        """The errors of cubic and of linear interpolation between places so far apart."""
        def at(shift: int) -> np.ndarray:
            return self._at(places + shift * step)

        here, sides = at(0), at(-1) + at(1)
        linear = here - 0.5 * sides
        return (here - 0.5625 * sides + 0.0625 * (at(-3) + at(3)) if wide else linear), linear

    def _places(self, margin: list[int], wanted: int | None = None) -> np.ndarray:
        """Random places at least so far from the ends of each axis, as indices into the flat field."""
        rng, count = self._rng, self.places if wanted is None else wanted
        places = np.zeros(count, np.int64)
        for axis, (points, step) in enumerate(zip(self.shape, self._steps, strict=True)):
            edge = min(margin[axis], (points - 1) // 2)
            places += rng.integers(edge, max(points - edge, edge + 1), count) * step
        if self._valid is not None:
            usable = self._valid.reshape(-1)[places]
            if usable.any():
                places = rng.choice(places[usable], count)
        return places

    def _at(self, places: np.ndarray) -> np.ndarray:
        found = self._flat[places].astype(np.float64)
        return np.where(np.isfinite(found), found, 0.0) if self._valid is not None else found


def rounded(errors: np.ndarray, limit: float) -> np.ndarray:
    """The numbers that a codec codes: errors in units of twice the limit."""
    with np.errstate(over="ignore"):
        return np.clip(np.rint(errors * (0.5 / limit)), -MOST_NUMBER, MOST_NUMBER).astype(np.int64)


def entropy(numbers: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The entropy in bits, with the correction of Miller and Madow for the numbers that a sample misses.

    Weights add up to one; without them, all numbers count alike.

    >>> round(entropy(np.arange(4).repeat(1000)), 2)
    2.0
    """
    weight = np.full(numbers.size, 1 / numbers.size) if weights is None else weights
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    kind = numbers - low if span <= 1 << 14 else np.unique(numbers, return_inverse=True)[1]
    share, squares = np.bincount(kind, weight), np.bincount(kind, weight * weight)
    there = share > 0
    share, squares = share[there], squares[there]
    missed = float((squares / share).sum() - (weight * weight).sum()) / (2 * math.log(2))
    return float(-(share * np.log2(share)).sum()) + missed
