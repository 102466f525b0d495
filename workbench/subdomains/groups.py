"""`wb.friends_of_friends`: the groups of particles, in memory or divided into subdomains."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, Literal, overload

import numpy as np

from workbench.arguments import one_of, whole_number
from workbench.clusters import Catalogue, Groups, absolute_linking_length
from workbench.clusters import friends_of_friends as in_memory
from workbench.clusters.catalogue_summary import CatalogueSummary
from workbench.clusters.friends import Unit
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.data.triclinic import require_no_triclinic_cell
from workbench.errors import WorkbenchError
from workbench.progress import Progress
from workbench.run.clients import executor_of
from workbench.run.dask_particles import is_dask_array
from workbench.run.executors import Executor, InProcess
from workbench.run.graph import read_by_dask
from workbench.run.new_folder import new_folder
from workbench.run.owner import remove_owned
from workbench.run.submission import Submitted, submittable
from workbench.run.zarr_labels import write_zarr
from workbench.subdomains.fof import Labels, find_groups
from workbench.subdomains.halos import MEASURED, catalogue_of, measure
from workbench.subdomains.plan import chosen_parts, require_room
from workbench.subdomains.shards import FORMATS, FormatName, Shards
from workbench.subdomains.sources import Given, chunked, outline_of, scratch_folder


@overload
def friends_of_friends(   # type: ignore[overload-overlap]
    source: Particles, linking_length: float = 0.2, unit: Unit = "spacing"
) -> Groups: ...


@overload
def friends_of_friends(
    source: Given, linking_length: float = 0.2, unit: Unit = "spacing", client: Any = None, *, parts: int | None = None,
    scratch: str | Path | None = None, progress: Progress | None = None, submit: Literal[False] = False,
) -> DistributedGroups: ...


@overload
def friends_of_friends(
    source: Given, linking_length: float = 0.2, unit: Unit = "spacing", client: Any = None, *, parts: int | None = None,
    scratch: str | Path | None = None, progress: Progress | None = None, submit: Literal[True],
) -> Submitted[Any]: ...


@submittable
def friends_of_friends(
    source: Given,
    linking_length: float = 0.2,
    unit: Unit = "spacing",
    client: Any = None,
    *,
    parts: int | None = None,
    scratch: str | Path | None = None,
    progress: Progress | None = None,
) -> Any:
    """Exact friends-of-friends groups; a link joins two particles at a distance of at most the linking length.

    `unit` says what `linking_length` is a multiple of: "spacing", the mean spacing (volume / N) ** (1 / D) of the
    particles, or "length", the unit of the positions.

    `source` is `wb.Particles`, of which all is in memory: the result is `wb.Groups`. Or it is what stays where it is: the
    file, pattern or folder of a snapshot, `wb.open_chunked(...)`, a Dask array of positions or
    `wb.distributed.from_dask(...)`. Space is then divided into `parts` subdomains (by default, of about a million particles
    each), and the result, `wb.distributed.DistributedGroups`, has its labels in files. The steps run in this process or,
    with `client` (a Dask client, the address of a scheduler, or a scheduler file), on workers; sources in Dask arrays use
    Dask's active client. Particles in memory are divided, too, where `client`, `parts` or `scratch` is given. The groups
    are the same, particle for particle.

    `scratch` is a folder that all workers see, with room for about three times the size of the positions
    (`wb.distributed.plan` says how much); by default, a temporary folder of this machine. `progress` is called with the
    completed share of each step and the name of the step, such as `wb.ProgressBar()`. With `submit=True` it runs in a
    thread: what is returned has the groups as `result()`, and `cancel`.

    >>> from workbench.data.synthetic import cosmic_web
    >>> snapshot = cosmic_web(n=16, seed=1)
    >>> friends_of_friends(snapshot).count(min_members=20)
    13
    >>> with friends_of_friends(snapshot, parts=4) as groups:
    ...     groups.parts, groups.count(min_members=20)
    (4, 13)
    """
    if parts is None and client is None and scratch is None and not _is_lazy(source):   # what is no `Particles` is refused
        return InProcess(progress).map("find-groups", _here, [(linking_length, unit)], shared=source)[0]
    return search(executor_of(client, progress, source), source, linking_length, unit, parts, scratch)


def _here(source: Any, how: tuple[float, Unit]) -> Groups:
    return in_memory(source, *how)


def _is_lazy(source: Any) -> bool:
    """Whether particles stay where they are until a chunk is read."""
    return isinstance(source, ChunkedParticles | str | PathLike | list | tuple) or is_dask_array(source)


def search(
    executor: Executor,
    source: Given,
    linking_length: float = 0.2,
    unit: Unit = "spacing",
    parts: int | None = None,
    scratch: str | Path | None = None,
) -> DistributedGroups:
    """The same by an executor."""
    with scratch_folder(scratch, executor, keep=True) as folder:
        executor = executor.within(folder)
        particles = chunked(source, executor, folder)
        require_no_triclinic_cell(particles, "a search for clusters")
        wanted = chosen_parts(parts, len(particles))
        require_room(folder, particles, wanted, 0.0)
        length = absolute_linking_length(outline_of(particles, executor), linking_length, unit)
        labels, ghosts = find_groups(particles, length, wanted, folder, executor)
    return DistributedGroups(labels, ghosts, executor)


@dataclass(frozen=True)
class _Rows:
    """The labels of groups as an array that is read where it is sliced."""

    groups: DistributedGroups
    shape: tuple[int]
    dtype = np.dtype(np.int64)
    ndim = 1

    def __getitem__(self, rows: Any) -> np.ndarray:
        (chosen,) = rows if isinstance(rows, tuple) else (rows,)
        start, end, step = chosen.indices(*self.shape)
        return self.groups._labels.between(start, end)[::step]


def _remove(folder: Path, process: int) -> None:
    """Remove the files of a search in the process that made it: a fork of that inherits the groups, not the files."""
    if os.getpid() == process:
        remove_owned(folder)


class DistributedGroups:
    """A partition of particles into groups; the labels are in files, which `close` or the end of a `with` block deletes."""

    def __init__(self, labels: Labels, ghosts: int, executor: Executor) -> None:
        self._of_search, self._executor, self.ghosts = labels, executor, ghosts
        self._catalogues: dict[tuple[int, tuple[str, ...]], Catalogue] = {}
        self._summaries: dict[tuple[int, int], CatalogueSummary] = {}
        self._measuring = Lock()
        self._files: weakref.finalize | None = weakref.finalize(self, _remove, labels.folder, os.getpid())

    def __getstate__(self) -> dict[str, Any]:
        """What a copy in another process needs to read labels: neither the client nor the right to delete the files."""
        return {"_of_search": self._of_search, "ghosts": self.ghosts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        here = {"_executor": InProcess(), "_catalogues": {}, "_summaries": {}, "_measuring": Lock(), "_files": None}
        self.__dict__ |= {**state, **here}

    def close(self) -> None:
        """Delete the files; copies in other processes leave them."""
        if self._files is not None:
            self._files()

    @property
    def _labels(self) -> Labels:
        """The labels, as long as their files are there."""
        if self._files is not None and not self._files.alive:
            raise WorkbenchError("these groups were closed, and their files are deleted: use them before, or search again")
        return self._of_search

    @property
    def source(self) -> ChunkedParticles:
        """The particles."""
        return self._of_search.source

    @property
    def parts(self) -> int:
        """How many subdomains there were."""
        return self._of_search.division.parts

    @property
    def linking_length(self) -> float:
        """The linking length in the unit of the positions."""
        return self._of_search.length

    @property
    def labels(self) -> Any:
        """The labels (int64) of all particles as a Dask array, in the chunks of the source, read when it is computed.

        Any cluster can compute it that sees the scratch folder, until these groups are closed.
        """
        rows = _Rows(self, (len(self.source),))
        return read_by_dask(rows, tuple(self.source.sizes), f"labels-{self._labels.folder.name}")

    @cached_property
    def spacing(self) -> float:
        """The mean distance of particles; in open space, all of them are read for it."""
        return outline_of(self.source, self._executor).spacing

    def __len__(self) -> int:
        """The number of groups of any size."""
        return sum(self._executor.map("count-groups", Labels.groups_in, range(self.parts), shared=self._labels))

    def chunk(self, number: int) -> np.ndarray:
        """The labels (int64) of the particles in a chunk of the source: the smallest index in the group of each."""
        number = whole_number("number", number, least=0, most=len(self.source.sizes) - 1)
        return self._labels.of_chunk(number)

    def chunks(self) -> Iterator[np.ndarray]:
        """The labels of all chunks, one after the other."""
        return map(self.chunk, range(len(self.source.sizes)))

    def gathered(self) -> Groups:
        """All labels in this process."""
        return Groups(np.concatenate(list(self.chunks())), self.linking_length)

    def to_zarr(self, path: str | PathLike[str]) -> Path:
        """Write the labels to a Zarr array, each chunk by a worker; it has its name once it is complete."""
        attributes = {"linking_length": self.linking_length}
        between = self._labels.between
        return write_zarr(path, len(self.source), max(self.source.sizes), between, attributes, self._executor)

    def catalogue(self, min_members: int = 20, columns: Sequence[str] | None = None) -> Catalogue:
        """The groups with at least `min_members` members, with centres and radii; particles are not gathered.

        `columns` says which of "masses" and "velocities" are read, too; by default, those that the source has. With masses,
        groups have masses, and centres are centres of mass; with velocities, they have mean velocities and dispersions.
        This process holds the whole catalogue; for one that does not fit, there are `summary` and `write_catalogue`.
        """
        wanted = self._measured(min_members, columns)
        with self._measuring:   # threads would send the columns to the same files
            if (min_members, wanted) not in self._catalogues:
                made = catalogue_of(self._labels, min_members, self._executor, wanted)
                self._catalogues[min_members, wanted] = made
            return self._catalogues[min_members, wanted]

    def write_catalogue(
        self, folder: str | PathLike[str], min_members: int = 20, columns: Sequence[str] | None = None,
        format: FormatName = "parquet", largest: int = 10,
    ) -> CatalogueSummary:
        """Write the catalogue to a new folder, where workers write many files, and return its summary.

        Each group is in one file: `part-*` of its subdomain, or one of the last few files if it lies in several. "parquet"
        makes tables (needs pyarrow), "zarr" Zarr groups with an array for each column; `Catalogue.columns` names these. Of
        all groups, this process gets the `largest` ones alone.
        """
        wanted = self._measured(min_members, columns)
        whole_number("largest", largest, least=0)
        one_of("format", format, tuple(FORMATS))
        shards, attributes = FORMATS[format](), {"linking_length": self.linking_length, "min_members": min_members}
        with new_folder(folder, self._executor) as place, self._measuring:
            return measure(self._labels, min_members, self._executor, wanted, largest, Shards(place, shards, attributes))

    def summary(self, min_members: int = 20, largest: int = 10) -> CatalogueSummary:
        """The counts of the groups with at least `min_members` members, and the largest ones, without masses."""
        whole_number("min_members", min_members, least=1)
        whole_number("largest", largest, least=0)
        with self._measuring:
            if (min_members, largest) not in self._summaries:
                self._summaries[min_members, largest] = measure(self._labels, min_members, self._executor, largest=largest)
            return self._summaries[min_members, largest]

    def count(self, min_members: int = 20) -> int:
        """The number of groups with at least this many members."""
        return self.summary(min_members).groups

    def mass_function(self, min_members: int = 20) -> tuple[np.ndarray, np.ndarray]:
        """The edges of bins of members, each twice the one before, and the number of groups in each bin."""
        counted = self.summary(min_members)
        return counted.edges, counted.histogram

    def _measured(self, min_members: int, columns: Sequence[str] | None) -> tuple[str, ...]:
        """The columns that a catalogue reads; refuses what it cannot be made of."""
        whole_number("min_members", min_members, least=1)
        given = [columns] if isinstance(columns, str) else columns
        here = tuple(name for name in MEASURED if name in self.source.columns)
        wanted = here if given is None else tuple(given)
        if strangers := [name for name in wanted if name not in here]:
            raise WorkbenchError(
                "columns must be of masses and velocities, as far as the source has them "
                f"({', '.join(here) or 'neither'}); got {strangers[0]!r}"
            )
        return wanted

    def __enter__(self) -> DistributedGroups:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"DistributedGroups({len(self.source):,} particles in {self.parts:,} subdomains, {self.ghosts:,} ghosts, "
            f"linking length {self.linking_length:.6g})"
        )
