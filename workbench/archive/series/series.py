"""`wb.Series`: snapshots, fields or datasets one after the other, each predicted from those before it.

A series is a folder with an archive for each step. A step is read with at most as many others as there are between two key
steps; what is promised of a step holds as it would alone.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, overload

import numpy as np

from workbench.archive.archive import IDS, Archive
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.reports import Reports
from workbench.archive.collection.sources import is_dataset, opened_dataset
from workbench.archive.compress import Run, single
from workbench.archive.content.particles import rows_of
from workbench.archive.frame import Damaged
from workbench.archive.lock import held
from workbench.archive.placing import on_disk, target_of
from workbench.archive.series.appending import Appending
from workbench.archive.series.descent import decoded_descent, verified_descent
from workbench.archive.series.recovering import salvaged, stated_or_known
from workbench.archive.series.requested import DOCUMENT, Requested, write_document
from workbench.archive.series.statement import SeriesCertificate
from workbench.archive.series.steps import Steps, numbered
from workbench.archive.trust import Trust
from workbench.clusters.descent import Descent
from workbench.clusters.friends import Unit
from workbench.codecs import Codec
from workbench.data import Particles
from workbench.data.ids import common, row_of_ids
from workbench.data.labelled import time_coordinate
from workbench.data.summary_html import size
from workbench.errors import GuaranteeBroken, WorkbenchError, briefly
from workbench.guarantees import Bound
from workbench.progress import Progress


class Series(Sequence[Any]):
    """Steps in time, in a folder with an archive for each: `series[7]` is one of them.

    With a bound, a series is begun, or gone on with; the options are those of `wb.compress`, and hold for every step.
    Without one, the series in the folder is opened, and `append` goes on with it.

    Fields and particles are predicted from the two steps before, where that makes them smaller. Every `every` steps (1 to
    64) is a key step, which needs no other (by default after 16 to 32, and sooner where prediction does not pay).
    Particles are kept in the order of the first step: that given or, with `order="free"`, one along a curve. Those of
    later steps are found by their ids, which are stored once; particles may appear and vanish.

    >>> import tempfile, workbench as wb
    >>> folder = tempfile.TemporaryDirectory()
    >>> series = Series(Path(folder.name) / "waves", wb.Absolute(1e-3))
    >>> x = np.linspace(0, 6, 1000)
    >>> for time in range(4):
    ...     _ = series.append(wb.Field(np.sin(x - 0.1 * time)), time)
    >>> len(series), series.times, series.at(2.2).decompress()
    (4, (0.0, 1.0, 2.0, 3.0), Field(1000, float64))
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        bound: Any = None,
        codec: str | Codec = "auto",
        keep: Any = (),
        order: str = "keep",
        every: int | None = None,
        *,
        velocities: Bound | None = None,
        columns: Mapping[str, Bound] | None = None,
        column_codec: str | Codec | None = None,
        chunk_values: int | None = None,
        chunks: Any = None,
        speed: Any = "small",
        codecs: Names[str] | None = None,
        most_bytes: int | None = None,
        isolate: bool = True,
        patience: float | None = None,
    ) -> None:
        self.path = _folder(path)
        self._trust = Trust(codecs, most_bytes, isolate, patience)
        stated, name, self._reason = stated_or_known(self.path)
        self._steps = Steps(self.path, name, self._trust)
        self._requested: Requested | None = None
        if bound is not None:
            self._requested = Requested(
                bound=bound, codec=codec, keep=keep, order=order, every=every, velocities=velocities, columns=columns,
                column_codec=column_codec, chunk_values=chunk_values, chunks=chunks, speed=speed,
            )
            if stated is not None and self._steps.numbers():
                self._requested.require_same(stated["requested"], self.path.name)
        elif not name:
            raise WorkbenchError(
                f"{path} must be the folder of a series, with its {DOCUMENT}; there is none: give a bound to begin a series"
            )
        elif stated is None:
            warnings.warn(f"{self._reason}: steps can be read; {self._remedy()}", stacklevel=2)

    # Writing.

    def append(
        self,
        step: Any,
        time: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        client: Any = None,
        parts: int | None = None,
        scratch: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """Compress one more step, checked like any archive, and return its archive.

        `step` is all that `wb.compress` takes. `time` must rise; without it, it is that in the metadata of the step
        (`time`, or the scale factor of its `redshift`) or the coordinate `time` of an array or a dataset of xarray, and
        where no step has any, steps are counted. The other arguments are those of `wb.compress`; a run on workers that was
        killed is gone on with by the same call.
        """
        with self._writing() as requested:
            run = Run(None, False, client, parts, scratch, progress)
            appending = Appending(self._steps, requested, run, time_coordinate(step))
            if is_dataset(step) or isinstance(requested.bound, Mapping) or (data := single(step)) is None:
                with opened_dataset(step) as dataset:
                    appending.append(dataset, time, metadata)
            else:
                appending.append(data, time, metadata)
        return self[-1]

    @contextmanager
    def _writing(self) -> Iterator[Requested]:
        """The right to append, and what is requested; the document is written with the first step."""
        self._require_same(stated_or_known(self.path)[1])   # before a folder is made where the series was
        with on_disk(self.path):
            self.path.mkdir(exist_ok=True)
        if not self._steps.series:
            _require_ours(self.path)
        with held(self.path, self.path):
            stated, name, reason = stated_or_known(self.path)
            self._require_same(name)
            begun = bool(self._steps.numbers())
            if self._requested is None:
                if stated is None:
                    raise WorkbenchError(f"{reason}: {self._remedy()}")
                self._requested = Requested.from_dict(stated["requested"])
            elif stated is not None and begun:
                self._requested.require_same(stated["requested"], self.path.name)
            if stated is None or not begun:   # the first step may have been refused, and now be appended by other arguments
                stated = write_document(self.path, self._requested, name)
            self._steps.series = stated["name"]
            yield self._requested

    def _remedy(self) -> str:
        """How to append where the document of the series is lost."""
        return (
            f"to append more, give the arguments that it was begun with, wb.Series({self.path.name!r}, bound, ...), and "
            f"{DOCUMENT} is written again"
        )

    def _require_same(self, name: str) -> None:
        """Refuse to go on where another series is now, or none: a run would be in two parts."""
        if self._steps.series and name != self._steps.series:
            found = "another one is there now" if name else "it is no longer there"
            raise WorkbenchError(
                f"steps are appended to the series that was in {self.path}; {found}: was it moved? Open it by "
                "wb.Series(...)"
            )

    # Reading.

    def __len__(self) -> int:
        there = self._steps.numbers()
        return there[-1] + 1 if there else 0

    @overload
    def __getitem__(self, number: int) -> Any: ...
    @overload
    def __getitem__(self, number: slice) -> list[Any]: ...
    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        try:
            place = range(len(self))[number]
        except IndexError:
            raise IndexError(f"{self.path.name} has {len(self)} steps; got {number}") from None
        except TypeError:
            raise WorkbenchError(f"steps are numbers or slices; at(time) is the nearest in time; got {number!r}") from None
        return self._steps.open(place).archive

    @property
    def times(self) -> tuple[float, ...]:
        """The time of each step."""
        return tuple(self._steps.about(number).time for number in range(len(self)))

    def at(self, time: float, exact: bool = False) -> Any:
        """The step nearest in time; with `exact`, the one at this very time."""
        times = self.times
        if not times:
            raise WorkbenchError(f"{self.path.name} has no steps yet")
        try:
            number = int(np.argmin(np.abs(np.array(times) - float(time))))
        except (TypeError, ValueError):
            raise WorkbenchError(f"time must be a number, as {times[0]:.9g}; got {time!r}") from None
        if exact and times[number] != time:
            raise WorkbenchError(f"{self.path.name} has no step at {time:.9g}; the nearest is at {times[number]:.9g}")
        return self[number]

    def read(self, steps: int | slice | Iterable[int] | None = None, region: Any = None, ids: Any = None) -> Any:
        """The data of these steps (by default all), whole, in a region, or of the particles with these ids.

        One step gives its data, several a list. Particles are in the order of `ids`, without those that do not exist at a
        step, and None where none of them does; each step is decoded once.

        >>> import tempfile, workbench as wb
        >>> folder = tempfile.TemporaryDirectory()
        >>> series = Series(folder.name, wb.Absolute(0.01))
        >>> for time in range(3):
        ...     _ = series.append(wb.Particles([[0.1 * time, 0.0], [0.5, 0.5]], ids=[7, 8]), time)
        >>> [particles.ids.tolist() for particles in series.read(ids=[8])]
        [[8], [8], [8]]
        >>> folder.cleanup()
        """
        if region is not None and ids is not None:
            raise WorkbenchError("read takes a region or ids; got both: select by ids in the particles of a region")
        if steps is None or isinstance(steps, slice):
            steps = range(len(self))[slice(None) if steps is None else steps]
        if not isinstance(steps, Iterable):
            return self._read([self[steps]], region, ids)[0]
        return self._read((self[number] for number in steps), region, ids)

    def _read(self, archives: Iterable[Archive | Collection], region: Any, ids: Any) -> list[Any]:
        if ids is None:
            return [one.decompress() if region is None else one.read(region) for one in archives]
        wanted = row_of_ids([ids] if isinstance(ids, int | np.integer) else ids, "particles to read")
        found = [_with_ids(one, wanted) for one in archives]
        if found and all(one is None for one in found):
            raise WorkbenchError(
                f"none of these steps of {self.path.name} has a particle with one of these ids: {briefly(ids)}"
            )
        return found

    def descent(
        self, min_members: int = 20, linking_length: float | None = None, unit: Unit = "spacing", *,
        keep_members: bool = True, gap: int = 0,
    ) -> Descent:
        """Which halos of each step become which of the next, from decoded particles; see `wb.descent`.

        By default, the linking length is that at which the series keeps clusters: then, this is the descent of the
        originals.
        """
        return decoded_descent(self, min_members, linking_length, unit, keep_members, gap)

    # Checking.

    @property
    def certificate(self) -> SeriesCertificate:
        """What is promised of all steps, and how often chunks were predicted in time."""
        return SeriesCertificate.of(self._steps, len(self))

    def verify(
        self, originals: Any = None, *, client: Any = None, parts: int | None = None, scratch: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Reports:
        """Decode every step and check it, against its checksums and, when given, against its original.

        Where all steps keep clusters, the descent of groups is made from the decoded and from the original particles, and
        compared; with `client` or `parts`, where no process holds a whole step, the groups of each step alone are.

        Raises `wb.GuaranteeBroken` that names each step whose promise does not hold, and the steps that need it.
        """
        given = [None] * len(self) if originals is None else originals
        if len(given) != len(self):
            raise WorkbenchError(f"verify takes an original for each of {len(self)} steps; got {len(given)}")
        options = {"client": client, "parts": parts, "scratch": scratch, "progress": progress}
        reports: dict[str, Any] = {}
        broken = []
        for number in range(len(self)):
            try:
                found = self[number].verify(given[number], **options)
            except GuaranteeBroken as error:
                broken.append(f"step {number}: {error}{self._also(number)}")
                continue
            except WorkbenchError as error:
                if originals is not None and self._is_whole(number):
                    raise WorkbenchError(f"step {number}: {error}") from error
                broken.append(f"step {number}: {error}")
                continue
            of_members = {f", {name}": one for name, one in found.items()} if isinstance(found, Reports) else {"": found}
            reports |= {f"step {number}{name}": one for name, one in of_members.items()}
        if broken:
            raise GuaranteeBroken(f"{len(broken)} of {len(self)} steps do not hold: " + "; ".join(broken))
        whole = originals is not None and client is None and parts is None
        return Reports(reports | (verified_descent(self, given) if whole else {}))

    def salvage(self, path: str | os.PathLike[str]) -> list[Damaged]:
        """Copy all steps that can be read, with those that they need, into a new folder; returns the damaged and missing.

        >>> import tempfile, workbench as wb
        >>> folder = tempfile.TemporaryDirectory()
        >>> series = Series(f"{folder.name}/run", wb.Absolute(0.01), every=2)
        >>> for time in range(4):
        ...     _ = series.append(wb.Field([0.0, 0.1 * time]), time)
        >>> (series.path / "step-000001.zip").unlink()
        >>> [one.where for one in series.salvage(f"{folder.name}/rest")], len(Series(f"{folder.name}/rest")[2:])
        (['step 1'], 2)
        >>> folder.cleanup()
        """
        target = target_of(path)
        if target.exists():
            raise WorkbenchError(f"a salvaged series is a new folder; {path} exists: choose another name")
        return salvaged(self, self._steps, target)

    def _is_whole(self, number: int) -> bool:
        try:
            self[number]
        except WorkbenchError:
            return False
        return True

    def _also(self, number: int) -> str:
        others = self._steps.needing(number)
        return f" ({numbered(others)} cannot be read without it)" if others else ""

    # Size and words.

    @property
    def nbytes(self) -> int:
        """The size of all steps together."""
        return sum(self._steps.path(number).stat().st_size for number in self._steps.numbers())

    @property
    def original_nbytes(self) -> int:
        """The size of the original numbers of all steps."""
        return sum(archive.original_nbytes for archive in self)

    @property
    def ratio(self) -> float:
        """The compression ratio, `original_nbytes` divided by `nbytes`."""
        return self.original_nbytes / self.nbytes if len(self) else 0.0

    def __repr__(self) -> str:
        if not len(self):
            return f"Series({self.path.name!r}: no steps yet)"
        times, ratio = self.times, self.ratio
        change = f"{ratio:.3g}x smaller" if ratio >= 1 else f"{1 / ratio:.3g}x larger" if ratio else "no valid value"
        return (
            f"Series({self.path.name!r}: {len(self)} steps from {times[0]:.6g} to {times[-1]:.6g}, {size(self.nbytes)}, "
            f"{change})"
        )

    def _repr_html_(self) -> str:
        return self.certificate._repr_html_(repr(self))


def _with_ids(archive: Archive | Collection, ids: np.ndarray) -> Particles | None:
    """The particles with these ids, in their order; only the chunks that hold them are decoded. None if there are none."""
    if not isinstance(archive, Archive) or archive.kind != "particles" or IDS not in archive.arrays:
        raise WorkbenchError(f"only particles with ids are read by them; got {archive!r}: read steps or a region")
    known = archive.whole(IDS)
    span = np.iinfo(known.dtype)
    wanted, again = np.unique(ids[(ids >= span.min) & (ids <= span.max)], return_inverse=True)
    places, of_wanted = common(known, wanted) if len(wanted) else (wanted, wanted)
    rows = np.full(len(wanted), -1)
    rows[of_wanted] = places
    rows = rows[again][rows[again] >= 0]
    if not len(rows):
        return None
    rising, back = np.unique(rows, return_inverse=True)
    arrays = {name: rows_of(stored, rising)[back] for name, stored in archive.data_arrays.items()}
    found: Particles = archive.content.assembled(archive, arrays)
    return found


def _folder(path: str | os.PathLike[str]) -> Path:
    """The folder of a series, whose parent must exist."""
    folder = Path(path).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise WorkbenchError(f"a series is a folder; {path} is a file: check the path")
    if not folder.parent.is_dir():
        raise WorkbenchError(f"a series must be in a directory that exists; got {path}")
    return folder


def _require_ours(folder: Path) -> None:
    """Refuse a folder that holds anything else, where no series was begun."""
    if (folder / DOCUMENT).exists():
        return
    others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if others:
        raise WorkbenchError(f"a series begins in an empty folder; {folder} holds {others[0]}: choose another name")
