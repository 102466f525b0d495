"""How the arrays of an archive are cut into chunks, and the Zarr documents that describe them.

An archive is a Zarr group (format 3) that any Zarr library can open, so its documents are Zarr's. They are read here and
not by a Zarr library because an archive states very little: one kind of grid, one codec, a handful of types. Everything
else in a document is refused; `array_files.py` refuses numbers that the bytes in the archive cannot justify.

Each chunk is a file of its own or, in an array of many chunks, one of several in a shard (`sharding.py`). A chunk without a
shard counts as a shard of one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from workbench.archive import document as json_document
from workbench.archive.frame import MOST_DIMENSIONS, MOST_VALUES
from workbench.archive.key import ROOT
from workbench.archive.sharding import MOST_CHUNKS, MOST_IN_SHARD, chunks_in_shards
from workbench.codecs.portable import Portable
from workbench.codecs.registry import from_dict
from workbench.errors import WorkbenchError

ROLE = "lossbench:role"   # the attribute of an array that states its purpose
ROLES = ("data", "index", "model")
INDEXES = ("extents", "permutation")   # the arrays that hold no data, and whose documents need not say so
EARLIER = "earlier"   # of a configuration: from how many earlier steps of a series the array was predicted
CODEC = "lossbench"   # the name by which Zarr libraries find our codec
SHARDS = "sharding_indexed"   # Zarr's own codec
CONFIGURATION = "lossbench:codec"   # the attribute of an array without our codec: what would be its configuration
INDEX = ({"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"})
DTYPES = (
    *("float32", "float64", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
MOST_VALUES_OF_ARRAY = 2**62

Index = tuple[int, ...]   # of a chunk in the grid of chunks, or of a shard in that of shards

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class ArrayLayout:
    """An array of an archive: its shape and type, its chunks, and its codec's configuration. Every instance is valid.

    >>> layout = ArrayLayout("density", (5, 8), (4, 4), np.dtype("float32"))
    >>> layout.chunk_count, list(layout.chunk_indices())
    (4, [(0, 0), (0, 1), (1, 0), (1, 1)])
    >>> layout.chunk_key((1, 0)), layout.chunk_extent((1, 0)), layout.chunk_slices((1, 0))
    ('density/c/1/0', (1, 4), (slice(4, 5, None), slice(0, 4, None)))
    """

    name: str
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    dtype: np.dtype
    configuration: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dimension_names: tuple[str, ...] | None = None
    shard_shape: tuple[int, ...] | None = None   # None: a file for each chunk

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            raise WorkbenchError(f"the name of an array must be letters, digits, '_', '-' and '.'; got {self.name!r}")
        checked = {
            "shape": _sizes("shape", self.shape),
            "chunk_shape": _sizes("chunk shape", self.chunk_shape),
            "dtype": _dtype(self.dtype),
            "configuration": _object("configuration", self.configuration),
            "attributes": _object("attributes", self.attributes),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.role not in ROLES:
            raise WorkbenchError(f"the role of an array must be one of {', '.join(ROLES)}; got {_short(self.role)}")
        object.__setattr__(self, "dimension_names", _names(self.dimension_names, len(self.shape)))
        if len(self.shape) != len(self.chunk_shape):
            raise WorkbenchError(f"shape and chunk shape must have as many axes; got {self.shape} and {self.chunk_shape}")
        if math.prod(self.shape) > MOST_VALUES_OF_ARRAY or math.prod(self.chunk_shape) > MOST_VALUES:
            sizes = _short((self.shape, self.chunk_shape))
            raise WorkbenchError(f"an array must have at most 2^62 values and a chunk 2^31; got these shapes: {sizes}")
        if self.chunk_count > MOST_CHUNKS:
            raise WorkbenchError(f"an array must have at most {MOST_CHUNKS:,} chunks; {self.name} has {self.chunk_count:,}")
        if self.shard_shape is not None:
            object.__setattr__(self, "shard_shape", self._checked_shards(self.shard_shape))
        if self.bare and self._portable.chunk != self.chunk_shape:
            got = f"{self.chunk_shape} in Zarr, {self._portable.chunk} in the codec"
            raise WorkbenchError(f"the chunks of {self.name} must have one shape; got {got}")
        if self.bare and any(chunk > size for chunk, size in zip(self.chunk_shape, self.shape, strict=True)):
            got = f"chunks of {self.chunk_shape} in {self.shape}"   # all of a chunk is decoded
            raise WorkbenchError(f"a chunk of {self.name} must not be larger than the array; got {got}")

    def _checked_shards(self, given: Any) -> tuple[int, ...]:
        shape = _sizes("shard shape", given)
        pairs = list(zip(shape, self.chunk_shape, strict=False))
        if len(shape) != len(self.chunk_shape) or any(size % step for size, step in pairs):
            raise WorkbenchError(f"the shape of shards must be whole chunks of {self.chunk_shape}; got {_short(shape)}")
        if math.prod(size // step for size, step in pairs) > MOST_IN_SHARD:
            raise WorkbenchError(f"a shard must have at most {MOST_IN_SHARD:,} chunks; got the shape {_short(shape)}")
        return shape

    def in_shards(self) -> Self:
        """The array as it is written: in shards if it has more than 1,024 chunks.

        >>> ArrayLayout("density", (100, 8192), (1, 512), np.dtype("float32")).in_shards().shard_shape
        (1, 1024)
        """
        together = zip(chunks_in_shards(self.chunk_grid), self.chunk_shape, strict=True)
        shape = tuple(count * step for count, step in together)
        return self if shape == self.chunk_shape else replace(self, shard_shape=shape)

    @property
    def bare(self) -> bool:
        """Whether its chunks are those of Zarr's codecs alone, without a frame."""
        described = self.configuration.get("codec")
        return isinstance(described, Mapping) and described.get("id") == Portable.id

    @property
    def predicted(self) -> int:
        """From how many earlier steps of a series it was predicted; 0 if it needs none."""
        count = self.configuration.get(EARLIER)
        return count if isinstance(count, int) and not isinstance(count, bool) and 0 < count <= 2 else 0

    @property
    def _portable(self) -> Portable:
        found = from_dict(self.configuration["codec"])
        assert isinstance(found, Portable)
        return found

    @property
    def role(self) -> str:
        """The purpose of the array: "data", an "index" of them, or a "model" that their codec shares."""
        return self.attributes.get(ROLE, "index" if self.name in INDEXES else "data")

    @property
    def nbytes(self) -> int:
        """The size of the decoded array."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def chunk_grid(self) -> tuple[int, ...]:
        """How many chunks there are along each axis."""
        return tuple(-(-size // step) for size, step in zip(self.shape, self.chunk_shape, strict=True))

    @property
    def chunk_count(self) -> int:
        """How many chunks there are."""
        return math.prod(self.chunk_grid)

    @property
    def chunk_rows(self) -> tuple[int, ...]:
        """The rows of each chunk."""
        return tuple(self.chunk_extent(index)[0] for index in self.chunk_indices())

    def chunk_indices(self) -> Iterator[Index]:
        """The index of every chunk, in the order of the array."""
        grid = self.chunk_grid
        return (_unravelled(number, grid) for number in range(self.chunk_count))

    def index_of(self, number: int) -> Index:
        """The index of the chunk with this number, in the order of the array.

        >>> ArrayLayout("density", (5, 8), (4, 4), np.dtype("float32")).index_of(2)
        (1, 0)
        """
        return _unravelled(number, self.chunk_grid)

    def chunk_key(self, index: Index) -> str:
        """The key of a chunk. That of one in a shard is the key of the shard and its slot there: `density/c/0/3.7`."""
        self._require_index(index)
        key = self.shard_key(self.shard_of(index))
        return key if self.shard_shape is None else f"{key}.{self.slot_of(index)}"

    @property
    def chunks_in_shard(self) -> tuple[int, ...]:
        """How many chunks a shard has along each axis, also where it reaches beyond the array."""
        if self.shard_shape is None:
            return (1,) * len(self.shape)
        return tuple(size // step for size, step in zip(self.shard_shape, self.chunk_shape, strict=True))

    @property
    def shard_grid(self) -> tuple[int, ...]:
        """How many shards there are along each axis."""
        return tuple(-(-count // n) for count, n in zip(self.chunk_grid, self.chunks_in_shard, strict=True))

    @property
    def shard_count(self) -> int:
        """How many files there are."""
        return math.prod(self.shard_grid)

    def shard_indices(self) -> Iterator[Index]:
        """The index of every shard, in the order of the array."""
        grid = self.shard_grid
        return (_unravelled(number, grid) for number in range(math.prod(grid)))

    def shard_key(self, shard: Index) -> str:
        """The key of a shard."""
        return "/".join([self.name, "c", *map(str, shard)])

    def file_keys(self) -> Iterator[str]:
        """The keys of all files."""
        return map(self.shard_key, self.shard_indices())

    def shard_of(self, index: Index) -> Index:
        """The index of the shard that holds a chunk."""
        return tuple(i // n for i, n in zip(index, self.chunks_in_shard, strict=True))

    def slot_of(self, index: Index) -> int:
        """The number of a chunk in its shard."""
        slot = 0
        for i, n in zip(index, self.chunks_in_shard, strict=True):
            slot = slot * n + i % n
        return slot

    def slots(self, shard: Index) -> np.ndarray:
        """Which slots of a shard hold chunks; others lie beyond the array."""
        inside = np.zeros(self.chunks_in_shard, bool)
        ends = zip(shard, self.chunks_in_shard, self.chunk_grid, strict=True)
        inside[tuple(slice(max(count - i * n, 0)) for i, n, count in ends)] = True
        return inside.ravel()

    def chunks_at(self, key: str) -> int:
        """How many chunks a key stands for: all of a shard, or one."""
        if self.shard_shape is None or "." in key.rpartition("/")[2]:
            return 1
        return int(self.slots(tuple(map(int, key.split("/")[2:]))).sum())

    def chunks_of(self, shard: Index) -> Iterator[Index]:
        """The index of every chunk in a shard, in the order of their slots."""
        together = self.chunks_in_shard
        for slot in np.flatnonzero(self.slots(shard)).tolist():
            yield tuple(i * n + j for i, n, j in zip(shard, together, _unravelled(slot, together), strict=True))

    def chunk_slices(self, index: Index) -> tuple[slice, ...]:
        """The part of the array that a chunk covers; smaller at the far edges."""
        self._require_index(index)
        places = zip(index, self.chunk_shape, self.shape, strict=True)
        return tuple(slice(i * step, min((i + 1) * step, size)) for i, step, size in places)

    def chunk_extent(self, index: Index) -> tuple[int, ...]:
        """The shape of a chunk; smaller at the far edges."""
        return tuple(part.stop - part.start for part in self.chunk_slices(index))

    def metadata(self) -> dict[str, Any]:
        """The document that describes the array, as Zarr has it."""
        names = {} if self.dimension_names is None else {"dimension_names": list(self.dimension_names)}
        codecs, file_shape = [{"name": CODEC, "configuration": self.configuration}], self.shard_shape or self.chunk_shape
        attributes = self.attributes
        if self.bare:
            codecs, attributes = self._portable.zarr_codecs(self.dtype), {**attributes, CONFIGURATION: self.configuration}
        if self.shard_shape is not None:
            sharding = {"chunk_shape": list(self.chunk_shape), "codecs": codecs, "index_codecs": list(INDEX)}
            codecs = [{"name": SHARDS, "configuration": {**sharding, "index_location": "end"}}]
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(file_shape)}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": self.dtype.type(0).item(),
            "codecs": codecs,
            "attributes": attributes,
            **names,
        }

    @classmethod
    def from_metadata(cls, name: str, content: Mapping[str, Any], root: str = ROOT) -> Self:
        """The array that a document in the root describes; any other content of the document is refused.

        >>> layout = ArrayLayout("density", (5, 8), (4, 4), np.dtype("float32"), {"codec": "sz3"})
        >>> ArrayLayout.from_metadata("density", layout.metadata()) == layout
        True
        """
        where = f"{name} in {root}"
        try:
            chunk_shape, shard_shape, configuration = _chunks(content)
            shape: Any = content.get("shape")
            dtype: Any = content.get("data_type")
            names: Any = content.get("dimension_names")
            attributes: Any = content.get("attributes")
            if configuration is None and isinstance(attributes, Mapping):
                configuration = attributes.get(CONFIGURATION)
                attributes = {key: value for key, value in attributes.items() if key != CONFIGURATION}
            layout = cls(name, shape, chunk_shape, dtype, configuration, attributes, names, shard_shape)
        except WorkbenchError as error:
            raise WorkbenchError(f"{where}: {error}") from None
        expected = layout.metadata()
        for key in sorted({*expected, *content}):
            if key not in content or key not in expected or content[key] != expected[key]:
                wanted, got = _short(expected.get(key)), _short(content.get(key))
                raise WorkbenchError(f"{where}: {key} must be {wanted}; got {got}")
        return layout

    def _require_index(self, index: Index) -> None:
        grid = self.chunk_grid
        if len(index) != len(grid) or not all(0 <= i < count for i, count in zip(index, grid, strict=True)):
            raise WorkbenchError(f"the chunks of {self.name} are a grid of {grid}; got the index {index}")


def _chunks(content: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """The shape of chunks, that of shards if there are any, and the configuration of the codec of chunks.

    The last is None where the codecs are Zarr's: an attribute has it then, and states what they must be.
    """
    match content.get("chunk_grid"):
        case {"name": "regular", "configuration": {"chunk_shape": file_shape}}:
            pass
        case other:
            raise WorkbenchError(f"chunk_grid must be regular, with a chunk_shape; got {_short(other)}")
    match content.get("codecs"):
        case [{"name": "lossbench", "configuration": configuration}]:
            return file_shape, None, configuration
        case [*_, {"name": "blosc"}]:
            return file_shape, None, None
        case [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunk_shape, "codecs": [{"name": "lossbench", "configuration": configuration}],
            "index_codecs": index, "index_location": "end",
        }}] if index == list(INDEX):
            return chunk_shape, file_shape, configuration
        case [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunk_shape, "codecs": [*_, {"name": "blosc"}],
        }}]:
            return chunk_shape, file_shape, None
        case other:
            what = f"{CODEC} alone, with a configuration, {SHARDS} of it with an index (bytes, crc32c) at the end, or blosc"
            raise WorkbenchError(f"codecs must be {what}; got {_short(other)}")


def _sizes(what: str, given: Any) -> tuple[int, ...]:
    whole = isinstance(given, list | tuple) and all(
        isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 1 for size in given
    )
    if not (whole and 1 <= len(given) <= MOST_DIMENSIONS):
        raise WorkbenchError(f"{what} must be 1 to {MOST_DIMENSIONS} positive integers; got {_short(given)}")
    return tuple(int(size) for size in given)


def _dtype(given: Any) -> np.dtype:
    name = given if isinstance(given, str) else np.dtype(given).name if isinstance(given, np.dtype | type) else None
    if name not in DTYPES or (isinstance(given, np.dtype) and not given.isnative):
        raise WorkbenchError(f"the type of an array must be one of {', '.join(DTYPES)}; got {_short(given)}")
    return np.dtype(name)


def _names(given: Any, count: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    fits = isinstance(given, list | tuple) and all(isinstance(name, str) and 0 < len(name) <= 64 for name in given)
    if not fits or len(given) != count or len(set(given)) < count:
        raise WorkbenchError(f"dimension_names must be {count} different names; got {_short(given)}")
    return tuple(given)


def _object(what: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise WorkbenchError(f"{what} must map names to values; got {_short(given)}")
    return json_document.plain(dict(given), what)


def _short(given: Any) -> str:
    """A value as text, shortened for messages."""
    shown = repr(given)
    return shown if len(shown) <= 120 else f"{shown[:120]}..."


def _unravelled(number: int, grid: tuple[int, ...]) -> Index:
    """The index, in a grid, of the chunk with this number; the last axis runs fastest."""
    index = []
    for count in reversed(grid):
        number, along = divmod(number, count)
        index.append(along)
    return tuple(reversed(index))
