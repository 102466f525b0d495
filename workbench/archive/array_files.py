"""The files of an array: whether they justify what its document claims, and the bytes of one chunk.

Every number in a document is refused that the bytes in the archive cannot justify: a short file must not cause the
allocation of a large array.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from workbench.archive.frame import HINT, Damaged, shape_of
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.sharding import ENTRY, ShardIndex, end_bytes
from workbench.archive.store import Store
from workbench.errors import WorkbenchError

# Limits on the sizes that the bytes of an archive can justify. A constant chunk of 2^20 values takes about 50 bytes, so
# archives written here stay far below them; larger arrays are refused as implausible.
VALUES_PER_BYTE = 2**20
VALUES_FOR_NOTHING = 2**26
CHUNKS_PER_CHUNK = 64          # declared, for each one that the files can hold
FIRST_FILES = 16               # that are looked at before all are listed: 1,024 chunks without shards need no more
BYTES_OF_SMALL_CHUNK = 2**20
EXPANSION = 4                  # the most bytes of a chunk for each byte of its values, beyond the above


def require_plausible(layout: ArrayLayout, store: Store, damaged: bool = False) -> None:
    """Refuse an array that is too large for the bytes of its chunks.

    At most 2^20 values per byte, plus 2^26, are accepted, and at most 64 chunks for each one that the files can hold. The
    first few files justify nearly every array; otherwise all are listed. Small ones need none. Each chunk must justify
    the memory for its values (`read_chunk`). When `damaged`, any number of chunks may be missing.
    """
    if _unjustified(layout, store, [], damaged) is None:
        return
    sizes = [store.size(key, missing=0) for key in itertools.islice(layout.file_keys(), FIRST_FILES)]
    if _unjustified(layout, store, sizes, damaged):
        sizes = [store.size(key) for key in store.keys() if key.startswith(f"{layout.name}/c/")]   # noqa: SIM118
        if reason := _unjustified(layout, store, sizes, damaged):
            raise WorkbenchError(reason)


def _unjustified(layout: ArrayLayout, store: Store, sizes: Sequence[int], damaged: bool) -> str | None:
    """Why files of these sizes do not justify what the document claims, if they do not."""
    values, count, nbytes = math.prod(layout.shape), layout.chunk_count, sum(sizes)
    believed, present = nbytes * VALUES_PER_BYTE + VALUES_FOR_NOTHING, sum(_room(layout, size) for size in sizes if size)
    if values > believed:
        return (
            f"{layout.name} in {store.name} claims {values:,} values, but its chunks have {nbytes:,} bytes in all, "
            f"which can hold {believed:,} at most: copy or download it again"
        )
    if not damaged and count > CHUNKS_PER_CHUNK * (present + 1):
        return (
            f"{layout.name} in {store.name} claims {count:,} chunks; only {present:,} are present: "
            f"copy or download it again; or {HINT}"
        )
    return None


def _room(layout: ArrayLayout, nbytes: int) -> int:
    """How many chunks a file of this size can hold."""
    return 1 if layout.shard_shape is None else min(nbytes // ENTRY, math.prod(layout.chunks_in_shard))


def read_index(store: Store, layout: ArrayLayout, shard: Index) -> ShardIndex:
    """Where the chunks of a shard are."""
    key, inside = layout.shard_key(shard), layout.slots(shard)
    size, nbytes = store.size(key), end_bytes(len(inside))
    if size < nbytes:
        raise Damaged(key, f"the index of its {inside.sum():,} chunks takes {nbytes:,} bytes; it has {size:,}")
    return ShardIndex.of(store.read(key, size - nbytes, nbytes), key, size - nbytes, inside)


def read_chunk(store: Store, layout: ArrayLayout, index: Index, shard: ShardIndex | None = None) -> bytes:
    """The bytes of a chunk, after checking their number and the shape that the frame claims; `shard` is where it is."""
    key, extent, file = layout.chunk_key(index), layout.chunk_extent(index), layout.shard_key(layout.shard_of(index))
    begin, size = (0, None) if shard is None else shard.place(layout.slot_of(index))
    most = BYTES_OF_SMALL_CHUNK + EXPANSION * math.prod(extent) * layout.dtype.itemsize
    if size is not None and size > most:
        raise Damaged(key, f"it must have at most {most:,} bytes; it has {size:,}")
    data = store.read(file, begin, size, most)
    if not layout.bare and (claimed := shape_of(data, key)) != extent:
        raise Damaged(key, f"it must hold values of shape {extent}; it claims {claimed}")
    return data
