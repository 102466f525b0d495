"""The files of Abacus: ASDF, with columns in pieces of a few megabytes that Blosc compresses, read piece by piece.

A column of a full slab has gigabytes. The ASDF library decompresses all of it for any row, so here it reads only the
document at the beginning of a file, and the columns that are compressed in ways of its own.
"""

from __future__ import annotations

import functools
import itertools
import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.readers.libraries import library
from workbench.data.readers.source import Source, plain
from workbench.errors import WorkbenchError

MOST_DOCUMENT = 2**18   # bytes, and values: hundreds of columns take a tenth of it, and parsing it some seconds
MOST_DEPTH = 100        # of values within values: the library for YAML is recursive, and crashes on deep ones
BLOCK = b"\xd3BLK"
BLOCK_HEADER = struct.Struct(">4sHI4sQQQ")   # magic, size of the rest, flags, compression, allocated, used, decoded
STREAMED = 1
PIECE = struct.Struct(">I")                  # the compressed size, before each piece
BLOSC_HEADER = 16
STORED, BLOSC = b"\0\0\0\0", b"blsc"


@dataclass(frozen=True)
class Column:
    """An array in a file: what it is, and where its block lies."""

    path: Path
    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    compression: bytes
    at: int
    used: int

    def __len__(self) -> int:
        return self.shape[0]

    def rows(self, start: int, stop: int) -> np.ndarray:
        """The rows from `start` to `stop`; only the pieces that hold them are decompressed."""
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        if self.compression == STORED:
            raw = Source.at(self.path).array(self.at + start * row, (stop - start) * row, np.dtype(np.uint8), self.name)
        elif self.compression == BLOSC:
            raw = self._pieces(start * row, stop * row)
        else:
            return self._by_library()[start:stop]
        return raw.view(self.dtype).reshape(stop - start, *self.shape[1:])

    def in_parts(self, rows: int) -> Iterator[tuple[int, np.ndarray]]:
        """All rows in parts of so many, each with the number of its first."""
        for start in range(0, len(self), rows):
            yield start, self.rows(start, min(start + rows, len(self)))

    def _pieces(self, begin: int, end: int) -> np.ndarray:
        """The bytes from `begin` to `end` of the decompressed column."""
        source, blosc = Source.at(self.path), library("blosc", "compressed Abacus files")
        starts, places = _piece_table(self, source.size, self.path.stat().st_mtime_ns)
        if begin == end:
            return np.empty(0, np.uint8)
        first, last = int(np.searchsorted(starts, begin, side="right")) - 1, int(np.searchsorted(starts, end))
        found = []
        with source.read_by("Blosc"):
            for number in range(first, last):
                at = places[number] + PIECE.size
                found.append(blosc.decompress(source.bytes(at, places[number + 1] - at, self.name)))
        raw = np.frombuffer(b"".join(found), np.uint8)
        if len(raw) != starts[last] - starts[first]:
            raise source.damaged(f"expected {starts[last] - starts[first]:,} bytes of {self.name}; got {len(raw):,}")
        return raw[begin - starts[first] : end - starts[first]]

    def _by_library(self) -> np.ndarray:
        asdf = library("asdf", "Abacus files")
        with (
            Source.at(self.path).read_by("asdf"),
            asdf.open(self.path, ignore_missing_extensions=True, ignore_unrecognized_tag=True) as file,
        ):
            return np.array(file.tree["data"][self.name])


def opened(source: Source) -> tuple[dict[str, Column | None], dict[str, Any]]:
    """The columns in `data`, None for those that are no plain arrays; and the header."""
    asdf = library("asdf", "Abacus files")
    require_plain_document(source)
    with source.read_by("asdf"):
        tree = asdf.util.load_yaml(source.path)
    _require_few_nodes(source, tree)
    data, header = tree.get("data"), tree.get("header")
    entries = data if isinstance(data, dict) else {}
    blocks = _blocks(source) if entries else []
    columns = {str(name): _column(source, str(name), entry, blocks) for name, entry in entries.items()}
    return columns, plain(header) if isinstance(header, dict) else {}


