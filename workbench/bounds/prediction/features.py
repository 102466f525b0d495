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

from workbench import backend
from workbench.bounds.prediction.numbers import FINE, table
from workbench.bounds.prediction.survey import Errors, Survey
from workbench.codecs import Codec, Tolerance

LEAST_BITS = 0.002    # of a value
LEAST_NOISE = 1e-6
LEAST_LOSS = 1e-12
NAMES = (
    "bits", "interpolation bits", "cubic less linear", "zeros", "zeros stay", "far over middle", "farther over far",
    "limit over error", "limit over deviation", "limit over range", "noise", "log size", "axes", "shortest axis", "exact",
    "valid", "of this codec", "bits by size", "calm windows", "usual windows", "stormy windows",
    "error of the sample",
)

LOGARITHMS = np.isin(np.arange(len(NAMES)), [0, 1, 5, 6, 7, 8, 9, 10, 17, 18, 19, 20])[:, None]   # to base 2, of these


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
    def interpolated(self) -> _Counted:
        """Of cubic and of linear interpolation, in this order along the first axis."""
        return _counted(self.survey.interpolation, self.limits)


def features_of(counts: Counts, codec: Codec) -> Features:
    """The features for the limits, with the imitation that fits the codec."""
    survey, limits = counts.survey, counts.limits
    cubic, linear = counts.interpolated.bits
    better, which = (cubic > linear).astype(int), np.arange(len(limits))
    chosen = _Counted(*(both[better, which] for both in counts.interpolated))
    bits, noise, *further = _imitated(survey, limits, codec, chosen)
    bits = np.maximum(bits + 8 * header(codec) / survey.size, LEAST_BITS)
    tiny = 1e-30 + 1e-12 * limits
    middle, far, farther = survey.interpolation.sizes[:, better] + tiny
    floor, noise = np.maximum(chosen.bits, LEAST_BITS), np.maximum(noise, LEAST_NOISE)
    calm, usual, stormy = survey.storminess
    vectors = np.empty((len(NAMES), len(limits)))
    figures = (
        bits, floor, cubic - linear, chosen.zeros, chosen.stay, far / middle, farther / far, limits / middle,
        limits / (survey.deviation + tiny), limits / (survey.reach + tiny), noise, math.log2(survey.size),
        len(survey.shape), math.log2(min(survey.shape)), survey.interpolation.exact[better], survey.valid_share, further[0],
        chosen.by_size / floor, (calm + tiny) / limits, (usual + tiny) / limits, (stormy + tiny) / limits, further[1],
    )
    for place, figure in enumerate(figures):
        vectors[place] = figure
    np.log2(vectors, out=vectors, where=LOGARITHMS)
    np.minimum(np.maximum(vectors, -60, out=vectors), 60, out=vectors)
    return Features(vectors.T, bits, noise, _losses(survey, noise * limits * limits / 3))


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
    """What rounded prediction errors take, for each predictor and limit."""

    bits: np.ndarray      # of a value
    zeros: np.ndarray     # their share
    stay: np.ndarray      # the share of zeros beside zeros
    noise: np.ndarray
    by_size: np.ndarray   # bits of a value if its size were known beforehand, as codecs that adapt come close to


def _imitated(
    survey: Survey, limits: np.ndarray, codec: Codec, chosen: _Counted
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bits of a value, the noise, and two more figures, by the imitation of this codec."""
    squares, nothing = limits * limits / 3, np.zeros(len(limits))
    match codec.imitation:
        case "blocks":
            bits, errors, *further = survey.blocks.coded(limits)
            return bits, errors / squares, *further
        case "lattice":
            return *_on_lattice(survey, limits), nothing, nothing
        case "wavelets":
            bits, errors = survey.wavelets.coded(limits)
            return bits, errors / squares, nothing, nothing
        case "expected sizes":
            return survey.coded_by_scale(limits), chosen.noise, nothing, nothing
        case "prediction":
            return chosen.bits, chosen.noise, nothing, nothing


def _counted(errors: Errors, limits: np.ndarray) -> _Counted:
    """Bits for each value; a limit far below the errors adds as many bits as it is finer."""
    coarse = np.maximum(limits, errors.sizes[1][:, None] / FINE)
    finer, counted = limits / coarse, coarse == limits
    predictors, places = errors.here.shape
    found = np.empty((*finer.shape, 6))
    backend.kernel("imitation", "count_errors")(
        1, predictors, len(limits), places, errors.of_pairs.size, errors.here, errors.noise, errors.weight, errors.counted,
        errors.pairs, errors.of_pairs, limits, 0.5 * finer, *table(places), found
    )
    bits, zeros, squares, by_size, likely, both = found.transpose(2, 0, 1)
    stay = np.where(counted & (likely > 0), both / np.maximum(likely, 1e-9), 0.0)
    noise = np.where(counted, 3 * squares, 1.0)
    return _Counted(bits - np.log2(finer), zeros * finer, stay, noise, np.maximum(by_size, LEAST_BITS))


def _on_lattice(survey: Survey, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bits of differences of lattice numbers along one or all axes, whichever is least; and the error of the lattice."""
    corners = survey.corners
    coarse = np.maximum(limits, survey.step / FINE)
    signs, places = _differences(len(survey.shape)), corners.shape[1]
    bits = np.empty((len(signs), len(limits)))
    backend.kernel("imitation", "count_differences")(
        1, len(signs), len(limits), len(corners), places, corners, signs, 0.5 / coarse, np.full(places, 1 / places),
        *table(places), bits
    )
    left = corners[0] - 2 * limits[:, None] * np.rint(corners[0] * (0.5 / limits)[:, None])
    noise = np.einsum("ij,ij->i", left, left) / places / (limits * limits / 3)
    return bits.min(axis=0) + np.log2(coarse / limits), noise


@functools.cache
def _differences(axes: int) -> np.ndarray:
    """The signs of the corners of a cell in differences along each axis, along all, and along the last two of three."""
    choices = [[(corner == 0) - (corner == 1 << axis) for corner in range(1 << axes)] for axis in range(axes)]
    if axes > 1:
        choices.append([(-1) ** corner.bit_count() for corner in range(1 << axes)])
    if axes > 2:
        choices.append([(-1) ** corner.bit_count() * (corner < 4) for corner in range(1 << axes)])
    return np.array(choices, np.int32)
