"""How much room a target is expected to have at each bound, from closed forms; nothing is compressed.

An error within a bound e is about evenly spread, so its mean square is e^2 / 3. From that follow the PSNR, the power that
is added to a spectrum, and the loss of similarity in windows of known variance. Only the shape of the curve has to be about
right: a search corrects its level with every compression.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workbench.bounds.sources import Measured
from workbench.bounds.tuning.attempt import Original
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.metrics.spectrum import Spectrum

Expected = Callable[[np.ndarray], np.ndarray]   # room for each limit

SHARE_OF_RANGE = 1e-3       # where nothing better is known: of a field's range,
SHARE_OF_SPACING = 0.047    # and of the mean spacing of particles: usual linking lengths are no multiples of a lattice step
FLUCTUATION = 2.0           # of the worst shell's cross term, in standard deviations


@dataclass(frozen=True)
class Known:
    """What is known before anything is compressed.

    `peak` is the range of the values or the longest side; `size` and `noise` are the ratio and the rms error that are
    expected for each limit. Ratios and PSNR need no original.
    """

    original: Original | None
    peak: float
    size: Expected
    noise: Expected


def even_noise(limits: np.ndarray) -> np.ndarray:
    """The rms of errors that are evenly spread within a limit."""
    return limits / math.sqrt(3)


def power_law(known: Known, steepness: float) -> Expected:
    """Room that falls with this power of the limit, from none at a usual bound."""
    assert known.original is not None
    typical = _typical(known.original.data, known.peak)
    return lambda limits: -steepness * np.log(limits / typical)


def similarity(known: Known, least: float) -> Expected:
    """The room of an SSIM of at least so much."""
    assert known.original is not None
    variances = _variances_of_windows(known.original.sample)
    constant = (0.03 * known.peak) ** 2

    def room(limits: np.ndarray) -> np.ndarray:
        squares = known.noise(limits)[:, None] ** 2
        loss = (squares / (2 * variances + squares + constant)).mean(axis=1)
        return 0.5 * (math.log1p(-least) - np.log(loss))

    return room


def power_of_waves(known: Known, tolerance: float, k_max: float | None) -> Expected:
    """The room of a power spectrum that changes by at most the tolerance up to a wave number."""
    original = known.original
    assert original is not None
    before = original.spectrum
    k_max = before.nyquist / 2 if k_max is None else k_max
    used = (before.k <= max(k_max, before.k[0])) & (before.power > 0)
    if not used.any():
        raise WorkbenchError(f"k_max must be at least {before.k[0]:.6g}, the longest wave; got {k_max:.6g}")
    k, power, modes = before.k[used], before.power[used], before.modes[used]

    def room(limits: np.ndarray) -> np.ndarray:
        squares = np.ldexp(known.noise(limits), -before.exponent // 2)[:, None] ** 2
        if isinstance(original.data, Particles):
            share = -np.expm1(-k * k * squares)
            worst = share + FLUCTUATION * np.sqrt(share / modes)
        else:
            share = squares * _cell(original.sample, before) / power
            worst = share + FLUCTUATION * np.sqrt(2 * share / modes)
        return math.log(tolerance) - np.log(worst.max(axis=1))

    return room


def _cell(field: Field, spectrum: Spectrum) -> float:
    """The volume of a grid cell: the power of white noise of unit variance."""
    return math.prod(step for step, points in zip(field.spacing[-3:], field.shape[-3:], strict=True) if points)


def _variances_of_windows(field: Field, windows: int = 512, side: int = 7) -> np.ndarray:
    """The variance of the values in windows that are spread over the field; infinite values and gaps are left out."""
    sides = [min(side, points) if points > 1 else 1 for points in field.shape]
    if len(field.shape) == 4:
        sides[0] = 1
    rng = np.random.default_rng(0)
    corners = np.stack([rng.integers(0, n - s + 1, windows) for n, s in zip(field.shape, sides, strict=True)], axis=1)
    shifts = np.stack(np.meshgrid(*[np.arange(s) for s in sides], indexing="ij"), -1).reshape(-1, len(sides))
    places = tuple((corners[:, None, :] + shifts[None, :, :]).transpose(2, 0, 1))
    values = field.values[places].astype(np.float64)
    usable = np.isfinite(values).all(axis=1)
    if field.mask is not None:
        usable &= ~field.mask[places].any(axis=1)
    return values[usable].var(axis=1) if usable.any() else np.zeros(1)


def _typical(data: Measured, peak: float) -> float:
    return data.spacing * SHARE_OF_SPACING if isinstance(data, Particles) else peak * SHARE_OF_RANGE
