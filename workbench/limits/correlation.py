"""Covariance of a stationary field as a function of the lag on the lattice.

Rate, dispersion and the cost of tiles follow from the covariance matrix of a field, which is too large to store. A
stationary field needs only one number per lag, given here by models with few parameters, which can be fitted, or by a
table. Measured fields also contain white noise, called nugget in geostatistics. It is kept separate because in any basis
it adds exactly its variance to every component.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from workbench.arguments import number, positive, whole_number
from workbench.errors import WorkbenchError, briefly

NEGLIGIBLE = 1e-15   # a covariance, relative to that at distance 0
ROUNDING = 1e-9      # relative excess over the value at distance 0 that is accepted in a computed table
MANY, TABLE = 4000, 1500   # distances above which a Matern correlation is interpolated, and points of the table
FAR_WAVES = 4096     # directions in which the power of waves far beyond the lattice's is integrated
MOST_SCALED = 500.0  # a larger scaled distance has no correlation
NOT_ORTHOGONAL = 1e-6   # products of unit vectors that count as 0
SMOOTHEST = 30.0     # above it, a Matern correlation cannot be distinguished from a Gaussian


class Correlation(ABC):
    """The covariance of a stationary field of one to four axes; in most models, even in the lag along each axis.

    `signal` is the variance of the correlated part, `nugget` the variance of the added white noise.
    """

    signal: float
    nugget: float

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """How many axes the lattice has."""

    @abstractmethod
    def at(self, *lags: int | np.ndarray) -> np.ndarray:
        """The covariance without nugget at these lags in grid steps, one array per axis; arrays broadcast."""

    @property
    def even(self) -> bool:
        """Whether the covariance is even in the lag along each axis, as it is not where structures lie across the axes."""
        return True

    def power_at(self, *frequencies: np.ndarray) -> np.ndarray:
        """The power without nugget, up to a factor, at angular frequencies, one array per axis as of `np.ix_`.

        Only covariances that are not `even` need it.
        """
        raise NotImplementedError

    @property
    def variance(self) -> float:
        """The variance of a sample, including noise."""
        return self.signal + self.nugget

    def times(self, factor: float) -> Correlation:
        """The covariance of the field times the root of a factor."""
        changed = {"signal": self.signal * factor, "nugget": self.nugget * factor}
        return replace(self, **changed)   # type: ignore[type-var]

    @property
    def separable(self) -> bool:
        """Whether the covariance without nugget is a product of one factor per axis, as it always is for one axis."""
        return self.dimensions == 1

    def along(self, axis: int, length: int) -> np.ndarray:
        """The covariance without nugget at distances 0 to length - 1 along one axis."""
        axis = whole_number("axis", axis, 0, self.dimensions - 1)
        length = whole_number("length", length, least=1)
        return self.at(*(np.arange(length) if k == axis else 0 for k in range(self.dimensions)))

    def reach(self, axis: int, length: int) -> int:
        """How many of the first `length` lags along an axis have a covariance that is not negligible."""
        return int(np.flatnonzero(np.abs(self.along(axis, length)) > NEGLIGIBLE * self.signal)[-1]) + 1

    def _distances(self, lags: Sequence[int | np.ndarray]) -> list[np.ndarray]:
        """The absolute values of the lags, or the lags themselves where their signs matter."""
        if len(lags) != self.dimensions:
            raise WorkbenchError(f"lags must be {self.dimensions}, one for each axis; got {len(lags)}")
        return [np.abs(np.asarray(lag)) if self.even else np.asarray(lag) for lag in lags]


@dataclass(frozen=True)
class Autoregressive(Correlation):
    """Signal variance times rho^|lag| along each axis: the separable first-order autoregression.

    Without correlation it is white noise; without signal and nugget, a constant field.

    >>> Autoregressive(4.0, (0.5, 0.9), nugget=0.1).at(1, np.arange(3)).round(3).tolist()
    [2.0, 1.8, 1.62]
    """

    signal: float
    rhos: tuple[float, ...]
    """The correlation of neighbours along each axis; one number is one axis."""
    nugget: float = 0.0

    def __post_init__(self) -> None:
        _check_variances(self)
        object.__setattr__(self, "rhos", _per_axis("rhos", self.rhos))
        if not all(-1 < rho < 1 for rho in self.rhos):
            raise WorkbenchError(f"rhos must lie between -1 and 1, both excluded; got {self.rhos}")

    @property
    def dimensions(self) -> int:
        """How many axes the lattice has."""
        return len(self.rhos)

    @property
    def separable(self) -> bool:
        """True: the covariance is a product by definition."""
        return True

    def at(self, *lags: int | np.ndarray) -> np.ndarray:
        """The covariance without nugget at these lags in grid steps."""
        total = np.asarray(self.signal)
        for rho, lag in zip(self.rhos, self._distances(lags), strict=True):
            total = total * np.power(rho, lag)
        return total


@dataclass(frozen=True)
class Matern(Correlation):
    """The Matern family: isotropic up to a correlation length per direction, with adjustable smoothness.

    For smoothness nu and scaled distance r = |lag / length| the correlation is 2^(1 - nu) / Gamma(nu) x^nu K_nu(x) with
    x = sqrt(2 nu) r: exp(-r) for nu = 0.5. The field is differentiable once above 1, twice above 2. Lengths are those along
    the axes of the grid, or along other orthogonal directions (geometric anisotropy, as of fronts and filaments).

    >>> Matern(1.0, (10.0, 5.0), smoothness=1.5).at(np.array([0, 10, 0]), np.array([0, 0, 5])).round(6).tolist()
    [1.0, 0.483358, 0.483358]
    >>> across = Matern(1.0, (10.0, 5.0), 1.5, directions=((0.6, 0.8), (-0.8, 0.6)))
    >>> across.at(np.array([6, 6]), np.array([8, -8])).round(3).tolist()
    [0.483, 0.151]
    """

    signal: float
    lengths: tuple[float, ...]
    """The correlation length along each direction, in grid steps; one number is one axis."""
    smoothness: float
    nugget: float = 0.0
    directions: tuple[tuple[float, ...], ...] = ()
    """Orthogonal unit vectors, one for each length; without them, the axes of the grid."""

    def __post_init__(self) -> None:
        _check_variances(self)
        positive("signal", self.signal)
        lengths = _per_axis("lengths", self.lengths)
        object.__setattr__(self, "lengths", tuple(positive("lengths", length) for length in lengths))
        smoothness = number("smoothness", self.smoothness, 0.0, SMOOTHEST)
        object.__setattr__(self, "smoothness", positive("smoothness", smoothness))
        object.__setattr__(self, "directions", _orthogonal(self.directions, len(self.lengths)))

    @property
    def dimensions(self) -> int:
        """How many axes the lattice has."""
        return len(self.lengths)

    def at(self, *lags: int | np.ndarray) -> np.ndarray:
        """The covariance without nugget at these lags in grid steps."""
        squares: np.ndarray = np.zeros(())
        for length, lag in zip(self.lengths, self._along_directions(self._distances(lags)), strict=True):
            squares = squares + (lag / length) ** 2
        return self.signal * self._of(np.sqrt(2 * self.smoothness * squares))

    @property
    def even(self) -> bool:
        """Whether the directions are those of the axes."""
        return not self.directions

    def power_at(self, *frequencies: np.ndarray) -> np.ndarray:
        """The power without nugget, up to a factor: that of the continuous field at all waves that alias to these."""
        total: np.ndarray = np.asarray(self._power_of_far_waves())
        for shift in product((-2 * np.pi, 0.0, 2 * np.pi), repeat=self.dimensions):
            waves = self._along_directions([np.asarray(wave) + step for wave, step in zip(frequencies, shift, strict=True)])
            squares = sum((length * wave) ** 2 for length, wave in zip(self.lengths, waves, strict=True))
            total = total + (2 * self.smoothness + squares) ** -(self.smoothness + self.dimensions / 2)
        return total

    def _power_of_far_waves(self) -> float:
        """The same for waves beyond three times the highest frequency of an axis: an integral over directions."""
        from scipy.special import gamma

        toward = np.random.default_rng(0).standard_normal((self.dimensions, FAR_WAVES))
        toward /= np.hypot.reduce(toward)
        nearest, twice = 3 * np.pi / abs(toward).max(axis=0), 2 * self.smoothness
        parts = self._along_directions(list(toward))
        scaled = np.hypot.reduce([length * part for length, part in zip(self.lengths, parts, strict=True)])
        decay = scaled ** -(twice + self.dimensions) * nearest**-twice / twice
        sphere = 2 * np.pi ** (self.dimensions / 2) / gamma(self.dimensions / 2)
        return float(sphere * decay.mean() / (2 * np.pi) ** self.dimensions)

    def reach(self, axis: int, length: int) -> int:
        """How many lags along an axis have a covariance that is not negligible, whatever those along the others."""
        if not self.directions:
            return super().reach(axis, length)
        furthest = np.hypot.reduce([size * along[axis] for size, along in zip(self.lengths, self.directions, strict=True)])
        return Matern(self.signal, (float(furthest),), self.smoothness).reach(0, length)

    def _along_directions(self, vector: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The components of a vector along the directions."""
        if not self.directions:
            return vector
        zero = np.zeros(())
        return [sum((share * part for share, part in zip(along, vector, strict=True)), zero) for along in self.directions]

    def _of(self, x: np.ndarray) -> np.ndarray:
        """The correlation at scaled distances."""
        polynomials = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1 / 3, 1.0, 1.0)}
        if self.smoothness in polynomials:
            return np.asarray(np.polyval(polynomials[self.smoothness], x) * np.exp(-x))
        if x.size > MANY:
            return self._interpolated(x)
        from scipy.special import gamma, kve

        nu = self.smoothness
        with np.errstate(over="ignore", invalid="ignore"):
            values = 2 ** (1 - nu) / gamma(nu) * x**nu * kve(nu, x) * np.exp(-x)
        return np.where(np.isfinite(values), values, x < 1)   # the limits, where K_nu is not finite

    def _interpolated(self, x: np.ndarray) -> np.ndarray:
        """The same for many distances, from a table; accurate to 1e-9, and faster than Bessel functions."""
        from scipy.interpolate import CubicSpline

        positive = x[x > 0]
        if positive.size == 0:
            return np.ones(x.shape)
        ends = float(np.log(positive.min())), float(np.log(positive.max()))
        if ends[1] > np.log(MOST_SCALED) or ends[1] - ends[0] < 1e-3:
            ends = min(ends[0], float(np.log(MOST_SCALED)) - 1.0), float(np.log(MOST_SCALED))
        places = np.linspace(*ends, TABLE)
        spline = CubicSpline(places, np.log(self._of(np.exp(places))))
        logs = np.log(np.where(x > 0, x, np.exp(ends[0])))
        return np.where(x > 0, np.where(logs > ends[1], 0.0, np.exp(spline(np.minimum(logs, ends[1])))), 1.0)


