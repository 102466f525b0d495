"""Integers of a grid as bytes: a palette of few values, differences of smooth ones, pcodec, LZMA, or scales of their own.

The values of a field on a lattice can be smooth, noise, counts, or steps and classes that repeat, and no one way codes all
of these well. pcodec codes numbers, or their differences along some axes, by their distribution; LZMA, of Python itself,
finds what repeats. Classes and counts take few of the numbers of a fine lattice: a palette lists these, and their ranks are
coded. Numbers without neighbours, or their differences, are coded with the scales of their rows, columns and runs
(`scaled.py`), if these differ. Numbers that are mostly zeros, or few, are coded with chances that adapt (`sparse.py`).
Which way is smallest is estimated or tried on a part of the numbers.
"""

from __future__ import annotations

import lzma
import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from workbench.codecs.codec import CodecFailed
from workbench.codecs.differences import differenced, runs_of, summed
from workbench.codecs.inflating import BOUNDED, streamed
from workbench.codecs.mask import pack_mask
from workbench.codecs.pcodec import LEVEL, pack_integers, unpack_integers
from workbench.codecs.scaled import pack_scaled, unpack_scaled
from workbench.codecs.scales import GAP, SMALL, Layout, promising
from workbench.codecs.sparse import pack_sparse, suits, unpack_sparse

LEAST_LEVEL = 8          # of pcodec, at which repeats are looked for, too:
MOST_BITS = 3            # in numbers that take no more, on average,
TRIED = 2**16            # on so many of them,
HOPELESS = 2             # unless the fastest preset of LZMA takes so many times what pcodec does,
FASTER = 1.3             # times as many bytes as the smallest, at most, does the fastest preset make
FASTEST, SMALLEST = 0, 6 | lzma.PRESET_EXTREME   # the presets
RUN, LEAST_AGAIN = 16, 0.1  # or where more than such a share of runs of so many numbers occurs again,
TAKEN_BITS = 6           # among one run in 2^6
LOOKED_BACK = 2**22      # bytes, in which LZMA looks for the same ones;
LEAST_BACK = 2**12       # in fewer where there are fewer, as tables for more take time and memory
MOST_LISTED = 4096       # numbers of a palette,
LISTED_IN = 16           # at least so many times as many numbers
MOST_SPAN = 2**20        # between the smallest and the largest, so that a table finds those that occur
WORTH = 0.98             # of the bytes of other ways, at which the slower one with chances that adapt is taken
LEAST_SPREAD = 1.5       # times as many numbers as occur: in fewer, a palette saves nothing

_HEAD = struct.Struct("<BB")      # how the numbers are coded, and the axes that were differenced, a bit each
_PALETTE = struct.Struct("<HI")   # its numbers, and its bytes
# Beside the bytes of a number: coded by LZMA; ranks in a palette; coded with scales; with chances that adapt.
_REPEATS, _LISTED, _SCALED, _SPARSE = 16, 32, 64, 128
_MIXING = np.uint64(0x9E3779B97F4A7C15)
_SPREADING = np.uint32(0x9E3779B1)
_WIDTHS = (1, 2, 4, 8)


