"""From a survey and a limit to numbers: entropies that stand for bits, and what tells an expert how far to trust them.

Every feature is free of the unit of the data. Beside them are base estimates of what is predicted; an expert learns the
logarithm of the true figure over its base.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.bounds.prediction.survey import Errors, Survey, entropies, rounded
from workbench.codecs import Codec, Tolerance

FINE = 48.0           # numbers up to this are counted in a sample; finer bounds add bits that are known
MOST_SIZE = 1e15      # of an error in units of a limit
LEAST_BITS = 0.002    # of a value
LEAST_NOISE = 1e-6
LEAST_LOSS = 1e-12
NAMES = (
    "bits", "interpolation bits", "cubic less linear", "zeros", "zeros stay", "far over middle", "farther over far",
    "limit over error", "limit over deviation", "limit over range", "noise", "log size", "axes", "shortest axis", "exact",
    "valid", "of this codec", "bits by size", "calm windows", "usual windows", "stormy windows",
)


@dataclass(frozen=True, eq=False)
class Features:
    """The features for some limits, a row each, and the base estimates."""

    vectors: np.ndarray
    bits: np.ndarray       # for each value, by the best imitation of the codec
    noise: np.ndarray      # mean squared error over limit^2 / 3
    loss: np.ndarray       # of similarity, 1 - SSIM

    def __len__(self) -> int:
        return len(self.vectors)


class Counts:
    """What a survey says at some limits, whatever the codec; counted when it is first needed."""

    def __init__(self, survey: Survey, limits: np.ndarray) -> None:
        self.survey, self.limits = survey, limits

    @functools.cached_property
    def interpolated(self) -> tuple[_Counted, _Counted]:
        """Of cubic and of linear interpolation."""
        cubic, linear = (_counted(errors, self.limits) for errors in self.survey.interpolation)
        return cubic, linear


def features_of(counts: Counts, codec: Codec) -> Features:
    """The features for the limits, with the imitation that fits the codec."""
    survey, limits = counts.survey, counts.limits
    cubic, linear = counts.interpolated
    better = cubic.bits <= linear.bits
    chosen = _Counted(*(np.where(better, *both) for both in zip(cubic, linear, strict=True)))
    bits, noise, extra = _imitated(survey, limits, codec, chosen)
    bits = bits + 8 * header(codec) / survey.size
    sizes = [np.where(better, *both) for both in zip(*(errors.sizes for errors in survey.interpolation), strict=True)]
    exact = np.where(better, *(errors.exact for errors in survey.interpolation))
    tiny = 1e-30 + 1e-12 * limits
    middle, far, farther = (size + tiny for size in sizes)
    floor = np.maximum(chosen.bits, LEAST_BITS)
    same = np.ones(len(limits))
    columns = [
        np.log2(np.maximum(bits, LEAST_BITS)), np.log2(floor), cubic.bits - linear.bits, chosen.zeros, chosen.stay,
        np.log2(far / middle), np.log2(farther / far), np.log2(limits / middle),
        np.log2(limits / (survey.deviation + tiny)), np.log2(limits / (survey.reach + tiny)),
        np.log2(np.maximum(noise, LEAST_NOISE)), same * math.log2(survey.size), same * len(survey.shape),
        same * math.log2(min(survey.shape)), exact, same * survey.valid_share, extra, np.log2(chosen.by_size / floor),
        *np.log2((survey.storminess[:, None] + tiny) / limits),
    ]
    noise = np.maximum(noise, LEAST_NOISE)
    vectors = np.clip(np.stack(columns, axis=1), -60, 60)
    return Features(vectors, np.maximum(bits, LEAST_BITS), noise, _losses(survey, noise * limits * limits / 3))


@functools.cache
def header(codec: Codec) -> int:
    """The bytes that a codec takes however little there is to tell."""
    slope = np.linspace(0, 1, 4096, dtype=np.float32).reshape(16, 16, 16)
    return len(codec.encode(slope, Tolerance(absolute=1e3)))


def _losses(survey: Survey, squares: np.ndarray) -> np.ndarray:
    """The loss of similarity by even noise in windows of known variance."""
    constant = (0.03 * survey.reach) ** 2
    each = squares[:, None] / (2 * survey.variances + squares[:, None] + constant + 1e-300)
    return np.maximum(each.mean(axis=1), LEAST_LOSS)


class _Counted(NamedTuple):
    """What rounded prediction errors take, for each limit."""

    bits: np.ndarray      # of a value
    zeros: np.ndarray     # their share
    stay: np.ndarray      # the share of zeros beside zeros
    noise: np.ndarray
    by_size: np.ndarray   # bits of a value if its size were known beforehand, as codecs that adapt come close to


def _imitated(
    survey: Survey, limits: np.ndarray, codec: Codec, chosen: _Counted
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bits of a value, the noise, and one more figure, by the imitation of this codec."""
    squares, nothing = limits * limits / 3, np.zeros(len(limits))
    if codec.id == "zfp":
        bits, errors, extra = survey.blocks.coded(limits)
        return bits, errors / squares, extra
    if codec.id == "prequantised":
        return *_on_lattice(survey, limits), nothing
    if codec.id == "sperr":
        bits, errors = np.array([survey.wavelets.coded(float(limit)) for limit in limits]).T
        return bits, errors / squares, nothing
    return chosen.bits, chosen.noise, nothing


