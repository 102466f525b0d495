"""The codec of a search, and what is expected of it at each bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench import codecs
from workbench.bounds.sweep import questions_of
from workbench.bounds.tuning.guides import Expected, even_noise
from workbench.bounds.tuning.targets import All
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.guarantees import Absolute

if TYPE_CHECKING:
    from workbench.bounds.tuning.find import Limits

OVERHEAD = 2400     # bytes of an archive's documents


@dataclass(frozen=True)
class Candidate:
    """A codec, with the ratio and the rms error that are expected for each limit."""

    codec: Codec
    ratio: Expected
    noise: Expected
    notes: tuple[str, ...] = ()


def chosen_candidate(data: Particles | Field, given: str | Codec, target: All, limits: Limits, order: str) -> Candidate:
    """The requested codec; for "auto" the one that is usually smallest."""
    if isinstance(data, Particles):
        codec = _checked("lattice" if given == "auto" else given)
        return Candidate(codec, _ratio_of_particles(data, order), even_noise)
    fields = "sz3" if "sz3" in codecs.available() else "prequantised"
    codec = _checked(fields if given == "auto" else given)
    return Candidate(codec, _ratio_of_field(data), even_noise)


def _checked(given: str | Codec) -> Codec:
    """The codec, which its description must reproduce."""
    codec = questions_of([given], Absolute(1.0))[0].codec
    codec.require()
    return codec


def _ratio_of_particles(data: Particles, order: str) -> Expected:
    """Bits of each coordinate on a lattice, and those of companion arrays as they are."""
    count, axes = len(data), data.dimensions
    riders = sum(values.nbytes for values in (data.velocities, data.ids) if values is not None)
    unordered = max(math.log2(count) - 1.44, 0.0) if order == "free" else 0.0

    def ratio(limits: np.ndarray) -> np.ndarray:
        bits = sum(np.log2(1 + length / (2 * limits)) for length in data.lengths) - unordered - axes
        nbytes = OVERHEAD + count * np.maximum(bits, 1.0) / 8 + riders
        return (data.positions.nbytes + riders) / nbytes

    return ratio


def _ratio_of_field(field: Field) -> Expected:
    """The entropy of differences between neighbours, as if they had a Laplace distribution."""
    flat = field.values.reshape(-1)
    steps = np.abs(np.diff(flat[: 2**20].astype(np.float64)))
    scale = float(steps[np.isfinite(steps)].mean()) if np.isfinite(steps).any() else 1.0

    def ratio(limits: np.ndarray) -> np.ndarray:
        bits = np.log2(1 + scale / limits) + 0.05
        return field.values.nbytes / (OVERHEAD + field.values.size * bits / 8)

    return ratio
