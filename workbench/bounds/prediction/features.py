"""From a survey and a limit to numbers: entropies that stand for bits, and what tells an expert how far to trust them.

Every feature is free of the unit of the data. Beside them are base estimates of what is predicted; an expert learns the
logarithm of the true figure over its base.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from workbench.bounds.prediction.survey import Errors, Survey, entropy, rounded
from workbench.codecs import Codec, Tolerance

FINE = 48.0           # numbers up to this are counted in a sample; finer bounds add bits that are known
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
    """The features for one limit, and the base estimates."""

    vector: np.ndarray
    bits: float       # for each value, by the best imitation of the codec
    noise: float      # mean squared error over limit^2 / 3
    loss: float       # of similarity, 1 - SSIM


def features_of(survey: Survey, limit: float, codec: Codec) -> Features:
    """The features for this limit, with the imitation that fits the codec."""
    cubic, linear = (_bits(errors, limit) for errors in survey.interpolation)
    chosen = min(cubic, linear, key=lambda counted: counted.bits)
    errors = survey.interpolation[0 if chosen is cubic else 1]
    middle, far, farther = errors.sizes
    bits, noise, extra = chosen.bits, chosen.noise, 0.0
    floor = max(chosen.bits, LEAST_BITS)
    if codec.id == "zfp":
        bits, noise, extra = _of_blocks(survey, limit, codec)
    elif codec.id == "prequantised":
        bits, noise = _lattice_bits(survey, limit)
    elif codec.id == "sperr":
        bits, squares = survey.wavelets.coded(limit)
        noise = squares / (limit * limit / 3)
    tiny = 1e-30 + 1e-12 * limit
    bits += 8 * header(codec) / survey.size
    vector = np.array([
        math.log2(max(bits, LEAST_BITS)), math.log2(floor), cubic.bits - linear.bits, chosen.zeros, chosen.stay,
        math.log2((far + tiny) / (middle + tiny)), math.log2((farther + tiny) / (far + tiny)),
        math.log2(limit / (middle + tiny)), math.log2(limit / (survey.deviation + tiny)),
        math.log2(limit / (survey.reach + tiny)), math.log2(max(noise, LEAST_NOISE)), math.log2(survey.size),
        len(survey.shape), math.log2(min(survey.shape)), errors.exact, survey.valid_share, extra,
        math.log2(_bits_by_size(errors, limit) / floor), *np.log2((survey.storminess + tiny) / limit),
    ])
    noise = max(noise, LEAST_NOISE)
    return Features(np.clip(vector, -60, 60), max(bits, LEAST_BITS), noise, _loss(survey, noise * limit * limit / 3))


@functools.cache
def header(codec: Codec) -> int:
    """The bytes that a codec takes however little there is to tell."""
    slope = np.linspace(0, 1, 4096, dtype=np.float32).reshape(16, 16, 16)
    return len(codec.encode(slope, Tolerance(absolute=1e3)))


def _loss(survey: Survey, squares: float) -> float:
    """The loss of similarity by even noise in windows of known variance."""
    constant = (0.03 * survey.reach) ** 2
    return max(float((squares / (2 * survey.variances + squares + constant + 1e-300)).mean()), LEAST_LOSS)


@dataclass(frozen=True)
class _Counted:
    bits: float
    zeros: float
    stay: float
    noise: float


def _bits(errors: Errors, limit: float) -> _Counted:
    """Bits for each value; a limit far below the errors adds as many bits as it is finer."""
    coarse = max(limit, errors.sizes[1] / FINE)
    seen, weight = errors.here + limit * errors.noise, errors.weight
    numbers = rounded(seen, coarse)
    bits = entropy(numbers, weight) + math.log2(coarse / limit)
    zeros = float((numbers == 0) @ weight)
    if coarse > limit:
        return _Counted(bits, zeros * limit / coarse, 0.0, 1.0)
    here, beside = np.abs(errors.beside[:2]) <= limit
    likely = here @ errors.beside[2]
    stay = float((here & beside) @ errors.beside[2] / likely) if likely else 0.0
    left = seen - 2 * limit * numbers
    return _Counted(bits, zeros, stay, float((left * left) @ weight) / (limit * limit / 3))


def _bits_by_size(errors: Errors, limit: float) -> float:
    """Bits of a value if its size were known beforehand, as codecs that adapt to calm and stormy regions come close to."""
    return max(float(np.log2(1 + np.abs(errors.here) / limit) @ errors.weight), LEAST_BITS)


def _lattice_bits(survey: Survey, limit: float) -> tuple[float, float]:
    """Bits of differences of lattice numbers along one or all axes, whichever is least; and the error of the lattice."""
    corners = survey.corners
    coarse = max(limit, survey.step / FINE)
    numbers = np.rint(corners * (0.5 / coarse))
    axes = len(survey.shape)
    shifts = [1 << axis for axis in range(axes)]
    options = [numbers[0] - numbers[shift] for shift in shifts]
    if axes > 1:
        signs = np.array([(-1) ** bin(corner).count("1") for corner in range(1 << axes)])
        options.append((signs[:, None] * numbers).sum(axis=0))
    if axes > 2:
        pair = [0, 1, 2, 3]
        options.append(numbers[0] - numbers[pair[1]] - numbers[pair[2]] + numbers[pair[3]])
    bits = min(entropy(np.clip(option, -(2**20), 2**20).astype(np.int64)) for option in options) + math.log2(coarse / limit)
    left = corners[0] - 2 * limit * np.rint(corners[0] * (0.5 / limit))
    return bits, float((left * left).mean()) / (limit * limit / 3)


def _of_blocks(survey: Survey, limit: float, codec: Codec) -> tuple[float, float, float]:
    """Bits and error of the codec itself on a sample of blocks, which it codes one by one; and how uneven errors are."""
    blocks = survey.blocks
    tolerance = Tolerance(absolute=limit)
    data = codec.encode(blocks, tolerance)
    error = codec.decode(data, blocks.shape, blocks.dtype).astype(np.float64) - blocks
    squares = (error * error).reshape(len(blocks) // 4, -1).mean(axis=1)
    mean = float(squares.mean())
    return 8 * len(data) / blocks.size, mean / (limit * limit / 3), math.log2(float(squares.std()) / (mean + 1e-300) + 1e-3)
