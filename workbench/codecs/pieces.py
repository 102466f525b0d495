"""Arrays that are too large for a library, in pieces; and a checksum that is verified before a library sees the bytes.

Most codecs are native code that trusts its input: a truncated stream, or one decoded into another shape, ends the process
instead of raising. The output of a library is therefore stored with a checksum over its bytes, the codec, the shape and the
type, so that damage or a mix-up is detected first. `isolation` protects against forged bytes with a correct checksum.

Cuts run along the first axis that allows it: pieces are consecutive in memory and have as many dimensions as the whole.
"""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.codecs.codec import Codec, CodecFailed, Tolerance

Shape = tuple[int, ...]

_HEAD = struct.Struct("<IB")        # a checksum of all that follows; whether there are several pieces
_CUT = struct.Struct("<QI")         # how many values a piece may hold; how many pieces there are
_LENGTH = np.dtype("<u8")           # of the bytes of each piece


@dataclass(frozen=True)
class InPieces(Codec):
    """A codec whose library takes at most `most_values` at once; it defines `_encode_piece` and `_decode_piece`."""

    @abstractmethod
    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        """The bytes of a contiguous array of 1 to `most_values` values."""

    @abstractmethod
    def _decode_piece(self, data: bytes, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """The array of these bytes, which `_encode_piece` made from an array of this shape and type."""

    def _encode(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        flat = values.reshape(-1)
        pieces = cut(values.shape, self.most_values)
        parts = [self._encode_piece(flat[p.start : p.stop].reshape(p.shape), tolerance) for p in pieces]
        return join(self.id, parts, values.shape, values.dtype, self.most_values)

    def _decode(self, data: bytes, shape: Shape, dtype: np.dtype) -> np.ndarray:
        parts = split(self.id, data, shape, dtype)
        if len(parts) == 1:
            return self._decode_piece(parts[0][1], shape, dtype)
        values = np.empty(math.prod(shape), dtype)
        for piece, part in parts:
            decoded = self._decode_piece(part, piece.shape, dtype)
            if decoded.shape != piece.shape or decoded.dtype != dtype:
                raise CodecFailed(f"{self.id} must decode a piece to {dtype} of shape {piece.shape}; got {decoded.shape}")
            values[piece.start : piece.stop] = decoded.reshape(-1)
        return values.reshape(shape)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of consecutive values of a larger array, and the shape it has."""

    start: int
    shape: Shape

    @property
    def stop(self) -> int:
        """One past its last value."""
        return self.start + math.prod(self.shape)


def cut(shape: Shape, most_values: int) -> list[Piece]:
    """The pieces of an array of this shape, of at most so many values each.

    >>> [piece.shape for piece in cut((5, 4), most_values=8)]
    [(2, 4), (2, 4), (1, 4)]
    """
    if math.prod(shape) <= most_values:
        return [Piece(0, shape)]
    axis = next(a for a in range(len(shape)) if math.prod(shape[a + 1 :]) <= most_values)
    row = math.prod(shape[axis + 1 :])
    rows = most_values // row
    slab = shape[axis] * row
    return [
        Piece(outer * slab + i * row, (1,) * axis + (min(rows, shape[axis] - i),) + shape[axis + 1 :])
        for outer in range(math.prod(shape[:axis]))
        for i in range(0, shape[axis], rows)
    ]


def join(codec: str, parts: Sequence[bytes], shape: Shape, dtype: np.dtype, most_values: int) -> bytes:
    """The encoded pieces of an array, which was cut with `most_values`, as one byte string."""
    several = len(parts) > 1
    lengths = np.array([len(part) for part in parts], _LENGTH)
    head = [_CUT.pack(most_values, len(parts)), lengths.tobytes()] if several else []
    body = b"".join([*head, *parts])
    return _HEAD.pack(_checksum(codec, body, several, shape, dtype), several) + body


def split(codec: str, data: bytes, shape: Shape, dtype: np.dtype) -> list[tuple[Piece, bytes]]:
    """The pieces and their bytes; an error when these are damaged, or belong to another codec, shape or type."""
    if len(data) <= _HEAD.size:
        raise CodecFailed(f"an encoded array must be longer than {_HEAD.size} bytes; got {len(data)}: they are truncated")
    checksum, several = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if several > 1 or checksum != _checksum(codec, body, several, shape, dtype):
        raise CodecFailed(
            f"the bytes must be what {codec} made of a {dtype} array of shape {shape}, but their checksum differs: "
            "they are damaged, or belong to another array"
        )
    return _pieces(body, shape) if several else [(Piece(0, shape), body)]


def _pieces(body: bytes, shape: Shape) -> list[tuple[Piece, bytes]]:
    """The parts behind the head, checked against the shape before they are decoded."""
    size = math.prod(shape)
    most_values, count = _CUT.unpack_from(body) if len(body) >= _CUT.size else (0, 0)
    first = _CUT.size + count * _LENGTH.itemsize
    if not (0 < most_values < size <= count * most_values) or first > len(body):
        raise CodecFailed(f"{count} pieces of at most {most_values} values cannot be an array of shape {shape}")
    pieces = cut(shape, most_values)
    lengths = np.frombuffer(body, _LENGTH, count, _CUT.size).tolist()
    if len(pieces) != count or first + sum(lengths) != len(body):
        raise CodecFailed(f"{count} pieces of {sum(lengths)} bytes cannot be an array of shape {shape}")
    ends = list(itertools.accumulate(lengths, initial=first))[1:]
    return [(piece, body[end - n : end]) for piece, n, end in zip(pieces, lengths, ends, strict=True)]


def _checksum(codec: str, body: bytes, several: bool, shape: Shape, dtype: np.dtype) -> int:
    meant = f"{codec} {int(several)} {np.dtype(dtype).name} {'x'.join(map(str, shape))}"
    return zlib.crc32(body, zlib.crc32(meant.encode()))
