"""How the values of a portable archive are stored: the smallest of the ways that plain Zarr reads, and its price.

As `choice.py` does for codecs of ours, each way encodes the values in the middle of a field. The certificate states the
bits per value that each took, and those of our own codec, which only this package reads: so the price is known.

The codecs of numcodecs are registered for Zarr 3, and zarr-python has them; but it warns that they are not in the
specification, and fewer other programs know them. So they are taken where they save at least a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.archive import choice
from workbench.archive.chunk import exact_chunk
from workbench.codecs import Codec, Tolerance, get
from workbench.codecs.pcodec import PCodec
from workbench.codecs.portable import OffLattice, Portable
from workbench.guarantees import Limit, encode_guarded

QUICK = 5     # the level of Zstandard that is tried
OWN = "own_bytes"   # in figures: about how many bytes the array would take by our own codec
WORTH = 1.1   # times as many bytes, at which codecs of the specification are preferred to those of numcodecs


@dataclass(frozen=True)
class Chosen:
    """The way that makes a sample smallest, the trial in words, and the bits that our own codec takes for each value."""

    codec: Portable
    words: str
    own_bits: float


def chosen(codec: Portable, values: np.ndarray, mask: np.ndarray | None, limit: Limit, lattice: bool) -> Chosen:
    """The choice for an array of which these values are a part; `lattice` says whether one may be tried."""
    values = np.ascontiguousarray(values)
    hidden = None if mask is None else np.ascontiguousarray(mask)
    own = replace(codec, level=min(codec.level, QUICK), chunk=values.shape)
    usable = lattice and not limit.relative and bool(np.isfinite(values).all())
    sizes: dict[Portable, float] = {}
    for one in own.candidates(values, Tolerance(absolute=limit.value) if usable else None):
        try:
            sizes[one] = _bits(one, values, hidden, limit)
        except OffLattice:
            continue
    best = min(sizes, key=lambda one: sizes[one] * (1 if one.core else WORTH))
    bits = _bits(replace(best, level=codec.level), values, hidden, limit)
    name, least = _own(values, hidden, limit)
    tried = f"{best.words} by trial on {values.size:,} values in the middle, where it takes {bits:.3g} bits per value"
    price = f"{name}, which only lossbench reads, takes {least:.3g}: portable costs {bits / least:.3g} times as much"
    return Chosen(replace(best, level=codec.level, chunk=codec.chunk), f"{tried}; {price}", least)


def _bits(codec: Codec, values: np.ndarray, mask: np.ndarray | None, limit: Limit) -> float:
    """The bits that a codec takes for each value."""
    return 8 * encode_guarded(codec, values, limit, mask=mask).nbytes / values.size


def _own(values: np.ndarray, mask: np.ndarray | None, limit: Limit) -> tuple[str, float]:
    """Our codec for the same values, and the bits that it takes for each."""
    if limit.value == 0:
        return PCodec.id, 8 * len(exact_chunk(values).data) / values.size
    codec = get(choice.usual(values.dtype)) if values.dtype.kind != "f" else choice.chosen(values, mask, limit)[0]
    return codec.id, _bits(codec, values, mask, limit)