def pack_numbers(numbers: np.ndarray, level: int = LEVEL) -> bytes:
    """A grid of int32 or int64 as bytes; the caller keeps its shape and type.

    >>> grid = np.arange(6, dtype=np.int32).reshape(2, 3)
    >>> unpack_numbers(pack_numbers(grid), (2, 3), grid.dtype).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    palette = _palette(numbers)
    if palette is None:
        return b"".join(_packed(numbers, level, 0))
    listed = _listed(palette)
    if len(palette) == 1:
        return _HEAD.pack(_LISTED, 0) + listed
    low = int(palette[0])
    ranks = np.zeros(int(palette[-1]) - low + 1, np.int32)
    ranks[palette - low] = np.arange(len(palette))
    head, body = _packed(ranks[numbers - low], level, _LISTED)
    return min(b"".join(_packed(numbers, level, 0)), head + listed + body, key=len)


def pack_with_gaps(numbers: np.ndarray, filled: np.ndarray, level: int = LEVEL) -> bytes:
    """Numbers of which some are missing (`GAP`, int64), if neighbours do not predict them; else those with filled gaps.

    What is filled must be told apart from numbers by other means, which takes about as much as a mask.
    """
    plain = pack_numbers(filled, level)
    shown = runs_of(filled[numbers != GAP])   # filled gaps repeat, in noise too
    if level < LEAST_LEVEL or not shown.size or differenced(shown - np.sort(shown)[shown.size // 2])[1]:
        return plain
    layout = promising(filled, math.inf) or Layout(numbers.size, 1)
    scaled = _HEAD.pack(numbers.itemsize | _SCALED, 0) + pack_scaled(numbers, layout)
    return min(scaled, plain, key=lambda data: len(data) + (len(pack_mask(numbers == GAP)) if data is plain else 0))


def unpack_numbers(data: bytes, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """The grid of this shape and type that `pack_numbers` wrote."""
    if len(data) < _HEAD.size:
        raise CodecFailed(f"lattice numbers have a head of {_HEAD.size} bytes; got {len(data)}: they are truncated")
    how, axes = _HEAD.unpack_from(data)
    width, body = how & ~(_REPEATS | _LISTED | _SCALED | _SPARSE), data[_HEAD.size :]
    palette = None
    if how & _LISTED:
        palette, body = _read_palette(body, dtype)
        if len(palette) == 1 and how == _LISTED and not body:
            return np.full(shape, palette[0], dtype)
    one_way = how & (_REPEATS | _SCALED | _SPARSE) in (0, _REPEATS, _SCALED, _SPARSE)
    if width not in (_WIDTHS if how & _REPEATS else (4, 8)) or axes >= 1 << len(shape) or not one_way:
        raise CodecFailed(f"numbers of {width} bytes and the axes {axes:#b} describe no lattice: they are damaged")
    if how & _REPEATS:
        numbers = _expanded(body, width, shape, np.dtype(np.int32) if how & _LISTED else dtype)
    elif how & _SCALED:
        numbers = unpack_scaled(body, math.prod(shape)).astype(f"int{8 * width}").reshape(shape)
    elif how & _SPARSE:
        numbers = unpack_sparse(body, shape).astype(f"int{8 * width}", copy=False)
    else:
        numbers = unpack_integers(body, math.prod(shape), f"int{8 * width}").reshape(shape)
    numbers = summed(numbers, axes)
    if palette is None:
        return numbers.astype(dtype, copy=False)
    if numbers.min() < 0 or numbers.max() >= len(palette):
        raise CodecFailed(f"ranks in a palette of {len(palette)} numbers must be below that: they are damaged")
    return palette[numbers]


def _packed(numbers: np.ndarray, level: int, listed: int) -> tuple[bytes, bytes]:
    """The head and the coded numbers, in the smallest of the ways that are tried."""
    changed, axes = differenced(numbers)
    if axes and len(pack_integers(runs_of(numbers), level)) < len(pack_integers(runs_of(changed), level)):
        changed, axes = numbers, 0
    ways = [(_HEAD.pack(numbers.itemsize | listed, axes), pack_integers(changed, level))]
    if level >= LEAST_LEVEL:
        bits = 8 * len(ways[0][1]) / numbers.size
        for each, differences in [(changed, axes), (numbers, 0)][: 2 if axes else 1]:
            layout = promising(each, bits)
            if layout is not None:
                head = _HEAD.pack(numbers.itemsize | listed | _SCALED, differences)
                tried = (layout, layout.uncentred) if layout.columns > 1 else (layout,)
                ways += [(head, pack_scaled(each, one)) for one in tried]
            enough = int(WORTH * min(len(body) for _, body in ways))
            sparse = pack_sparse(each, enough) if suits(each, axes == 0) else None
            if sparse is not None:
                ways.append((_HEAD.pack(numbers.itemsize | listed | _SPARSE, differences), sparse))
        if _repeats(numbers, 8 * min(len(body) for _, body in ways) / numbers.size):
            low, narrow = _narrowed(numbers)
            ways.append((_HEAD.pack(narrow.itemsize | listed | _REPEATS, 0), low + _lzma(narrow, SMALLEST)))
    return min(ways, key=lambda way: len(way[1]))


def _repeats(numbers: np.ndarray, bits: float) -> bool:
    """Whether LZMA may take fewer bits for a number than these: on a part, or as runs of numbers recur."""
    if numbers.size <= SMALL or _recurring(numbers.reshape(-1)) > LEAST_AGAIN:
        return True
    if bits > MOST_BITS:
        return False
    start = max(numbers.size - TRIED, 0) // 2
    _, part = _narrowed(numbers.reshape(-1)[start : start + TRIED])
    enough = bits * part.size / 8
    return len(_lzma(part, FASTEST)) < HOPELESS * enough and len(_lzma(part, SMALLEST)) < enough


def _recurring(flat: np.ndarray) -> float:
    """The share of runs that occur more than once, over a sample that has all or none of equal runs.

    Runs in which fewer than half of the numbers differ from the one before take few bits anyway.
    """
    if flat.size <= RUN:
        return 0.0
    hashed = range(0, len(flat) - RUN + 1, TRIED)   # all that looks at every number
    at = np.concatenate([start + _taken(flat[start : min(start + TRIED, len(flat) - RUN + 1) + 1]) for start in hashed])
    at = at[:: max(len(at) // TRIED, 1)]
    runs, changes = flat[at].astype(np.uint64), np.zeros(len(at), np.int8)
    for step in range(1, RUN):
        runs = (runs ^ runs >> np.uint64(32)) * _MIXING + flat[at + step].astype(np.uint64)
        changes += flat[at + step] != flat[at + step - 1]
    runs = runs[2 * changes >= RUN]
    return (len(runs) - len(np.unique(runs))) / max(len(at), 1)


def _taken(numbers: np.ndarray) -> np.ndarray:
    """The places of runs that are sampled: by a hash of the first two numbers."""
    pairs = numbers.astype(np.uint32)   # their hash needs no more
    mixed = (pairs[:-1] * _SPREADING + pairs[1:]) * _SPREADING
    return np.flatnonzero(mixed < 1 << 32 - TAKEN_BITS)


def may_repeat(numbers: np.ndarray, packed: int, enough: float) -> bool:
    """Whether LZMA might need fewer bytes than are enough for these numbers, which pcodec packs into so many."""
    if 8 * packed > MOST_BITS * numbers.size:
        return False
    return len(_lzma(_narrowed(numbers)[1], FASTEST)) < FASTER * enough


def _narrowed(numbers: np.ndarray) -> tuple[bytes, np.ndarray]:
    """The smallest number, and all in order as unsigned differences to it, in as few bytes as hold them."""
    low = int(numbers.min())
    span = int(numbers.max()) - low
    width = next(width for width in _WIDTHS if span < 1 << 8 * width)
    above = numbers.reshape(-1).view(f"u{numbers.itemsize}") - np.array(low, numbers.dtype).view(f"u{numbers.itemsize}")
    return low.to_bytes(8, "little", signed=True), above.astype(f"<u{width}")


def _lzma(narrow: np.ndarray, preset: int) -> bytes:
    """The numbers under LZMA, the first bytes of all, then the second ..."""
    shuffled = np.ascontiguousarray(narrow.view(np.uint8).reshape(-1, narrow.itemsize).T)
    looked_back = min(max(shuffled.size, LEAST_BACK), LOOKED_BACK)
    return lzma.compress(shuffled.tobytes(), lzma.FORMAT_RAW, filters=[_filter(preset, looked_back)])


def _filter(preset: int, looked_back: int = LOOKED_BACK) -> dict[str, int]:
    """What LZMA is told: its stream has no header that would say it."""
    return {"id": lzma.FILTER_LZMA1, "preset": preset, "dict_size": looked_back, "lc": 3, "lp": 0, "pb": 0}


_fill = streamed("lzma", lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[_filter(SMALLEST)]))


def _expanded(data: bytes, width: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """What `_narrowed` and `_lzma` wrote."""
    shuffled = np.empty((width, math.prod(shape)), np.uint8)
    if len(data) <= 8:
        raise CodecFailed("repeated lattice numbers are truncated")
    _fill(data[8:], shuffled)
    above = np.ascontiguousarray(shuffled.T).view(f"<u{width}").astype(f"u{dtype.itemsize}")
    low = int.from_bytes(data[:8], "little", signed=True)
    return (above + np.array(low).astype(f"u{dtype.itemsize}")).view(dtype).reshape(shape)


def _palette(numbers: np.ndarray) -> np.ndarray | None:
    """The different numbers in ascending order, if they are few in a wide span, or one."""
    low, high = int(numbers.min()), int(numbers.max())
    if low == high:
        return numbers.reshape(-1)[:1]
    if high - low >= MOST_SPAN:
        return None
    occurs = np.zeros(high - low + 1, bool)
    flat = numbers.reshape(-1)
    for start in range(0, flat.size, TRIED):   # an index takes eight bytes
        occurs[flat[start : start + TRIED] - low] = True
    listed = np.flatnonzero(occurs)
    few = len(listed) <= min(MOST_LISTED, numbers.size / LISTED_IN) and LEAST_SPREAD * len(listed) <= len(occurs)
    return (listed + low).astype(numbers.dtype) if few else None


def _listed(palette: np.ndarray) -> bytes:
    """A palette: the first number and the differences from each to the next, deflated."""
    steps = np.diff(palette.astype(np.int64), prepend=0).astype("<i8")
    data = zlib.compress(steps.view(np.uint8).reshape(-1, 8).T.tobytes(), 9)
    return _PALETTE.pack(len(palette), len(data)) + data


def _read_palette(data: bytes, dtype: np.dtype) -> tuple[np.ndarray, bytes]:
    """The palette that `_listed` wrote, and what follows it."""
    count, size = _PALETTE.unpack_from(data) if len(data) >= _PALETTE.size else (0, 0)
    end = _PALETTE.size + size
    if not 1 <= count <= MOST_LISTED or end > len(data):
        raise CodecFailed(f"a palette lists 1 to {MOST_LISTED} numbers; got {count} in {size} bytes: it is damaged")
    steps = np.empty((8, count), np.uint8)
    BOUNDED["zlib"](data[_PALETTE.size : end], steps)
    numbers = np.cumsum(np.ascontiguousarray(steps.T).view("<i8").reshape(-1))
    return numbers.astype(dtype), data[end:]
