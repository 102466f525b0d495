"""What someone asks of `wb.compress`, checked; and what particles and fields have in common when it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench import codecs
from workbench.archive import document, naming, provenance
from workbench.archive.archive import Archive
from workbench.archive.certificate import Certificate
from workbench.archive.encoding import EncodedArray, Progress
from workbench.archive.plausibility import notes_on_groups
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound

ORDERS = ("keep", "free")


@dataclass(frozen=True)
class Request:
    """The arguments of `wb.compress` but for the data."""

    bound: Bound
    codec: str | Codec = "auto"
    keep: tuple[Any, ...] = ()
    order: str = "keep"
    progress: Progress | None = None
    velocities: Bound | None = None
    store_permutation: bool = False
    chunk_values: int | None = None
    notes: tuple[str, ...] = ()   # what is unusual about it, for these data

    def __post_init__(self) -> None:
        for name, bound in (("bound", self.bound), ("velocities", self.velocities)):
            if not isinstance(bound, Bound) and not (name == "velocities" and bound is None):
                kinds = "wb.Absolute(...), wb.Relative(...) or wb.PointwiseRelative(...)"
                raise WorkbenchError(f"{name} must be {kinds}; got {bound!r}")
        if self.order not in ORDERS:
            raise WorkbenchError(f"order must be 'keep' or 'free'; got {self.order!r}")
        if self.chunk_values is not None and self.chunk_values < 1:
            raise WorkbenchError(f"chunk_values must be at least 1; got {self.chunk_values}")

    def chosen_codec(self, auto: str) -> Codec:
        """The codec that is asked for, one that whoever reads the archive can make again; `auto` where none is."""
        given = self.codec
        if not isinstance(given, Codec):
            return codecs.get(auto if given == "auto" else given)
        described = document.plain(given.to_dict(), f"the options of codec {given.id}")
        try:
            known = codecs.from_dict(described)
        except WorkbenchError as error:
            raise WorkbenchError(f"nobody could decode what {given!r} encodes: {error}") from error
        if known != given:
            raise WorkbenchError(f"nobody could decode what {given!r} encodes: by its description it is {known!r}")
        return given


def certificate_of(arrays: Sequence[EncodedArray], notes: Sequence[str] = ()) -> Certificate:
    """What is promised about these arrays, with what is unusual about it."""
    promises = tuple(a.promise for a in arrays if a.promise is not None and a.layout.name != "extents")
    count = arrays[0].layout.shape[0]
    groups = (note for promise in promises for kept in promise.keep for note in notes_on_groups(kept, count))
    return Certificate(promises, notes=(*notes, *groups))


def archive_of(
    arrays: Sequence[EncodedArray],
    described: Mapping[str, Any],
    codec: Codec,
    metadata: Mapping[str, Any],
    notes: tuple[str, ...] = (),
) -> Archive:
    """The archive of these arrays, with its certificate and its history."""
    certificate = certificate_of(arrays, notes)
    attributes = {
        **described,
        "certificate": certificate.to_dict(),
        "provenance": provenance.of(codec),
        "metadata": provenance.plain(metadata),
    }
    kind = str(described["kind"])
    layouts = [naming.named(array.layout, kind, metadata) for array in arrays]
    return Archive.of([replace(array, layout=layout) for array, layout in zip(arrays, layouts, strict=True)], attributes)
