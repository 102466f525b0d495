"""Whether an archive keeps its promise: each chunk is decoded once, and compared with its checksum and with the original.

What is promised of several arrays together, such as the groups of particles, is checked by the examination of the kind of
content. The steps are the same for an original in memory and for one that is read in chunks; see `Archive.verify`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import backend
from workbench.archive import checks
from workbench.archive.certificate import Promise
from workbench.archive.checks import Inspected
from workbench.archive.frame import Damaged, distinct
from workbench.archive.layout import Index
from workbench.archive.reading import StoredArray
from workbench.arguments import whole_number
from workbench.errors import WorkbenchError
from workbench.guarantees.guarantee import Guarantee
from workbench.metrics.report import Report
from workbench.progress import Progress
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, InProcess, OnDask
from workbench.subdomains.sources import scratch_folder

if TYPE_CHECKING:
    from workbench.archive.archive import Archive


class Examination:
    """The verification of one archive, given its original or None; without a folder, all is in the memory of this process.

    This one compares each array with that of an original in memory. A kind of content may have its own.
    """

    def __init__(self, archive: Archive, given: Any, executor: Executor, folder: Path | None, parts: int | None) -> None:
        self.archive, self.given, self.executor, self.folder, self.parts = archive, given, executor, folder, parts

    @classmethod
    def reachable(cls, given: Any, executor: Executor, folder: Path) -> Any:
        """The original where the steps can read it."""
        return given

    def arrays(self) -> dict[str, Inspected]:
        """The findings in each array."""
        given = {} if self.given is None else self.archive.content.arrays(self.given)
        found = {}
        for name, stored in self.archive.arrays.items():
            promise, original = None, None
            if name in given:
                promise, original = self.archive.certificate[name], backend.to_host(given[name])
                checks.require_shape(stored.layout, original.shape, original.dtype)
                if promise.bound is not None:
                    checks.require_same_limit(promise, promise.bound.limit(original))
            found[name] = self.inspected(name, _chunk, (stored, promise, original))
        return found

    def inspected(self, name: str, step: Callable[..., Inspected], shared: Any) -> Inspected:
        """The findings of a step on each chunk of an array; the first of the values that all share is the array."""
        indices, together = list(shared[0].layout.chunk_indices()), not shared[0].decoder.holds_gil
        pieces = self.executor.map(f"examine-{name}", step, indices, "chunk", shared=shared, together=together)
        return Inspected.joined(pieces)

    def kept(self, found: Mapping[str, Inspected]) -> dict[type[Guarantee], Mapping[str, Any]]:
        """The promises beyond the bound that hold, with their figures; an error where one does not."""
        return {}


def verify(
    archive: Archive, original: Any, client: Any, parts: int | None, scratch: str | Path | None, progress: Progress | None
) -> Report:
    """`Archive.verify`."""
    content = archive.content
    given = None if original is None else content.original(original)
    if given is not None and archive.step is not None:
        given = archive.step.in_order(archive, given)
    if parts is not None:
        whole_number("parts", parts, least=1)
    executor = executor_of(client, progress, given)
    if isinstance(executor, OnDask) and archive.store.in_memory:
        raise WorkbenchError("workers read an archive from a file system that all see: save it first, and give its path")
    in_memory = given is None or isinstance(given, content.classes[0])
    if isinstance(executor, InProcess) and parts is None and in_memory:
        return _verified(content.examination(archive, given, executor, None, None))
    with scratch_folder(scratch, executor) as folder:
        executor = executor.within(folder)
        given = None if given is None else content.examination.reachable(given, executor, folder)
        return _verified(content.examination(archive, given, executor, folder, parts))


def decoded(stored: StoredArray, index: Index) -> tuple[np.ndarray | None, Inspected]:
    """The values of a chunk, or the damage."""
    try:
        return stored.chunk(index), Inspected()
    except Damaged as damage:
        return None, Inspected([(damage.where, damage.reason)])


def _verified(examination: Examination) -> Report:
    archive = examination.archive
    try:
        found = examination.arrays()
    except Damaged:   # the mask, or the permutation, follows from chunks, too
        checks.require_undamaged(archive.damage(), archive.arrays)
        raise
    damage = distinct(Damaged(where, reason) for one in found.values() for where, reason in one.damage)
    checks.require_undamaged([*archive.damaged_documents(), *damage], archive.arrays)
    layouts = {name: stored.layout for name, stored in archive.arrays.items()}
    return checks.report(archive.certificate, layouts, found, lambda: examination.kept(found))


def _chunk(shared: tuple[StoredArray, Promise | None, np.ndarray | None], index: Index) -> Inspected:
    """Decode one chunk, and compare it with its checksum and with the original."""
    stored, promise, original = shared
    here, found = decoded(stored, index)
    if here is not None and promise is not None and original is not None:
        place = stored.layout.chunk_slices(index)
        found += checks.compared(stored.layout.chunk_key(index), here, original[place], promise.limit_at(place))
    return found
