"""The two sides of an audit: whatever is given becomes members by name, whose values are read where they are needed.

Files of arrays are datasets; snapshots have a member for each type of particles, trajectories one for each frame, so that
no part of a file is left out unseen.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.dataset import Dataset, coordinates_of
from workbench.archive.collection.sources import is_dataset, is_files, opened_dataset
from workbench.archive.compress import source_of
from workbench.archive.opening import opened
from workbench.archive.recognition import is_archive
from workbench.data.chunked import ChunkedParticles
from workbench.data.particles import Particles
from workbench.data.readers import left_out, open_file
from workbench.data.readers.address import is_address
from workbench.data.readers.opening import is_set
from workbench.data.readers.particle_types import NAME_OF_TYPE
from workbench.data.readers.paths import is_several, listed, nbytes_of
from workbench.data.readers.registry import format_of
from workbench.data.readers.source import Source
from workbench.errors import NoSuchPart, SeveralArrays, WorkbenchError, briefly

ONE = "values"   # the name of a single array without one
OF_ARRAYS = ("netcdf", "hdf5-grid", "zarr", "npz", "npy", "bov", "raw")   # formats that hold no particles


class Lazily(Mapping[str, Any]):
    """Members that are read when they are asked for, and not kept."""

    def __init__(self, reading: Mapping[str, Callable[[], Any]]) -> None:
        self._reading = dict(reading)

    def __getitem__(self, name: str) -> Any:
        return self._reading[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._reading)

    def __len__(self) -> int:
        return len(self._reading)


@dataclass(frozen=True, eq=False)
class Side:
    """One side: its name, its members, which of them are coordinates, and where they are stored.

    A `bare` side has arrays alone, without names, units and coordinates, like a .npy file.
    """

    name: str
    members: Mapping[str, Any]
    coordinates: frozenset[str] = frozenset()
    bare: bool = False
    path: Path | None = None
    archive: Archive | Collection | None = None
    left_out: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> list[str]:
        """The names of the members that are no coordinates."""
        return [name for name in self.members if name not in self.coordinates]

    @property
    def holds_particles(self) -> bool:
        """Whether the first member is a set of particles: then all are."""
        return isinstance(self.members[next(iter(self.members))], Particles | ChunkedParticles)

    @property
    def nbytes(self) -> int | None:
        """The size of the files; None of what is in memory."""
        if self.path is None:
            return None if self.archive is None else self.archive.nbytes
        return nbytes_of(self.path)


@contextmanager
def opened_side(given: Any, which: str) -> Iterator[Side]:
    """A side, whose files stay open meanwhile; `which` names it in messages: "original" or "lossy"."""
    if not is_files(given):
        yield _of_object(given, "the original" if which == "original" else "the lossy copy")
        return
    if is_address(given):
        yield _of_archive(opened(given), given, None)
        return
    path = _one_path(given)
    if path is None:
        with opened_dataset(given) as dataset:
            yield _of_dataset(dataset, str(given), None)
        return
    if not os.path.exists(path):
        raise WorkbenchError(f"there is no {which} {path}: check the path")
    if is_archive(path):
        yield _of_archive(opened(path), str(path), path)
    elif (particles := _particles_in(path)) is not None:
        yield particles
    else:
        with _arrays_in(path) as side:
            yield side


def _one_path(given: Any) -> Path | None:
    """The path, if these name one file or folder."""
    paths = listed(given) if is_several(given) else [given]
    return Path(paths[0]).expanduser() if len(paths) == 1 else None


@contextmanager
def _arrays_in(path: Path) -> Iterator[Side]:
    """The arrays in a file that xarray or a library of its field opens as a dataset, or else that `wb.open` reads."""
    if path.suffix == ".npy":
        members = {ONE: source_of(path)} if _is_field(path) else Dataset({ONE: np.load(path)})
        yield Side(str(path), members, bare=True, path=path)
        return
    with ExitStack() as stack:
        try:
            side = _of_dataset(stack.enter_context(opened_dataset(path)), str(path), path, bare=path.suffix == ".npz")
        except WorkbenchError as error:
            side = _of_one_array(path, error)
        yield side


def _of_one_array(path: Path, reason: WorkbenchError) -> Side:
    """The field in a file that `wb.open` reads, which xarray refused for this reason."""
    try:
        member = source_of(path)
    except WorkbenchError:
        raise reason from None
    return Side(str(path), {getattr(member, "name", None) or ONE: member}, path=path, left_out=_missing_from(member))


def _is_field(path: Path) -> bool:
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped.dtype.name in ("float32", "float64") and 1 <= mapped.ndim <= 4 and mapped.size > 0


def _particles_in(path: Path) -> Side | None:
    """The particles in a file, or in the files of a folder: by type, by frame, or all."""
    if is_set(path, None):
        particles = open_file(path)
        return Side(str(path), {"particles": particles}, path=path, left_out=_missing_from(particles))
    try:
        form = format_of(Source.at(path), None, {})
    except WorkbenchError:
        return None   # perhaps a dataset
    if form.key in OF_ARRAYS or (form.key == "abacus" and not _opens(path)):
        return None
    more = {"columns": "all"} if "columns" in form.options else {}
    if "particle_type" in form.options:
        return _by_type(path, more)
    first = open_file(path, **more)
    if not isinstance(first, Particles):
        return None
    frames = first.metadata.get("frames") or (_frames(path, more) if "frame" in form.options else 1)
    if frames > 1:
        reading = {f"frame_{n}": _reader(path, frame=n, **more) for n in range(frames)}
        return Side(str(path), Lazily(reading), path=path, left_out=_missing_from(first, "frames"))
    return Side(str(path), {"particles": first}, path=path, left_out=_missing_from(first))


def _frames(path: Path, more: Mapping[str, Any]) -> int:
    """How many frames a text file has, which does not say so; one that is damaged is an error."""
    for number in itertools.count(1):
        try:
            open_file(path, frame=number, **more)   # readers remember where frames begin
        except NoSuchPart:
            break
    return number


def _by_type(path: Path, more: Mapping[str, Any]) -> Side:
    """The particles of each type in a snapshot, with all columns."""
    members: dict[str, Any] = {}
    for number, name in enumerate(NAME_OF_TYPE):
        with contextlib.suppress(NoSuchPart):
            members[name] = open_file(path, particle_type=number, **more)
    missing = {one for particles in members.values() for one in _missing_from(particles, "particle type")}
    return Side(str(path), members, path=path, left_out=tuple(sorted(missing)))


def _reader(path: Path, **options: Any) -> Callable[[], Any]:
    return lambda: open_file(path, **options)


def _opens(path: Path) -> bool:
    try:
        open_file(path)
    except WorkbenchError:
        return False
    return True


def _missing_from(data: Any, *read_apart: str) -> tuple[str, ...]:
    """What of a file is not in the data, unless it is read as other members."""
    if not hasattr(data, "metadata"):
        return ()
    return tuple(one for one in left_out(data) if not any(word in one for word in read_apart))


def _of_object(given: Any, name: str) -> Side:
    """What a caller has in memory, or lazily, or as an open archive."""
    if isinstance(given, Archive | Collection):
        return _of_archive(given, name, None)
    if is_dataset(given):
        return _of_dataset(Dataset.of(given), name, None)
    try:
        member = source_of(given)
    except SeveralArrays as error:
        wanted = f"{name} must be one array, particles, a dataset or a file"
        raise WorkbenchError(f"{wanted}; got {briefly(given)}: {error}") from None
    own = getattr(member, "name", None)
    particles = isinstance(member, Particles | ChunkedParticles)
    bare = not particles and not getattr(member, "metadata", {})
    return Side(name, {"particles" if particles else own or ONE: member}, bare=bare, left_out=_missing_from(member))


def _of_dataset(dataset: Dataset, name: str, path: Path | None, bare: bool = False) -> Side:
    about = dataset.groups.get("", {})
    missing = about.get("left_out", ())
    exact = dataset.coordinates | dataset.describing
    return Side(name, dataset, exact, bare, path, left_out=tuple(map(str, missing)), attributes=about.get("attributes", {}))


def _of_archive(archive: Archive | Collection, name: str, path: Path | None) -> Side:
    """The members of an archive, each part decoded where it is needed."""
    if isinstance(archive, Collection):
        reading = {member: _decoded(archive, member) for member in archive}
        left = archive.groups[""].get("left_out", ())
        return Side(
            name, Lazily(reading), coordinates_of(archive.groups), path=path, archive=archive,
            left_out=tuple(map(str, left)), attributes=archive.attributes,
        )
    own = archive.attributes.get("name") or ("particles" if archive.kind == "particles" else ONE)
    return Side(name, Lazily({str(own): _decoded(archive, None)}), path=path, archive=archive)


def _decoded(archive: Archive | Collection, member: str | None) -> Callable[[], Any]:
    """What reads an archive, or a member: fields part by part."""
    def read() -> Any:
        one = archive if isinstance(archive, Archive) else archive[str(member)]
        return one.chunked_field() if one.kind == "field" else one.decompress()

    return read
