"""A step is appended to a series: checked, brought into the order of the first one, and predicted from those before it.

Every step is an archive of its own that exists completely or not at all, so a run that is killed loses nothing that was
appended. One process appends at a time; what it knows of the steps before, it reads from their archives.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import backend, codecs
from workbench.archive.archive import IDS, Archive
from workbench.archive.choice import is_free
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.dataset import Dataset
from workbench.archive.compress import Run, compressed, compressed_dataset
from workbench.archive.content.registry import content_of
from workbench.archive.earlier import EarlierSteps
from workbench.archive.series.alike import require_alike
from workbench.archive.series.order import Matched, ordered, without_ids
from workbench.archive.series.requested import Requested
from workbench.archive.series.statement import predicted_chunks
from workbench.archive.series.steps import APPEARED, MOST_EARLIER, VANISHED, About, Opened, Steps
from workbench.codecs import Codec
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.data.ids import require_distinct
from workbench.errors import WorkbenchError
from workbench.ordering import stored_index

KINDS = ("particles", "field", "variable")   # of content, whose archives say which step they are
SHORTEST, LONGEST = 16, 32   # steps from one key step to the next, unless requested otherwise:
SHARE = 0.05                 # as many as it takes until a key step adds less than this share to the bytes of a run,
HARDLY = 0.98                # but no more once a step takes more than this share of the bytes of its key step


@dataclass(frozen=True)
class Appending:
    """What is known when a step is appended: the steps before it, and what is requested of all."""

    steps: Steps
    requested: Requested
    run: Run
    coordinate: tuple[float, bool] | None = None   # of what is given: a time, and whether it is a number

    def append(self, given: Any, time: Any, metadata: Mapping[str, Any] | None) -> None:
        """Write the archive of one more step."""
        number = self._number()
        self._write(number, given, time, metadata)
        self.steps.tidy(number)

    def _write(self, number: int, given: Any, time: Any, metadata: Mapping[str, Any] | None) -> None:
        if not isinstance(given, Dataset) and (content := content_of(given)).kind not in KINDS:
            raise WorkbenchError(
                f"a step of a series is particles, a field or a dataset; got {content.words}: use wb.compress, or "
                "append what is in it one at a time"
            )
        before = self.steps.open(number - 1) if number else None
        if before is not None:
            require_alike(given, before.archive, number)
        known = metadata if metadata is not None else {} if isinstance(given, Dataset) else given.metadata
        if self.coordinate is not None:
            _require_agreement(number, time, *self.coordinate)
            known = {"time": self.coordinate[0], **known}
        about = self._about(number, before, *_time(number, time, known, None if before is None else before.about))
        run = replace(self.run, out=self.steps.path(number))
        if isinstance(given, Dataset):
            if metadata is not None:
                raise WorkbenchError("metadata= is for one array; those of a dataset are attributes of its members")
            earlier, options = self._earlier(about), dict(self.requested.options)
            if before is not None:
                given, complete = _in_order_of(given, before.archive)
                options["order"] = "keep" if complete else options["order"]   # that of the first step
            compressed_dataset(
                given, self.requested.bound, options, run,
                lambda name: self.steps.step_after(about, earlier, name),
            )
            return
        step, data = self._step(given, about, before)
        options = dict(self.requested.options)
        if number:
            options["order"] = "keep"   # that of the first step, which may have been chosen freely
        compressed(data, self.requested.bound, options, run, metadata, step)

    def _number(self) -> int:
        """The number of the next step, before which none must be missing."""
        there = self.steps.numbers()
        number = there[-1] + 1 if there else 0
        if len(there) < number:
            missing = next(one for one in range(number) if one not in set(there))
            raise WorkbenchError(
                f"step {missing} of {self.steps.folder.name} is missing, and {len(there):,} steps are there: bring "
                f"{self.steps.path(missing).name} back before more are appended"
            )
        self.steps.forget_changed(number)
        return number

    def _about(self, number: int, before: Opened | None, time: float, counted: bool) -> About:
        """What the step states, as far as it does not depend on its particles."""
        series = self.steps.series
        if before is None or not self._can_predict(before) or self._begins_run(before):
            return About(series, number, time, number, counted=counted)
        follows = min(MOST_EARLIER, number - before.about.key)
        checksums = tuple(self.steps.open(number - distance).checksum for distance in range(1, follows + 1))
        return About(series, number, time, before.about.key, checksums, counted=counted)

    def _can_predict(self, before: Opened) -> bool:
        """Whether any codec that is requested predicts in time."""
        asked = self.requested
        if isinstance(before.archive, Collection) or before.archive.kind != "particles":
            return isinstance(asked.bound, Mapping) or (asked.speed == "small" and _in_time(asked.codec))
        return _in_time(asked.codec) or _in_time(asked.column_codec)

    def _begins_run(self, before: Opened) -> bool:
        """Whether the next step is a key step: after so many steps, or where the last one gained nothing from others."""
        key = before.about.key
        run = before.about.number + 1 - key
        if self.requested.every is not None:
            return run >= self.requested.every
        if run < 2:
            return False
        if run >= LONGEST or not predicted_chunks(before.archive):
            return True
        of_key, of_last = data_nbytes(self.steps.open(key).archive), data_nbytes(before.archive)
        if of_last > HARDLY * of_key and (key or self.requested.order == "keep"):   # the first in free order is smaller
            return True
        return run >= SHORTEST and of_key - of_last < SHARE * run * of_last

    def _earlier(self, about: About) -> tuple[Opened, ...]:
        return tuple(self.steps.open(about.number - distance) for distance in range(1, len(about.before) + 1))

    def _step(self, given: Any, about: About, before: Opened | None) -> tuple[EarlierSteps, Any]:
        """What the archive needs to know of its series, and the data in the order of the series."""
        earlier = self._earlier(about)
        if not isinstance(given, Particles | ChunkedParticles):
            return self.steps.step_after(about, earlier), given
        has_ids = given.ids is not None if isinstance(given, Particles) else IDS in given.columns
        if not has_ids:
            return self._by_rows(given, about, before, earlier)
        if before is None:
            require_distinct(_ids_of(given), f"step {about.number}")
            return self.steps.step_after(replace(about, ids=0), earlier), given
        return self._by_ids(given if isinstance(given, Particles) else given.joined(), about, before, earlier)

    def _by_ids(
        self, particles: Particles, about: About, before: Opened, earlier: tuple[Opened, ...]
    ) -> tuple[EarlierSteps, Any]:
        """Particles in the order of the step before, with the ids that changed; a key step after that stores all."""
        stored = self.steps.ids(about.number - 1)
        assert stored is not None   # as columns are those of the step before
        assert particles.ids is not None
        known = stored.values()
        matched = Matched.of(particles.ids, known)
        particles = ordered(particles, matched.order)
        about = replace(about, ids=before.about.ids, appeared=len(matched.appeared), vanished=len(matched.vanished))
        if not about.before:
            again = matched.changed or about.ids is None or not self.steps.stores_ids(about.ids)
            about = replace(about, ids=about.number) if again else about
            return self.steps.step_after(about, ()), particles if again else without_ids(particles)
        indexes: dict[str, np.ndarray] = {}
        if matched.changed:
            about = replace(about, ids=about.number)
            if len(matched.vanished):
                indexes[VANISHED] = matched.vanished.astype(stored_index(len(known)))
            if len(matched.appeared):
                indexes[APPEARED] = matched.appeared
        rows = self.steps.rows(len(particles), about, matched.vanished)
        return self.steps.step_after(about, earlier, rows=rows, indexes=indexes), without_ids(particles)

    def _by_rows(
        self, given: Particles | ChunkedParticles, about: About, before: Opened | None, earlier: tuple[Opened, ...]
    ) -> tuple[EarlierSteps, Any]:
        """Particles without ids, of which the rows say which is which."""
        if self.requested.order == "free":
            raise WorkbenchError(
                "order='free' of a series needs ids, by which later steps are brought into the order of the first; the "
                "particles have none: give ids, or order='keep'"
            )
        if before is not None and len(before.member(None)) != len(given):
            raise WorkbenchError(
                f"step {about.number} must have {len(before.member(None)):,} particles, as the steps before it; got "
                f"{len(given):,}: give ids from the first step on, by which particles that appear or vanish are known"
            )
        return self.steps.step_after(about, earlier), given


def _in_order_of(given: Dataset, before: Any) -> tuple[Dataset, bool]:
    """A dataset with its particles in the order of the step before, where each has an id of its own; and whether all do."""
    particles = {name: one for name, one in given.items() if isinstance(one, Particles | ChunkedParticles)}
    changed = {}
    for name, one in particles.items():
        has_ids = one.ids is not None if isinstance(one, Particles) else IDS in one.columns
        if not has_ids or IDS not in before[name].arrays:
            continue
        whole = one if isinstance(one, Particles) else one.joined()
        with suppress(WorkbenchError):   # an id is there twice
            changed[name] = ordered(whole, Matched.of(_ids_of(whole), before[name].whole(IDS)).order)
    return Dataset({**given, **changed}, given.groups, given.bounded), len(changed) == len(particles) > 0


def _in_time(codec: str | Codec | None) -> bool:
    """Whether a requested codec predicts in time; what is chosen freely may."""
    if codec is None:
        return False
    return is_free(codec) or (codecs.get(codec) if isinstance(codec, str) else codec).predicts_in_time


def data_nbytes(archive: Archive | Collection) -> int:
    """The bytes of what is compressed in time, without ids and indexes."""
    if isinstance(archive, Collection):
        return sum(data_nbytes(member) for member in archive.values())
    return sum(stored.nbytes for name, stored in archive.data_arrays.items() if name != IDS)


def _ids_of(given: Particles | ChunkedParticles) -> np.ndarray:
    if isinstance(given, Particles):
        return backend.to_host(given.ids)
    return np.concatenate([given.companions(number, (IDS,)).ids for number in range(len(given.sizes))])


def _time(number: int, given: Any, metadata: Mapping[str, Any], before: About | None) -> tuple[float, bool]:
    """The time of a step, and whether it is its number: that given, or that in its metadata, or the scale factor."""
    counting = before is None or before.counted
    found, counted = given, False
    if found is None and not (before is not None and before.counted):
        found = _stated_time(metadata)
    if found is None and counting:
        found, counted = float(number), True
    if found is None:
        raise WorkbenchError(
            f"step {number} must have a time, as the steps before it have; its metadata state none: give time="
        )
    if not _is_number(found):
        raise WorkbenchError(f"the time of a step must be a finite number; got {found!r}: give time= in any unit")
    if before is not None and not float(found) > before.time:
        raise WorkbenchError(
            f"times must rise: step {number - 1} is at {before.time:.9g}, and step {number} must be later; got "
            f"{float(found):.9g}: append steps in the order of their times"
        )
    return float(found), counted


def _require_agreement(number: int, given: Any, coordinate: float, is_number: bool) -> None:
    """Refuse a time that is not that of the array; those of dates may be in any unit."""
    if is_number and _is_number(given) and float(given) != coordinate:
        raise WorkbenchError(
            f"the coordinate time of step {number} is {coordinate:.9g}, and time= is {float(given):.9g}: leave time= out, "
            'or drop the coordinate, step.drop_vars("time")'
        )


def _stated_time(metadata: Mapping[str, Any]) -> Any:
    """The time in a header; without one, the scale factor that belongs to its redshift."""
    for name in ("time", "Time"):
        if _is_number(metadata.get(name)):
            return metadata[name]
    redshift = metadata.get("redshift", metadata.get("Redshift"))
    return 1 / (1 + float(redshift)) if _is_number(redshift) and redshift > -1 else None


def _is_number(given: Any) -> bool:
    return isinstance(given, numbers.Real) and not isinstance(given, bool) and math.isfinite(given)
