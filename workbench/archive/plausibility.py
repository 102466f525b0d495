"""Whether a bound or a linking length is plausible for the data: notes for the certificate, never refusals.

A bound in another unit than the data is kept and checked like any other, and may erase the data: 0.01 for rain in
metres per second. Only a comparison with the data shows it. The same holds for linking lengths: 2.8, meant in ångström and
given in mean spacings, puts all particles into one group, which is then kept. Unusual requests may be intended, so they are
noted and carried out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive.earlier_loss import earlier_loss, largest_of, note_on_earlier_loss
from workbench.backend import Array
from workbench.clusters.keep import KeepClusters
from workbench.data import Field, Particles, Trajectory
from workbench.data.outline import Outlined
from workbench.guarantees import Bound

_PART = 2**20   # values that are examined together
_SAMPLE = 4096


@dataclass(frozen=True)
class Statistics:
    """The number, mean, summed squared deviations, smallest and largest of some values; those of two parts add up."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    lower: float = math.inf
    upper: float = -math.inf

    @classmethod
    def of(cls, values: Array, mask: Array | None = None) -> Statistics:
        """Those of all values that are finite and not masked."""
        found = cls()
        with np.errstate(over="ignore", invalid="ignore"):   # an overflow makes the deviation infinite or nan: no note
            for part in _parts(values, mask):
                middle = float(part.mean())
                squares = float(((part - middle) ** 2).sum())
                found = found + cls(int(part.size), middle, squares, float(part.min()), float(part.max()))
        return found

    def __add__(self, other: Statistics) -> Statistics:
        count = self.count + other.count
        if not count:
            return self
        change = other.mean - self.mean
        apart = other.squares + change * change * self.count * other.count / count
        return Statistics(
            count, self.mean + change * other.count / count, self.squares + apart, min(self.lower, other.lower),
            max(self.upper, other.upper),
        )

    @property
    def spread(self) -> Spread | None:
        """Their spread; None when there are none."""
        if not self.count:
            return None
        deviation = math.sqrt(self.squares / self.count) if math.isfinite(self.squares) else math.inf
        return Spread(self.lower, self.upper, deviation)


@dataclass(frozen=True)
class Spread:
    """The smallest and largest of some values, and their standard deviation."""

    lower: float
    upper: float
    deviation: float

    @property
    def range(self) -> float:
        """The largest less the smallest value."""
        return self.upper - self.lower


def spread_of(values: Array, mask: Array | None = None) -> Spread | None:
    """The spread of all values that are finite and not masked; None when there are none.

    >>> spread_of(np.array([1.0, 3.0, np.nan]))
    Spread(lower=1.0, upper=3.0, deviation=1.0)
    """
    return Statistics.of(values, mask).spread


def notes_on(
    data: Particles | Field, bound: Bound, keep: Sequence[Any] = (), velocities: Bound | None = None,
    spread: Callable[[], Spread | None] | None = None,
) -> tuple[str, ...]:
    """Notes on the bound, the bound of velocities and the linking lengths that are unusual for these data.

    `spread` returns the spread of a field's values, for callers that know it.

    >>> from workbench.guarantees import Absolute
    >>> notes_on(Field([1e-7, 2e-7, 4e-7]), Absolute(0.01))
    ('the bound of values, 0.01, is larger than half their range, 3e-07: one constant for all values would satisfy it',)
    """
    if isinstance(data, Field):
        valid = data.values[data.valid] if _rounded(data) else data.values
        return (*on_earlier_loss(data, bound, valid), *_on_values("values", data.values, bound, data.mask, spread))
    notes = [*on_earlier_loss(data, bound, data.positions), *notes_on_outline(data, bound, keep)]
    if velocities is not None and data.velocities is not None:
        notes += _on_values("velocities", data.velocities, velocities)
    return tuple(notes)


def notes_on_values(name: str, values: Array, bound: Bound) -> tuple[str, ...]:
    """Notes on the bound of an array of this name."""
    return tuple(_on_values(name, values, bound))


def notes_on_spread(name: str, spread: Spread | None, bound: Bound) -> tuple[str, ...]:
    """Notes on the bound of values with this spread."""
    return () if _is_exact_or_relative(bound) else tuple(_on_spread(name, spread, bound))


def notes_on_outline(particles: Outlined, bound: Bound, keep: Sequence[Any] = ()) -> tuple[str, ...]:
    """Notes on the bound of positions and the linking lengths that are unusual for particles of this outline."""
    return (*_on_positions(particles, bound), *(note for kept in keep for note in _on_lengths(particles, kept)))


def notes_on_groups(kept: Mapping[str, Any], particles: int) -> tuple[str, ...]:
    """Notes on kept groups that are unusual, from the entry of the certificate.

    >>> notes_on_groups({"lengths": [8.9], "largest": [990]}, 1000)
    ('at linking length 8.9, 990 of 1,000 particles are one group: is this length intended?',)
    """
    return tuple(
        f"at linking length {length:g}, {largest:,} of {particles:,} particles are one group: is this length intended?"
        for length, largest in zip(kept.get("lengths", ()), kept.get("largest", ()), strict=False)
        if largest > particles / 2
    )