@dataclass(frozen=True, eq=False)
class Sampled(Correlation):
    """A table of covariances at distances 0, 1, ... along each axis; zero beyond its end.

    A `centred` table has lag 0 in its middle, and so a covariance for either sign of a lag.

    >>> Sampled([2.0, 1.0, 0.25], nugget=0.1).at(np.arange(5)).tolist()
    [2.0, 1.0, 0.25, 0.0, 0.0]
    >>> Sampled([[0.0, 0.1, 0.5], [0.2, 1.0, 0.2], [0.5, 0.1, 0.0]], centred=True).at(1, np.array([-1, 0, 1])).tolist()
    [0.5, 0.1, 0.0]
    """

    values: np.ndarray = field(repr=False)
    nugget: float = 0.0
    centred: bool = False
    signal: float = field(init=False)

    def __post_init__(self) -> None:
        try:
            values = np.array(self.values, np.float64)
        except (TypeError, ValueError):
            raise WorkbenchError(f"values must be a finite table of 1 to 4 axes; got {briefly(self.values)}") from None
        if not (1 <= values.ndim <= 4 and values.size and np.isfinite(values).all()):
            raise WorkbenchError(f"values must be a finite table of 1 to 4 axes; got shape {values.shape}")
        if self.centred:
            _require_middle(values)
        here = float(values[tuple(length // 2 if self.centred else 0 for length in values.shape)])
        most = float(np.abs(values).max())
        if most > here * (1 + ROUNDING):
            raise WorkbenchError(f"values must be largest at distance 0; got {here:g} there and up to {most:g} elsewhere")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "signal", positive("the covariance at distance 0", here))
        _check_variances(self)

    @property
    def dimensions(self) -> int:
        """How many axes the lattice has."""
        return self.values.ndim

    def at(self, *lags: int | np.ndarray) -> np.ndarray:
        """The covariance without nugget at these lags in grid steps."""
        given, known = self._distances(lags), np.ones((), bool)   # type: Sequence[np.ndarray], np.ndarray
        places = [lag + points // 2 if self.centred else lag for lag, points in zip(given, self.values.shape, strict=True)]
        for place, points in zip(places, self.values.shape, strict=True):
            known = known & (place >= 0) & (place < points)
        inside = tuple(np.clip(place, 0, points - 1) for place, points in zip(places, self.values.shape, strict=True))
        return np.where(known, self.values[inside], 0.0)

    @property
    def even(self) -> bool:
        """Whether the table is not centred."""
        return not self.centred

    def power_at(self, *frequencies: np.ndarray) -> np.ndarray:
        """The power without nugget at these angular frequencies; at least a small share of the largest."""
        total: np.ndarray = self.values.astype(np.complex128)
        for wave, points in zip(frequencies, self.values.shape, strict=True):
            total = np.tensordot(total, np.exp(-1j * np.outer(np.arange(points) - points // 2, wave.ravel())), (0, 0))
        return np.maximum(total.real, NEGLIGIBLE * float(total.real.max()))

    def times(self, factor: float) -> Sampled:
        """The covariance of the field times the root of a factor."""
        return Sampled(self.values * factor, self.nugget * factor, self.centred)

    def reach(self, axis: int, length: int) -> int:
        """The number of lags in the table: the covariance may be larger off the axis than on it."""
        points = self.values.shape[axis]
        return min(points // 2 + 1 if self.centred else points, length)


@dataclass(frozen=True)
class Even(Correlation):
    """The mean of a covariance over the signs of the lags along all axes but the first."""

    whole: Correlation

    @property
    def signal(self) -> float:   # type: ignore[override]
        """The variance of the correlated part."""
        return self.whole.signal

    @property
    def nugget(self) -> float:   # type: ignore[override]
        """The variance of the white noise."""
        return self.whole.nugget

    @property
    def dimensions(self) -> int:
        """How many axes the lattice has."""
        return self.whole.dimensions

    def at(self, *lags: int | np.ndarray) -> np.ndarray:
        """The covariance without nugget at these lags."""
        first, *others = self._distances(lags)
        signs = product((1, -1), repeat=len(others))
        turned = [self.whole.at(first, *(sign * lag for sign, lag in zip(each, others, strict=True))) for each in signs]
        return np.asarray(sum(turned) / len(turned))

    def reach(self, axis: int, length: int) -> int:
        """How many lags along an axis have a covariance that is not negligible, whatever those along the others."""
        return self.whole.reach(axis, length)


def _check_variances(correlation: Correlation) -> None:
    for name in ("signal", "nugget"):
        object.__setattr__(correlation, name, number(name, getattr(correlation, name), 0.0, float(np.finfo(float).max)))


def _require_middle(values: np.ndarray) -> None:
    """Check that a table is the same for a lag and its negative, around its middle."""
    alike = np.allclose(values, np.flip(values), rtol=0, atol=ROUNDING * float(np.abs(values).max()))
    if not alike or not all(length % 2 for length in values.shape):
        raise WorkbenchError(
            "a centred table must have an odd number of lags along each axis, and the same value at a lag and at its "
            f"negative; got shape {values.shape}"
        )


def _orthogonal(directions: Sequence[Sequence[float]], axes: int) -> tuple[tuple[float, ...], ...]:
    """Orthogonal unit vectors; none where they are the axes."""
    try:
        vectors = np.asarray(directions, np.float64)
    except (TypeError, ValueError):
        vectors = np.empty(1)
    if vectors.size == 0:
        return ()
    if vectors.shape != (axes, axes) or not np.allclose(vectors @ vectors.T, np.eye(axes), rtol=0, atol=NOT_ORTHOGONAL):
        got = briefly(directions)
        raise WorkbenchError(f"directions must be {axes} orthogonal unit vectors of {axes} numbers; got {got}")
    return () if np.array_equal(vectors, np.eye(axes)) else tuple(map(tuple, vectors.tolist()))


def _per_axis(name: str, given: float | Sequence[float]) -> tuple[float, ...]:
    """One number per axis, for one to four axes."""
    try:
        values = np.atleast_1d(np.asarray(given, np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not 1 <= values.size <= 4:
        raise WorkbenchError(f"{name} must be one number for each of 1 to 4 axes; got {given!r}")
    return tuple(values.tolist())
