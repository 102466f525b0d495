"""How displacements of particles are predicted: the weights of a stream, fitted to a sample of it.

Both the displacement and the scale of what is left are sums with weights, of numbers that `kernels/motion.cu` collects for
encoder, decoder and fit alike. The displacement is fitted by least absolute residuals, as bits are their logarithms; the
scale, with weights that are not negative, by maximum likelihood for a Laplace distribution: the updates of the
Itakura-Saito factorisation, which keep the sign. Only the encoder fits. The decoder gets whole numbers, so that both
compute the same.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed

WEIGHTS = backend.constant("motion.cu", "WEIGHTS")
TERMS = backend.constant("motion.cu", "TERMS")
UNIT = 2.0**-12          # of the weights of a displacement
LEAST, EIGHTH = 160, 8   # a weight k of a scale is 2^((k - LEAST) / EIGHTH), or 0 if k is
LOWEST, HIGHEST = -28, 64   # of the quarter octave of the smallest scales
ROUNDS = 3               # of weighted least squares
UPDATES = 16             # of the weights of a scale
RARE = 0.005             # of the scales may be below the lowest context

_MODEL = struct.Struct(f"<d{WEIGHTS}h{2 * TERMS}Bb")


@dataclass(frozen=True, eq=False)
class Model:
    """The weights of a displacement and of a scale as whole numbers, a factor that makes displacements of rates."""

    of_rate: float
    location: np.ndarray   # int16 (WEIGHTS)
    scale: np.ndarray      # uint8 (first component or later ones, TERMS)
    lowest: int            # the quarter octave of the first context

    @classmethod
    def still(cls, of_rate: float) -> Model:
        """Particles are where they were: what a survey begins from."""
        return cls(of_rate, np.zeros(WEIGHTS, np.int16), np.zeros((2, TERMS), np.uint8), 0)

    @property
    def arguments(self) -> dict[str, object]:
        """The weights as arguments of kernels."""
        return {
            "of_rate": self.of_rate, "weight": self.location * UNIT, "scale": _weights_of(self.scale).reshape(-1),
            "lowest": self.lowest,
        }

    def to_bytes(self) -> bytes:
        """The model in a stream."""
        return _MODEL.pack(self.of_rate, *self.location.tolist(), *self.scale.reshape(-1).tolist(), self.lowest)

    @classmethod
    def read(cls, data: bytes, at: int) -> tuple[Model, int]:
        """What `to_bytes` wrote, from this place on, and the place behind it."""
        if len(data) < at + _MODEL.size:
            raise CodecFailed("motion: the weights of predictions are cut short: they are damaged")
        of_rate, *numbers, lowest = _MODEL.unpack_from(data, at)
        location, scale = np.array(numbers[:WEIGHTS], np.int16), np.array(numbers[WEIGHTS:], np.uint8)
        return cls(of_rate, location, scale.reshape(2, TERMS), lowest), at + _MODEL.size


def location_for(known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The weights with which what is known (WEIGHTS, samples) is nearest to what is wanted."""
    weight = np.ones(len(wanted))
    found = np.zeros(WEIGHTS)
    for _ in range(ROUNDS):
        weighted = known * weight
        matrix = np.einsum("js,ks->jk", weighted, known)   # not a product of matrices: its last bits depend on threads
        matrix[np.diag_indices(WEIGHTS)] += 1e-9 * np.trace(matrix) + 1e-300
        found = np.linalg.solve(matrix, np.einsum("js,s->j", weighted, wanted))
        weight = 1 / (np.abs(wanted - np.einsum("j,js->s", found, known)) + 0.3)
    whole = np.rint(np.where(np.isfinite(found), found, 0) / UNIT)
    return np.clip(whole, -(2**15) + 1, 2**15 - 1).astype(np.int16)


def scale_for(terms: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The weights with which the sum of terms (TERMS, samples) is the scale of what is wanted."""
    size = np.abs(wanted) + 0.02
    weight = 0.3 / np.maximum(terms.mean(axis=1), 1e-9) * size.mean() * (terms.max(axis=1, initial=0) > 0)
    weight = np.where(np.arange(TERMS) == 0, weight, np.minimum(weight, 0.3))
    for _ in range(UPDATES):
        inverse = 1 / np.maximum(np.einsum("k,ks->s", weight, terms), 1e-9)
        down, up = np.einsum("ks,s->k", terms, inverse), np.einsum("ks,s->k", terms, size * inverse * inverse)
        weight = weight * np.sqrt(up / np.maximum(down, 1e-300))
    with np.errstate(divide="ignore"):
        whole = np.rint(EIGHTH * np.log2(weight)) + LEAST
    return np.where(weight > 1e-5, np.clip(whole, 1, 255), 0).astype(np.uint8)


def lowest_of(terms: np.ndarray, scale: np.ndarray) -> int:
    """The quarter octave below which there are few scales."""
    low = np.quantile(np.einsum("k,ks->s", _weights_of(scale), terms), RARE)
    return int(np.clip(np.floor(4 * np.log2(max(float(low), 2.0**-7))), LOWEST, HIGHEST))


def _weights_of(scale: np.ndarray) -> np.ndarray:
    """The weights of a scale that whole numbers stand for."""
    return np.where(scale > 0, np.exp2((scale.astype(np.float64) - LEAST) / EIGHTH), 0)
