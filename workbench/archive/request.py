"""The arguments of `wb.compress`, checked before any work; and the last step that all kinds of content share."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from workbench import codecs
from workbench.archive import document, provenance
from workbench.archive.archive import Archive
from workbench.archive.assembling import assemble
from workbench.archive.certificate import Certificate
from workbench.archive.choice import FREE, Speed, is_free
from workbench.archive.chunking import Chunks, checked_chunks
from workbench.archive.content.consistency import FORMAT
from workbench.archive.content.registry import KINDS
from workbench.archive.earlier import SERIES, EarlierSteps
from workbench.archive.encoding import EncodedArray, Task
from workbench.archive.layout import ArrayLayout
from workbench.archive.plausibility import notes_on_groups
from workbench.archive.reading import StoredArray
from workbench.archive.root import documents_of
from workbench.archive.store import MemoryStore
from workbench.archive.trust import Trust
from workbench.archive.writing import Draft, Place
from workbench.arguments import function, one_of, whole_number
from workbench.codecs import Codec, ParticleCodec
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Bound, PerSlice
from workbench.guarantees.guarantee import Promised
from workbench.progress import Progress
from workbench.run.executors import Executor

ORDERS = ("keep", "free")
IN_TIME = "motion"   # the codec of particles in a series


@dataclass(frozen=True)
class Request:
    """The arguments of `wb.compress` except the data."""

    bound: Bound
    codec: str | Codec = "auto"
    keep: tuple[Any, ...] = ()
    order: str = "keep"
    progress: Progress | None = None
    velocities: Bound | None = None
    store_permutation: bool = False
    chunk_values: int | None = None
    choice: str = ""              # how the codec was chosen, if by trial
    price: Mapping[str, int] = field(default_factory=dict)   # what another codec would take, if that is known, as a figure
    speed: Speed = "small"        # what matters where the codec is free
    chunks: Chunks | None = None
    columns: Mapping[str, Bound] = field(default_factory=dict)   # of particles, by name or pattern
    column_codec: str | Codec | None = None   # of these and of velocities, if it is not that of positions
    step: EarlierSteps | None = None      # what the archive is of a series

    def __post_init__(self) -> None:
        for name, bound in (("bound", self.bound), ("velocities", self.velocities)):
            if not isinstance(bound, Bound) and not (name == "velocities" and bound is None):
                kinds = "wb.Absolute(...), wb.Relative(...) or wb.PointwiseRelative(...)"
                raise WorkbenchError(f"{name} must be {kinds}; got {bound!r}")
        if isinstance(self.velocities, PerSlice):
            raise WorkbenchError(f"wb.PerSlice is for fields; got {self.velocities!r} for velocities: give one bound")
        object.__setattr__(self, "columns", _rules(self.columns))
        if not isinstance(self.order, str) or self.order not in ORDERS:
            raise WorkbenchError(f"order must be 'keep' or 'free'; got {self.order!r}")
        _require_alone(self.codec)
        if self.column_codec is not None:
            _require_for_columns(self.column_codec)
        one_of("speed", self.speed, get_args(Speed))
        if self.speed != "small" and not is_free(self.codec):
            raise WorkbenchError(f"speed={self.speed!r} chooses a codec; got codec={self.codec!r}, too: leave one out")
        if is_free(self.codec) and FREE[str(self.codec)] != "small":
            object.__setattr__(self, "speed", FREE[str(self.codec)])
            object.__setattr__(self, "codec", "auto")
        function("progress", self.progress)
        if self.chunk_values is not None:
            object.__setattr__(self, "chunk_values", whole_number("chunk_values", self.chunk_values, least=1))
        object.__setattr__(self, "chunks", checked_chunks(self.chunks))
        if self.chunks is not None and self.chunk_values is not None:
            raise WorkbenchError("chunks and chunk_values both say how large chunks are: leave one out")

    def chosen_codec(self, auto: str) -> Codec:
        """The requested codec, which readers must be able to rebuild from its description; `auto` if none is requested."""
        given = self.codec
        if not isinstance(given, Codec):
            return codecs.get(auto if is_free(given) else given)
        described = document.plain(given.to_dict(), what := f"the options of codec {given.id}")
        document.require_storable(described, what, share=8)   # they stand beside positions and velocities
        try:
            known = codecs.from_dict(described)
        except WorkbenchError as error:
            raise WorkbenchError(f"{given!r} cannot be rebuilt from its description: {error}") from error
        if known != given:
            raise WorkbenchError(f"{given!r} cannot be rebuilt from its description, which gives {known!r}")
        return given

    def in_time(self, task: Task, may_stay: bool = False) -> Task:
        """The task, predicted from earlier steps where the archive is one of a series and the codec can do so."""
        return task if self.step is None else self.step.task(task, may_stay)

    def written(self, layout: ArrayLayout, place: Place) -> StoredArray:
        """An array of the archive that is being made, as readers will have it."""
        step = self.step
        earlier = step.before(layout) if step is not None and layout.predicted else None
        kept = None if step is None else step.kept
        return StoredArray(place.parts(), layout, Trust(isolate=False), earlier=earlier, kept=kept)

    @property
    def about_step(self) -> dict[str, Any]:
        """What the archive states of the series that it is a step of."""
        return {} if self.step is None else {SERIES: dict(self.step.about)}

    @property
    def step_token(self) -> dict[str, Any]:
        """What tells this step of a series from others."""
        return {} if self.step is None else {SERIES: self.step.token()}


def _require_alone(given: Any) -> None:
    """Refuse a codec that needs positions which were decoded before: nothing is decoded before positions or fields."""
    chosen = given if isinstance(given, Codec) or is_free(given) else codecs.get(given)
    if isinstance(chosen, Codec) and chosen.beside_positions:
        raise WorkbenchError(
            f"codec={chosen.id!r} is for velocities and columns beside positions: give it as column_codec={chosen.id!r}"
        )


def _require_for_columns(given: Any) -> None:
    """Refuse what is no codec of arrays."""
    try:
        chosen = given if isinstance(given, Codec) or is_free(given) else codecs.get(given)
    except WorkbenchError as error:
        raise WorkbenchError(str(error).replace("codec must", "column_codec must", 1)) from None
    if isinstance(chosen, ParticleCodec):
        raise WorkbenchError(
            f"column_codec={chosen.id!r} is for positions alone: give one of arrays, as 'neighbours' or 'prequantised'"
        )


def _rules(given: Any) -> dict[str, Bound]:
    """The bounds of columns by name or pattern."""
    if given is None:
        return {}
    rules = dict(given) if isinstance(given, Mapping) else None
    if rules is None or not all(isinstance(name, str) and isinstance(one, Bound) for name, one in rules.items()):
        raise WorkbenchError(
            'columns must map names or patterns to bounds, as in {"Potential": wb.Relative(1e-3), "*": wb.Exact()}; '
            f"got {briefly(given)}"
        )
    return rules


@dataclass(frozen=True, eq=False)
class Compression:
    """A call of `wb.compress`: the data and what is requested, where the archive goes, and who does the steps."""

    data: Any
    metadata: Mapping[str, Any]
    request: Request
    out: str | os.PathLike[str] | None   # None for memory
    overwrite: bool
    executor: Executor
    parts: int | None
    scratch: str | Path | None

    def kept(self, archive: Archive) -> Archive:
        """An archive in memory, or where it is written."""
        return archive if self.out is None else Archive.open(archive.save(self.out, self.overwrite))

    @contextmanager
    def place(self, token: str | None) -> Iterator[Place]:
        """A store, or a draft that the same call would continue after an error."""
        if self.out is None:
            yield MemoryStore()
            return
        draft = Draft(self.out, self.overwrite, token)
        with draft.continued():
            yield draft


def certificate_of(arrays: Sequence[EncodedArray], notes: Sequence[str] = (), choice: str = "") -> Certificate:
    """The promises about these arrays, with notes on unusual ones."""
    stated = tuple(a.promise for a in arrays if a.promise is not None and a.layout.name != "extents")
    count = arrays[0].layout.shape[0]
    groups = (note for promise in stated for kept in promise.keep for note in notes_on_groups(kept, count))
    return Certificate(stated, notes=(*notes, *groups), choice=choice)


def promises(keep: Any) -> tuple[Any, ...]:
    """The promises beyond the bound as a tuple: none, one, or several.

    >>> promises(None), promises([1, 2])
    ((), (1, 2))
    """
    if keep is None:
        return ()
    if isinstance(keep, Promised):
        return (keep,)
    if isinstance(keep, str) or hasattr(keep, "dtype") or not isinstance(keep, Iterable):
        raise WorkbenchError(f"keep must be wb.KeepClusters(...), wb.Safeguard(...), or a list of these; got {keep!r}")
    return tuple(keep)


def require_about(kind: str, keep: tuple[Any, ...]) -> None:
    """Refuse promises beyond the bound that are not about this kind of content."""
    if strangers := [kept for kept in keep if not isinstance(kept, Promised) or kept.content != kind]:
        content = KINDS[kind]
        raise WorkbenchError(f"keep of {content.words} takes {content.takes}; got {strangers[0]!r}")


def require_storable(metadata: Mapping[str, Any]) -> None:
    """Refuse metadata that an archive cannot hold, before any work."""
    try:
        document.require_storable(provenance.plain(metadata), "metadata")
    except RecursionError:
        raise WorkbenchError(f"metadata must be nested at most {document.MOST_DEPTH} deep; it is deeper") from None


def archive_of(
    arrays: Sequence[EncodedArray],
    described: Mapping[str, Any],
    codec: Codec,
    metadata: Mapping[str, Any],
    place: Place,
    executor: Executor,
    notes: tuple[str, ...] = (),
    choice: str = "",
) -> Archive:
    """The archive of these arrays, whose chunks are in their place already; those of shards are put together."""
    layouts = [array.layout for array in arrays]
    for layout in layouts:
        assemble(layout, place, executor)
    documents = documents_for(arrays, described, codec, metadata, notes, choice)
    return Archive(place.finished(documents, [key for layout in layouts for key in layout.file_keys()]))


def documents_for(
    arrays: Sequence[EncodedArray],
    described: Mapping[str, Any],
    codec: Codec,
    metadata: Mapping[str, Any],
    notes: tuple[str, ...] = (),
    choice: str = "",
) -> dict[str, bytes]:
    """The documents of an archive of these arrays, by key; they depend only on the checksums of the chunks."""
    certificate = certificate_of(arrays, notes, choice)
    attributes = {
        "format": FORMAT,
        **{name: value for name, value in described.items() if value is not None},
        "certificate": certificate.to_document(),
        "machine": platform.machine(),
        "metadata": provenance.plain(metadata),
    }
    content = KINDS[described["kind"]]
    return documents_of(attributes, [content.named(array.layout, attributes) for array in arrays])
