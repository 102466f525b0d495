"""The snapshots of a simulation, one after the other; each is opened when it is asked for, and read chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from workbench.data.chunked import ChunkedParticles
from workbench.data.readers.file_sets import map_of, stem_of
from workbench.data.readers.limits import ReadLimits
from workbench.data.readers.opening import snapshot_of
from workbench.data.readers.options import FROM_FILE
from workbench.data.readers.paths import in_order, is_several, listed
from workbench.data.readers.registry import check_options, format_of, formats
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError, briefly


@dataclass(frozen=True, eq=False, repr=False)
class SnapshotSeries(Sequence[Any]):
    """Snapshots in the order of the numbers in their names, or of the list that was given.

    `places` are what `wb.open_chunked` opens for each, or `wb.open` where a format is only read as a whole, such as NetCDF.
    """

    places: tuple[Any, ...]
    options: Mapping[str, Any]
    chunk: int
    _opened: dict[int, ChunkedParticles] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, number: int) -> Any: ...
    @overload
    def __getitem__(self, number: slice) -> SnapshotSeries: ...
    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return SnapshotSeries(self.places[number], self.options, self.chunk)
        place = range(len(self.places))[number]   # refuses numbers that do not exist
        if place not in self._opened:
            if (alone := _read_whole(self.places[place], self.options)) is not None:
                return alone
            options = dict(self.options)
            found = snapshot_of(self.places[place], options.pop("format", None), options)
            box, wrap = options.get("box", FROM_FILE), options.get("wrap", False)
            self._opened[place] = found.in_chunks(box, wrap, self.chunk)
        return self._opened[place]

    @property
    def names(self) -> tuple[str, ...]:
        """The file or folder of each snapshot, or the first of its files."""
        return tuple(Path(place[0] if isinstance(place, list) else place).name for place in self.places)

    @property
    def redshifts(self) -> tuple[float | None, ...]:
        """The redshift of each snapshot, where its header has one; opens all of them."""
        return tuple(one.metadata.get("redshift") for one in self)

    @property
    def times(self) -> tuple[float | None, ...]:
        """The time of each snapshot in its header: the scale factor of cosmological runs; opens all of them."""
        return tuple(one.metadata.get("time") for one in self)

    def __repr__(self) -> str:
        ends = f": {self.names[0]} to {self.names[-1]}" if len(self) else ""
        return f"SnapshotSeries({len(self)} snapshots{ends})"


def _read_whole(place: Any, options: Mapping[str, Any]) -> Any:
    """The field or particles of a file whose format is read as a whole and alone; None for other formats."""
    if is_several(place):
        return None
    source = Source.at(place)
    if source.is_folder and not any(known.recognises(source) for known in formats()):
        return None   # the files of a snapshot
    found = format_of(source, options.get("format"), options)
    if found.snapshot is not None:
        return None
    own = {key: value for key, value in options.items() if key != "format"}
    check_options(found, source, own, found.options)
    return found.read(source, **own)


def series_of(path: Any, *, chunk: int, **options: Any) -> SnapshotSeries:
    """The snapshots in files of a pattern, in a folder, or in a list, of which each entry is a snapshot."""
    several = path if isinstance(path, list | tuple) else [path]
    files = [one for entry in several for one in (entry if isinstance(entry, list | tuple) else [entry])]
    if not all(isinstance(one, str | os.PathLike) for one in files):
        raise WorkbenchError(f"a series is a pattern, a folder, or a list of snapshots; got {briefly(path)}")
    if isinstance(path, list | tuple):
        places: list[Any] = list(path)
    else:
        paths = listed(path) if is_several(path) else _entries(Path(os.fspath(path)).expanduser(), options)
        places = _snapshots(paths, options)
    if not places:
        raise WorkbenchError(f"{path!r} holds no snapshots: check the path")
    return SnapshotSeries(tuple(places), options, chunk)


def _entries(folder: Path, options: Mapping[str, Any]) -> list[Path]:
    """The files and folders in a folder that can be snapshots; a file is one."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise WorkbenchError(f"a series is a pattern, a folder, a file, or a list; there is no {folder}: check the path")
    entries = sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), key=in_order)
    return [entry for entry in entries if entry.is_dir() or _is_snapshot(entry, options)]


def _is_snapshot(path: Path, options: Mapping[str, Any]) -> bool:
    source = Source.at(path, ReadLimits.among(options))
    found = next((known for known in formats() if known.recognises(source)), None)
    return found is not None and found.snapshot is not None


def _snapshots(paths: Sequence[Path], options: Mapping[str, Any]) -> list[Any]:
    """One entry for each snapshot: files of one set become its first file, which names the others."""
    whole = [path for path in paths if map_of(path) is None]
    partitions: dict[Path, list[Path]] = {}   # of GenericIO: where there is no map of ranks, they are the snapshot
    for path in paths:
        if (of := map_of(path)) is not None and of not in whole:
            partitions.setdefault(of, []).append(path)
    groups: dict[Any, list[Path]] = {}
    for path in whole:
        groups.setdefault(path if path.is_dir() else stem_of(path), []).append(path)
    places: list[Any] = [*partitions.values()]
    for stem, group in groups.items():
        if not isinstance(stem, Path) and _joint_file(*stem) in whole and _states_several(group[0], options):
            continue   # the parts of a file that refers to them, as SWIFT writes it beside them
        several = len(group) > 1 and _states_several(group[0], options)
        places += group[:1] if several else group
    return sorted(places, key=lambda place: in_order(place[0] if isinstance(place, list) else place))


def _joint_file(folder: Path, before: str, after: str) -> Path | None:
    """The name of one file for the whole set.

    >>> _joint_file(Path("out"), "snap_0004.", ".hdf5")
    PosixPath('out/snap_0004.hdf5')
    """
    return folder / f"{before[:-1]}{after}" if before.endswith(".") else None


def _states_several(path: Path, options: Mapping[str, Any]) -> bool:
    source = Source.at(path, ReadLimits.among(options))
    found = format_of(source, options.get("format"), options)
    return found.files_stated is not None and found.files_stated(source) > 1
