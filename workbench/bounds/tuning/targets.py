"""What must hold of decoded data: a ratio, a PSNR, a spectrum, halos, or a figure of one's own.

A target turns an attempt into one number, and says how much room there is between this number and what is required. Room is
a difference of logarithms where that is natural, because it then changes about linearly with the logarithm of the bound,
and a search needs few steps. A target is met when the room is not negative. `stop` is the room that is left unused rather
than searching on: a ratio of 20 is answered by 20 to 20.2.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from workbench.arguments import number, positive, whole_number
from workbench.bounds.tuning.attempt import Attempt
from workbench.bounds.tuning.guides import Expected, Known, power_law, power_of_waves, similarity
from workbench.clusters import KeepClusters, friends_of_friends
from workbench.clusters.friends import Unit, absolute_linking_length
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.metrics import mass_function, worst_deviation
from workbench.metrics.similarity import WINDOW
from workbench.run.chunked_field import ChunkedField

Source = Particles | Field | ChunkedField

DECIBEL = math.log(10) / 20   # of room, in natural logarithms of the rms error
MOST_DB = 400.0


class Target(ABC):
    """What must hold of decoded data."""

    figure: ClassVar[str]                # the name of the number that it measures
    precision: ClassVar[float] = 0.02    # of the bound, as a share, where a jump leaves nothing better
    rises: ClassVar[bool] = False        # whether room grows with the bound, as with a ratio
    steepness: ClassVar[float] = 1.0     # the usual change of room for each e-fold of the bound
    predictable: bool = True             # whether `expected` says anything about codecs that were not tried
    in_order: bool = True                # whether finer bounds can be taken to meet what a bound meets

    @property
    @abstractmethod
    def stop(self) -> float:
        """The room with which a search is content; zero where only a narrow bracket ends it."""

    @abstractmethod
    def value(self, attempt: Attempt) -> float:
        """The number that the target is about."""

    @abstractmethod
    def room(self, value: float) -> float:
        """How far this number is on the right side; not negative when the target is met."""

    @abstractmethod
    def __str__(self) -> str:
        """The target in words."""

    @property
    def subject(self) -> Any:
        """What is measured: targets with equal subjects have the same figure."""
        return self

    def slack(self, value: float) -> float:
        """How far this number is on the right side of the limit, in its own unit; the room, where there is no limit."""
        return self.room(value)

    def expected(self, known: Known) -> Expected:
        """The room that is expected for each limit. Its shape matters: a search corrects its level at each compression."""
        return power_law(known, self.steepness)

    def require(self, data: Source) -> None:
        """Refuse data that this target makes no sense for."""
        if isinstance(data, ChunkedField):
            raise WorkbenchError(
                "targets of fields in parts are wb.Ratio(...), wb.PSNR(...), wb.SSIM(...) and wb.All of them, which add up "
                f"over parts; got {self}: search on a part in memory, then compare the whole"
            )

    def for_data(self, data: Source) -> Target:
        """The target with what it needs to know of the original."""
        return self


class AtLeast(Target):
    """A figure of the archive or of its report that must be at least some number."""

    least: float

    @property
    def subject(self) -> Any:
        """The figure, which is the same for every limit."""
        return type(self)

    def slack(self, value: float) -> float:
        """How much more it is."""
        return value - self.least


@dataclass(frozen=True)
class Ratio(AtLeast):
    """The archive is at least `least` times smaller than the data; searched until it is at most `tolerance` more than that.

    >>> Ratio(20).room(21) > 0 > Ratio(20).room(19.9)
    True
    """

    least: float
    tolerance: float = 0.01
    figure: ClassVar[str] = "ratio"
    precision: ClassVar[float] = 0.003
    rises: ClassVar[bool] = True
    steepness: ClassVar[float] = 0.4

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", positive("Ratio(least)", self.least))
        object.__setattr__(self, "tolerance", number("tolerance", self.tolerance, 1e-6, 1.0))

    @property
    def stop(self) -> float:
        """The tolerance, as a difference of logarithms."""
        return math.log1p(self.tolerance)

    def value(self, attempt: Attempt) -> float:
        """How many times smaller the archive is, everything included."""
        return attempt.archive.ratio

    def require(self, data: Source) -> None:
        """All data have a ratio."""

    def room(self, value: float) -> float:
        """The logarithm of the ratio over the required one."""
        return math.log(value / self.least)

    def expected(self, known: Known) -> Expected:
        """From the expected ratio."""
        return lambda limits: np.log(known.size(limits) / self.least)

    def __str__(self) -> str:
        return f"a ratio of at least {self.least:g}"


@dataclass(frozen=True)
class PSNR(AtLeast):
    """The peak signal-to-noise ratio is at least `least` dB; searched until it is at most `tolerance` dB more.

    The peak is the range of a field's values, or the longest side of the particles' box.

    >>> print(PSNR(60))
    a PSNR of at least 60 dB
    """

    least: float
    tolerance: float = 0.1
    figure: ClassVar[str] = "psnr"
    precision: ClassVar[float] = 0.003

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", number("PSNR(least)", self.least, -MOST_DB, MOST_DB))
        object.__setattr__(self, "tolerance", number("tolerance", self.tolerance, 1e-4, 100.0))

    @property
    def stop(self) -> float:
        """The tolerance, as a difference of logarithms of the error."""
        return self.tolerance * DECIBEL

    def require(self, data: Source) -> None:
        """All data have a PSNR."""

    def value(self, attempt: Attempt) -> float:
        """The PSNR of the report."""
        return float(attempt.report["psnr"])

    def room(self, value: float) -> float:
        """The excess, as a logarithm of the error."""
        return (value - self.least) * DECIBEL

    def expected(self, known: Known) -> Expected:
        """From the expected error."""
        return lambda limits: math.log(known.peak) - np.log(known.noise(limits)) - self.least * DECIBEL

    def __str__(self) -> str:
        return f"a PSNR of at least {self.least:g} dB"


@dataclass(frozen=True)
class SSIM(AtLeast):
    """The structural similarity is at least `least`; `tolerance` is the share of the allowed loss that may stay unused.

    >>> SSIM(0.99).room(0.995) > 0
    True
    """

    least: float
    tolerance: float = 0.1
    figure: ClassVar[str] = "ssim"

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", positive("SSIM(least)", self.least))
        if not self.least < 1:
            raise WorkbenchError(f"SSIM(least) must be less than 1, which only exact data have; got {self.least!r}")
        object.__setattr__(self, "tolerance", number("tolerance", self.tolerance, 1e-3, 0.9))

    @property
    def stop(self) -> float:
        """The tolerance, as a difference of logarithms."""
        return -0.5 * math.log1p(-self.tolerance)

    def require(self, data: Source) -> None:
        """Refuse data without windows."""
        sides = [] if isinstance(data, Particles) else [n for n in data.shape if n > 1]
        if len(sides) < 2 or min(sides[-3:]) < WINDOW:
            raise WorkbenchError(f"SSIM needs a field with at least {WINDOW} points along two axes; got {data!r}")

    def value(self, attempt: Attempt) -> float:
        """The SSIM of the report; NaN where no window is free of invalid values."""
        return float(attempt.report.figures.get("ssim", math.nan))

    def room(self, value: float) -> float:
        """Half the logarithm of the loss allowed over the loss, since the loss grows as the squared error."""
        return 0.5 * (math.log1p(-self.least) - _log(1 - value))

    def expected(self, known: Known) -> Expected:
        """From the variances of windows."""
        return similarity(known, self.least)

    def __str__(self) -> str:
        return f"an SSIM of at least {self.least:g}"


@dataclass(frozen=True)
class KeepSpectrum(Target):
    """The power in every shell up to `k_max` changes by at most `tolerance` of itself.

    `k_max` is a wave number 2 pi / wavelength, in the inverse unit of the spacing or the positions; by default half the
    Nyquist wave number, up to which the power of particles on a mesh is accurate.

    >>> print(KeepSpectrum(0.01, k_max=5))
    a power spectrum within 1% up to k = 5
    """

    tolerance: float = 0.01
    k_max: float | None = None
    figure: ClassVar[str] = "spectrum_deviation"
    steepness: ClassVar[float] = 1.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", positive("tolerance", self.tolerance))
        if self.k_max is not None:
            object.__setattr__(self, "k_max", positive("k_max", self.k_max))

    @property
    def stop(self) -> float:
        """A tenth of the tolerance may stay unused."""
        return 0.1

    def require(self, data: Source) -> None:
        """Refuse particles that fill no volume, and fields of a single point."""
        super().require(data)
        if isinstance(data, Particles) and not min(data.lengths) > 0:
            raise WorkbenchError(f"KeepSpectrum needs particles that fill a volume; these span {data.lengths}: give a box")
        if isinstance(data, Field) and max(data.shape[-3:]) < 2:
            raise WorkbenchError(f"KeepSpectrum needs at least 2 points along an axis; got {data!r}")

    def value(self, attempt: Attempt) -> float:
        """The largest relative change of the power of a shell."""
        before = attempt.original.spectrum
        k_max = max(before.nyquist / 2, float(before.k[0])) if self.k_max is None else self.k_max
        return worst_deviation(before, attempt.original.spectrum_of(attempt.decoded), k_max)

    @property
    def subject(self) -> Any:
        """How far the spectrum counts."""
        return type(self), self.k_max

    def room(self, value: float) -> float:
        """The logarithm of the tolerance over the change."""
        return math.log(self.tolerance) - _log(value)

    def slack(self, value: float) -> float:
        """How much more it may change."""
        return self.tolerance - value

    def expected(self, known: Known) -> Expected:
        """From the power that even errors add."""
        return power_of_waves(known, self.tolerance, self.k_max)

    def __str__(self) -> str:
        limit = "half the Nyquist wave number" if self.k_max is None else f"k = {self.k_max:g}"
        return f"a power spectrum within {100 * self.tolerance:.4g}% up to {limit}"


@dataclass(frozen=True)
class KeepMassFunction(Target):
    """The number of halos in every bin of size changes by at most `tolerance` of itself, or by its "poisson" error.

    Halos are friends-of-friends groups of at least `min_members`; each bin is twice as wide as the one before. Bins where
    the original has fewer than `min_halos` are left out. With "poisson", a bin of n halos may change by the root of n.

    As many halos may fall apart as others are made, so that the figure is small at some bounds by chance. A search
    requires that three finer bounds meet the target, too, and finds the largest such bound to a factor of about two.

    >>> print(KeepMassFunction(0.05))
    a halo mass function within 5% (linking length 0.2 spacing, at least 20 members)
    """

    tolerance: float | Literal["poisson"] = 0.01
    linking_length: float = 0.2
    unit: Unit = "spacing"
    min_members: int = 20
    min_halos: int = 1
    figure: ClassVar[str] = "mass_function_deviation"
    precision: ClassVar[float] = 0.7   # a narrower bracket ends more often at what a bound meets by chance
    in_order = False

    def __post_init__(self) -> None:
        if not isinstance(self.tolerance, str):
            object.__setattr__(self, "tolerance", number("tolerance", self.tolerance, 0.0, sys.float_info.max))
        elif self.tolerance != "poisson":
            raise WorkbenchError(f'tolerance must be a number, such as 0.05, or "poisson"; got {self.tolerance!r}')
        KeepClusters(self.linking_length, self.unit)   # refuses lengths and units that are none
        for name in ("min_members", "min_halos"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least=1))

    @property
    def stop(self) -> float:
        """Numbers of halos are whole, so only the width of the bracket ends a search."""
        return 0.0

    def require(self, data: Source) -> None:
        """Refuse fields."""
        if not isinstance(data, Particles):
            raise WorkbenchError(f"KeepMassFunction is for particles; got {data!r}")
        absolute_linking_length(data, self.linking_length, self.unit)

    def value(self, attempt: Attempt) -> float:
        """The largest relative change of the number of halos in a bin; with "poisson", in units of its error."""
        before = attempt.original.groups(self.linking_length, self.unit)
        assert isinstance(attempt.decoded, Particles)
        after = friends_of_friends(attempt.decoded, before.linking_length, "length")
        counted = mass_function(before, after, self.min_members)
        return counted.worst_in_errors(self.min_halos) if isinstance(self.tolerance, str) else counted.worst(self.min_halos)

    @property
    def subject(self) -> Any:
        """What counts as a halo, and in which unit changes are."""
        return dataclasses.replace(self, tolerance="poisson" if isinstance(self.tolerance, str) else 0.0)

    @property
    def _most(self) -> float:
        return 1.0 if isinstance(self.tolerance, str) else self.tolerance

    def room(self, value: float) -> float:
        """The logarithm of the tolerance over the change, with half a tolerance added to both, as changes may be zero."""
        more = max(self._most, 0.01) / 2
        return math.log(self._most + more) - (math.log(value + more) if value < math.inf else value)

    def slack(self, value: float) -> float:
        """How much more it may change."""
        return self._most - value

    def __str__(self) -> str:
        halos = f"linking length {self.linking_length:g} {self.unit}, at least {self.min_members} members"
        within = "its Poisson errors" if isinstance(self.tolerance, str) else f"{100 * self.tolerance:.4g}%"
        return f"a halo mass function within {within} ({halos})"


@dataclass(frozen=True)
class Quality(Target):
    """A figure of one's own: `function(original, decoded)` returns a number that must be `at_least` or `at_most` a limit.

    The function gets two fields, or two sets of particles in the same order. A search calls it with the original twice
    first: how far the figure of exact data is from the limit says how much may be lost, so that a search for a score of
    0.999 is as fine as one for a loss of 0.001. Runs have the figure by its `name`, by default that of the function; a
    number is added where they have another figure of this name.

    >>> peak = Quality(lambda before, after: abs(after.values.max() - before.values.max()), at_most=0.1, name="peak shift")
    >>> print(peak)
    peak shift of at most 0.1
    """

    function: Callable[[Any, Any], float]
    at_least: float | None = None
    at_most: float | None = None
    name: str | None = None
    exact: float | None = field(default=None, init=False, repr=False, compare=False)   # that of exact data
    figure: ClassVar[str] = "quality"
    precision: ClassVar[float] = 0.1
    predictable = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise WorkbenchError(f"Quality takes a function of the original and the decoded data; got {self.function!r}")
        if (self.at_least is None) == (self.at_most is None):
            raise WorkbenchError(
                f"Quality takes at_least=... or at_most=..., one of them; got {self.at_least!r} and {self.at_most!r}"
            )
        name = self.name or getattr(self.function, "__name__", "quality")
        object.__setattr__(self, "name", "quality" if name == "<lambda>" else name)
        object.__setattr__(self, "figure", self.name)
        if isinstance(self._limit, str):
            raise WorkbenchError(f"the limit of {self.name} must be a number; got {self._limit!r}")
        _ = number(f"the limit of {self.name}", self._limit, -1e300, 1e300)

    @property
    def _limit(self) -> float:
        return self.at_least if self.at_least is not None else self.at_most   # type: ignore[return-value]

    @property
    def stop(self) -> float:
        """A twentieth of what may be lost may stay unused; where that is not known, only a narrow bracket ends a search."""
        return 0.025 if self._may is not None else 0.0

    def for_data(self, data: Source) -> Quality:
        """The target that knows the figure of exact data, where this is finite."""
        known = dataclasses.replace(self)
        try:
            exact = self._of(data, data)
        except WorkbenchError:   # such as 0 / 0, which decoded data need not give
            return known
        if math.isfinite(exact):
            object.__setattr__(known, "exact", exact)
        return known

    def value(self, attempt: Attempt) -> float:
        """The number that the function returns; anything else is an error."""
        original = attempt.original.data
        if attempt.order is not None:
            assert isinstance(original, Particles)
            original = original.select(attempt.order)
        return self._of(original, attempt.decoded)

    def _of(self, original: Any, decoded: Any) -> float:
        try:
            found: Any = self.function(original, decoded)
        except Exception as error:
            raise WorkbenchError(
                f"{self.name} must return a number for any decoded data; it raised {type(error).__name__}: {error}"
            ) from error
        if isinstance(found, np.ndarray) and found.ndim:
            raise WorkbenchError(f"{self.name} must return a number; got an array of shape {found.shape}")
        try:
            value = math.nan if isinstance(found, str) or found is np.ma.masked else float(found)
        except (TypeError, ValueError):
            value = math.nan
        if math.isnan(value) and not isinstance(found, float | np.floating):
            raise WorkbenchError(f"{self.name} must return a number; got {found!r:.60}")
        if math.isnan(value) and self.exact is None:   # else all is lost, such as the correlation with a constant
            raise WorkbenchError(f"{self.name} must return a number for any decoded data; got nan")
        return value

    def room(self, value: float) -> float:
        """Half the logarithm of what may be lost over what is lost, since most losses grow as the squared error.

        Where what may be lost is not known, the distance from the limit, in units of the limit.
        """
        if math.isnan(value):
            return -math.inf
        if self._may is None:
            return self.slack(value) / (abs(self._limit) or 1.0)
        return 0.5 * (math.log(self._may) - _log(self._may - self.slack(value)))

    @property
    def subject(self) -> Any:
        """The function and its name."""
        return type(self), self.function, self.name

    def slack(self, value: float) -> float:
        """How far on the right side of the limit this is."""
        return value - self._limit if self.at_least is not None else self._limit - value

    @property
    def _may(self) -> float | None:
        """What may be lost, where exact data are on the right side of the limit."""
        may = -math.inf if self.exact is None else self.slack(self.exact)
        return may if may > 0 else None

    def __str__(self) -> str:
        return f"{self.name} of at {'least' if self.at_least is not None else 'most'} {self._limit:g}"


def _log(value: float) -> float:
    """The logarithm; of zero, that of the smallest number, and of NaN and infinity infinity."""
    if not value < math.inf:
        return math.inf
    return math.log(max(value, float(np.finfo(np.float64).tiny)))
