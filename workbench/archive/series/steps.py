"""The steps of a series: which files there are, and the archive of each, which knows the earlier ones that it needs.

A step states what it is: its number and time, the key step that its run begins with, how many steps before it it was
predicted from, and their checksums. So the files alone are the series, and none can be taken for another.
"""

from __future__ import annotations

import functools
import math
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from workbench.archive import document
from workbench.archive.archive import IDS, Archive
from workbench.archive.chunk import exact_chunk, with_checksums
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.description import OURS, is_collection
from workbench.archive.decoded_chunks import ChunksOfMember, DecodedChunks
from workbench.archive.earlier import SERIES, EarlierSteps, composed, rows_before
from workbench.archive.encoding import exact_layout
from workbench.archive.placing import remove
from workbench.archive.reading import StoredArray
from workbench.archive.root import IntactRoot, intact_root
from workbench.archive.store import MemoryStore, Store, open_store
from workbench.archive.trust import Trust
from workbench.errors import WorkbenchError

VANISHED, APPEARED = "series.vanished", "series.appeared"   # of particles: rows of the step before, and ids of new ones
MOST_EARLIER = 2    # steps that a step is predicted from
MOST_RUN = 64       # steps of a run: the last is decoded after all others, each inside of the next
MOST_MISSING = 10**4   # steps, beyond which the numbers of files are wrong
OPENED = 64         # steps that stay opened
_UNFINISHED = re.compile(r"\.step-(\d{6,})\.zip\.")   # hidden names, as `placing.py` gives them
_NAME = re.compile(r"step-(\d{6,})\.zip")


class UnreadableStep(WorkbenchError):
    """A step that is missing or damaged; the error says which others need it."""


@dataclass(frozen=True)
class About:
    """What a step states of itself; `before` are the checksums of the steps that it was predicted from."""

    series: str
    number: int
    time: float
    key: int
    before: tuple[str, ...] = ()
    ids: int | None = None     # the latest step at which the ids of particles were stored, or changed
    appeared: int = 0
    vanished: int = 0
    counted: bool = False      # whether its time is its number, as none was known

    @classmethod
    def of(cls, root: Mapping[str, Any], where: str) -> Self:
        """What the root of an archive states."""
        attributes: Any = root["attributes"]
        if is_collection(root):
            attributes = next(iter(attributes[OURS]["members"].values()))
        stated = attributes.get(SERIES)
        try:
            found = cls(**{**stated, "before": tuple(stated["before"])})
            numbers = (found.number, found.key, found.appeared, found.vanished, 0 if found.ids is None else found.ids)
            plain = all(type(number) is int and number >= 0 for number in numbers) and type(found.time) in (int, float)
            run = found.number - found.key
            known = plain and 0 <= run < MOST_RUN and len(found.before) <= min(MOST_EARLIER, run)
            if not (known and math.isfinite(found.time)) or (found.ids or 0) > found.number:
                raise ValueError
        except (TypeError, KeyError, ValueError):
            raise WorkbenchError(f"{where} must state which step of a series it is; got {stated!r:.120}") from None
        return found

    def to_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {**vars(self), "before": list(self.before)}


@dataclass(frozen=True, eq=False)
class Opened:
    """A step that was opened, and the checksum of its root."""

    about: About
    archive: Archive | Collection
    checksum: str

    def member(self, name: str | None) -> Archive:
        """The archive itself, or that of a member."""
        if name is not None:
            assert isinstance(self.archive, Collection)
            return self.archive[name]
        assert isinstance(self.archive, Archive)
        return self.archive


