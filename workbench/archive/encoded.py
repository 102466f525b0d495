"""The chunks of an archive that is being made on a cluster: encoded, checked, and written down with a record each.

A record holds the checksums of the original rows and of the bytes that were made of them. A run that was killed and is
started again reads the rows of each chunk, finds the record, and does not encode them again. A chunk whose file is missing
or damaged, or whose rows have changed, is encoded anew.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.assembling import stored_chunk
from workbench.archive.chunk import EncodedChunk, decode_chunk
from workbench.archive.encoding import ReadyChunk, Task, encode_values
from workbench.archive.frame import Damaged
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.missing import Hidden
from workbench.archive.store import DirectoryStore
from workbench.archive.writing import Place
from workbench.backend import Array
from workbench.data.chunked import ChunkedParticles
from workbench.errors import WorkbenchError
from workbench.guarantees.enforce import Figures
from workbench.run.scratch_files import complete, make_folder
from workbench.slabs import Slices

CALL_AGAIN = "make room on the disk, and call again"
RECORDS = ".records"   # a folder of the draft: it is no part of the archive, and disappears when the archive is complete


@dataclass(frozen=True)
class DoneChunk:
    """A chunk without its bytes, how many these are, and the checksum of its original rows."""

    ready: ReadyChunk
    nbytes: int
    source: int


@dataclass(frozen=True)
class Beside:
    """A folder of chunks that are to be corrected before they become parts of an archive."""

    folder: Path

    def put(self, key: str, data: bytes) -> None:
        """Write a chunk, completely or not at all."""
        put_hidden(self.folder / key, data)

    def parts(self) -> DirectoryStore:
        """What was written so far."""
        make_folder(self.folder, CALL_AGAIN)
        return DirectoryStore(self.folder)


class Encoded(ChunkedParticles):
    """The chunks in a folder. As a source of particles, they are the original rows in the order of the archive.

    `rows` returns the positions at the places of a chunk; the bytes go to the place. `records` is the folder with the
    records.
    """

    def __init__(
        self, task: Task, rows: Callable[[Slices], np.ndarray], place: Place | Beside, records: Path
    ) -> None:
        self.task, self.rows, self.place, self.records = task, rows, place, records
        self.name = "the particles in the order of the archive"
        self.box = None if task.period is None else tuple(task.period)
        self.sizes, self.dtype, self.dimensions = task.layout.chunk_rows, task.layout.dtype, task.layout.shape[1]

    def read(self, number: int) -> np.ndarray:
        """The original rows of a chunk that was encoded; refused if they are others now."""
        rows, source = self._rows(number)
        if json.loads(self._record(number).read_text())["source"] != source:
            raise WorkbenchError(
                f"chunk {number + 1} of {len(self.sizes)} of {self.name} has changed since it was encoded: call again when "
                "nobody writes to the source"
            )
        return rows

    def _rows(self, number: int) -> tuple[np.ndarray, int]:
        """The original rows of a chunk, and their checksum."""
        rows = np.asarray(self.rows(self.task.layout.chunk_slices((number, 0))))
        return rows, zlib.crc32(np.ascontiguousarray(rows).data)

    def encode(self, number: int) -> DoneChunk:
        """Encode, check and write one chunk, unless an earlier run did; returns everything but its bytes."""
        rows, source = self._rows(number)
        return written(self.task.of_chunk((number, 0)), (number, 0), rows, self.place, self._record(number), source)

    def data(self, number: int) -> bytes:
        """The bytes of a chunk."""
        return self.place.parts().read(self.task.layout.chunk_key((number, 0)))

    def decoded(self, number: int) -> np.ndarray:
        """The decoded positions of a chunk."""
        layout, earlier = self.task.layout, self.task.earlier
        before = None if earlier is None else earlier.at(layout.chunk_slices((number, 0)))
        key = layout.chunk_key((number, 0))
        return decode_chunk(self.data(number), layout.configuration, layout.dtype, key, earlier=before)

    def _record(self, number: int) -> Path:
        return self.records / str(number)


def written(
    task: Task, index: Index, values: Array, place: Place | Beside, record: Path | None, source: int,
    mask: Array | None = None,
) -> DoneChunk:
    """Encode, check and write a chunk of `source`, unless its record says that an earlier run did; without one, always."""
    if record is not None and (found := _recalled(record, place, task.layout, index, source)) is not None:
        return found
    ready = encode_values(task, values, mask)
    if ready.order is not None:
        raise WorkbenchError(f"{task.codec.id} returns particles in an order of its own: use another codec")
    data = ready.data.data
    place.put(task.layout.chunk_key(index), data)
    done = dataclasses.replace(ready, data=ready.data.without_bytes())
    if record is not None:
        put_hidden(record, _record_of(done, source, data))
    return DoneChunk(done, len(data), source)


def _recalled(record: Path, place: Place | Beside, layout: ArrayLayout, index: Index, source: int) -> DoneChunk | None:
    """The chunk as an earlier run made it from the same source, if its record and its bytes are there and undamaged."""
    if not record.exists():
        return None
    try:
        data = stored_chunk(place.parts(), layout, index)
    except Damaged:
        return None
    try:
        stated = json.loads(record.read_text())
        if (stated["source"], stated["data"]) != (source, zlib.crc32(data)):
            return None
        ends = None if stated["ends"] is None else tuple(np.array(end, np.float64) for end in stated["ends"])
        hidden = None if stated["hidden"] is None else Hidden(*(end and tuple(end) for end in stated["hidden"]))
        chunk, figures = EncodedChunk(b"", bytes.fromhex(stated["checksum"])), Figures(**stated["figures"])
    except (ValueError, KeyError, TypeError):   # a record that was written when power failed
        return None
    return DoneChunk(ReadyChunk(chunk, figures, None, ends, None, hidden), len(data), source)   # type: ignore[arg-type]


def _record_of(done: ReadyChunk, source: int, data: bytes) -> bytes:
    """What is remembered of a chunk: the checksums of its source and of its bytes, and its figures."""
    ends = None if done.ends is None else [end.tolist() for end in done.ends]
    hidden = None if done.hidden is None else [done.hidden.masked, done.hidden.valid]
    return json.dumps({
        "source": source, "data": zlib.crc32(data), "checksum": done.data.checksum.hex(),
        "figures": dataclasses.asdict(done.figures), "ends": ends, "hidden": hidden,
    }).encode()


def put_hidden(place: Path, data: bytes) -> None:
    """Write a file that is no part of the archive, completely or not at all."""
    make_folder(place.parent, CALL_AGAIN)
    with complete(place, CALL_AGAIN) as file:
        file.write(data)


def token_of(described: Mapping[str, Any]) -> str:
    """A name for a call that is described so."""
    return hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=8).hexdigest()
