"""What lossy filters of HDF5 and codecs of Zarr promise, by the parameters that files keep with the values.

Only what a filter bounds is a bound: a rate, a precision or a PSNR is none, and neither is a mode that cannot be read. The
parameters are those of the registered filters; ZFP and SPERR pack theirs, which `hdf5plugin` reads.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.archive.earlier_loss import of_bits, of_digits
from workbench.guarantees import Absolute, Bound, Exact, Limit, PointwiseRelative, Relative

SCALE_OFFSET, ZFP, SZ, BITGROOM, GRANULAR, SZ3, SPERR = 6, 32013, 32017, 32022, 32023, 32024, 32028
LOSSY = {SZ: "SZ", SZ3: "SZ3", ZFP: "ZFP", SPERR: "SPERR"}
SZ_WORDS = 9   # at the end of SZ's parameters: the mode, and four numbers of two words each
ROUNDED = ("bitround", "quantize", "fixedscaleoffset", "zfpy", "zfp", "scale_offset")   # of Zarr


@dataclass(frozen=True)
class Stated:
    """What a file says of the errors of its values: in words, and as a bound, if it is one.

    `rounds` says that the numbers were rounded once more when they were computed from what is stored.
    """

    words: str
    bound: Bound | None
    rounds: bool = False


def bound_of(limit: Limit) -> Bound:
    """The bound with this limit.

    >>> bound_of(Limit("relative", 0.5))
    PointwiseRelative(eb=0.5)
    """
    return PointwiseRelative(limit.value) if limit.relative else Absolute(limit.value)


def loss_of_filter(number: int, parameters: Sequence[int]) -> Stated | None:
    """What a filter of HDF5 says, by its number and parameters; None of one without loss.

    >>> loss_of_filter(SZ3, (3, 0, 32, 32, 8, 0, 1065646817, 1202590843, 0, 0, 0, 0, 0, 0))
    Stated(words='HDF5 filter SZ3, absolute 0.01', bound=Absolute(eb=0.01), rounds=False)
    """
    if number == SCALE_OFFSET and len(parameters) > 1 and parameters[0] == 0:
        decimals = parameters[1] - (2**32 if parameters[1] >= 2**31 else 0)
        return Stated(f"HDF5 scale-offset to {decimals} decimals", Absolute(10.0**-decimals), rounds=True)
    if number in (BITGROOM, GRANULAR) and parameters:
        name = "BitGroom" if number == BITGROOM else "Granular BitRound"
        digits = parameters[0]
        return Stated(f"HDF5 filter {name}, {digits} significant digits", bound_of(of_digits(digits)))
    if number in (SZ, SZ3) and len(parameters) >= SZ_WORDS:
        return _of_sz(LOSSY[number], parameters[-SZ_WORDS:], has_pointwise=number == SZ)
    return _of_packed(number, parameters) if number in (ZFP, SPERR) else None


def loss_of_codecs(codecs: Sequence[Mapping[str, Any]]) -> list[Stated]:
    """What the codecs of a Zarr array say, as the documents of format 2 or 3 have them.

    >>> loss_of_codecs([{"name": "numcodecs.bitround", "configuration": {"keepbits": 7}}])
    [Stated(words='Zarr codec bitround, 7 bits', bound=PointwiseRelative(eb=0.00390625), rounds=False)]
    """
    found = []
    for codec in codecs:
        name = str(codec.get("name", codec.get("id", ""))).removeprefix("numcodecs.")
        options = codec.get("configuration", codec)
        if name in ROUNDED and isinstance(options, Mapping):
            found.append(_of_codec(name, options))
    return found


def _of_codec(name: str, options: Mapping[str, Any]) -> Stated:
    words = f"Zarr codec {name}"
    match name, options:
        case "bitround", {"keepbits": int(bits)}:
            return Stated(f"{words}, {bits} bits", bound_of(of_bits(bits)))
        case "quantize", {"digits": int(digits)}:
            return Stated(f"{words}, {digits} decimals", Absolute(0.5 * 10.0**-digits), rounds=True)
        case ("fixedscaleoffset" | "scale_offset"), {"scale": int(scale) | float(scale)} if scale:
            return Stated(f"{words} in steps of {1 / abs(scale):g}", Absolute(0.5 / abs(scale)), rounds=True)
        case "zfpy", {"mode": 4, "tolerance": int(tolerance) | float(tolerance)} if tolerance >= 0:
            return Stated(f"{words}, accuracy {tolerance:g}", Absolute(tolerance))
        case "zfp", {"mode": {"fixed_accuracy": {"tolerance": int(tolerance) | float(tolerance)}}} if tolerance >= 0:
            return Stated(f"{words}, accuracy {tolerance:g}", Absolute(tolerance))
    return Stated(f"{words}, which states no bound", None)


def _of_sz(name: str, words: Sequence[int], has_pointwise: bool) -> Stated:
    """The mode and the bounds of SZ: absolute, of the range of a chunk (that of all values is not smaller), pointwise."""
    mode, absolute, relative, pointwise = words[0], *(_double(words[at : at + 2]) for at in (1, 3, 5))
    what = f"HDF5 filter {name}"
    if mode == 0 and absolute >= 0:
        return Stated(f"{what}, absolute {absolute:g}", Absolute(absolute))
    if mode == 1 and relative >= 0:
        return Stated(f"{what}, {relative:g} of the range", Relative(relative))
    if mode == 10 and has_pointwise and 0 <= pointwise < 1:
        return Stated(f"{what}, {pointwise:g} of each value", PointwiseRelative(pointwise))
    return Stated(f"{what} in a mode that bounds no value", None)


def _of_packed(number: int, parameters: Sequence[int]) -> Stated:
    """The parameters of ZFP and SPERR, as hdf5plugin reads them."""
    what = f"HDF5 filter {LOSSY[number]}"
    try:
        import hdf5plugin

        options = hdf5plugin.from_filter_options(number, tuple(parameters)).get_config()
    except (ImportError, ValueError, LookupError, struct.error):
        return Stated(f"{what}, whose parameters cannot be read", None)
    match options:
        case {"reversible": True}:
            return Stated(f"{what}, reversible", Exact())
        case {"accuracy": float(size)} | {"absolute": float(size)}:
            rounds = number == SPERR   # it keeps its bound in float64, and then rounds to the type of the values
            return Stated(f"{what}, absolute {size:g}", Absolute(size), rounds)
    return Stated(f"{what} in a mode that bounds no value", None)


def _double(words: Sequence[int]) -> float:
    """A number of 64 bits from two words, the higher one first."""
    return float(struct.unpack(">d", struct.pack(">2I", *words))[0])
