"""Fields that are somewhere else, in parts: over a Dask array, a Zarr array, HDF5, a .npy file, or an archive.

A part is read where it is needed, as a `wb.Field`, so it is checked and masked like any other. Parts of a Dask array are
blocks of one graph: Dask computes each once, and moves it to the chunks of the archive. Where a chunk needs many blocks,
Dask would have to hold too much at once (most blocks are then needed by many chunks), so these are written to files first.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from workbench import backend
from workbench.data import Field
from workbench.data.labelled import Labelled, joined
from workbench.errors import WorkbenchError
from workbench.run.array_in_files import ArrayInFiles
from workbench.run.executors import Executor, OnDask
from workbench.run.graph import in_one_graph
from workbench.run.stored_arrays import InHdf5, InNpy, InZarr
from workbench.slabs import Slices

Result = TypeVar("Result")

VALUES = 2**22   # in a part, where neither the source nor an archive has chunks: 32 MB in float64
GATHERED = 2**26   # bytes of the blocks that Dask may hold for one part


class ChunkedField:
    """A field whose values stay where they are: in a Dask or Zarr array, an h5py data set, or a file or folder of these.

    Paths are those of .npy files and of Zarr arrays. NumPy arrays are accepted, too. `spacing`, `name`, `mask` and
    `metadata` are those of `wb.Field`; the mask is an array of the same kinds. Masked Dask arrays keep their masks. Fill
    values of files are values like any other, unless a mask covers them.
    An `xarray.DataArray`, in memory or lazy, brings its name, dimensions, coordinates, attributes and unit.

    >>> ChunkedField(np.zeros((64, 32), np.float32), spacing=0.5, name="temperature")
    ChunkedField('temperature', 64 x 32, float32)
    """

    def __init__(
        self,
        values: Any,
        spacing: float | Sequence[float] | None = None,
        name: str | None = None,
        mask: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        labelled = Labelled.of(values, as_stored=True)
        values, metadata = labelled.values, joined(labelled.metadata, metadata)
        self.values, self.mask = _readable("values", values), None if mask is None else _readable("mask", mask)
        if isinstance(self.values, np.ma.MaskedArray):
            joined_masks = Field(self.values, mask=None if self.mask is None else self.mask[...])
            self.values, self.mask = joined_masks.values, joined_masks.mask
        self.shape, self.dtype = _shape(self.values), np.dtype(self.values.dtype).newbyteorder("=")
        name = labelled.name if name is None else name
        self.described = Field(np.zeros((1,) * len(self.shape), self.dtype), spacing, name, metadata=metadata)
        self.spacing, self.name, self.metadata = self.described.spacing, self.described.name, self.described.metadata
        self.knows_spacing = spacing is not None
        if self.mask is not None and (_shape(self.mask) != self.shape or self.mask.dtype != bool):
            got = f"{self.mask.dtype} of shape {self.mask.shape}"
            raise WorkbenchError(f"mask must be boolean of shape {self.shape}; got {got}")

    @classmethod
    def of(cls, given: Any) -> ChunkedField:
        """The field itself, or that of a `wb.Field`, an archive of a field, a path, or any array.

        Arrays of Dask, Zarr and h5py stay where they are, unless their attributes change what their numbers mean: these
        must be opened by `wb.open`, or given as `ChunkedField(array)`, as they are stored.

        >>> ChunkedField.of([1.0, 2.0]).in_memory
        Field(2, float64)
        """
        if isinstance(given, ChunkedField):
            return given
        if (view := getattr(given, "chunked_field", None)) is not None:
            return view()
        if isinstance(given, str | Path) or _stays(Labelled.of(given).values):
            return cls(given)
        field = Field.of(given)
        spacing = field.spacing if isinstance(given, Field) else None
        source = cls(field.values, spacing, field.name, field.mask, field.metadata)
        source.in_memory = field
        return source

    @functools.cached_property
    def in_memory(self) -> Field | None:
        """The field, if its values and its mask are in the memory of this process: it has one part then."""
        if all(array is None or isinstance(array, np.ndarray) or backend.on_device(array) for array in self.arrays):
            return Field(self.values, self.spacing, self.name, self.mask, self.metadata)
        return None

    @property
    def arrays(self) -> tuple[Any, Any]:
        """The values, and the mask if there is one."""
        return self.values, self.mask

    def with_metadata(self, metadata: Mapping[str, Any]) -> ChunkedField:
        """The same field with other metadata."""
        return ChunkedField(self.values, self._known_spacing, self.name, self.mask, metadata)

    @property
    def on_dask(self) -> bool:
        """Whether Dask computes the values or the mask."""
        return _is_dask(self.values) or _is_dask(self.mask)

    @property
    def masks_itself(self) -> bool:
        """Whether parts may have masks although there is no separate one."""
        if (masked := getattr(self.values, "is_masked", None)) is not None:
            return bool(masked)
        return self.mask is None and isinstance(getattr(self.values, "_meta", None), np.ma.MaskedArray)

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """The shape of parts that suits the source: its chunks, or several of them, or all of it in memory."""
        if self.in_memory is not None:
            return self.shape
        if _is_dask(self.values):
            return tuple(map(max, self.values.chunks))
        if isinstance(self.values, ArrayInFiles):
            return self.values.chunks
        if (whole := getattr(self.values, "whole_chunks", None)) is not None:
            return tuple(whole)
        return _enlarged(getattr(self.values, "chunks", None) or (1,) * len(self.shape), self.shape)

    def require_floats(self, what: str) -> None:
        """Refuse integers where they would have to be rounded; `what` names the operation that needs floats."""
        if self.dtype.kind != "f":
            raise WorkbenchError(f"{what} needs floating-point values; got {self!r}: convert with .astype('float32')")

    def part(self, place: Slices) -> Field:
        """The values and the mask at these slices, read here; `parts_at` has those of Dask arrays, too."""
        if self.in_memory is not None and tuple(part.stop - part.start for part in place) == self.shape:
            return Field(self.values, mask=self.mask)
        try:
            values, mask = (None if array is None else array[place] for array in self.arrays)
        except WorkbenchError:
            raise
        except Exception as error:   # of any kind, as the libraries that read files raise for damaged ones
            raise WorkbenchError(f"the values at [{_in_words(place)}] of {self!r} cannot be read: {error}") from error
        unshared = backend.read_only(values) if type(values) is np.ndarray else values   # not copied
        return _as_promised(place, self.dtype, unshared, None if mask is None else _as_it_is(mask))

    def reachable(self, executor: Executor, folder: Path, name: str) -> ChunkedField:
        """The same field; arrays in the memory of this process are written to a folder, for workers to read."""
        if not isinstance(executor, OnDask):
            return self
        arrays = list(self.arrays)
        for place, kind in enumerate(("values", "mask")):
            if isinstance(arrays[place], np.ndarray):
                arrays[place] = _written(folder / f"{name}-{kind}", arrays[place])
        return self.over(*arrays)

    def saved(self, executor: Executor, folder: Path, name: str) -> ChunkedField:
        """The field with its parts written to a folder: decoded or computed once, however often they are read."""
        kinds = self.dtype, np.dtype(bool)
        values, mask = (ArrayInFiles(folder / f"{name}-{kind}", self.shape, kind, self.chunk_shape) for kind in kinds)
        save = functools.partial(_save, values, mask if self.masks_itself or self.mask is not None else None)
        masked = _map_parts(executor, "save-parts", save, self.chunk_shape, [self])
        return self.over(values, mask if any(masked) else None)

    def gathers_much(self, chunk_shape: Sequence[int], beyond: int = 0) -> bool:
        """Whether a part of this shape needs many blocks of Dask at once."""
        return any(_is_dask(array) and _gathered(array, chunk_shape, beyond) > GATHERED for array in self.arrays)

    def over(self, values: Any, mask: Any = None, spacing: Sequence[float] | None = None) -> ChunkedField:
        """The field with its values and its mask in other arrays, or with another spacing."""
        return ChunkedField(values, spacing or self._known_spacing, self.name, mask, self.metadata)

    @property
    def _known_spacing(self) -> tuple[float, ...] | None:
        return self.spacing if self.knows_spacing else None

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return f"ChunkedField({name}{' x '.join(map(str, self.shape))}, {self.dtype})"


def is_lazy(given: Any) -> bool:
    """Whether an array stays where it is until a part is read: one of Dask, Zarr, h5py, or xarray over these, or its like.

    >>> is_lazy(np.zeros(3)), is_lazy([1.5])
    (False, False)
    """
    if _kind(given) in ("zarr.Array", "h5py.Dataset") or isinstance(given, InNpy | InHdf5 | InZarr):
        return True
    if hasattr(given, "__dask_graph__"):
        return given.__dask_graph__() is not None
    return _is_source(given) and not hasattr(given, "__array__") and not backend.on_device(given)


def grid(shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> list[Slices]:
    """The slices of all chunks of this shape, in the order of the array.

    >>> grid((3,), (2,))
    [(slice(0, 2, None),), (slice(2, 3, None),)]
    """
    steps = [range(0, size, step) for size, step in zip(shape, chunk_shape, strict=True)]
    return [
        tuple(slice(at, min(at + step, size)) for at, step, size in zip(corner, chunk_shape, shape, strict=True))
        for corner in itertools.product(*steps)
    ]


def map_parts(
    executor: Executor, name: str, step: Callable[..., Result], chunk_shape: tuple[int, ...],
    fields: Sequence[ChunkedField], beyond: int = 0, together: bool = False,
) -> list[Result]:
    """The results of `step(number, *parts)` for each chunk of this shape, with the parts of all fields there, in order.

    Parts extend `beyond` the end of their chunk along each axis by so many points, as far as the field does. `together`
    says that several parts may be worked on at once in one process.
    """
    if not any(field.gathers_much(chunk_shape, beyond) for field in fields):
        return _map_parts(executor, name, step, chunk_shape, fields, beyond, together)
    with tempfile.TemporaryDirectory(prefix="lossbench-", dir=executor.folder) as folder:
        in_files = [
            field.saved(executor, Path(folder), f"blocks-{number}") if field.gathers_much(chunk_shape, beyond) else field
            for number, field in enumerate(fields)
        ]
        return _map_parts(executor, name, step, chunk_shape, in_files, beyond, together)


def _map_parts(
    executor: Executor, name: str, step: Callable[..., Result], chunk_shape: tuple[int, ...],
    fields: Sequence[ChunkedField], beyond: int = 0, together: bool = False,
) -> list[Result]:
    """The same, from where the fields are now."""
    shape = fields[0].shape
    places = [
        tuple(slice(part.start, min(part.stop + beyond, end)) for part, end in zip(place, shape, strict=True))
        for place in grid(shape, chunk_shape)
    ]
    if not any(field.on_dask for field in fields):
        return executor.map(name, _on_read, list(enumerate(places)), shared=(step, fields), together=together)
    blocks = None if beyond else chunk_shape
    parts = zip(*(_parts(field, blocks, places) for field in fields), strict=True)
    items = [(number, place, *of_fields) for number, (place, of_fields) in enumerate(zip(places, parts, strict=True))]
    dtypes = [field.dtype for field in fields]
    return in_one_graph(executor, name, functools.partial(_on_computed, step, dtypes), items)


def parts_at(executor: Executor, field: ChunkedField, places: Sequence[Slices]) -> list[Field]:
    """The values and the mask at each of these places, brought here."""
    if not field.on_dask:
        return [field.part(place) for place in places]
    items = [(place, *part) for place, part in zip(places, _parts(field, None, places), strict=True)]
    return in_one_graph(executor, "fetch-parts", functools.partial(_fetched, field.dtype), items)


def _written(stem: Path, values: np.ndarray) -> ArrayInFiles:
    """An array in the memory of this process, in files."""
    array = ArrayInFiles(stem, values.shape, values.dtype, _enlarged((1,) * values.ndim, values.shape))
    for number, place in enumerate(grid(array.shape, array.chunks)):
        array.write(number, values[place])
    return array


def _save(values: ArrayInFiles, mask: ArrayInFiles | None, number: int, part: Field) -> bool:
    """Write a part, also one that is on a GPU; says whether it has a mask."""
    values.write(number, backend.to_host(part.values))
    if mask is not None:
        mask.write(number, np.zeros(part.shape, bool) if part.mask is None else backend.to_host(part.mask))
    return part.mask is not None


def _fetched(dtype: np.dtype, place: Slices, values: Any, mask: Any) -> Field:
    """A part of a field, from what Dask has computed, or is read here."""
    values, mask = (one() if callable(one) else one for one in (values, mask))
    return _as_promised(place, dtype, values, mask)


def _as_promised(place: Slices, dtype: np.dtype, values: Any, mask: Any) -> Field:
    """A part of a field; refused if it has another shape or type than the whole has promised."""
    found, shape = Field(values, mask=mask), tuple(part.stop - part.start for part in place)
    if (found.shape, found.values.dtype) != (shape, dtype):
        got = f"{found.values.dtype} of shape {found.shape}"
        raise WorkbenchError(
            f"the values at [{_in_words(place)}] must be {dtype} of shape {shape}, as the source says; got {got}: has it "
            "changed?"
        )
    return found


def _in_words(place: Slices) -> str:
    return ", ".join(f"{part.start}:{part.stop}" for part in place)


def _on_read(shared: tuple[Callable[..., Result], Sequence[ChunkedField]], item: tuple[int, Slices]) -> Result:
    """One step on parts that are read here."""
    (step, fields), (number, place) = shared, item
    return step(number, *(field.part(place) for field in fields))


def _on_computed(
    step: Callable[..., Result], dtypes: Sequence[np.dtype], number: int, place: Slices, *parts: Any
) -> Result:
    """One step on parts (values, mask) that Dask has computed, or that are read here."""
    return step(number, *(_fetched(dtype, place, *part) for dtype, part in zip(dtypes, parts, strict=True)))


def _parts(
    field: ChunkedField, blocks: tuple[int, ...] | None, places: Sequence[Slices]
) -> Iterator[tuple[Any, Any]]:
    """The values and the mask of each part: blocks of Dask, or calls that read them."""
    return zip(*(_parts_of(array, blocks, places) for array in (field.values, field.mask)), strict=True)


def _parts_of(array: Any, blocks: tuple[int, ...] | None, places: Sequence[Slices]) -> list[Any]:
    """The parts of an array at these places, which are the blocks of this shape, if there is one, or overlap."""
    if array is None:
        return [None] * len(places)
    if not _is_dask(array):
        return [functools.partial(operator.getitem, array, place) for place in places]
    if blocks is not None:
        found: list[Any] = array.rechunk(blocks).to_delayed().ravel().tolist()
        return found
    return [array[place].rechunk(-1).to_delayed(optimize_graph=False).item() for place in places]


def _gathered(array: Any, chunk_shape: Sequence[int], beyond: int) -> int:
    """The bytes of all blocks of Dask that the part which needs most of them needs; 0 if every part is within one block."""
    several, values = False, 1
    for size, sizes, step in zip(array.shape, array.chunks, chunk_shape, strict=True):
        ends = np.cumsum(sizes)
        begins = np.arange(0, size, step)
        first = np.searchsorted(ends, begins, "right")
        last = np.searchsorted(ends, np.minimum(begins + step + beyond, size), "left")
        several |= bool((last > first).any())
        values *= int((ends[last] - (ends - sizes)[first]).max(initial=0))
    return values * array.dtype.itemsize if several else 0


def _is_source(given: Any) -> bool:
    """Whether parts of an array can be read by slices."""
    return all(hasattr(given, name) for name in ("shape", "dtype", "__getitem__"))


def _as_it_is(array: Any) -> Any:
    """An array of this machine or of a GPU; Zarr returns arrays of its own kind."""
    return array if backend.on_device(array) else np.asarray(array)


def _readable(what: str, given: Any) -> Any:
    """An array whose parts can be read by any process."""
    if isinstance(given, str | Path):
        return InZarr.open(given) if Path(given).is_dir() else InNpy.open(given)
    if _is_dask(given) or isinstance(given, InNpy | InHdf5 | InZarr | np.ma.MaskedArray):
        return given
    if _kind(given) == "h5py.Dataset":
        return InHdf5.of(given)
    if _kind(given) == "zarr.Array":
        return InZarr.of(given)
    if isinstance(given, np.ndarray):
        return backend.read_only(given)
    if backend.on_device(given) or _is_source(given):
        return given
    kinds = "a Dask array, a Zarr array, an h5py data set, the path of a .npy file or a Zarr array, or NumPy"
    raise WorkbenchError(f"{what} must be {kinds}, or have shape, dtype and [slices]; got {_kind(given)}")


def _kind(given: Any) -> str:
    """The package and the type, without importing the package."""
    return f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}"


def _is_dask(array: Any) -> bool:
    return hasattr(array, "__dask_graph__")


def _stays(array: Any) -> bool:
    """Whether the values of an array are outside of memory, or computed when they are needed."""
    return _is_dask(array) or _kind(array) in ("h5py.Dataset", "zarr.Array")


def _shape(array: Any) -> tuple[int, ...]:
    if any(isinstance(size, float) for size in array.shape):
        raise WorkbenchError(f"the shape of a Dask array must be known; got {array.shape}: call its compute_chunk_sizes()")
    if not math.prod(array.shape):
        raise WorkbenchError(f"values must not be empty; got shape {array.shape}")
    return tuple(map(int, array.shape))


def _enlarged(chunk: Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Several chunks together, the last axes first, as long as a part has few enough values."""
    found = [min(step, size) for step, size in zip(chunk, shape, strict=True)]
    for axis in reversed(range(len(shape))):
        times = max(VALUES // math.prod(found), 1)
        found[axis] = min(found[axis] * times, shape[axis])
    return tuple(found)
