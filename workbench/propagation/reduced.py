"""Fewer numbers instead of coarser ones: pruned weights, and products of two thin matrices, without any training.

They are baselines beside `Bounded`: each note has the bytes, counted in favour of the reduction: the kept numbers in their
format, and the entropy of which were kept, as if a perfect coder stored that.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

import numpy as np

from workbench.arguments import number, one_of
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.number_format import STORED, NumberFormat, from_stored, stored_bits
from workbench.propagation.perturbation import Changed, Perturbation
from workbench.propagation.weight_arrays import changed_weights, entropy_of, finite_weights, largest, require_floats

Pattern = Literal["free", "2:4", "block"]
BLOCK = 4   # the side of a block of weights
GROUP, OF_GROUP = 4, 2   # of four neighbours two are kept, as the tensor cores of GPUs take it
LARGEST = {"float16": (65504.0, "'bfloat16'"), "bfloat16": (2.0**128 - 2.0**120, "None")}   # and what to give instead


@dataclass(frozen=True, repr=False)
class Reduced(Perturbation):
    """Weights of which fewer numbers are kept, each rounded to a `format` of 16 bits; None keeps those of the site."""

    _: KW_ONLY
    format: str | None = "float16"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format is not None:
            one_of("format", self.format, STORED)

    def check(self, values: Array) -> None:
        """Refuse what is no array of real floating-point numbers, or has another shape than the reduction takes."""
        require_floats(self, values)

    def apply(self, values: Array, draws: np.random.Generator | None = None, box: object = None) -> Changed:
        """The weights that are left."""
        self.check(values)
        weights, bits = self._reduced(finite_weights(self, values), self._bits_of(values))
        nbytes = max(math.ceil(bits / 8), 1)
        return changed_weights(values, weights, {"nbytes": nbytes, "ratio": values.nbytes / nbytes})

    @abstractmethod
    def _reduced(self, weights: np.ndarray, bits: int) -> tuple[np.ndarray, float]:
        """The weights that are left, and the bits in all, with so many for a kept number."""

    def _bits_of(self, values: Array) -> int:
        return 16 if self.format is not None else NumberFormat.of(values.dtype).bits

    def _rounded(self, numbers: np.ndarray) -> np.ndarray:
        """Kept numbers, rounded to their format."""
        if self.format is None:
            return numbers
        largest, other = LARGEST[self.format]
        if numbers.size and abs(numbers).max() > largest:
            raise WorkbenchError(
                f"{self.format} holds numbers up to {largest:g}; got larger ones at {self.site!r}: give format={other}"
            )
        single = np.ascontiguousarray(numbers, np.float32)
        return from_stored(stored_bits(single, self.format), self.format).astype(np.float64)


@dataclass(frozen=True, repr=False)
class Prune(Reduced):
    """Only the share `keep` of the weights, those of largest size; the others are zero.

    The pattern "free" keeps any, "2:4" two of each four neighbours along the last axis, and "block" whole blocks of 4 x 4
    in the last two axes, those with the largest mean square.

    >>> Prune("weights", keep=0.5).apply(np.array([0.5, -2.0, 0.25, 1.0])).values.tolist()
    [0.0, -2.0, 0.0, 1.0]
    """

    keep: float = 0.5
    pattern: Pattern = "free"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "keep", number("keep, a share of the weights,", self.keep, 0.0, 1.0))
        one_of("pattern", self.pattern, get_args(Pattern))
        if self.pattern == "2:4" and self.keep != OF_GROUP / GROUP:
            raise WorkbenchError(f"the pattern 2:4 keeps half of the weights; got keep={self.keep}: leave keep out")

    def check(self, values: Array) -> None:
        """Refuse shapes that the pattern does not fit."""
        super().check(values)
        if self.pattern == "2:4" and (not values.ndim or values.shape[-1] % GROUP):
            raise WorkbenchError(f"2:4 needs a last axis that 4 divides at {self.site!r}; got shape {values.shape}")
        if self.pattern == "block" and values.ndim < 2:
            raise WorkbenchError(f"blocks need weights of two axes or more at {self.site!r}; got shape {values.shape}")

    def _reduced(self, weights: np.ndarray, bits: int) -> tuple[np.ndarray, float]:
        if self.pattern == "free":
            kept = largest(abs(weights), self.keep)
            extra = _which(kept)
        elif self.pattern == "2:4":
            groups = abs(weights).reshape(-1, GROUP)
            order = np.argsort(-groups, axis=1, kind="stable")[:, :OF_GROUP]
            kept = np.zeros(groups.shape, bool)
            np.put_along_axis(kept, order, True, axis=1)
            extra = len(groups) * math.log2(math.comb(GROUP, OF_GROUP))
        else:
            kept, extra = self._blocks(weights)
        kept = kept.reshape(weights.shape)
        found = np.zeros(weights.shape)
        found[kept] = self._rounded(weights[kept])
        return found, int(kept.sum()) * bits + extra

    def _blocks(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Which weights are in the kept blocks, and the bits that say which blocks are."""
        lines, columns = weights.shape[-2:]
        starts = [np.arange(0, side, BLOCK) for side in (lines, columns)]
        squares = (weights / (abs(weights).max() or 1.0)).reshape(-1, lines, columns) ** 2   # of any scale
        sums = np.add.reduceat(np.add.reduceat(squares, starts[0], axis=1), starts[1], axis=2)
        sizes = np.multiply.outer(*(np.diff([*each, side]) for each, side in zip(starts, (lines, columns), strict=True)))
        kept = largest(sums / sizes, self.keep)
        return kept.repeat(BLOCK, axis=1)[:, :lines].repeat(BLOCK, axis=2)[:, :, :columns], _which(kept)


