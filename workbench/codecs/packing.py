"""Two simpler coders of integers beside `entropy.py`, with the same four methods.

`PackedIntegers` stores each eight numbers with as many bits as the largest of them needs. On a clustered snapshot it costs
1.6 to 1.8 bits a particle more than the entropy coder, and 5 in the original order (`benchmarks/compression.py`), but each
step is one parallel kernel without a table, so that only the packed bytes leave a GPU. It is used only on request.
`PcodecIntegers` passes the numbers to pcodec, on the host. By default the lattice codec takes the smaller of context coding
and pcodec on a sample (`lattice.py`), with the same choice on CPU and GPU.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import CodecFailed
from workbench.codecs.entropy import Blocks, Layout, joined
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.codecs.together import Pieces

TOGETHER = 8   # as in kernels/packing.cu

_HEADER = struct.Struct("<QIB")   # items, items in a block, components of an item
_CHECKSUM = struct.Struct("<I")   # of the header and all that follows


@dataclass(frozen=True, eq=False)
class PackedIntegers:
    """Non-negative integers (uint64), each group of eight in as many bits as its largest needs.

    >>> packed = PackedIntegers.of(np.arange(64, dtype=np.uint64), block=64)
    >>> packed.widths.tolist(), PackedIntegers.from_bytes(packed.to_bytes(), Layout(64, 64, 1)).decode()[-3:].tolist()
    ([3, 4, 5, 5, 6, 6, 6, 6], [61, 62, 63])
    """

    count: int
    block: int
    components: int
    widths: np.ndarray
    packed: np.ndarray

    @classmethod
    def of(cls, numbers: Array, block: int, signs: bool = False) -> PackedIntegers:
        """The numbers, packed on the machine where they are; signs in the lowest bit need no special treatment."""
        return cls.of_pieces(numbers, len(numbers), block, signs)[0]

    @classmethod
    def of_pieces(cls, numbers: Array, piece: int, block: int, signs: bool = False) -> list[PackedIntegers]:
        """The same for each piece of so many items, together; only the result leaves a GPU, in one copy."""
        xp, components = backend.namespace(numbers), _components(numbers)
        pieces = Pieces.of(numbers.size, piece * components)
        groups = pieces.blocks(TOGETHER)
        widths = xp.empty(groups, xp.uint8)
        backend.kernel("packing", "group_widths")(groups, numbers.size, pieces.length, numbers, widths)
        first = _group_starts(widths)
        ends = backend.to_host(first[_places(pieces, first)])   # where each piece begins, and the end, without the widths
        body = xp.empty(int(ends[-1]) + groups, xp.uint8)
        backend.kernel("packing", "pack_groups")(groups, numbers.size, pieces.length, numbers, widths, first, body)
        host, found = backend.to_host(body), []
        for own, items, start, end in zip(pieces.blocks_by_piece(TOGETHER), pieces, ends[:-1], ends[1:], strict=True):
            count, middle = (items.stop - items.start) // components, int(start) + own.stop
            parts = host[int(start) + own.start : middle], host[middle : int(end) + own.stop]
            found.append(cls(count, block, components, *parts))
        return found

    def decode(self, blocks: Blocks = None, base: np.ndarray | None = None, xp: Any = np) -> Array:
        """The numbers of all blocks or of some; with `base` (one for each of these), running sums that start there."""
        numbers = self.decode_pieces([self], None if blocks is not None else base, xp)
        return numbers if blocks is None else _of_blocks(numbers, self.block, blocks, base)

    @classmethod
    def decode_pieces(cls, coded: Sequence[PackedIntegers], base: np.ndarray | None = None, xp: Any = np) -> Array:
        """The numbers of equal pieces (the last may be shorter), together; with `base`, running sums in every block."""
        components, count = coded[0].components, sum(one.count for one in coded)
        widths, packed = (xp.asarray(joined([getattr(one, name) for one in coded])) for name in ("widths", "packed"))
        numbers = xp.empty(count * components, xp.uint64)
        piece = coded[0].count * components
        first = _group_starts(widths)
        backend.kernel("packing", "unpack_groups")(len(numbers), piece, len(widths), widths, first, packed, numbers)
        return running_sums(_items(numbers, components), coded[0].count, coded[0].block, base)

    def like(self, other: object) -> bool:
        """Whether `decode_pieces` takes both together, if their lengths allow it."""
        return isinstance(other, PackedIntegers) and self.components == other.components

    def to_bytes(self) -> bytes:
        """Everything as bytes."""
        return _with_header(self, self.widths.data, self.packed.data)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, expected: Layout) -> PackedIntegers:
        """The integers that `to_bytes` wrote with this layout; invalid headers are refused before anything is allocated."""
        body = _checked_body(data, expected)
        groups = -(-expected.count * expected.components // TOGETHER)
        widths, packed = np.frombuffer(body[:groups], np.uint8), np.frombuffer(body[groups:], np.uint8)
        if len(widths) != groups or widths.max(initial=0) > 64 or widths.sum(dtype=np.int64) != len(packed):
            raise CodecFailed(f"packed integers do not add up: {groups} groups, {len(packed)} bytes")
        return cls(expected.count, expected.block, expected.components, widths, packed)


@dataclass(frozen=True, eq=False)
class PcodecIntegers:
    """Non-negative integers (uint64), coded by pcodec, one component after the other.

    >>> PcodecIntegers.of(np.arange(64, dtype=np.uint64), block=64).decode()[-3:].tolist()
    [61, 62, 63]
    """

    count: int
    block: int
    components: int
    coded: bytes

    @classmethod
    def of(cls, numbers: Array, block: int, signs: bool = False) -> PcodecIntegers:
        """The numbers, coded on the host; with `signs`, the lowest bit of each is one."""
        return cls.of_pieces(numbers, len(numbers), block, signs)[0]

    @classmethod
    def of_pieces(cls, numbers: Array, piece: int, block: int, signs: bool = False) -> list[PcodecIntegers]:
        """The same for each piece of so many items."""
        host = backend.to_host(numbers)
        return [cls._of(host[items], block, signs) for items in Pieces.of(len(host), piece)]

    @classmethod
    def _of(cls, numbers: np.ndarray, block: int, signs: bool) -> PcodecIntegers:
        flat = numbers.T.reshape(-1)
        signed = (flat >> np.uint64(1)).view(np.int64) ^ -(flat & np.uint64(1)).view(np.int64) if signs else flat
        return cls(len(numbers), block, _components(numbers), bytes([signs]) + pack_integers(signed))

    def decode(self, blocks: Blocks = None, base: np.ndarray | None = None, xp: Any = np) -> Array:
        """The numbers of all blocks or of some; with `base` (one for each of these), running sums that start there."""
        numbers = self.decode_pieces([self], None if blocks is not None else base, xp)
        return numbers if blocks is None else _of_blocks(numbers, self.block, blocks, base)

    @classmethod
    def decode_pieces(cls, coded: Sequence[PcodecIntegers], base: np.ndarray | None = None, xp: Any = np) -> Array:
        """The numbers of equal pieces (the last may be shorter), together; with `base`, running sums in every block."""
        numbers = xp.asarray(joined([one._numbers() for one in coded]))
        return running_sums(numbers, coded[0].count, coded[0].block, base)

    def _numbers(self) -> np.ndarray:
        numbers = unpack_integers(self.coded[1:], self.count * self.components, np.int64 if self.coded[0] else np.uint64)
        if self.coded[0]:
            numbers = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
        return _items(np.ascontiguousarray(numbers.reshape(self.components, -1).T).reshape(-1), self.components)

    def like(self, other: object) -> bool:
        """Whether `decode_pieces` takes both together, if their lengths allow it."""
        return isinstance(other, PcodecIntegers) and self.components == other.components

    def to_bytes(self) -> bytes:
        """Everything as bytes."""
        return _with_header(self, self.coded)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, expected: Layout) -> PcodecIntegers:
        """The integers that `to_bytes` wrote with this layout."""
        body = _checked_body(data, expected)
        if not body or body[0] > 1:
            raise CodecFailed("integers coded by pcodec begin with 0 or 1, for signs")
        return cls(expected.count, expected.block, expected.components, bytes(body))


def _components(numbers: Array) -> int:
    return 1 if numbers.ndim == 1 else int(numbers.shape[1])


def _items(numbers: Array, components: int) -> Array:
    return numbers if components == 1 else numbers.reshape(-1, components)


def _with_header(numbers: PackedIntegers | PcodecIntegers, *body: bytes | memoryview) -> bytes:
    head = _HEADER.pack(numbers.count, numbers.block, numbers.components)
    checksum = functools.reduce(lambda before, part: zlib.crc32(part, before), body, zlib.crc32(head))
    return b"".join([head, _CHECKSUM.pack(checksum), *body])


def _checked_body(data: bytes | memoryview, layout: Layout) -> memoryview:
    view, size = memoryview(data), _HEADER.size + _CHECKSUM.size
    if len(view) < size:
        raise CodecFailed(f"coded integers have a header of {size} bytes; got {len(view)}")
    count, block, components = _HEADER.unpack_from(view)
    expected = zlib.crc32(view[size:], zlib.crc32(view[: _HEADER.size]))
    if block < 1 or not 1 <= components <= 3 or expected != _CHECKSUM.unpack_from(view, _HEADER.size)[0]:
        raise CodecFailed("coded integers fail their checksum")
    layout.require(Layout(count, block, components))
    return view[size:]


def _group_starts(widths: Array) -> Array:
    """Where each group begins, and the end: a group of width w has w bytes."""
    xp = backend.namespace(widths)
    first = xp.zeros(len(widths) + 1, xp.int64)
    xp.cumsum(widths, out=first[1:])
    return first


def _places(pieces: Pieces, first: Array) -> Array:
    """The index in `first` of the first group of each piece, and of the end."""
    each, groups = pieces.blocks_of_each(TOGETHER), len(first) - 1
    return backend.namespace(first).asarray(np.minimum(np.arange(len(pieces) + 1) * each, groups))


def running_sums(numbers: Array, piece: int, block: int, base: np.ndarray | None) -> Array:
    """The running sums of each block's numbers from its base on, modulo 2**64; the numbers where there are no bases.

    >>> running_sums(np.ones(5, np.uint64), 5, 3, np.array([10, 20], np.uint64)).tolist()
    [11, 12, 13, 21, 22]
    """
    if base is None:
        return numbers
    xp, count = backend.namespace(numbers), len(numbers)
    sums = xp.cumsum(numbers, dtype=xp.uint64)
    kernel, out = backend.kernel("packing", "sums_from_bases"), xp.empty_like(sums)
    kernel(backend.chunks(count, sums), count, piece, block, sums, len(base), xp.asarray(base), out)
    return out


def _of_blocks(numbers: Array, block: int, blocks: Blocks, base: np.ndarray | None) -> Array:
    """Some blocks of the numbers, or the running sums of each from its base on."""
    xp, count = backend.namespace(numbers), len(numbers)
    chosen = np.asarray(blocks, np.int64)
    index = xp.asarray(block_items(chosen, block, count))
    if base is None:
        return numbers[index]
    sums, begin = xp.cumsum(numbers, dtype=xp.uint64), xp.asarray(chosen * block)
    offset = xp.asarray(base) - (sums[begin] - numbers[begin])   # modulo 2^64, as the sums are
    of_block = np.repeat(np.arange(len(chosen)), np.minimum(block, count - chosen * block))
    return sums[index] + offset[xp.asarray(of_block)]


def block_items(blocks: np.ndarray, block: int, count: int) -> np.ndarray:
    """The numbers of the items in these blocks, of `count` items in all; a block may claim to hold more than there are.

    >>> block_items(np.array([0, 2]), block=2, count=5).tolist()
    [0, 1, 4]
    """
    items = (blocks[:, None] * block + np.arange(min(block, count))).reshape(-1)
    return items[items < count]   # the last block may be shorter