def _counted(errors: Errors, limits: np.ndarray) -> _Counted:
    """Bits for each value; a limit far below the errors adds as many bits as it is finer."""
    coarse = np.maximum(limits, errors.sizes[1] / FINE)
    weight, finer = errors.weight.astype(np.float32), (limits / coarse)[:, None]
    sizes = _in_limits(errors.here, limits)
    seen = sizes + errors.noise
    numbers = rounded(seen * (0.5 * finer).astype(np.float32))
    bits = entropies(numbers, weight) - np.log2(finer[:, 0])
    zeros = (numbers == 0).astype(np.float32) @ weight * finer[:, 0]
    counted = coarse == limits
    here, beside = (np.abs(_in_limits(part, limits)) <= 1 for part in errors.beside[:2])
    of_pairs = errors.beside[2].astype(np.float32)
    likely, both = (there.astype(np.float32) @ of_pairs for there in (here, here & beside))
    stay = np.where(counted & (likely > 0), both / np.maximum(likely, 1e-9), 0.0)
    left = seen - 2 * numbers
    noise = np.where(counted, 3 * ((left * left) @ errors.counted.astype(np.float32)), 1.0)
    by_size = np.log2(1 + np.abs(sizes)) @ weight
    return _Counted(bits, zeros, stay, noise, np.maximum(by_size, LEAST_BITS))


def _in_limits(errors: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Errors in units of each limit, a row for each; far too large ones count as `MOST_SIZE`."""
    return np.clip(errors / limits[:, None], -MOST_SIZE, MOST_SIZE).astype(np.float32)


def _on_lattice(survey: Survey, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bits of differences of lattice numbers along one or all axes, whichever is least; and the error of the lattice."""
    corners = survey.corners
    coarse = np.maximum(limits, survey.step / FINE)
    numbers = np.rint(corners[:, None, :] * (0.5 / coarse)[:, None])
    axes = len(survey.shape)
    options = [numbers[0] - numbers[1 << axis] for axis in range(axes)]
    if axes > 1:
        signs = [(-1) ** bin(corner).count("1") for corner in range(1 << axes)]
        options.append(np.tensordot(signs, numbers, 1))
    if axes > 2:
        options.append(numbers[0] - numbers[1] - numbers[2] + numbers[3])
    bits = np.min([entropies(rounded(option.astype(np.float32))) for option in options], axis=0) + np.log2(coarse / limits)
    left = corners[0] - 2 * limits[:, None] * np.rint(corners[0] * (0.5 / limits)[:, None])
    return bits, (left * left).mean(axis=1) / (limits * limits / 3)
