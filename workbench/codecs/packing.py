"""Two simpler coders of integers beside `entropy.py`, with the same four methods.

`PackedIntegers` stores each eight numbers with as many bits as the largest of them needs. On a clustered snapshot it costs
1.6 to 1.8 bits a particle more than the entropy coder, and 5 in the original order (`benchmarks/compression.py`), but each
step is one parallel kernel without a table, so that only the packed bytes leave a GPU. It is used only on request.
`PcodecIntegers` passes the numbers to pcodec, on the host. By default the lattice codec takes the smaller of context coding
and pcodec on a sample (`lattice.py`), with the same choice on CPU and GPU.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import CodecFailed
from workbench.codecs.entropy import Blocks, Layout
from workbench.codecs.pcodec import pack_integers, unpack_integers

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
    widths: Array
    packed: Array

    @classmethod
    def of(cls, numbers: Array, block: int, signs: bool = False) -> PackedIntegers:
        """The numbers, packed on the machine where they are; signs in the lowest bit need no special treatment."""
        xp = backend.namespace(numbers)
        size, groups = numbers.size, -(-numbers.size // TOGETHER)
        widths = xp.empty(groups, xp.uint8)
        backend.kernel("packing", "group_widths")(groups, size, numbers, widths)
        first = _group_starts(widths)
        packed = xp.empty(int(first[-1]), xp.uint8)
        backend.kernel("packing", "pack_groups")(groups, size, numbers, widths, first, packed)
        return cls(len(numbers), block, _components(numbers), widths, packed)

    def decode(self, blocks: Blocks = None, base: np.ndarray | None = None, xp: Any = np) -> Array:
        """The numbers of all blocks or of some; with `base` (one for each of these), running sums that start there."""
        widths, packed = xp.asarray(self.widths), xp.asarray(self.packed)
        numbers = xp.empty(self.count * self.components, xp.uint64)
        backend.kernel("packing", "unpack_groups")(len(numbers), widths, _group_starts(widths), packed, numbers)
        return _of_blocks(_items(numbers, self.components), self.block, blocks, base)

    def to_bytes(self) -> bytes:
        """Everything as bytes."""
        return _with_header(self, backend.to_host(self.widths).tobytes() + backend.to_host(self.packed).tobytes())

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
        flat = backend.to_host(numbers.T.reshape(-1))
        signed = (flat >> np.uint64(1)).view(np.int64) ^ -(flat & np.uint64(1)).view(np.int64) if signs else flat
        return cls(len(numbers), block, _components(numbers), bytes([signs]) + pack_integers(signed))

    def decode(self, blocks: Blocks = None, base: np.ndarray | None = None, xp: Any = np) -> Array:
        """The numbers of all blocks or of some; with `base` (one for each of these), running sums that start there."""
        numbers = unpack_integers(self.coded[1:], self.count * self.components, np.int64 if self.coded[0] else np.uint64)
        if self.coded[0]:
            numbers = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
        items = np.ascontiguousarray(numbers.reshape(self.components, -1).T)
        return _of_blocks(_items(xp.asarray(items).reshape(-1), self.components), self.block, blocks, base)

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


def _with_header(numbers: PackedIntegers | PcodecIntegers, body: bytes) -> bytes:
    head = _HEADER.pack(numbers.count, numbers.block, numbers.components)
    return head + _CHECKSUM.pack(zlib.crc32(body, zlib.crc32(head))) + body


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


def _of_blocks(numbers: Array, block: int, blocks: Blocks, base: np.ndarray | None) -> Array:
    """Some blocks of the numbers (all when not given), or the running sums of each from its base on."""
    xp = backend.namespace(numbers)
    count = len(numbers)
    chosen = np.arange(-(-count // block)) if blocks is None else np.asarray(blocks, np.int64)
    if base is not None:
        sums = xp.cumsum(numbers, dtype=xp.uint64)
        starts = chosen * block
        sizes = np.minimum(block, count - starts)
        begin = xp.asarray(starts)
        offset = xp.asarray(base) - (sums[begin] - numbers[begin])   # modulo 2^64, as the sums are
        index = block_items(chosen, block, count)
        return (sums if blocks is None else sums[xp.asarray(index)]) + xp.repeat(offset, sizes.tolist())
    return numbers if blocks is None else numbers[xp.asarray(block_items(chosen, block, count))]


def block_items(blocks: np.ndarray, block: int, count: int) -> np.ndarray:
    """The numbers of the items in these blocks, of `count` items in all; a block may claim to hold more than there are.

    >>> block_items(np.array([0, 2]), block=2, count=5).tolist()
    [0, 1, 4]
    """
    items = (blocks[:, None] * block + np.arange(min(block, count))).reshape(-1)
    return items[items < count]   # the last block may be shorter
