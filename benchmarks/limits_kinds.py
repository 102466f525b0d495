"""Kinds of Gaussian fields whose rate-distortion function is known: what the intervals of `wb.rate_distortion` must hold.

A part of a field is cut out of a periodic Gaussian field of any spectrum, with room around it; its covariance is the
transform of the spectrum, so its components are eigenvalues of a matrix, without any approximation of `workbench.limits`.
Parts are independent of each other. Boxes that are too large for a matrix are those of `workbench.limits.blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np

import workbench as wb
from workbench.limits.blocks import block_spectrum
from workbench.limits.correlation import Autoregressive, Correlation, Matern, Sampled
from workbench.limits.spectrum import Spectrum

MOST_DENSE = 5000   # cells of a part


@dataclass(frozen=True, eq=False)
class Part:
    """The cells of one periodic field, whose values are multiplied by `strength`."""

    power: np.ndarray                   # at the frequencies of `fftfreq`
    inside: np.ndarray
    strength: np.ndarray | None = None
    model: Correlation | None = None    # with the same covariance, for large boxes

    def values(self, random: np.random.Generator) -> np.ndarray:
        """A sample, on the whole box."""
        noise = np.fft.fftn(random.standard_normal(self.power.shape))
        whole = np.fft.ifftn(noise * np.sqrt(self.power)).real
        cut = whole[tuple(slice(length) for length in self.inside.shape)]
        return cut if self.strength is None else cut * self.strength

    def spectrum(self) -> Spectrum:
        """The variances of the components."""
        if self.model is not None and self.inside.sum() > MOST_DENSE:
            return block_spectrum(self.model, self.inside.shape)
        covariance, points = np.fft.ifftn(self.power).real, np.argwhere(self.inside)
        matrix = covariance[tuple((place[:, None] - place) % side for place, side in
                                  zip(points.T, covariance.shape, strict=True))]
        if self.strength is not None:
            deviations = self.strength[self.inside]
            matrix *= np.multiply.outer(deviations, deviations)
        return Spectrum.of(np.concatenate([np.linalg.eigvalsh(each) for each in _halves(matrix)]).clip(0))


def _halves(matrix: np.ndarray) -> list[np.ndarray]:
    """The even and the odd part of a matrix that is the same in reverse order, which have its eigenvalues; or itself."""
    middle = len(matrix) // 2
    if len(matrix) % 2 or not np.allclose(matrix, matrix[::-1, ::-1], rtol=0, atol=1e-12 * matrix.max()):
        return [matrix]
    one, other = matrix[:middle, :middle], matrix[:middle, middle:][:, ::-1]
    return [one + other, one - other]


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of fields; what no part contains is NaN."""

    parts: Sequence[Part] = field(repr=False)
    fields: int = 100   # at most this many are worth their time
    number: int = 0     # of the kind: each has noise of its own

    @cached_property
    def true(self) -> Spectrum:
        """The variances of the components of all parts."""
        return Spectrum.joined([part.spectrum() for part in self.parts])

    def made(self, seed: int) -> wb.Field:
        """A sample."""
        random = np.random.default_rng((self.number, seed))
        values = np.full(self.parts[0].inside.shape, np.nan)
        for part in self.parts:
            values[part.inside] = part.values(random)[part.inside]
        return wb.Field(values)


def waves(shape: Sequence[int]) -> list[np.ndarray]:
    """The angular frequencies along each axis, which broadcast together."""
    return list(np.ix_(*(2 * np.pi * np.fft.fftfreq(length) for length in shape)))


def of_model(model: Correlation, shape: Sequence[int], inside: np.ndarray | None = None, room: int = 2) -> Part:
    """A field with this covariance; what a period that is `room` times as long makes negative is left out."""
    lags = np.ix_(*(np.fft.fftfreq(room * length, 1 / (room * length)).astype(int) for length in shape))
    power = np.fft.fftn(np.broadcast_to(model.at(*lags), [room * length for length in shape])).real.clip(0) + model.nugget
    return Part(power, np.ones(shape, bool) if inside is None else inside, model=model)


def of_power(power: np.ndarray, shape: Sequence[int]) -> Part:
    """A field with this power on a larger periodic lattice, of unit variance."""
    power = power / power.mean()
    table = np.fft.ifftn(power).real[tuple(slice(length) for length in shape)]
    return Part(power, np.ones(shape, bool), model=Sampled(table))   # for isotropic spectra


def law(exponent: float, wavelength: float, shape: Sequence[int], room: int = 2) -> Part:
    """A power law of the wave number, constant above this wavelength."""
    squares = sum(wave**2 for wave in waves([room * length for length in shape]))
    return of_power((squares + (2 * np.pi / wavelength) ** 2) ** (exponent / 2), shape)


