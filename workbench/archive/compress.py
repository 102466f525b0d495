"""`wb.compress`: from particles or a field, a bound and a codec to an archive whose promise was checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.archive.archive import Archive
from workbench.archive.choice import Profile, Speed, of_profile
from workbench.archive.chunking import Chunks
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.compressing import Making, StepOf, compress_dataset
from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.sources import first_chunked, is_dataset, is_files, opened_dataset
from workbench.archive.content.registry import content_of, is_content
from workbench.archive.earlier import EarlierSteps
from workbench.archive.recognition import is_archive
from workbench.archive.request import Compression, Request, promises, require_storable
from workbench.archive.writing import require_writable
from workbench.arguments import function, whole_number
from workbench.codecs import Codec
from workbench.data import Field
from workbench.data.labelled import is_data_array
from workbench.data.readers import open_chunked, open_file, open_trajectory
from workbench.data.readers.series import SnapshotSeries
from workbench.data.readers.trajectories import has_frames
from workbench.errors import SeveralArrays, WorkbenchError
from workbench.guarantees import Bound
from workbench.progress import Progress
from workbench.run.chunked_field import ChunkedField, is_lazy
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, OnDask
from workbench.run.submission import submittable


@submittable
def compress(
    source: Any,
    bound: Bound,
    codec: str | Codec = "auto",
    keep: Any = (),
    order: str = "keep",
    progress: Progress | None = None,
    *,
    velocities: Bound | None = None,
    columns: Mapping[str, Bound] | None = None,
    column_codec: str | Codec | None = None,
    store_permutation: bool = False,
    chunk_values: int | None = None,
    chunks: Chunks | None = None,
    speed: Speed = "small",
    profile: Profile = "own",
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    client: Any = None,
    parts: int | None = None,
    scratch: str | Path | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Archive:
    """Compress particles or a field so that the bound holds for every value, decoded and checked before this returns.

    `archive.certificate.notes` names a bound or a linking length that may be in another unit than the data.

    `source` is `wb.Particles`, a `wb.Field` or an array; or data that stay where they are: the file, pattern or folder of a
    snapshot, `wb.open_chunked(...)`, `wb.distributed.from_dask(...)`, an array of Dask, Zarr, h5py or xarray, a
    `wb.distributed.ChunkedField`, the path of a .npy or Zarr array. A dataset, a file of several arrays, or files that are
    parts of a dataset, as a pattern or a list of paths, become a collection, for which `bound` may be rules
    (`docs/datasets.md`). Arrays are treated as fields, also those of shape (N, 3): give `wb.Particles(array)` if they are
    positions. The mask of a NumPy masked array is kept, and what an array of xarray carries.

    `codec` is a name or a codec with options; "auto" takes the built-in codec for particles, and for fields of floats the
    built-in codec that makes a sample smallest, as the certificate states; "fast" (or "auto" with `speed="fast"`) takes
    `staged` for these, which is many times as fast and usually larger, and is read in parts; integers and particles have
    one built-in codec, whatever matters. `order="free"` sorts the particles along a curve: positions become much
    smaller, consecutive ids larger; `store_permutation` then stores the permutation. `keep` is one promise beyond the
    bound, or several. `velocities` bounds the error of velocities, and `columns` that of other columns by name or pattern,
    as in `{"Potential": wb.Relative(1e-3), "*": wb.Exact()}`; patterns are for floats alone. Both are exact otherwise; ids,
    masses and flags are always exact. What has a bound is encoded by `column_codec` or, without one, by `codec`; where that
    is only for positions or floats, by `prequantised`. `column_codec="neighbours"` predicts velocities and columns from
    the particles around them: smaller in simulations, slower, and readable only beside the positions, so not by plain Zarr.

    `profile="portable"` makes an archive of a field or a dataset whose arrays plain zarr-python and xarray read where this
    package is not installed, all values in their bounds (`docs/portable.md`). It is larger; the certificate says how much.

    `bound` may be one for each slice of a field along an axis: `wb.PerSlice(...)`. `chunks` is the shape of the chunks,
    each of which is encoded and read on its own: a number for every axis, one for each, or a mapping by names of
    dimensions. There, -1 is a whole axis, and None or no name as much as is usual. Of particles, it is how many are in a
    chunk. In place of it, `chunk_values` says how many values a chunk has at most. For a dataset, `chunks` is a mapping for
    all members that have these dimensions, or an option of a rule.

    `out` is where the archive is written: a folder, or a file that ends in .zip; without it, it is in memory. The steps run
    in this process or, with `client` (a Dask client, or the address of a scheduler), on its workers, which must see `out`,
    the source and the `scratch` folder; the bytes are the same, but that kept clusters may be repaired by other moves.
    Sources in Dask or Zarr arrays use Dask's active client. `parts` is the number of subdomains for `order="free"` and
    `keep` (by default, about a million particles each). `metadata` replaces that of the source. A run with `out` that was
    killed, or failed, leaves a hidden folder beside it: the same call goes on from there, and encodes no chunk of a field
    or of positions again. Particles in memory, without `client` and `parts`, are all encoded before any is written: that
    call starts anew.

    `progress` is called with the completed share and the current task; an exception that it raises stops the work. If it
    has a method `watch`, that is called with every step of keeping clusters: its number, phase, violations and loss.

    >>> import workbench as wb
    >>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    >>> archive = wb.compress(snapshot, wb.Absolute(0.01), order="free")
    >>> decoded = archive.decompress()
    >>> order = archive.permutation(snapshot)
    >>> bool(abs(decoded.positions - snapshot.positions[order]).max() <= 0.01)
    True
    """
    codec = of_profile(profile, codec, speed, column_codec)
    if profile == "portable":
        source = with_coordinates(source)
    options = {
        "codec": codec, "keep": keep, "order": order, "velocities": velocities, "store_permutation": store_permutation,
        "chunk_values": chunk_values, "chunks": chunks, "speed": speed, "columns": columns, "column_codec": column_codec,
    }
    if out is not None:
        require_writable(out, overwrite)
    return compressed(source, bound, options, Run(out, overwrite, client, parts, scratch, progress), metadata)


@dataclass(frozen=True)
class Run:
    """Where an archive goes, and who makes it: the arguments of `wb.compress` that do not change it."""

    out: str | os.PathLike[str] | None = None
    overwrite: bool = False
    client: Any = None
    parts: int | None = None
    scratch: str | Path | None = None
    progress: Progress | None = None


def compressed(
    source: Any, bound: Any, options: Mapping[str, Any], run: Run, metadata: Mapping[str, Any] | None = None,
    step: EarlierSteps | None = None,
) -> Any:
    """The archive that `wb.compress` returns, with these options of `Request`; it may be a step of a series."""
    if run.parts is not None:
        whole_number("parts", run.parts, least=1)

    def members() -> Any:
        if metadata is not None:
            raise WorkbenchError("metadata= is for one array; those of a dataset are attributes of its members and groups")
        with opened_dataset(source) as dataset:
            return compressed_dataset(dataset, bound, options, run)

    if is_dataset(source) or isinstance(bound, Mapping):
        return members()
    given = {**options, "keep": promises(options["keep"]), "columns": options["columns"] or {}}
    request = Request(bound, progress=run.progress, step=step, **given)
    if (data := single(source)) is None:
        return members()
    described = data.metadata if metadata is None else metadata
    require_storable(described)
    content = content_of(data)
    content.require(request)
    content.require_fit(data, described, request)
    executor = executor_of(run.client, run.progress, data)
    _require_path(executor, run)
    return content.compressed(
        Compression(data, described, request, run.out, run.overwrite, executor, run.parts, run.scratch)
    )


def compressed_dataset(
    dataset: Dataset, rules: Any, options: Mapping[str, Any], run: Run, steps: StepOf | None = None
) -> Collection:
    """The collection of a dataset, of which each member is encoded where it is read; it may be a step of a series."""
    executor = executor_of(run.client, run.progress, first_chunked(dataset))
    _require_path(executor, run)
    function("progress", run.progress)
    making = Making(executor, run.parts, run.scratch, run.progress, steps)
    return compress_dataset(dataset, rules, options, run.out, run.overwrite, making)


def _require_path(executor: Executor, run: Run) -> None:
    if isinstance(executor, OnDask) and run.out is None:
        raise WorkbenchError("workers write the archive: give out=, a path on a file system that all of them see")


def with_coordinates(source: Any) -> Any:
    """An array of xarray as a dataset of one, if it has coordinates: an archive of a field has no arrays of them."""
    if is_dataset(source) or not (is_data_array(source) and len(source.coords)):
        return source
    return source.to_dataset(name=source.name if isinstance(source.name, str) else "values", promote_attrs=False)


def source_of(given: Any) -> Any:
    """Data in memory, or that stay where they are until a part is read; what is a source is returned as it is.

    >>> import numpy as np
    >>> source_of(np.zeros((2, 3)))
    Field(2 x 3, float64)
    """
    if is_content(given):
        return given
    if isinstance(given, SnapshotSeries):
        raise WorkbenchError(
            f"one archive holds one step, and {given!r} are several: append each to a wb.Series(path, bound), or give one"
        )
    if hasattr(given, "chunked_field"):   # an archive
        return given.content.source(given)
    if isinstance(given, str | os.PathLike):
        return _file(given)
    if is_files(given):
        return open_chunked(given)
    return ChunkedField(given) if is_lazy(given) else Field.of(given)


def single(source: Any) -> Any:
    """The particles or the field that are given; None for the file of several arrays, which is a dataset."""
    try:
        return source_of(source)
    except SeveralArrays:
        if not is_files(source):
            raise
        return None


def _file(path: str | os.PathLike[str]) -> Any:
    """The particles in a file, a pattern or a folder; or the field in a file."""
    try:
        return open_chunked(path)
    except WorkbenchError as error:
        reason = error
    if is_archive(path):   # before others: a folder of Zarr may be one
        return source_of(open_file(path))
    if Path(path).suffix == ".npy":
        return ChunkedField(path)
    if (Path(path) / "zarr.json").exists() or (Path(path) / ".zarray").exists():
        try:
            return ChunkedField(path)
        except WorkbenchError as error:   # it may be a group of arrays
            reason = error
    elif not Path(path).is_file():
        raise reason
    try:
        found = open_trajectory(path) if has_frames(path) else open_file(path)
    except SeveralArrays:
        raise
    except WorkbenchError:
        raise reason from None
    return source_of(found)
