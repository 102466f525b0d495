"""Bit flips in compressed data: one bit may change one value, a block, or all that follows it in the stream.

Decoders in C trust their input and may crash or loop on a stream with a flipped bit. So streams are decoded where archives
from strangers are: in another process with limits, unless the codec is known to be harmless.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.archive.archive import Archive
from workbench.archive.compress import compress
from workbench.archive.store import MemoryStore
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.codecs import Codec
from workbench.codecs.codec import Tolerance
from workbench.codecs.isolation import isolated
from workbench.codecs.isolation.decoders import Crashed, TookTooLong
from workbench.codecs.pieces import InPieces, join, split
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.propagation.bounded import Compressed
from workbench.propagation.number_format import component, components
from workbench.propagation.perturbation import Changed, require_draws
from workbench.propagation.stage import Detected, StageFailed

KEPT = 2   # encoded arrays that are remembered, as trials take the same ones again


@dataclass(frozen=True, repr=False)
class CompressedStreamFlip(Compressed):
    """The array, compressed within a bound, with flipped bits in the compressed bytes, and decompressed again.

    With `checksum`, the bytes are those of an archive of the workbench, which notices every flip that matters; without it,
    what the library of the codec returns. `bits` are places in the bytes, bit 0 the lowest of byte 0; None draws `count` of
    them. A decoder that refuses the bytes, or a checksum that differs, is a detected error; one that crashes or hangs is a
    crash.

    >>> from workbench.guarantees import Absolute
    >>> flip = CompressedStreamFlip("x", Absolute(1e-3), "pcodec", bits=(1000,))
    >>> flip.apply(np.sin(np.arange(4096.0))).notes[0]["values_hit"] > 100
    True
    """

    count: int = 1
    bits: tuple[int, ...] | None = None
    checksum: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "count", whole_number("count", self.count, 1))
        if self.bits is None:
            return
        given = (self.bits,) if isinstance(self.bits, int) else tuple(self.bits)
        checked = tuple(whole_number("each of bits", bit, 0) for bit in given)
        if not checked or len(set(checked)) < len(checked):
            raise WorkbenchError(f"bits must be one or several different places; got {self.bits!r}")
        object.__setattr__(self, "bits", checked)
        object.__setattr__(self, "count", len(checked))

    def check(self, values: Array) -> None:
        """Refuse types that no codec takes."""
        if component(values.dtype).name not in ("float32", "float64"):
            raise WorkbenchError(f"a flip in compressed data needs float32 or float64 at {self.site!r}; got {values.dtype}")

    def drawn(self, values: Array, draws: np.random.Generator, box: Any = None) -> tuple[Self, ...]:
        """The same flips with their places in the compressed bytes."""
        return (replace(self, bits=self._places(self._stream(values, box), draws)),)

    def apply(self, values: Array, draws: np.random.Generator | None = None, box: Any = None) -> Changed:
        """What is decompressed from the bytes with these bits flipped."""
        self.check(values)
        stream = self._stream(values, box)
        places = self._places(stream, draws)
        data = bytearray(stream.data)
        for place in places:
            data[place // 8] ^= 1 << place % 8
        restored = self._decoded(stream, bytes(data))
        with np.errstate(all="ignore"):
            hit = int(np.count_nonzero(restored != stream.undamaged))
        note = {"bits": places, "nbytes": len(data), "values_hit": hit, "codec": stream.codec}
        return Changed(restored, None, (note,))

    def _stream(self, values: Array, box: Any) -> _Stream:
        return _encoded(_Same(values), replace(self, count=1, bits=None), None if box is None else tuple(np.ravel(box)))

    def _places(self, stream: _Stream, draws: np.random.Generator | None) -> tuple[int, ...]:
        size = 8 * len(stream.data)
        if self.bits is None:
            if self.count > size:
                what = f"the {size:,} bits of compressed {self.site!r}"
                raise WorkbenchError(f"count must be at most {what}; got {self.count}")
            return tuple(map(int, require_draws(self, draws).choice(size, self.count, replace=False)))
        if max(self.bits) >= size:
            most = max(self.bits)
            raise WorkbenchError(f"bits must be less than the {size:,} bits of compressed {self.site!r}; got {most}")
        return self.bits

    def _decoded(self, stream: _Stream, data: bytes) -> Array:
        try:
            return stream.decoded(data)
        except (Crashed, TookTooLong) as error:
            raise StageFailed(f"decompressing {self.site!r}: {error}") from None
        except WorkbenchError as error:
            raise Detected(f"decompressing {self.site!r}: {error}") from None


@dataclass(frozen=True, eq=False)
class _Stream:
    """Compressed bytes, what they decode to without a flip, and how they are decoded."""

    data: bytes
    codec: str
    undamaged: Array
    decode: Callable[[bytes], Array]

    def decoded(self, data: bytes) -> Array:
        """The array of these bytes, like the undamaged one."""
        numbers, like = self.decode(data), self.undamaged
        if numbers.nbytes != like.nbytes:
            raise WorkbenchError(f"it must decompress to {like.dtype} of shape {like.shape}; got {numbers.shape}")
        return components(numbers).view(like.dtype).reshape(like.shape)


class _Same:
    """An array as a key: equal to itself alone, and not kept alive."""

    def __init__(self, values: Array) -> None:
        self.reference, self._id = weakref.ref(values), id(values)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.reference() is not None and self.reference() is other.reference()


@functools.lru_cache(maxsize=KEPT)
def _encoded(same: _Same, flip: CompressedStreamFlip, box: tuple[float, ...] | None) -> _Stream:
    """The compressed bytes of an array."""
    values: Any = same.reference()
    data = flip._data(values, box)
    archive = compress(data, flip.bound, flip.codec)
    parts, decode = _of_archive(archive) if flip.checksum else _of_codec(archive.codec, data, flip.bound)
    whole = b"".join(parts)
    undamaged = components(decode(whole)).view(values.dtype).reshape(values.shape)
    return _Stream(whole, archive.codec.id, undamaged, decode)


def _of_archive(archive: Archive) -> tuple[list[bytes], Callable[[bytes], Array]]:
    """The parts of an archive, with all their checksums."""
    keys = archive.store.keys()
    parts = [archive.store.read(key) for key in keys]

    def decode(data: bytes) -> Array:
        found = Archive(MemoryStore(dict(zip(keys, _cut(data, parts), strict=True)))).decompress()
        return found.positions if isinstance(found, Particles) else found.values

    return parts, decode


def _of_codec(codec: Codec, data: Particles | Field, bound: Bound) -> tuple[list[bytes], Callable[[bytes], Array]]:
    """What a codec makes of the numbers; the checksums that the workbench adds to the output of a library are left out."""
    numbers = np.ascontiguousarray(backend.to_host(data.positions if isinstance(data, Particles) else data.values))
    limit, shape, dtype = bound.limit(numbers), numbers.shape, numbers.dtype
    tolerance = Tolerance(relative=limit.value) if limit.relative else Tolerance(absolute=limit.value)
    if limit.relative and not codec.relative:
        tolerance = Tolerance(absolute=tolerance.absolute_for(numbers))
    encoded, safe = codec.encode(numbers, tolerance), isolated(codec)
    if not isinstance(codec, InPieces):
        return [encoded], lambda changed: safe.decode(changed, shape, dtype)
    parts = [bytes(part) for _, part in split(codec.id, encoded, shape, dtype)]

    def decode(changed: bytes) -> Array:
        return safe.decode(join(codec.id, _cut(changed, parts), shape, dtype, codec.most_values), shape, dtype)

    return parts, decode


def _cut(data: bytes, parts: Sequence[bytes]) -> list[bytes]:
    """The data in parts as long as these."""
    ends = list(itertools.accumulate(map(len, parts), initial=0))
    return [data[start:end] for start, end in itertools.pairwise(ends)]