def require_plain_document(source: Source, most: int = MOST_DOCUMENT) -> None:
    """Refuse a document of many bytes, of values deep within values, or with mappings merged from others over and over."""
    size = min(_first_block(source, most), source.size)
    if size >= most:
        raise source.damaged(f"the document at the beginning must have less than {most:,} bytes")
    document = source.bytes(0, size, "the document")
    if b"<<" in document:
        raise WorkbenchError(f"{source.name} must have plain values in its document; it merges mappings (<<)")
    yaml, depth = library("yaml", "Abacus files"), 0
    with source.read_by("asdf"):
        for event in yaml.parse(document.rstrip(b"\0"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:
                raise WorkbenchError(f"{source.name} must have at most {MOST_DEPTH} values within each other; it has more")


def _require_few_nodes(source: Source, tree: Any) -> None:
    """Refuse a document with more values than it has bytes: references to one value, each of which counts."""
    layer, nodes = [tree], 0
    while layer:
        nodes += len(layer)
        if nodes > MOST_DOCUMENT:
            raise WorkbenchError(f"{source.name} must have at most {MOST_DOCUMENT:,} values in its document; it has more")
        layer = list(itertools.islice((child for node in layer for child in _children(node)), MOST_DOCUMENT))


def _children(node: Any) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def _column(source: Source, name: str, entry: Any, blocks: list[tuple[bytes, int, int, int]]) -> Column | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("source"), int):
        return None
    if entry.get("strides") or entry.get("offset"):
        return None
    shape, kind = entry.get("shape"), entry.get("datatype")
    if not isinstance(shape, list) or not shape or not all(isinstance(size, int) and size >= 0 for size in shape):
        return None
    try:
        dtype = np.dtype(kind).newbyteorder(">" if entry.get("byteorder") == "big" else "<")
    except TypeError:
        return None
    if not 0 <= entry["source"] < len(blocks):
        raise source.damaged(f"the column {name} is in block {entry['source']}; the file has {len(blocks)} blocks")
    compression, at, used, size = blocks[entry["source"]]
    if size < math.prod(shape) * dtype.itemsize:   # ASDF allows a block that is larger than its array
        raise source.damaged(f"the column {name} of shape {tuple(shape)} and type {kind} has a block of {size:,} bytes")
    return Column(source.path.absolute(), name, dtype, tuple(shape), compression, at, used)


def _blocks(source: Source) -> list[tuple[bytes, int, int, int]]:
    """For each block of a file: its compression, where its bytes lie, how many there are, and how many decoded."""
    at, found = _first_block(source), []
    while at + BLOCK_HEADER.size <= source.size:
        header = source.bytes(at, BLOCK_HEADER.size, "a block")
        magic, size, flags, compression, allocated, used, decoded = BLOCK_HEADER.unpack(header)
        if magic != BLOCK or flags & STREAMED:
            break   # the index of the blocks, or nothing that has a size
        begin = at + 6 + size
        if begin + used > source.size:
            raise source.damaged(f"a block at byte {begin:,} must have {used:,} bytes; the file has {source.size:,}")
        found.append((compression, begin, used, decoded))
        at = begin + max(allocated, used)
    return found


def _first_block(source: Source, most: int | None = None) -> int:
    """Where the blocks begin: after the document, and zeros for padding; the end of the file if not by `most`."""
    tail, at = b"", 0
    for start in range(0, min(source.size, most or source.size), 2**16):
        tail = tail[-64:] + source.bytes(start, min(2**16, source.size - start), "the document")
        at = start + min(2**16, source.size - start) - len(tail)
        for end in (b"\n...\n", b"\n...\r\n"):
            if (place := tail.find(end)) >= 0:
                after = at + place + len(end)
                padding = source.bytes(after, min(2**16, source.size - after), "the document")
                return after + len(padding) - len(padding.lstrip(b"\0"))
    return source.size


@functools.lru_cache(maxsize=16)
def _piece_table(column: Column, *state: int) -> tuple[np.ndarray, list[int]]:
    """Where each piece begins in the decompressed column and in the file, and the ends."""
    source, blosc = Source.at(column.path), library("blosc", "compressed Abacus files")
    sizes, places, at = [0], [], column.at
    with source.read_by("Blosc"), column.path.open("rb") as file:
        while at < column.at + column.used:
            file.seek(at)
            head = file.read(PIECE.size + BLOSC_HEADER)
            expands_to, compressed, _ = blosc.get_cbuffer_sizes(head[PIECE.size :])
            if PIECE.unpack(head[: PIECE.size])[0] != compressed or not compressed:
                raise source.damaged(f"a piece of {column.name} at byte {at:,} does not have its stated size")
            sizes.append(expands_to)
            places.append(at)
            at += PIECE.size + compressed
    starts = np.array(list(itertools.accumulate(sizes)))
    expected = math.prod(column.shape) * column.dtype.itemsize
    if starts[-1] < expected or at != column.at + column.used:
        raise source.damaged(f"expected {expected:,} bytes of {column.name}; got {starts[-1]:,}")
    return starts, [*places, at]