def rotated(degrees: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Directions at this angle to the axes."""
    angle = np.deg2rad(degrees)
    return (float(np.cos(angle)), float(np.sin(angle))), (-float(np.sin(angle)), float(np.cos(angle)))


def matern(lengths: tuple[float, ...], smoothness: float, side: int = 64, noise: float = 0.0, degrees: float = 0.0) -> Kind:
    """Matérn fields of unit variance on a square."""
    directions = rotated(degrees) if degrees else ()
    model = Matern(1 - noise, lengths, smoothness, noise, directions)
    return Kind([of_model(model, (side, side))], 100 if side == 64 else 15)


def regions(layout: np.ndarray, models: Sequence[Correlation], fields: int = 30) -> Kind:
    """Independent textures."""
    return Kind([of_model(model, layout.shape, layout == place) for place, model in enumerate(models)], fields)


def masked(model: Correlation, inside: np.ndarray) -> Kind:
    """A texture with NaN in other cells."""
    return Kind([of_model(model, inside.shape, inside)], 30)


def coast(shape: tuple[int, ...], seed: int, share: float) -> np.ndarray:
    """A smooth random coast with islands, true on land."""
    squared = np.asarray(sum(wave**2 for wave in waves(shape)))
    squared.flat[0] = np.inf
    heights = np.fft.ifftn(np.fft.fftn(np.random.default_rng(seed).standard_normal(shape)) * squared**-0.9).real
    return np.asarray(heights < np.quantile(heights, share))


def _spectra() -> dict[str, Kind]:
    """Spectra that belong to none of the families."""
    here, there = np.meshgrid(*[2 * np.pi * np.fft.fftfreq(128)] * 2, indexing="ij")
    wave = np.hypot(here, there)
    ring, high = np.exp(-0.5 * ((wave - 0.8) / 0.15) ** 2), np.where(wave < 1.6, (wave**2 + 0.15**2) ** -2.0, 1e-6)
    two = 0.5 * law(-4, 60, (64, 64)).power + 0.5 * of_model(Matern(1.0, (2.0, 2.0), 1.5), (64, 64)).power
    lags = np.hypot(*np.ix_(*[np.fft.fftfreq(256, 1 / 256)] * 2))
    cauchy = np.fft.fftn((1 + (lags / 4) ** 2) ** -0.4).real.clip(0)
    first, second = rotated(30)
    across, along = (one * here + other * there for one, other in (first, second))
    cut_off = (1 + (40 / (2 * np.pi) * across) ** 2 + (13 / (2 * np.pi) * along) ** 2) ** -1.7
    return {
        "k^-8/3, low cut-off": Kind([law(-8 / 3, 60, (64, 64))]),
        "k^-4, high cut-off": Kind([of_power(high, (64, 64))]),
        "two scales": Kind([of_power(two, (64, 64))]),
        "Cauchy, long range": Kind([of_power(cauchy, (64, 64))]),
        "ring spectrum": Kind([of_power(ring + 1e-9, (64, 64))], 40),
        "ring spectrum + 1e-4 noise": Kind([of_power(ring / ring.mean() + 1e-4, (64, 64))], 40),
        "3:1 turned 30°, cut off at the lattice": Kind([Part(cut_off / cut_off.mean(), np.ones((64, 64), bool))]),
        "k^-11/3, 32³": Kind([law(-11 / 3, 40, (32,) * 3)], 12),
    }


def _regions() -> dict[str, Kind]:
    rows, columns = np.ogrid[:64, :64]
    smooth, rough = Matern(1.0, (6.0, 6.0), 1.5), Matern(1.0, (3.0, 3.0), 0.5)
    disc = (np.hypot(rows - 31.5, columns - 31.5) < 20).astype(int)
    checker = (rows // 16 + columns // 16) % 2
    one, other = (Matern(1.0, (7.5, 2.5), 0.7, directions=rotated(angle)) for angle in (30, 120))
    front = (columns > 32 + 0.5 * (rows - 32)).astype(int)
    strength = np.exp(np.linspace(-0.6, 0.6, 64))[:, None] * np.ones(64)
    varying = of_model(smooth, (64, 64))
    return {
        "smoothly varying sigma 3.3": Kind([Part(varying.power, varying.inside, strength)], 30),
        "halves": regions((columns >= 32) * np.ones((64, 1), int), [smooth, rough]),
        "disc smooth/rough": regions(disc, [smooth, rough]),
        "checker of 16": regions(checker, [smooth, rough]),
        "fronts that meet at an angle": regions(front, [one, other]),
    }


def _masks() -> dict[str, Kind]:
    model = Matern(1.0, (6.0, 6.0), 1.0)
    return {
        "coast of NaN 30%": masked(model, ~coast((64, 64), 3, 0.3)),
        "random NaN 20%, 48²": masked(model, np.random.default_rng(1).random((48, 48)) > 0.2),
    }


def _of_other_shapes() -> dict[str, Kind]:
    box, line = Matern(1.0, (4.0,) * 3, 1.5), Autoregressive(1.0, (0.9,))
    return {
        "recursion 0.9, 1-D": Kind([of_model(line, (1000,))], 100),
        "white, 32²": Kind([of_model(Autoregressive(1.0, (0.0, 0.0)), (32, 32))], 100),
        "Matérn 1.5, 32³": Kind([of_model(box, (32,) * 3)], 12),
    }


@cache
def kinds() -> dict[str, Kind]:
    """All kinds by name."""
    every = {
        "Matérn 0.3": matern((6.0, 6.0), 0.3),
        "Matérn 0.7": matern((6.0, 6.0), 0.7),
        "Matérn 1.0": matern((6.0, 6.0), 1.0),
        "Matérn 1.0 + 10% noise": matern((6.0, 6.0), 1.0, noise=0.1),
        "Matérn 2.5": matern((5.0, 5.0), 2.5),
        "Matérn 1.0, 3:1 along the axes": matern((7.5, 2.5), 1.0),
        "3:1 turned 30°": matern((7.5, 2.5), 0.7, degrees=30),
        "3:1 turned 30°, 128²": matern((7.5, 2.5), 0.7, 128, degrees=30),
        "2:1 turned 45°, 128²": matern((6.0, 3.0), 1.0, 128, degrees=45),
        **_spectra(), **_regions(), **_masks(), **_of_other_shapes(),
    }
    return {name: replace(kind, number=number) for number, (name, kind) in enumerate(every.items())}