class Steps:
    """The steps in the folder of a series."""

    def __init__(self, folder: Path, series: str, trust: Trust) -> None:
        self.folder, self.series, self._trust, self.kept = folder, series, trust, DecodedChunks()
        self._opened: OrderedDict[int, Opened] = OrderedDict()
        self._about: dict[int, About] = {}
        self._files: dict[int, tuple[int, ...]] = {}   # what tells the file of a step that was opened from another one
        self._ids: OrderedDict[int, StoredArray] = OrderedDict()

    def numbers(self) -> list[int]:
        """The numbers of the steps that there are, rising."""
        found = (_NAME.fullmatch(path.name) for path in self.folder.iterdir()) if self.folder.is_dir() else ()
        numbers = sorted(number for one in found if one and self.path(number := int(one.group(1))).name == one.string)
        if numbers and numbers[-1] >= len(numbers) + MOST_MISSING:
            raise WorkbenchError(
                f"{self.folder.name} has {len(numbers):,} steps, and {self.path(numbers[-1]).name[:40]}, which can be "
                "none of them: move it elsewhere"
            )
        return numbers

    def path(self, number: int) -> Path:
        """Where the archive of a step is."""
        return self.folder / f"step-{number:06d}.zip"

    def about(self, number: int) -> About:
        """What a step states, without more of it than its root."""
        if number not in self._about:
            self._known(number)
        return self._about[number]

    def open(self, number: int) -> Opened:
        """A step, and the earlier ones that it needs."""
        if number in self._opened:
            self._opened.move_to_end(number)
            return self._opened[number]
        store, known, about = self._known(number)
        earlier = self._earlier(about)
        if is_collection(known.root):
            steps = functools.partial(self.step_after, about, earlier)   # which can be pickled
            archive: Archive | Collection = Collection(store, self._trust, False, known, steps)
        else:
            bare = Archive(store, self._trust, False, known)
            archive = Archive(store, self._trust, False, known, self._reading(about, earlier, bare))
        self._opened[number] = Opened(about, archive, checksum_of(known.root))
        while len(self._opened) > OPENED:
            self._opened.popitem(last=False)
        return self._opened[number]

    def forget_changed(self, count: int) -> None:
        """Forget what is known of files that were removed or replaced since, and of the steps after them."""
        first = min((number for number in self._opened if self._file(number) != self._files[number]), default=count)
        for known in (self._opened, self._about, self._ids, self._files):
            for number in [one for one in known if one >= min(first, count)]:
                del known[number]

    def _file(self, number: int) -> tuple[int, ...]:
        try:
            known = self.path(number).stat()
        except FileNotFoundError:
            return ()
        return known.st_ino, known.st_size, known.st_mtime_ns

    def step_after(
        self, about: About, earlier: tuple[Opened, ...], member: str | None = None,
        rows: tuple[np.ndarray | None, ...] = (), ids: StoredArray | None = None,
        indexes: Mapping[str, np.ndarray] | None = None,
    ) -> EarlierSteps:
        """What the archive of a step needs to know of the earlier ones."""
        times = (about.time, *(one.about.time for one in earlier)) if earlier else ()
        archives = tuple(one.member(member) for one in earlier)
        kept = ChunksOfMember(self.kept, member)
        return EarlierSteps(about.to_dict(), times, archives, rows, indexes or {}, kept, ids)

    def rows(self, count: int, about: About, vanished: np.ndarray | None) -> tuple[np.ndarray | None, ...]:
        """Where the particles of a step were one step before, and two; () where all are where they were."""
        found, changes = [], [self._to_before(count, about, vanished)]
        for distance in range(1, len(about.before) + 1):
            found.append(composed(changes))
            if distance < len(about.before):
                changes.append(self._of_opened(about.number - distance))
        return tuple(found) if any(one is not None for one in found) else ()

    def ids(self, number: int) -> StoredArray | None:
        """The ids of the particles of a step; None where they have none."""
        last = self.about(number).ids
        if last is None:
            return None
        if last not in self._ids:
            stored = self._stored_ids(last)
            self._ids[last] = self._changed_ids(last) if stored is None else stored
            while len(self._ids) > MOST_EARLIER:
                self._ids.popitem(last=False)
        return self._ids[last]

    def stores_ids(self, number: int) -> bool:
        """Whether the ids of a step are in its archive, rather than what changed."""
        return self._stored_ids(number) is not None

    def needing(self, number: int) -> list[int]:
        """The later steps that cannot be read without this one."""
        found = []
        for other in [one for one in self.numbers() if one > number]:
            try:
                about = self.about(other)
            except WorkbenchError:
                continue
            if (about.key <= number and about.before) or number in self._with_ids_of(about):
                found.append(other)
        return found

    def _with_ids_of(self, about: About) -> list[int]:
        """The steps from which the ids of a step are known: that which stores them, and those at which they changed."""
        found, last = [], about.ids
        while last is not None:
            found.append(last)
            try:
                last = self.about(last - 1).ids if last and self.about(last).before else None   # key steps store all
            except UnreadableStep:
                break
        return found

    def tidy(self, number: int) -> None:
        """Remove what killed runs have left of this step and of those before it; for the run that holds the lock."""
        for place in self.folder.iterdir():
            found = _UNFINISHED.match(place.name)
            if found and int(found.group(1)) <= number:
                remove(place)

    def _store(self, number: int) -> Store:
        if not self.path(number).exists():
            raise self._unreadable(number, f"there is no {self.path(number).name}: bring the file back")
        return open_store(self.path(number))

    def _unreadable(self, number: int, reason: str) -> UnreadableStep:
        others = self.needing(number)
        lost = f"{numbered(others)} cannot be read without it, the others can" if others else "no other step needs it"
        return UnreadableStep(f"step {number} of {self.folder.name} cannot be read, and {lost}: {reason}")

    def _known(self, number: int) -> tuple[Store, IntactRoot, About]:
        """The store of a step, its root, and what it states."""
        try:
            self._files[number] = self._file(number)
            store = self._store(number)
            known = intact_root(store)
            about = self._about[number] = self._stated(number, known)
        except UnreadableStep:
            raise
        except WorkbenchError as error:
            raise self._unreadable(number, str(error)) from error
        return store, known, about

    def _stated(self, number: int, known: IntactRoot) -> About:
        where = f"{self.path(number).name} in {self.folder.name}"
        about = About.of(known.root, where)
        if about.number != number or about.series != self.series:
            raise WorkbenchError(
                f"{where} must be step {number} of this series; it is step {about.number} of "
                f"{'this one' if about.series == self.series else 'another'}: bring the right file back"
            )
        return about

    def _earlier(self, about: About) -> tuple[Opened, ...]:
        """The steps that a step was predicted from, the latest first."""
        found: list[Opened] = []
        for distance, checksum in enumerate(about.before, start=1):
            number = about.number - distance
            opened = self.open(number)
            if opened.checksum != checksum:
                raise self._unreadable(
                    about.number, f"it was predicted from another step {number} than the one that is there now"
                )
            found.append(opened)
        return tuple(found)

    def _reading(self, about: About, earlier: tuple[Opened, ...], bare: Archive) -> EarlierSteps:
        """What reading a step needs, whose own arrays can be read already."""
        rows: tuple[np.ndarray | None, ...] = ()
        if bare.kind == "particles" and earlier:
            rows = self.rows(len(bare), about, _index(bare, VANISHED))
        ids = None if about.ids is None or IDS in bare.arrays else self.ids(about.number)
        if ids is not None and ids.layout.shape != (len(bare),):
            raise self._contradicts(about.number)
        return self.step_after(about, earlier, None, rows, ids)

    def _to_before(self, count: int, about: About, vanished: np.ndarray | None) -> np.ndarray | None:
        """Where the rows of a step were one step before; None where nothing changed."""
        if not (about.appeared or about.vanished) or not about.before:
            return None
        earlier = count - about.appeared + about.vanished
        if earlier != len(self.open(about.number - 1).member(None)):
            raise self._contradicts(about.number)
        gone = np.empty(0, np.int64) if vanished is None else vanished
        if len(gone) != about.vanished or not _are_rows(gone, earlier):
            raise self._contradicts(about.number)
        return rows_before(count, gone, earlier)

    def _contradicts(self, number: int) -> WorkbenchError:
        return WorkbenchError(f"step {number} of {self.folder.name} contradicts itself about the ids of its particles")

    def _of_opened(self, number: int) -> np.ndarray | None:
        opened = self.open(number)
        archive = opened.member(None)
        return self._to_before(len(archive), opened.about, _index(archive, VANISHED))

    def _stored_ids(self, number: int) -> StoredArray | None:
        """The ids in the archive of a step, without the others that it needs."""
        store, known, _ = self._known(number)
        return Archive(store, self._trust, False, known).arrays.get(IDS)

    def _changed_ids(self, number: int) -> StoredArray:
        """The ids of a step at which some appeared or vanished, as an array in memory."""
        store, known, _ = self._known(number)
        archive, before = Archive(store, self._trust, False, known), self.ids(number - 1) if number else None
        if before is None:
            raise self._contradicts(number)
        stayed, vanished, appeared = before.values(), _index(archive, VANISHED), _index(archive, APPEARED)
        if vanished is not None:
            if not _are_rows(vanished, len(stayed)):
                raise self._contradicts(number)
            stayed = np.delete(stayed, vanished)
        if appeared is not None and (appeared.ndim != 1 or appeared.dtype != stayed.dtype):
            raise self._contradicts(number)
        values = stayed if appeared is None else np.concatenate([stayed, appeared])
        if len(values) != len(archive):
            raise self._contradicts(number)
        layout = exact_layout(IDS, values.shape, values.dtype, values.shape)
        chunk = exact_chunk(values)
        store = MemoryStore({layout.chunk_key((0,)): chunk.data})
        return StoredArray(store, with_checksums(layout, [chunk]), self._trust)


def checksum_of(root: Mapping[str, Any]) -> str:
    """The checksum of the root of a step, which states the checksums of all its chunks."""
    sealed: str = document.sealed(root)["attributes"][document.SEAL]
    return sealed


def numbered(numbers: list[int]) -> str:
    """Steps in words.

    >>> numbered([4]), numbered([4, 5, 6])
    ('step 4', 'steps 4 to 6')
    """
    if len(numbers) == 1:
        return f"step {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"steps {numbers[0]} to {numbers[-1]}"
    return f"steps {', '.join(map(str, numbers))}"


def _are_rows(found: np.ndarray, count: int) -> bool:
    """Whether these are rows of so many, rising."""
    if found.ndim != 1 or found.dtype.kind not in "iu":
        return False
    return not len(found) or bool(found[0] >= 0 and found[-1] < count and (found[1:] > found[:-1]).all())


def _index(archive: Archive, name: str) -> np.ndarray | None:
    stored = archive.arrays.get(name)
    return None if stored is None else stored.values()
