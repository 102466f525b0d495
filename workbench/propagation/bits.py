"""Soft errors: bits of values that flip, or that are stuck at 0 or 1."""

from __future__ import annotations

import operator
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.number_format import NumberFormat, as_bits, components, from_stored, stored_bits
from workbench.propagation.perturbation import Changed, Perturbation, require_draws

Bit = int | str | tuple[int, ...] | None
Index = int | tuple[int, ...] | None


@dataclass(frozen=True, repr=False)
class Bits(Perturbation):
    """A change of bits in one or several values of a site.

    `bit` is a number (0 is the least significant), several numbers (all are changed), the name of a field ("sign",
    "exponent", "exponent_top", "mantissa"; "magnitude" for integers), of which one bit is drawn, or None: any bit. `index`
    is the place of the value, flat or one number for each axis; None: any value. `count` values are hit, each once. With a
    `format`, "bfloat16" or "float16", float32 values are rounded to that, and its 16 bits are changed. Complex numbers are
    pairs: a flat index counts real and imaginary parts in turn.
    """

    bit: Bit = None
    index: Index = None
    count: int = 1
    format: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.bit, list):
            object.__setattr__(self, "bit", tuple(self.bit))
        if not (self.bit is None or isinstance(self.bit, str)):
            bits = self.bit if isinstance(self.bit, tuple) else (self.bit,)
            checked = tuple(whole_number("bit", each, 0, 63) for each in bits)
            if not checked or len(set(checked)) < len(checked):
                raise WorkbenchError(f"bit must be one or several different bits; got {self.bit!r}")
            object.__setattr__(self, "bit", checked if isinstance(self.bit, tuple) else checked[0])
        object.__setattr__(self, "count", whole_number("count", self.count, 1))
        object.__setattr__(self, "index", _index(self.index))
        if self.index is not None and self.count > 1:
            raise WorkbenchError(f"count must be 1 where the index is given; got {self.count}")

    @abstractmethod
    def _new_bits(self, bits: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """The bits of the hit values after the change of those in the mask."""

    def check(self, values: Array) -> None:
        """Refuse types without bits, bits and indices outside."""
        NumberFormat.of(values.dtype, self.format).choices(self.bit)
        self._flat(values)
        numbers = values.size * (2 if values.dtype.kind == "c" else 1)
        if self.count > numbers:
            raise WorkbenchError(f"count must be at most the {numbers:,} values at {self.site!r}; got {self.count:,}")

    def drawn(self, values: Array, draws: np.random.Generator, box: Any = None) -> tuple[Self, ...]:
        """One perturbation for each hit value, with its index and its bit.

        >>> from workbench.propagation.draws import draws_of
        >>> BitFlip("density", bit="sign").drawn(np.zeros(4), draws_of(seed=0, trial=1))
        (BitFlip('density', bit=63, index=3),)
        """
        flat, bits = self._places(values, draws)
        return tuple(
            replace(self, bit=self.bit if isinstance(self.bit, tuple) else int(bit), index=int(index), count=1)
            for index, bit in zip(flat, bits, strict=True)
        )

    def apply(self, values: Array, draws: np.random.Generator | None = None, box: Any = None) -> Changed:
        """The array with these bits changed.

        >>> BitFlip("density", bit=63, index=1).apply(np.ones(3)).values.tolist()
        [1.0, -1.0, 1.0]
        """
        xp = backend.namespace(values)
        self.check(values)
        flat, bits = self._places(values, draws)
        copy = values.copy()
        numbers = components(copy)
        hit = xp.asarray(flat)
        before = backend.to_host(numbers[hit])
        after = self._hit(before, bits)
        numbers[hit] = xp.asarray(after)
        notes = tuple(
            {"index": int(index), "bit": self.bit if isinstance(self.bit, tuple) else int(bit), "before": old, "after": new}
            for index, bit, old, new in zip(flat[:16], bits[:16], before[:16].tolist(), after[:16].tolist(), strict=True)
        )
        where = np.unique(flat // 2) if values.dtype.kind == "c" else np.sort(flat)
        return Changed(copy, where if xp is np else xp.asarray(where), notes)

    def _hit(self, numbers: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """The hit values after the change; `bits` is one bit for each, unless several bits of each are changed."""
        chosen = self.bit if isinstance(self.bit, tuple) else None
        if self.format is not None:
            halves = stored_bits(numbers, self.format)
            return from_stored(self._new_bits(halves, _mask(chosen, bits, halves.dtype)), self.format)
        if numbers.dtype == bool:
            return self._new_bits(numbers.view(np.uint8), _mask(chosen, bits, np.dtype(np.uint8))).view(bool)
        words = as_bits(numbers)
        return self._new_bits(words, _mask(chosen, bits, words.dtype)).view(numbers.dtype)

    def _places(self, values: Array, draws: np.random.Generator | None) -> tuple[np.ndarray, np.ndarray]:
        """The flat index of each hit number, and one bit for each (the first, where several are changed together)."""
        choices = NumberFormat.of(values.dtype, self.format).choices(self.bit)
        numbers = values.size * (2 if values.dtype.kind == "c" else 1)
        index = self._flat(values)
        if index is not None:
            flat = np.array([index], np.int64)
        elif self.count == 1:
            flat = require_draws(self, draws).integers(numbers, size=1)
        else:
            flat = require_draws(self, draws).choice(numbers, self.count, replace=False).astype(np.int64)
        if len(choices) == 1 or isinstance(self.bit, tuple):
            return flat, np.full(len(flat), choices[0], np.int64)
        return flat, np.asarray(choices)[require_draws(self, draws).integers(len(choices), size=len(flat))]

    def _flat(self, values: Array) -> int | None:
        """The chosen flat index into the numbers of an array; refuses one outside."""
        shape = (*values.shape, 2) if values.dtype.kind == "c" else values.shape
        size = int(np.prod(shape, dtype=np.int64))
        if self.index is None:
            return None
        if isinstance(self.index, int):
            if not -size <= self.index < size:
                raise WorkbenchError(f"index must be less than the {size:,} values at {self.site!r}; got {self.index}")
            return self.index % size
        index = (*self.index, 0) if values.dtype.kind == "c" and len(self.index) == values.ndim else self.index
        if len(index) != len(shape) or not all(-n <= i < n for i, n in zip(index, shape, strict=True)):
            raise WorkbenchError(f"index must lie within the shape {tuple(shape)} of {self.site!r}; got {self.index}")
        return int(np.ravel_multi_index([i % n for i, n in zip(index, shape, strict=True)], shape))


@dataclass(frozen=True, repr=False)
class BitFlip(Bits):
    """Bits that are inverted. A flip of a flip is the identity.

    >>> BitFlip("density", bit="exponent")
    BitFlip('density', bit='exponent')
    >>> float(BitFlip("x", bit=62, index=0).apply(np.array([0.5])).values[0])
    8.98846567431158e+307
    """

    def _new_bits(self, bits: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return bits ^ mask


@dataclass(frozen=True, repr=False)
class StuckAt(Bits):
    """Bits that have the value `to`, 0 or 1, whatever they should be.

    >>> StuckAt("x", bit=0, index=2, to=1).apply(np.array([2, 2, 2])).values.tolist()
    [2, 2, 3]
    """

    to: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "to", whole_number("to", self.to, 0, 1))

    def _new_bits(self, bits: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return bits | mask if self.to else bits & ~mask


def _mask(chosen: tuple[int, ...] | None, bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """For each hit value, the bits to change."""
    if chosen is not None:
        return np.full(len(bits), sum(1 << bit for bit in chosen), np.uint64).astype(dtype)
    return (np.uint64(1) << bits.astype(np.uint64)).astype(dtype)


def _index(given: Any) -> Index:
    if given is None:
        return None
    try:
        if isinstance(given, tuple | list):
            return tuple(operator.index(each) for each in given)
        return operator.index(given)
    except TypeError:
        raise WorkbenchError(f"index must be a whole number, or one for each axis; got {given!r}") from None
