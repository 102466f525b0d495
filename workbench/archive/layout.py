"""How the arrays of an archive are cut into chunks, and the Zarr documents that describe them.

An archive is a Zarr group (format 3) that any Zarr library can open, so its documents are Zarr's. They are read here and
not by a Zarr library because an archive states very little: one kind of grid, one codec, a handful of types. Everything
else in a document is refused, and so is every number that the bytes in the archive cannot justify: a short file must not
cause the allocation of a large array.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from workbench.archive import document as json_document
from workbench.archive.frame import HINT, MOST_DIMENSIONS, MOST_VALUES, Damaged, shape_of
from workbench.archive.key import ROOT
from workbench.archive.store import Store
from workbench.errors import WorkbenchError

ROLE = "lossbench:role"   # the attribute of an array that states its purpose
ROLES = ("data", "index", "model")
INDEXES = ("extents", "permutation")   # the arrays that hold no data, and whose documents need not say so
CODEC = "lossbench"   # the name by which Zarr libraries find our codec
DTYPES = (
    *("float32", "float64", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
MOST_VALUES_OF_ARRAY = 2**62

# Limits on the sizes that the bytes of an archive can justify. A constant chunk of 2^20 values takes about 50 bytes, so
# archives written here stay far below them; larger arrays are refused as implausible.
VALUES_PER_BYTE = 2**20
VALUES_FOR_NOTHING = 2**26
CHUNKS_PER_CHUNK = 64          # declared, for each one that is present
BYTES_OF_SMALL_CHUNK = 2**20
EXPANSION = 4                  # the most bytes of a chunk for each byte of its values, beyond the above

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


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

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            raise WorkbenchError(f"the name of an array must be letters, digits, '_' and '-'; got {self.name!r}")
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

    def chunk_indices(self) -> Iterator[tuple[int, ...]]:
        """The index of every chunk, in the order of the array."""
        grid = self.chunk_grid
        for number in range(self.chunk_count):
            yield _unravelled(number, grid)

    def chunk_key(self, index: tuple[int, ...]) -> str:
        """The key of a chunk."""
        self._require_index(index)
        return "/".join([self.name, "c", *map(str, index)])

    def chunk_slices(self, index: tuple[int, ...]) -> tuple[slice, ...]:
        """The part of the array that a chunk covers; smaller at the far edges."""
        self._require_index(index)
        places = zip(index, self.chunk_shape, self.shape, strict=True)
        return tuple(slice(i * step, min((i + 1) * step, size)) for i, step, size in places)

    def chunk_extent(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a chunk; smaller at the far edges."""
        return tuple(part.stop - part.start for part in self.chunk_slices(index))

    def metadata(self) -> dict[str, Any]:
        """The document that describes the array, as Zarr has it."""
        names = {} if self.dimension_names is None else {"dimension_names": list(self.dimension_names)}
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.chunk_shape)}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": self.dtype.type(0).item(),
            "codecs": [{"name": CODEC, "configuration": self.configuration}],
            "attributes": self.attributes,
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
            chunk_shape, configuration = _grid(content), _configuration(content)
            shape: Any = content.get("shape")
            dtype: Any = content.get("data_type")
            names: Any = content.get("dimension_names")
            attributes: Any = content.get("attributes")
            layout = cls(name, shape, chunk_shape, dtype, configuration, attributes, names)
        except WorkbenchError as error:
            raise WorkbenchError(f"{where}: {error}") from None
        expected = layout.metadata()
        for key in sorted({*expected, *content}):
            if key not in content or key not in expected or content[key] != expected[key]:
                wanted, got = _short(expected.get(key)), _short(content.get(key))
                raise WorkbenchError(f"{where}: {key} must be {wanted}; got {got}")
        return layout

    def _require_index(self, index: tuple[int, ...]) -> None:
        grid = self.chunk_grid
        if len(index) != len(grid) or not all(0 <= i < count for i, count in zip(index, grid, strict=True)):
            raise WorkbenchError(f"the chunks of {self.name} are a grid of {grid}; got the index {index}")


def require_plausible(layout: ArrayLayout, store: Store, damaged: bool = False) -> None:
    """Refuse an array that is too large for the bytes of its chunks.

    At most 2^20 values per byte, plus 2^26, are accepted. Each chunk must justify the memory for its values
    (`read_chunk`). When `damaged`, any number of chunks may be missing.
    """
    keys = store.keys()
    chunks = [store.size(key) for key in keys if key.startswith(f"{layout.name}/c/")]
    values, believed = math.prod(layout.shape), sum(chunks) * VALUES_PER_BYTE + VALUES_FOR_NOTHING
    if values > believed:
        raise WorkbenchError(
            f"{layout.name} in {store.name} claims {values:,} values, but its chunks have {sum(chunks):,} bytes in all, "
            f"which can hold {believed:,} at most: copy or download it again"
        )
    if not damaged and layout.chunk_count > CHUNKS_PER_CHUNK * (len(chunks) + 1):
        raise WorkbenchError(
            f"{layout.name} in {store.name} claims {layout.chunk_count:,} chunks; only {len(chunks):,} are present: "
            f"copy or download it again; or {HINT}"
        )


def read_chunk(store: Store, layout: ArrayLayout, index: tuple[int, ...]) -> bytes:
    """The bytes of a chunk, after checking their number and the shape that the frame claims."""
    key, extent = layout.chunk_key(index), layout.chunk_extent(index)
    most = BYTES_OF_SMALL_CHUNK + EXPANSION * math.prod(extent) * layout.dtype.itemsize
    if store.size(key) > most:
        raise Damaged(key, f"it must have at most {most:,} bytes; it has {store.size(key):,}")
    data = store.read(key)
    if (claimed := shape_of(data, key)) != extent:
        raise Damaged(key, f"it must hold values of shape {extent}; it claims {claimed}")
    return data


def _grid(content: Mapping[str, Any]) -> Any:
    match content.get("chunk_grid"):
        case {"name": "regular", "configuration": {"chunk_shape": chunk_shape}}:
            return chunk_shape
    raise WorkbenchError(f"chunk_grid must be regular, with a chunk_shape; got {_short(content.get('chunk_grid'))}")


def _configuration(content: Mapping[str, Any]) -> Any:
    match content.get("codecs"):
        case [{"name": name, "configuration": configuration}] if name == CODEC:
            return configuration
    raise WorkbenchError(f"codecs must be {CODEC} alone, with a configuration; got {_short(content.get('codecs'))}")


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


def _unravelled(number: int, grid: tuple[int, ...]) -> tuple[int, ...]:
    """The index, in a grid, of the chunk with this number; the last axis runs fastest."""
    index = []
    for count in reversed(grid):
        number, along = divmod(number, count)
        index.append(along)
    return tuple(reversed(index))