@dataclass(frozen=True, repr=False)
class LowRank(Reduced):
    """A matrix as the nearest product of two thin ones, with at most the share `share` of its numbers together.

    More than two axes are taken as the first and all others. The rank is the largest that the share allows: up to 2, as the
    full rank of a square matrix takes twice its numbers.

    >>> LowRank("weights", share=0.5, format=None).apply(np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 0, 0, 1])).values[3].round(6)
    array([4., 0., 0., 4.])
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "share", number("share", self.share, 0.0, 2.0))

    def check(self, values: Array) -> None:
        """Refuse vectors, and matrices of which not even rank 1 is that small."""
        super().check(values)
        if values.ndim < 2:
            raise WorkbenchError(f"a rank needs weights of two axes or more at {self.site!r}; got shape {values.shape}")
        if self._rank(values.shape) < 1:
            least = sum(_sides(values.shape)) / values.size
            raise WorkbenchError(f"share must allow rank 1 at {self.site!r}, which takes {least:.3g}; got {self.share}")

    def _rank(self, shape: tuple[int, ...]) -> int:
        lines, columns = _sides(shape)
        return min(int(self.share * lines * columns / (lines + columns)), lines, columns)

    def _reduced(self, weights: np.ndarray, bits: int) -> tuple[np.ndarray, float]:
        lines, columns = _sides(weights.shape)
        rank = self._rank(weights.shape)
        left, sizes, right = np.linalg.svd(weights.reshape(lines, columns), full_matrices=False)
        shared = np.sqrt(sizes[:rank])
        one, other = self._rounded(left[:, :rank] * shared), self._rounded(shared[:, None] * right[:rank])
        return (one @ other).reshape(weights.shape), rank * (lines + columns) * bits


def _sides(shape: tuple[int, ...]) -> tuple[int, int]:
    return shape[0], math.prod(shape[1:])


def _which(kept: np.ndarray) -> float:
    """The bits that say which are kept."""
    return kept.size * entropy_of(np.count_nonzero(kept) / kept.size)
