"""Pictures without a plotting library: the demo must run on a machine that has NumPy and nothing else."""

from __future__ import annotations

import numpy as np

from workbench import backend
from workbench.data import Particles

# From dark to light in even steps of lightness, through blue and orange, which all colour-blind readers tell apart.
DARK = [(8, 8, 24), (38, 30, 92), (104, 42, 120)]
LIGHT = [(176, 60, 100), (232, 108, 66), (250, 176, 88), (254, 244, 208)]
ANCHORS = np.array(DARK + LIGHT)


def projected_density(particles: Particles, pixels: int, smoothing: float = 1.0) -> np.ndarray:
    """Particles per pixel seen along the last axis, over the box or the extent; row 0 is at the top, y points up.

    `smoothing` is the width, in pixels, of a Gaussian that the picture is convolved with.
    """
    positions = backend.to_host(particles.positions)[:, :2].astype(np.float64)
    start = np.zeros(2) if particles.box is not None else particles.lower[:2]
    length = np.asarray(particles.lengths[:2])
    pixel = np.clip(((positions - start) / np.where(length > 0, length, 1) * pixels).astype(int), 0, pixels - 1)
    counts = np.bincount(pixel[:, 1] * pixels + pixel[:, 0], minlength=pixels * pixels).reshape(pixels, pixels)
    frequency = np.fft.fftfreq(pixels)[:, None] ** 2 + np.fft.rfftfreq(pixels)[None] ** 2
    kernel = np.exp(-2 * (np.pi * smoothing) ** 2 * frequency)
    return np.maximum(np.fft.irfft2(np.fft.rfft2(counts) * kernel, s=counts.shape), 0)[::-1]


def coloured(density: np.ndarray) -> np.ndarray:
    """A density as RGB bytes on a logarithmic scale that shows voids and the cores of halos alike."""
    floor = np.median(density) / 4 + 1e-12
    value = np.log1p(density / floor)
    value = np.clip(value / np.quantile(value, 0.9995), 0, 1)
    steps = np.linspace(0, 1, len(ANCHORS))
    channels = [np.interp(value, steps, ANCHORS[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)
