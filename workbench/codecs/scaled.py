"""Whole numbers without neighbours as bytes: rANS with the table of each number's scale.

One table of frequencies for all numbers is up to 40% larger than need be, where rows, columns or runs differ in scale
(`scales.py`). Scales are stored, not adapted, in quarters of an octave: so there is no loop from number to number, blocks
are independent, and a scale is exact from the first number on, for a few bits each. Symbols have the sign, since columns
need not be symmetric about their offsets (`kernels/scaled.cu`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.entropy import even_blocks, slots_of, starts, words_of
from workbench.codecs.inflating import inflated
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.codecs.residuals import CONTEXTS, SYMBOLS, Tables, counted, symbol_slots
from workbench.codecs.scales import FEW_SEGMENTS, Layout, Scales

BLOCK = 2**15            # numbers that are coded by themselves

_HEADER = struct.Struct("<IIBII")   # segment, columns, tables; bytes of scales of many segments, and of what is deflated
_FORMS = ("<i2", "<i2", "<i8", "<u4", "<u4")   # of few segments' scales, columns' scales and offsets, words, bits


def pack_scaled(numbers: np.ndarray, layout: Layout) -> bytes:
    """Numbers of 64 bits as bytes; the caller keeps how many there are.

    >>> numbers = np.random.default_rng(0).normal(0, [[1.0], [100.0]], (2, 500)).round().astype(np.int64)
    >>> data = pack_scaled(numbers, Layout(segment=500, columns=1))
    >>> bool((unpack_scaled(data, 1000) == numbers.reshape(-1)).all())
    True
    """
    flat = np.ascontiguousarray(numbers.reshape(-1), np.int64)
    scales, begin = Scales.of(flat, layout), even_blocks(len(flat), BLOCK)
    given = {"n": len(flat), "block": BLOCK, "number": flat, **scales.arguments}
    code, bits = np.empty(len(flat), np.uint16), np.empty(len(begin) - 1, np.int64)
    backend.kernel("scaled", "code_scaled")(len(bits), given, code=code, bits=bits)
    tables = Tables.of(counted(code))
    words, word_first = words_of(code, begin, tables.frequency[tables.row])
    rest_first = starts((bits + 31) // 32)
    rest = np.empty(int(rest_first[-1]), np.uint32)
    backend.kernel("scaled", "write_scaled")(len(bits), given, code=code, first=rest_first, out=rest)
    few, segments = scales.of_segment, b""
    if len(few) > FEW_SEGMENTS:
        few, segments = few[:0], pack_integers(few)
    beside = (few, scales.of_column, scales.offset, np.diff(word_first), np.diff(rest_first))
    planes = map(_bytes_of, beside, _FORMS)
    side = zlib.compress(b"".join([*planes, tables.to_bytes()]), 9)
    head = _HEADER.pack(layout.segment, layout.columns, len(tables.shares), len(segments), len(side))
    return b"".join([head, segments, side, words.astype("<u2").tobytes(), rest.astype("<u4").tobytes()])


def unpack_scaled(data: bytes, count: int) -> np.ndarray:
    """The numbers that `pack_scaled` wrote, along one axis."""
    scales, tables, (word_first, rest_first), body = _read_side(data, count)
    split = body + 2 * int(word_first[-1])
    if len(data) != split + 4 * int(rest_first[-1]):
        raise CodecFailed(f"scaled numbers: {len(data)} bytes are not what their blocks take: they are damaged")
    blocks, frequency = len(word_first) - 1, tables.frequency
    number, sound = np.empty(count, np.int64), np.empty(blocks, np.uint8)
    backend.kernel("scaled", "decode_scaled")(
        blocks, scales.arguments, n=count, block=BLOCK,
        word_first=word_first, words=np.frombuffer(data, "<u2", int(word_first[-1]), body).astype(np.uint16),
        rest_first=rest_first, rest=np.frombuffer(data, "<u4", int(rest_first[-1]), split).astype(np.uint32),
        row=tables.row, symbol_at=symbol_slots(frequency), frequency=frequency.reshape(-1),
        start=slots_of(frequency).reshape(-1), number=number, sound=sound,
    )
    if not sound.all():
        raise CodecFailed(f"scaled numbers: block {int(np.argmin(sound))} does not end where it should: it is damaged")
    return number


def _read_side(data: bytes, count: int) -> tuple[Scales, Tables, Sequence[np.ndarray], int]:
    """Scales, tables, where the words and bits of each block begin, and where the first words are."""
    if len(data) < _HEADER.size:
        raise CodecFailed(f"scaled numbers have a header of {_HEADER.size} bytes; got {len(data)}: they are truncated")
    segment, columns, number, length, deflated = _HEADER.unpack_from(data)
    if not (segment and columns and 1 <= number <= CONTEXTS) or count % columns:
        raise CodecFailed(f"segments of {segment} and {columns} columns are none of {count:,} numbers: they are damaged")
    segments, blocks, at = -(-count // segment), -(-count // BLOCK), _HEADER.size + length
    few = segments <= FEW_SEGMENTS
    counts = (segments if few else 0, columns, columns, blocks, blocks)
    ends = np.cumsum([0, *(n * np.dtype(form).itemsize for n, form in zip(counts, _FORMS, strict=True))]).tolist()
    known = inflated(data[at : at + deflated], ends[-1] + number * (SYMBOLS + 1))
    parts = [known[a:b] for a, b in pairwise(ends)]
    of_segment, of_column, offset, *sizes = map(_from_bytes, parts, counts, _FORMS)
    if not few:
        of_segment = unpack_integers(data[_HEADER.size : at], segments, np.int32)
    levels = of_segment.astype(np.int32), of_column.astype(np.int32)
    scales = Scales(Layout(segment, columns), *levels, offset.astype(np.int64))
    tables = Tables.from_bytes(known[ends[-1] :], number)
    return scales, tables, [starts(each) for each in sizes], at + deflated


def _bytes_of(numbers: np.ndarray, form: str) -> bytes:
    """The first bytes of all numbers, then the second ..."""
    width = np.dtype(form).itemsize
    return np.ascontiguousarray(numbers.astype(form).view(np.uint8).reshape(-1, width).T).tobytes()


def _from_bytes(data: bytes, count: int, form: str) -> np.ndarray:
    """What `_bytes_of` wrote."""
    width = np.dtype(form).itemsize
    if len(data) != count * width:
        raise CodecFailed(f"{count} numbers take {count * width} bytes; got {len(data)}: they are damaged")
    return np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(width, count).T).view(form).reshape(-1)
