"""Gaussian random fields with a known power spectrum.

White noise is filtered in Fourier space, so the field is periodic, its mean is zero, and each wave has exactly the
requested expected power. The realisation is not normalised, which would make the field slightly non-Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from workbench.arguments import grid_shape
from workbench.data.field import Field
from workbench.data.synthetic.random_numbers import generator
from workbench.errors import WorkbenchError

_STEEPEST = 20   # above it, single precision resolves one wave only

Spectrum = float | Callable[[np.ndarray], np.ndarray]


def gaussian_field(
    shape: int | Sequence[int],
    spectrum: Spectrum = 2.0,
    seed: int = 0,
    spacing: float | Sequence[float] | None = None,
    *,
    unit_variance: bool | None = None,
) -> Field:
    """A periodic Gaussian random field (float32) on a grid of one to four axes.

    `spectrum` is a number n for P(k) = k**-n, or a function P(k) of the wave number k = 2 pi / wavelength, in units of
    `spacing`. P is a power per volume: the variance of the field is the sum of P over all waves, divided by the volume.
    `unit_variance` scales P so that the expected variance is 1; the variance of one realisation differs. By default it is
    on for a number, whose amplitude is arbitrary, and off for a function.

    >>> gaussian_field((32, 32), spectrum=3)
    Field('gaussian', 32 x 32, float32)
    """
    noise = Field(generator(seed).standard_normal(grid_shape(shape), dtype=np.float32), spacing)
    if noise.values.size == 1:
        raise WorkbenchError(f"shape must have at least 2 points, because the mean is always zero; got {shape!r}")
    power = _power(spectrum, _wave_numbers(noise.shape, noise.spacing))
    gain = power / float(np.prod(noise.spacing))
    scaled = not callable(spectrum) if unit_variance is None else unit_variance
    if scaled:
        gain /= _expected_variance(gain, noise.shape)
    axes = range(len(noise.shape))
    waves = np.fft.rfftn(noise.values, axes=axes) * np.sqrt(gain).astype(np.float32)
    values = np.fft.irfftn(waves, s=noise.shape, axes=axes)
    requested = f"k**-{spectrum:g}" if not callable(spectrum) else getattr(spectrum, "__name__", repr(spectrum))
    metadata = {"spectrum": requested, "seed": int(seed), "unit_variance": scaled}
    return Field(values, noise.spacing, name="gaussian", metadata=metadata)


def _wave_numbers(shape: tuple[int, ...], spacing: tuple[float, ...]) -> np.ndarray:
    """The wave number of each coefficient of a real transform."""
    last = len(shape) - 1
    squared = np.zeros(())
    for axis, (points, step) in enumerate(zip(shape, spacing, strict=True)):
        wave = 2 * np.pi * (np.fft.rfftfreq if axis == last else np.fft.fftfreq)(points, step)
        squared = squared + wave.reshape([-1 if other == axis else 1 for other in range(last + 1)]) ** 2
    return np.sqrt(squared)


def _power(spectrum: Spectrum, k: np.ndarray) -> np.ndarray:
    """The requested power at each wave number, checked; 0 for the mean."""
    mean = k == 0
    waves = np.where(mean, 1.0, k)
    if callable(spectrum):
        power = np.array(np.broadcast_to(spectrum(waves), k.shape), np.float64)
    elif isinstance(spectrum, int | float | np.number) and abs(spectrum) <= _STEEPEST:
        power = (waves / waves[~mean].min()) ** -float(spectrum)
    else:
        raise WorkbenchError(
            f"spectrum must be a function P(k), or a number n for k**-n in [-{_STEEPEST}, {_STEEPEST}]; got {spectrum!r}"
        )
    power[mean] = 0
    if not (np.isfinite(power).all() and (power >= 0).all() and power.any()):
        raise WorkbenchError(
            "spectrum must give finite powers, none negative and not all zero; "
            f"got values in [{power.min():g}, {power.max():g}] for k in [{waves[~mean].min():g}, {waves.max():g}]"
        )
    return power


def _expected_variance(gain: np.ndarray, shape: tuple[int, ...]) -> float:
    """The mean of the gain over all waves; a real transform stores half of them, so most count twice."""
    count = np.full(gain.shape[-1], 2.0)
    count[0] = 1
    if shape[-1] % 2 == 0:
        count[-1] = 1
    return float((gain * count).sum() / np.prod(shape))
