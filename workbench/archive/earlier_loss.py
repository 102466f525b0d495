"""What a file has lost before it came here, as its attributes say: a finer bound then keeps rounding, not data.

Models and simulations round what they write: SWIFT names a lossy filter; the NetCDF library, and CF since 1.12, the digits
or bits that were kept. Files that come from an archive state its bound. Nothing is guessed from the values.

The scale-offset filter of HDF5, which is SWIFT's DScale, rounds to D decimals; but a value nearer to the fill value (0 by
default) than 10^-D becomes that value, so errors reach 10^-D.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from workbench.backend import Array
from workbench.data.readers.hdf5_snapshots import LOSS_OF_SWIFT
from workbench.data.readers.xtc import XTC_PRECISION
from workbench.guarantees import Limit

DECIMALS = "least_significant_digit"
BITS, DIGITS = "quantization_nsb", "quantization_nsd"   # of CF 1.12, whose variable `INFO` names the algorithm
INFO = "quantization_info"
SIGNIFICANT_DIGITS = (
    DIGITS, "_QuantizeBitGroomNumberOfSignificantDigits", "_QuantizeGranularBitRoundNumberOfSignificantDigits",
)
SIGNIFICANT_BITS = (BITS, "_QuantizeBitRoundNumberOfSignificantBits")
SWIFT = LOSS_OF_SWIFT
IN_WORDS, KIND, MOST = "lossy_compression", "lossy_compression_kind", "lossy_compression_maximum_error"   # of archives
ALGORITHM = "quantization"   # of CF 1.12: the attribute that names the variable with the algorithm
OURS = (IN_WORDS, KIND, MOST)
QUANTISATION = (ALGORITHM, DECIMALS, *SIGNIFICANT_BITS, *SIGNIFICANT_DIGITS, SWIFT)   # what no longer holds of other values
SWIFT_FILTERS: tuple[tuple[str, Callable[[int], Limit]], ...] = (
    (r"DScale(\d+)", lambda digits: Limit("absolute", 10.0**-digits)),
    (r"[DF]Mantissa(\d+)", lambda bits: Limit("relative", 2.0 ** -(bits + 1))),
    (r"BFloat(16)", lambda bits: Limit("relative", 2.0**-8)),
    (r"HalfFloat()", lambda bits: Limit("relative", 2.0**-11)),
)


def earlier_loss(attributes: Mapping[str, Any]) -> tuple[str, Limit] | None:
    """What the attributes of a variable say of earlier losses, in words and as a limit; None if they say nothing.

    >>> earlier_loss({"least_significant_digit": 1})
    ('least_significant_digit 1', Limit(kind='absolute', value=0.05))
    >>> earlier_loss({"Lossy compression filter": "DScale5"})[1].value
    1e-05
    """
    if (digits := _whole(attributes.get(DECIMALS))) is not None:
        return f"{DECIMALS} {digits}", Limit("absolute", 0.5 * 10.0**-digits)
    if (precision := _size(attributes.get(XTC_PRECISION))) is not None:
        return f"the precision of xtc, 1/{precision:g},", Limit("absolute", 0.5 / precision)
    for names, kept in ((SIGNIFICANT_DIGITS, of_digits), (SIGNIFICANT_BITS, of_bits)):
        for name in names:
            if (count := _whole(attributes.get(name))) is not None:
                return f"{name} {count}", kept(count)
    most, kind = _size(attributes.get(MOST)), str(attributes.get(KIND, ""))   # of any type, as files have them
    words = f"{IN_WORDS} {attributes.get(IN_WORDS, '')}".strip()
    if most is not None and kind == "absolute":
        return words, Limit("absolute", most)
    if most is not None and kind == "relative" and most < 1:
        return words, Limit("relative", most)
    given = str(attributes.get(SWIFT, ""))
    for pattern, limit in SWIFT_FILTERS:
        if found := re.fullmatch(pattern, given):
            return f"{SWIFT} {given}", limit(int(found[1] or 0))
    return None


def note_on_earlier_loss(attributes: Any, limit: Limit, largest: Callable[[], float]) -> str | None:
    """A note if a file with these attributes has lost more than the limit allows; `largest` is the size of a value.

    >>> note_on_earlier_loss({"least_significant_digit": 1}, Limit("absolute", 0.001), lambda: 2.25)
    'the file has lost more than this bound asks for: least_significant_digit 1 rounds by up to 0.05; ... is 0.001'
    """
    found = earlier_loss(attributes) if isinstance(attributes, Mapping) else None
    if found is None or not limit.value > 0:
        return None
    words, lost = found
    if lost.relative == limit.relative:
        worse, told = lost.value > limit.value, f"{lost.value:g}"
    elif lost.relative:
        size = lost.value * largest()
        worse, told = size > limit.value, f"{size:g}"
    else:
        worse, told = lost.value > limit.value * largest(), f"{lost.value:g}"
    if not worse:
        return None
    of_each = " of each value" if lost.relative and limit.relative else ""
    return (
        f"the file has lost more than this bound asks for: {words} rounds by up to {told}{of_each}; the bound is "
        f"{limit.value:g}"
    )


def largest_of(values: Array) -> float:
    """The size of the largest finite value."""
    size = abs(values[(values == values) & (abs(values) < math.inf)])
    return float(size.max()) if size.size else 0.0


def of_digits(count: int) -> Limit:
    """The limit of rounding to so many significant decimal digits."""
    return Limit("relative", min(0.5 * 10.0 ** (1 - count), 0.5))


def of_bits(count: int) -> Limit:
    """The limit of rounding to so many bits of the mantissa, beside the leading one."""
    return Limit("relative", min(2.0 ** -(count + 1), 0.5))


def _whole(given: Any) -> int | None:
    """A whole number; files write them in many types."""
    value = given[0] if isinstance(given, list | tuple) and len(given) == 1 else given
    try:
        return int(value) if not isinstance(value, bool | str) and value == int(value) else None
    except (TypeError, ValueError, OverflowError):
        return None


def _size(given: Any) -> float | None:
    """A positive finite number."""
    return float(given) if isinstance(given, int | float | np.number) and 0 < given < math.inf else None
