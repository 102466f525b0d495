"""Shards of an archive that is being made: put together from the files of their chunks.

Chunks are encoded and written one by one, so that a run that was killed goes on from them. Then, before the archive gets
its name, a step for each shard copies its chunks into one file, and removes theirs when that is complete. So at any moment
a chunk is in a file of its own, or in a shard, or in both: what is in its own file is the later one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.archive.array_files import read_index
from workbench.archive.chunk import checksum_of_table, checksums_of, opened_chunk
from workbench.archive.frame import Damaged
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.sharding import end_of
from workbench.archive.store import Store
from workbench.archive.writing import Place
from workbench.errors import WorkbenchError
from workbench.guarantees.sections import CHECKSUM
from workbench.run.executors import Executor


def assemble(layout: ArrayLayout, place: Place, executor: Executor) -> None:
    """Put the chunks of an array together in its shards, if it has any."""
    if layout.shard_shape is None:
        return
    shards, shared = list(layout.shard_indices()), (place, layout)
    found = executor.map(f"assemble-{layout.name}", _assembled, shards, "shard", shared=shared, together=True)
    if found != checksums_of(layout):
        raise WorkbenchError(f"{layout.name} must hold the chunks that were encoded; it holds others: did another program "
                             "change files? Call again")


def stored_chunk(store: Store, layout: ArrayLayout, index: Index) -> bytes:
    """The bytes of a chunk, from its own file or from the shard."""
    try:
        return store.read(layout.chunk_key(index))
    except Damaged:
        if layout.shard_shape is None:
            raise
    shard = layout.shard_of(index)
    return store.read(layout.shard_key(shard), *read_index(store, layout, shard).place(layout.slot_of(index)))


def _assembled(shared: tuple[Place, ArrayLayout], shard: Index) -> bytes:
    """Make one shard, unless it is complete; returns its checksum."""
    place, layout = shared
    store = place.parts()
    indices = list(layout.chunks_of(shard))
    own = list(map(layout.chunk_key, indices))
    if not any(store.size(key, missing=0) for key in own):
        return checksum_of_table(read_index(store, layout, shard).checksums)
    slots = len(layout.slots(shard))
    lengths, table = np.zeros(slots, np.int64), np.zeros(slots, "S4")

    def blocks() -> Iterator[bytes]:
        for index in indices:
            data, slot = stored_chunk(store, layout, index), layout.slot_of(index)
            lengths[slot] = len(data)
            table[slot] = bytes(opened_chunk(layout, index, data, None).section(CHECKSUM))
            yield data
        yield end_of(lengths, table.tobytes())

    place.put_blocks(layout.shard_key(shard), blocks())
    for key in own:
        place.remove(key)
    return checksum_of_table(table.tobytes())
