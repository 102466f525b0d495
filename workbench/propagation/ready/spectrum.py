"""Density on a mesh to its power spectrum: contrast, waves, their power, and its mean in the shells of `wb.metrics`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array, to_host
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.metrics.spectrum import layers, limits_of, three_axes
from workbench.propagation.enclosures import WIDER, Ball, Range, Squares, rounding, unless_overflowing
from workbench.propagation.error_sizes import norm as norm_of
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.protection.findings import Findings
from workbench.propagation.protection.transforms import checked_rfftn
from workbench.propagation.stage import Stage, Where
from workbench.propagation.tolerance import each_within


def power_spectrum(field: Field | Array, share: float = 0.01) -> Pipeline:
    """The power spectrum of the contrast of a periodic density field: sites `contrast`, `waves`, `power`, `spectrum`.

    `spectrum` is the mean power in shells one fundamental wave number wide; it is tolerated within `share` of each. The
    contrast is the density over its mean, less 1: of anomalies, whose mean is near 0, it is mostly the error of the mean.

    >>> density = 1 + 0.1 * np.random.default_rng(0).random((16, 16, 16))
    >>> power_spectrum(density)(density).shape
    (8,)
    """
    given = Field.of(field)
    if len(given.shape) > 3:
        raise WorkbenchError(f"a power spectrum needs a field of 1 to 3 dimensions; got {given!r}")
    mesh = _Mesh(given.shape, tuple(n * step for n, step in zip(given.shape, given.spacing, strict=True)))
    limits_of(mesh.shape, mesh.lengths)   # refuses fields without waves
    stages = [
        Stage("contrast", mesh.contrast, enclose=mesh.contrast_enclosure, derivative=mesh.contrast_change),
        Stage("waves", mesh.waves, linear=True, enclose=mesh.waves_enclosure, verify=mesh.waves_verified),
        Stage("power", mesh.power, enclose=mesh.power_enclosure, derivative=mesh.power_change, update=mesh.power_update),
        Stage("spectrum", mesh.spectrum, linear=True, enclose=mesh.spectrum_enclosure, update=mesh.spectrum_update),
    ]
    return Pipeline(stages, tolerance=each_within(share), name="power spectrum")


@dataclass(frozen=True)
class _Mesh:
    """A periodic mesh with its shells of wave numbers."""

    shape: tuple[int, ...]
    lengths: tuple[float, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def scale(self) -> float:
        """The power of a wave of amplitude one in the transform."""
        return math.prod(self.lengths) / self.size**2

    @cached_property
    def _shells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The shell of each coefficient (0 and the last: none), the waves that it stands for, and those of each shell."""
        fundamental, nyquist = limits_of(self.shape, self.lengths)
        shells = math.floor(nyquist / fundamental * (1 + 1e-9))
        numbers, counts = [], []
        for _, k, count in layers(three_axes(self.shape, 1), three_axes(self.lengths, 1.0)):
            numbers.append(np.minimum(np.rint(k / fundamental), shells + 1).astype(np.int64).ravel())
            counts.append(np.broadcast_to(count, k.shape).ravel())
        shell, count = np.concatenate(numbers), np.concatenate(counts)
        return shell, count, np.bincount(shell, count, shells + 2)[1:-1]

    @cached_property
    def _members(self) -> list[np.ndarray]:
        """The coefficients of each shell, rising."""
        shell = self._shells[0]
        order = np.argsort(shell, kind="stable")
        return np.split(order, np.searchsorted(shell[order], np.arange(1, len(self._shells[2]) + 2)))[1:-1]

    def contrast(self, density: Array) -> Array:
        wide = density.astype(np.float64, copy=False)
        contrast = wide / wide.mean()
        contrast -= 1
        return contrast

    def contrast_change(self, inputs: Sequence[Any], changes: Sequence[Any]) -> Array:
        density, change = inputs[0].astype(np.float64), changes[0]
        mean = density.mean()
        return change / mean - density * (change.mean() / mean**2)

    def contrast_enclosure(self, inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Ball | None:
        if not isinstance(enclosures[0], Ball):
            return None
        density = to_host(inputs[0]).astype(np.float64)
        mean, shift = abs(density.mean()), min(np.mean(enclosures[0].radius), enclosures[0].norm / math.sqrt(self.size))
        if not mean - shift > float(np.finfo(np.float64).tiny):   # a mean of either sign, or with fewer digits
            return Ball(math.inf)
        size, least = abs(density) / mean, mean - shift
        largest = (size * mean + enclosures[0].radius) / least
        spread = 1 + (float(abs(density).mean()) + shift) / least   # rounding of a mean of both signs
        slack = 4 * rounding(2 * math.log2(self.size) + 32, np.float64) * (1 + largest * spread)
        radius = (enclosures[0].radius + size * shift) / least + slack
        norm = (enclosures[0].norm + shift * norm_of(size)) / least + norm_of(slack)
        return Ball(WIDER * radius, WIDER * float(norm))

    def waves(self, contrast: Array) -> Array:
        if backend.on_device(contrast):
            return backend.namespace(contrast).fft.rfftn(contrast)
        waves = np.fft.rfft(contrast, axis=-1)
        for axis in reversed(range(contrast.ndim - 1)):
            np.fft.fft(waves, axis=axis, out=waves)   # in place: half the time of `rfftn`
        return waves

    def waves_verified(self, inputs: Sequence[Any], output: Array) -> tuple[Array, Findings]:
        return checked_rfftn(inputs[0], output, self.waves)

    def waves_enclosure(self, inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Ball | None:
        if not isinstance(enclosures[0], Ball):
            return None
        ball, root = enclosures[0], math.sqrt(self.size)
        sizes = 2 * norm_of(to_host(inputs[0])) + ball.norm
        norm = root * (ball.norm + rounding(16 * (math.log2(self.size) + 1), np.float64) * sizes)
        return Ball(WIDER * norm, WIDER * norm)

    def power(self, waves: Array) -> Array:
        return self.scale * (waves.real**2 + waves.imag**2)

    def power_change(self, inputs: Sequence[Any], changes: Sequence[Any]) -> Array:
        waves, change = inputs[0], changes[0]
        return 2 * self.scale * (waves.real * change.real + waves.imag * change.imag)

    def power_enclosure(self, inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Squares | None:
        if not isinstance(enclosures[0], Ball):
            return None
        root, waves, ball = math.sqrt(self.scale), abs(to_host(inputs[0])), enclosures[0]
        slack, largest = rounding(16, np.float64), np.square(waves + ball.radius)
        radius = unless_overflowing(ball.radius + slack * (2 * waves + ball.radius), largest, np.float64)
        norm = ball.norm + slack * (2 * norm_of(waves) + ball.norm)
        return Squares(WIDER * root * radius, WIDER * root * norm if np.isfinite(radius).all() else math.inf)

    def power_update(
        self, inputs: Sequence[Any], before: Sequence[Any], outputs: Sequence[Any], where: Sequence[Where]
    ) -> Any:
        if where[0] is None:
            return None
        power = outputs[0].copy()
        power.reshape(-1)[where[0]] = self.power(inputs[0].reshape(-1)[where[0]])
        return [(power, where[0])]

    def spectrum(self, power: Array) -> Array:
        xp = backend.namespace(power)
        shell, count, modes = (xp.asarray(part) for part in self._shells)
        return xp.bincount(shell, count * power.ravel(), len(modes) + 2)[1:-1] / modes

    def spectrum_enclosure(self, inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Range | Ball:
        shell, count, modes = self._shells
        found, slack = to_host(outputs[0]), 2 * rounding(self.size, np.float64)
        ball = enclosures[0]
        if isinstance(ball, Squares):
            # The root of the mean power is a root mean square of amplitudes: the triangle inequality holds for it.
            full = np.broadcast_to(ball.radius, inputs[0].shape).ravel()
            energy = np.minimum(np.bincount(shell, count * full**2, len(modes) + 2)[1:-1], 2 * np.square(ball.norm))
            shift, root = np.sqrt(energy / modes), np.sqrt(found)
            low, high = np.maximum(root - shift, 0) ** 2, (root + shift) ** 2
        else:
            radius = np.broadcast_to(ball.radius, inputs[0].shape).ravel()
            most = np.bincount(shell, count * radius, len(modes) + 2)[1:-1] / modes
            low, high = found - most, found + most
        slack = slack * np.maximum(abs(high), abs(low)) + slack * found
        return Range(low - slack, high + slack)

    def spectrum_update(
        self, inputs: Sequence[Any], before: Sequence[Any], outputs: Sequence[Any], where: Sequence[Where]
    ) -> Any:
        """Sum only the shells of changed waves again: one after the other, as `bincount` adds them."""
        if where[0] is None or backend.on_device(inputs[0]) or len(where[0]) > 64:
            return None
        shell, count, modes = self._shells
        touched = np.unique(shell[where[0]]) - 1
        touched = touched[(touched >= 0) & (touched < len(modes))]
        spectrum, power = outputs[0].copy(), inputs[0].reshape(-1)
        for place in touched:
            members = self._members[place]
            spectrum[place] = np.add.accumulate(count[members] * power[members])[-1] / modes[place]
        return [(spectrum, touched)]
