"""The bits of a number: how many there are, and which are sign, exponent and mantissa.

Complex numbers are two numbers each. The brain float (bfloat16), which NumPy lacks, is a float32 whose lower 16 bits are
rounded away: a flip in it is a flip in the upper 16. A float32 can also be stored as a float16: a flip is then in that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError

BFLOAT16, FLOAT16 = "bfloat16", "float16"
STORED = (BFLOAT16, FLOAT16)   # formats to which float32 values can be rounded before a change of bits
ANY = "any"

_EXPONENT_BITS = {"float16": 5, "float32": 8, "float64": 11, BFLOAT16: 8}


@dataclass(frozen=True)
class NumberFormat:
    """A format of numbers and its fields, each a range of bits; bit 0 is the least significant.

    >>> NumberFormat.of(np.float32).fields
    {'sign': range(31, 32), 'exponent': range(23, 31), 'exponent_top': range(30, 31), 'mantissa': range(0, 23)}
    """

    name: str
    bits: int

    @classmethod
    def of(cls, dtype: Any, stored: str | None = None) -> NumberFormat:
        """The format of the numbers of this type; `stored` is one of `STORED` for values that are rounded to it first."""
        part = component(np.dtype(dtype))
        if stored is not None:
            if stored not in STORED or part != np.float32:
                known = " or ".join(map(repr, STORED))
                raise WorkbenchError(f"format must be None, or {known} for float32 values; got {stored!r} for {part}")
            return cls(stored, 16)
        if part.kind == "b":
            return cls("bool", 1)
        if part.name not in _EXPONENT_BITS and part.kind not in "iu":
            raise WorkbenchError(f"bits can be changed in floats up to 64 bits, integers and booleans; got {part}")
        return cls(part.name, 8 * part.itemsize)

    @property
    def fields(self) -> dict[str, range]:
        """The bits of each field, by name."""
        if self.name in _EXPONENT_BITS:
            top = self.bits - 1
            mantissa = top - _EXPONENT_BITS[self.name]
            return {
                "sign": range(top, top + 1), "exponent": range(mantissa, top), "exponent_top": range(top - 1, top),
                "mantissa": range(mantissa),
            }
        if self.name.startswith("int"):
            return {"sign": range(self.bits - 1, self.bits), "magnitude": range(self.bits - 1)}
        return {"magnitude": range(self.bits)}

    def field_of(self, bit: int) -> str:
        """The field that a bit belongs to.

        >>> NumberFormat.of(np.float16).field_of(12)
        'exponent'
        """
        return next(name for name, bits in self.fields.items() if bit in bits)

    def choices(self, bit: int | str | tuple[int, ...] | None) -> range | tuple[int, ...]:
        """The bits that a choice stands for: one bit, several, a field, or any; others are refused."""
        if bit is None or bit == ANY:
            return range(self.bits)
        if isinstance(bit, str):
            fields: Mapping[str, range] = self.fields
            if bit not in fields:
                raise WorkbenchError(f"{self.name} has the fields {', '.join(fields)}, or {ANY}; got {bit!r}")
            return fields[bit]
        bits = bit if isinstance(bit, tuple) else (bit,)
        for each in bits:
            if not 0 <= each < self.bits:
                raise WorkbenchError(f"bit must be between 0 and {self.bits - 1} for {self.name}; got {each}")
        return bits


def component(dtype: np.dtype) -> np.dtype:
    """The type of the numbers in an array: that of the parts, for complex numbers."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def components(values: Array) -> Array:
    """The numbers of a contiguous array as one row, in place: real and imaginary parts in turn."""
    return values.reshape(-1).view(component(values.dtype))


def as_bits(numbers: Array) -> Array:
    """A row of numbers as unsigned integers, in place."""
    return numbers.view(f"u{numbers.dtype.itemsize}")


def stored_bits(numbers: Array, stored: str) -> Array:
    """The 16 bits of float32 numbers, rounded to a format.

    >>> [hex(int(stored_bits(np.float32([1.0]), each)[0])) for each in STORED]
    ['0x3f80', '0x3c00']
    """
    if stored == BFLOAT16:
        return to_bfloat16(numbers)
    with np.errstate(over="ignore"):   # what is too large is infinite there
        return numbers.astype(np.float16).view(np.uint16)


def from_stored(bits: Array, stored: str) -> Array:
    """The float32 numbers with these 16 bits in a format."""
    return from_bfloat16(bits) if stored == BFLOAT16 else bits.view(np.float16).astype(np.float32)


def to_bfloat16(numbers: Array) -> Array:
    """The upper 16 bits of float32 numbers, rounded to the nearest, ties to even; NaN stays NaN.

    >>> hex(int(to_bfloat16(np.float32([1.0]))[0]))
    '0x3f80'
    """
    xp = backend.namespace(numbers)
    bits = as_bits(numbers).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    cut = (bits >> 16).astype(np.uint16)
    return xp.where(xp.isnan(numbers), xp.where(cut & 0x7F, cut, cut | 0x40), rounded)


def from_bfloat16(upper: Array) -> Array:
    """The float32 numbers whose upper bits these are."""
    return (upper.astype(np.uint32) << 16).view(np.float32)
