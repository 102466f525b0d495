"""Masks as bytes: context modelling and an adaptive binary arithmetic coder, as JBIG codes pictures of two levels.

Coasts are lines in two dimensions, which byte compressors do not see: they take two to three times the room. And the land
of an ocean field is the same at all times, so rows and cells are predicted from those of the time before
(`kernels/mask.cu`). Patterns that repeat otherwise are left to Deflate.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import CodecFailed
from workbench.codecs.inflating import BOUNDED

STATES = 2**15 + 2        # the contexts in kernels/mask.cu
STRIP_CELLS = 2**22       # in rows that are coded together: many, as each strip begins without experience
LEAST_ROOM = 64           # bytes for a strip beside a bit for each cell, which is no more than a byte compressor takes

_DEFLATED, _MODELLED = b"\0", b"\1"   # the first byte
_LAG = struct.Struct("<Q")             # of a modelled mask; the bytes of each strip follow
_SIZE = struct.Struct("<I")


def pack_mask(mask: Array) -> bytes:
    """A mask of any shape as bytes.

    >>> land = np.zeros((12, 64, 64), bool)
    >>> land[:, 20:40, 5:50] = True
    >>> data = pack_mask(land)
    >>> len(data) < 80, bool((unpack_mask(data, land.shape) == land).all())
    (True, True)
    """
    deflated = _DEFLATED + zlib.compress(np.packbits(backend.to_host(mask)).tobytes(), 6)
    modelled = _modelled(mask) if mask.size else None
    return deflated if modelled is None or len(deflated) <= len(modelled) else modelled


def unpack_mask(data: bytes, shape: Sequence[int], xp: Any = np) -> Array:
    """The mask of this shape that `pack_mask` wrote, as an array of `xp`: numpy or cupy."""
    if data[:1] == _DEFLATED:
        bits = np.empty(-(-math.prod(shape) // 8), np.uint8)
        BOUNDED["zlib"](data[1:], bits)
        return xp.asarray(np.unpackbits(bits, count=math.prod(shape)).view(bool).reshape(shape))
    rows, columns, strip = _in_rows(shape)
    strips = -(-rows // strip)
    begin = len(_MODELLED) + _LAG.size + strips * _SIZE.size
    if len(data) < begin or data[:1] != _MODELLED:
        raise CodecFailed(f"a mask of {strips:,} strips begins with 1 and has at least {begin:,} bytes; it is damaged")
    (lag,) = _LAG.unpack_from(data, len(_MODELLED))
    sizes = np.frombuffer(data, "<u4", strips, len(_MODELLED) + _LAG.size).astype(np.int64)
    if lag >= max(rows, 1) or sizes.sum() != len(data) - begin:
        raise CodecFailed(
            f"a mask of {rows:,} rows must have a lag below that and strips of {len(data) - begin:,} bytes; "
            f"got {lag:,} and {sizes.sum():,}: it is damaged"
        )
    first, coded = np.concatenate([[0], np.cumsum(sizes)]), np.frombuffer(data, np.uint8, offset=begin)
    mask = xp.empty(math.prod(shape), xp.uint8)
    backend.kernel("mask", "decode_mask")(
        strips, strip, rows, columns, lag, xp.asarray(first), xp.asarray(coded), xp.empty(strips * STATES, xp.uint32), mask
    )
    return mask.view(bool).reshape(tuple(shape))


def _modelled(mask: Array) -> bytes | None:
    """The mask under the context model; None where a bit for each cell takes less."""
    rows, columns, strip = _in_rows(mask.shape)
    xp, lag = backend.namespace(mask), _best_lag(mask)
    cells = xp.ascontiguousarray(mask).view(xp.uint8).reshape(-1)
    strips, room = -(-rows // strip), -(-strip * columns // 8) + LEAST_ROOM
    out, used = xp.empty(strips * room, xp.uint8), xp.empty(strips, xp.int64)
    backend.kernel("mask", "encode_mask")(
        strips, strip, rows, columns, lag, cells, xp.empty(strips * STATES, xp.uint32), room, out, used
    )
    sizes = backend.to_host(used)
    if (sizes > room).any():
        return None
    written = backend.to_host(out).reshape(strips, room)
    parts = [bytes(own[:size]).rstrip(b"\0") for own, size in zip(written, sizes, strict=True)]   # zeros are read on
    return b"".join([_MODELLED, _LAG.pack(lag), *(_SIZE.pack(len(part)) for part in parts), *parts])


def _in_rows(shape: Sequence[int]) -> tuple[int, int, int]:
    """How many rows a mask has, how many cells are in each, and how many rows are in a strip."""
    rows, columns = math.prod(shape[:-1]), shape[-1] if shape else 1
    return rows, columns, max(min(STRIP_CELLS // max(columns, 1), rows), 1)


def _best_lag(mask: Array) -> int:
    """After how many rows a mask is most like itself: one step along an axis before the last two; 0 if it has none."""
    axes = reversed(range(mask.ndim - 2))   # of several that are alike, the shortest step
    steps = {axis: math.prod(mask.shape[axis + 1 : -1]) for axis in axes if mask.shape[axis] > 1}
    if not steps:
        return 0

    def differing(axis: int) -> float:
        before = (slice(None),) * axis
        return float((mask[(*before, slice(1, None))] != mask[(*before, slice(-1))]).mean())

    return steps[min(steps, key=differing)]