def on_earlier_loss(data: Particles | Field | Trajectory, bound: Bound, values: Array) -> tuple[str, ...]:
    """A note where the attributes of the file say that it has lost more than the bound allows.

    `values` are the valid ones, or the smallest and the largest of them.
    """
    if not _rounded(data) or not bound.eb > 0:
        return ()
    note = note_on_earlier_loss(_attributes(data), bound.limit(values), lambda: largest_of(values))
    return () if note is None else (note,)


def _rounded(data: Particles | Field | Trajectory) -> bool:
    """Whether the attributes of the file say that its values were rounded."""
    attributes = _attributes(data)
    return isinstance(attributes, Mapping) and earlier_loss(attributes) is not None


def _attributes(data: Particles | Field | Trajectory) -> Any:
    return data.metadata.get("attributes" if isinstance(data, Field) else "positions")


def _on_values(
    name: str, values: Array, bound: Bound, mask: Array | None = None, known: Callable[[], Spread | None] | None = None
) -> Iterator[str]:
    if _is_exact_or_relative(bound) or _is_far_below(values, mask, bound):
        return
    yield from _on_spread(name, spread_of(values, mask) if known is None else known(), bound)


def _on_spread(name: str, spread: Spread | None, bound: Bound) -> Iterator[str]:
    if spread is None or not spread.range > 0:
        return
    limit = bound.limit(np.array([spread.lower, spread.upper])).value
    if limit > spread.range / 2:
        yield (
            f"the bound of {name}, {limit:g}, is larger than half their range, {spread.range:g}: one constant for all "
            "values would satisfy it"
        )
    elif limit > spread.deviation:
        yield (
            f"the bound of {name}, {limit:g}, is larger than their standard deviation, {spread.deviation:g}: most of "
            "their variation may be lost"
        )


def _is_far_below(values: Array, mask: Array | None, bound: Bound) -> bool:
    """Whether a sample shows that the bound is far below the spread, so that the other values need no examination.

    The quartiles of a sample are a robust scale: the deviation of all values is at least about half their distance.
    """
    step = max(values.size // _SAMPLE, 1)
    with np.errstate(invalid="ignore"):   # of signalling NaN
        parts = list(_parts(values.reshape(-1)[::step], None if mask is None else mask.reshape(-1)[::step]))
    sample = backend.to_host(parts[0]) if parts else np.empty(0)
    if sample.size < _SAMPLE // 4:
        return False
    with np.errstate(over="ignore"):
        lower, upper = np.quantile(sample.astype(np.float64), [0.25, 0.75])
        spread = upper - lower
    return bool(4 * bound.limit(np.array([sample.min(), sample.max()])).value < spread)


def _on_positions(particles: Outlined, bound: Bound) -> Iterator[str]:
    if _is_exact_or_relative(bound) or not particles.spacing > 0:
        return
    limit = bound.limit(np.array([*particles.lower.tolist(), *particles.upper.tolist()])).value
    if limit >= max(particles.lengths):
        space = "box" if particles.box is not None else "extent of the particles"
        yield (
            f"the bound of positions, {limit:g}, is larger than the {space}, {max(particles.lengths):g}: any positions "
            "would satisfy it"
        )
    elif limit > particles.spacing:
        yield (
            f"the bound of positions, {limit:g}, is larger than the mean spacing of particles, {particles.spacing:g}: "
            "structure below that may be lost"
        )


def _is_exact_or_relative(bound: Bound) -> bool:
    """Whether the bound needs no comparison with the spread of the data."""
    return bound.eb == 0 or bound.limit(np.ones(1)).relative


def _on_lengths(particles: Outlined, kept: Any) -> Iterator[str]:
    if not isinstance(kept, KeepClusters) or not particles.spacing > 0 or len(particles) < 2:
        return
    for length in kept.lengths(particles):
        if length > particles.spacing:
            unit = "; if it is in the unit of positions, pass unit='length'" if kept.unit == "spacing" else ""
            yield (
                f"the linking length is {length / particles.spacing:.3g} mean spacings, {length:g} in the unit of "
                f"positions: beyond 1, most particles are usually one group{unit}"
            )


def _parts(values: Array, mask: Array | None) -> Iterator[Array]:
    """The valid values in float64, a part at a time."""
    xp = backend.namespace(values)
    flat, hidden = values.reshape(-1), None if mask is None else mask.reshape(-1)
    for start in range(0, flat.size, _PART):
        part = flat[start : start + _PART].astype(xp.float64)
        valid = xp.isfinite(part)
        part = part[valid if hidden is None else valid & ~hidden[start : start + _PART]]
        if part.size:
            yield part
