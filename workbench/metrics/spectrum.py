"""The isotropic power spectrum: how much the waves of each length contribute to a field.

Convention: P(k) = |A(k)|^2 / V with A the Fourier integral of the field less its mean (the transform times the volume of
a grid cell) and V the volume. It has the unit of the squared field times volume, does not depend on the grid, and the
variance of the field is the sum of P over all waves, over V. White noise has P = variance times the volume of a cell.

Wave numbers are k = 2 pi / wavelength. Shells are as wide as the fundamental k_f, the wave number of the longest side:
shell i holds the waves within k_f / 2 of i k_f, from i = 1 up to the Nyquist wave number of the coarsest axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.backend import Array
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.metrics.pairs import CHUNK_VALUES, chunks, require_host, reshaped, valid_in
from workbench.slabs import over_slabs

SQUARED = 1e-120, 1e120   # values whose squares, and sums of many of these, are numbers
PerAxis = Sequence[np.ndarray]   # a factor for each wave number along each axis


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The power of each shell: the mean wave number `k` of its waves, their mean `power`, and their number, `modes`.

    `shot_noise` is the power of equally many particles at random positions; None for fields.
    `nyquist` is the largest wave number that the grid resolves along every axis. Powers are in units of 2^`exponent`, which
    is 0 unless squares of the values are beyond the range of float64.
    """

    k: np.ndarray
    power: np.ndarray
    modes: np.ndarray
    nyquist: float
    shot_noise: np.ndarray | None = None
    exponent: int = 0

    @property
    def whole_power(self) -> np.ndarray:
        """The power as numbers without an exponent: infinite or zero where these are beyond the range of float64."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.power, self.exponent) if self.exponent else self.power

    @property
    def beyond_numbers(self) -> bool:
        """Whether a power is infinite or zero only because it is beyond the range of float64."""
        return bool((np.isinf(self.whole_power) | (self.whole_power == 0) & (self.power > 0)).any())

    @property
    def signal(self) -> np.ndarray:
        """The power less the shot noise; for particles on a lattice it is negative."""
        return self.power if self.shot_noise is None else self.power - self.shot_noise


def spectrum_ratio(original: Spectrum, decoded: Spectrum) -> np.ndarray:
    """Decoded over original power, shell by shell: 1 where both are zero, infinite where only the original is."""
    both_zero = (original.power == 0) & (decoded.power == 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.ldexp(decoded.power / original.power, decoded.exponent - original.exponent)
        return np.where(both_zero, 1.0, ratio)


def worst_deviation(original: Spectrum, decoded: Spectrum, k_max: float = math.inf) -> float:
    """The largest |P' / P - 1| over the shells with k up to `k_max`.

    >>> wave = np.sin(np.arange(64.0)) + np.cos(2.4 * np.arange(64.0))
    >>> round(worst_deviation(field_spectrum(wave), field_spectrum(1.01 * wave)), 4)
    0.0201
    """
    within = original.k <= k_max
    if not within.any():
        raise WorkbenchError(f"k_max must be at least {original.k[0]:.6g}, the longest wave; got {k_max:.6g}")
    return float(np.abs(spectrum_ratio(original, decoded)[within] - 1).max())


def field_spectrum(field: Field | Array) -> Spectrum:
    """The power spectrum of a field on a periodic grid; for four axes, the mean over the first.

    Invalid values (NaN, infinite or masked) count as the mean of the others. Waves more than 28
    orders of magnitude weaker in power than the strongest are rounding errors of the float64 transform.

    >>> field_spectrum(np.cos(2 * np.pi * 3 * np.arange(32) / 32)).power.round(3).tolist()[:4]
    [0.0, 0.0, 8.0, 0.0]
    """
    field = Field.of(field)
    require_host("a power spectrum", field.values)
    leads = list(range(field.shape[0])) if len(field.shape) == 4 else [...]
    shape, spacing = field.shape[-3:], field.spacing[-3:]
    lengths = [points * step for points, step in zip(shape, spacing, strict=True)]
    exponent = exponent_of(largest(field))
    mean = mean_of(field, exponent)
    spectra = [shell_averages(contrast(field, mean, exponent, lead), lengths) for lead in leads]
    return replace(mean_spectrum(spectra), exponent=2 * exponent)


def mean_spectrum(spectra: Sequence[Spectrum]) -> Spectrum:
    """The mean of spectra over the same shells."""
    if len(spectra) == 1:
        return spectra[0]
    power = np.mean([spectrum.power for spectrum in spectra], axis=0)
    return replace(spectra[0], power=power, shot_noise=None)


def largest(field: Field) -> float:
    """The largest size of a valid value; only of float64, which alone has values whose squares are no numbers."""
    if field.values.dtype != np.float64:
        return 0.0
    flat, peak = reshaped(field), 0.0
    for part in chunks(flat.values):
        peak = max(peak, float(np.abs(flat.values[part]).max(where=valid_in(flat, part), initial=0.0)))
    return peak


def exponent_of(peak: float) -> int:
    """The power of two in whose units the squares of values up to this one are numbers: 0 where they are numbers anyway.

    >>> exponent_of(0.0), exponent_of(2.0), exponent_of(2.0**700)
    (0, 0, 701)
    """
    least, most = SQUARED
    return 0 if peak == 0 or least < peak < most else math.frexp(peak)[1]


def mean_of(field: Field, exponent: int) -> float:
    """The mean of the valid values, in units of 2^exponent."""
    field, total, count = reshaped(field), 0.0, 0
    for part in chunks(field.values):
        valid = valid_in(field, part)
        values = _in_units(field.values[part], exponent)
        total, count = total + float(values.sum(where=valid, dtype=np.float64)), count + int(valid.sum())
    return total / count if count else 0.0


def contrast(field: Field, mean: float, exponent: int, place: Any = ...) -> np.ndarray:
    """The values less their mean, both in units of 2^exponent; 0 where they are invalid.

    >>> contrast(Field([1.0, np.nan, 3.0]), 2.0, 0).tolist()
    [-1.0, 0.0, 1.0]
    """
    valid = valid_in(field, place)
    found = np.zeros(valid.shape)
    np.subtract(_in_units(field.values[place], exponent), mean, out=found, where=valid)
    return found


def _in_units(values: np.ndarray, exponent: int) -> np.ndarray:
    """The values in units of 2^exponent: only those that are far too small to matter are rounded."""
    return np.ldexp(values, -exponent) if exponent else values


def shell_averages(
    values: np.ndarray, lengths: Sequence[float], gain: PerAxis | None = None, noise: PerAxis | None = None
) -> Spectrum:
    """The mean power in shells of a real array on a periodic box, each wave times a factor per axis.

    `noise` is another factor per axis, whose mean in each shell becomes the shot noise.
    """
    shape, sides = three_axes(values.shape, 1), three_axes(lengths, 1.0)
    gain, noise = (None if given is None else three_axes(given, np.ones(1)) for given in (gain, noise))
    waves, shells = transform(values.reshape(shape)), Shells(values.shape, tuple(lengths))
    sums = np.zeros(shells.table)
    for part, k, count in layers(shape, sides):
        sums += shells.sums(k, count, waves[part], _product(gain, part), _product(noise, part))
    return shells.spectrum(sums, noise is not None)


@dataclass(frozen=True)
class Shells:
    """The shells of a real array on a periodic box, for sums over parts of its transform, which add up.

    >>> shells = Shells((4,), (2 * np.pi,))
    >>> sums = shells.sums(np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0]), np.fft.rfft([0.0, 1.0, 0.0, -1.0]))
    >>> shells.spectrum(sums).power.round(3).tolist()
    [1.571, 0.0]
    """

    shape: tuple[int, ...]
    lengths: tuple[float, ...]

    @property
    def table(self) -> tuple[int, int]:
        """The shape of sums: of waves, k, power and noise; shell 0 is the mean, the last one everything beyond."""
        fundamental, nyquist = limits_of(self.shape, self.lengths)
        return 4, math.floor(nyquist / fundamental * (1 + 1e-9)) + 2

    def sums(self, k: np.ndarray, count: np.ndarray, waves: np.ndarray, gain: Any = 1.0, noise: Any = 1.0) -> np.ndarray:
        """The sums over some waves: their wave numbers, how many each represents, and their amplitudes."""
        found, fundamental = np.zeros(self.table), limits_of(self.shape, self.lengths)[0]
        last = self.table[1] - 1
        shell = np.minimum(np.rint(k / fundamental), last).astype(np.int64).ravel()
        scale = math.prod(self.lengths) / math.prod(self.shape) ** 2
        power = scale * (waves.real**2 + waves.imag**2) * gain
        for row, values in zip(found, (np.ones(()), k, power, noise), strict=True):
            row += np.bincount(shell, np.broadcast_to(count * values, k.shape).ravel(), last + 1)
        return found

    def spectrum(self, sums: np.ndarray, noisy: bool = False) -> Spectrum:
        """The spectrum from the sums over all waves."""
        modes, k, power, noise = sums[:, 1:-1]
        nyquist = limits_of(self.shape, self.lengths)[1]
        return Spectrum(k / modes, power / modes, modes.astype(np.int64), nyquist, noise / modes if noisy else None)


def transform(values: np.ndarray) -> np.ndarray:
    """The real transform over three axes, slab by slab on all threads: three times as fast as in one piece."""
    planes, rows, points = values.shape
    waves = np.empty((planes, rows, points // 2 + 1), np.complex128)

    def along_planes(slab: slice) -> None:
        np.fft.rfft(values[slab], axis=2, out=waves[slab])
        np.fft.fft(waves[slab], axis=1, out=waves[slab])

    def across_planes(slab: slice) -> None:
        waves[:, slab] = np.fft.fft(waves[:, slab], axis=0)

    over_slabs(along_planes, planes, values[0].nbytes)
    over_slabs(across_planes, rows, waves[:, 0].nbytes)
    return waves


def three_axes(given: Sequence[Any], filler: Any) -> tuple[Any, ...]:
    """One entry for each of three axes: a line or a plane becomes a grid of three axes, the last one kept last."""
    return (*given[:-1], *[filler] * (3 - len(given)), given[-1])


def limits_of(shape: Sequence[int], lengths: Sequence[float]) -> tuple[float, float]:
    """The wave number of the longest side, and the Nyquist wave number of the coarsest axis; single points have none."""
    axes = [(points, length) for points, length in zip(shape, lengths, strict=True) if points > 1]
    if not axes:
        raise WorkbenchError(f"a power spectrum needs at least 2 points along an axis; got shape {tuple(shape)}")
    return 2 * math.pi / max(length for _, length in axes), math.pi * min(points / length for points, length in axes)


def layers(shape: Sequence[int], lengths: Sequence[float]) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Layers of the transform of a real array: the wave number of each coefficient, and the waves that it represents."""
    last = shape[-1] // 2 + 1
    count = np.full(last, 2.0)   # a wave and its mirror image, of which a real transform keeps one
    count[0] = 1
    if shape[-1] % 2 == 0:
        count[-1] = 1
    squared = [wave**2 for wave in wave_numbers(shape, lengths)]
    thickness = max(1, CHUNK_VALUES // (shape[1] * last))
    for start in range(0, shape[0], thickness):
        part = slice(start, start + thickness)
        yield part, np.sqrt(squared[0][part, None, None] + squared[1][:, None] + squared[2]), count


def wave_numbers(shape: Sequence[int], lengths: Sequence[float]) -> list[np.ndarray]:
    """The wave number of each coefficient of a real transform along each axis, of which the last is halved.

    >>> wave_numbers((3, 4), (2 * np.pi, 2 * np.pi))
    [array([ 0.,  1., -1.]), array([0., 1., 2.])]
    """
    frequencies = [np.fft.fftfreq] * (len(shape) - 1) + [np.fft.rfftfreq]
    return [
        2 * np.pi * frequency(points, length / points)
        for frequency, points, length in zip(frequencies, shape, lengths, strict=True)
    ]


def _product(factors: PerAxis | None, part: slice) -> np.ndarray:
    """The product of one factor per axis, on a layer of the transform; 1 without factors."""
    if factors is None:
        return np.ones(())
    return factors[0][part, None, None] * factors[1][:, None] * factors[2]
