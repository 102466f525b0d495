"""`wb.convert`: an archive encoded anew, by another codec or another version, with its promise, certificate and history.

The original is not needed. Without `extra`, every array is decoded and stored so that it decodes to the same bits: what was
promised of them, kept clusters included, holds as it did, and the certificate keeps the figures of its first check. With
`extra`, a lossy codec may add that share of the bound; then the sum is promised, as for a linear combination of one archive
(`derivation.py`). All arrays keep their chunks, as the extents of positions are those of chunks.

The certificate gets an entry for each step: which archive this one was made from, its checksum, its codec and versions.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench import codecs
from workbench.archive import choice, portable
from workbench.archive.archive import Archive
from workbench.archive.assembling import assemble
from workbench.archive.certificate import Certificate, Promise
from workbench.archive.choice import Profile, is_free, of_profile
from workbench.archive.chunk import (
    CHECKSUMS,
    decode_frame,
    exact_chunk,
    opened_chunk,
    require_as_written,
    with_checksums,
)
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.compressing import gathered
from workbench.archive.derivation import NOTHING, Derivation, Source, checksum_of, is_relative
from workbench.archive.encoding import EncodedArray, Task, assembled, encode_values, exact_layout, layout_for
from workbench.archive.fields import MASK, mask_codec
from workbench.archive.frame import Frame, as_source
from workbench.archive.layout import ArrayLayout
from workbench.archive.missing import WARNS
from workbench.archive.provenance import VERSIONS, listed
from workbench.archive.reading import StoredArray
from workbench.archive.root import documents_of
from workbench.archive.slices import sample_of
from workbench.archive.store import MemoryStore
from workbench.arguments import number
from workbench.codecs import Codec
from workbench.codecs.portable import OffLattice, Portable
from workbench.errors import WorkbenchError
from workbench.guarantees import Exact, Limit, Limits, SliceLimits
from workbench.progress import Progress
from workbench.run.executors import InProcess

MOST_EXTRA = 2.0**20   # times the old bound


def convert(
    archive: Archive | Collection | str | os.PathLike[str], codec: str | Codec = "auto", *, profile: Profile = "own",
    extra: float = 0.0, out: str | os.PathLike[str] | None = None, overwrite: bool = False,
    progress: Progress | None = None,
) -> Any:
    """The archive encoded anew, without its original: by another codec, or as one that plain Zarr reads.

    Without `extra`, all arrays decode to the same bits as before, so the promise is the same; `codec` must then be lossless
    ("auto" takes pcodec). With it, arrays of floats that have an absolute bound are encoded within that share of their
    bound, and the sum of both is promised; this is for fields and datasets. `profile="portable"` is that of `wb.compress`.
    The certificate names the archive that this one was made from.

    >>> import workbench as wb
    >>> old = wb.compress(np.sin(np.linspace(0, 6, 10_000)), wb.Absolute(1e-3), "sz3")
    >>> same, plain = wb.convert(old), wb.convert(old, profile="portable", extra=0.5)
    >>> bool((same.decompress().values == old.decompress().values).all()), plain.certificate["values"].limit
    (True, Limit(kind='absolute', value=0.0015))
    """
    if not isinstance(archive, Archive | Collection):
        from workbench.archive.opening import opened

        archive = opened(archive)
    chosen = of_profile(profile, codec)
    extra = number("extra", extra, low=0, high=MOST_EXTRA)
    step = functools.partial(_converted, codec=chosen, extra=extra)
    if isinstance(archive, Collection):
        members = {}
        for done, (name, member) in enumerate(archive.items()):
            try:
                members[name] = step(member, name=f"{name} in {_name_of(archive.store.name)}")
            except WorkbenchError as error:
                error.add_note(f"This is about {name!r}.")
                raise
            if progress is not None:
                progress((done + 1) / len(archive), f"converted {name}")
        made: Any = gathered(members, archive.groups)
    else:
        made = step(archive, name=_name_of(archive.store.name), progress=progress)
    return made if out is None else type(made)(_saved(made, out, overwrite))


def _saved(made: Any, out: str | os.PathLike[str], overwrite: bool) -> Any:
    from workbench.archive.store import open_store

    return open_store(made.save(out, overwrite))


def _name_of(store: str) -> str:
    return Path(store).name or "an archive in memory"


def _converted(archive: Archive, codec: Any, extra: float, name: str, progress: Progress | None = None) -> Archive:
    """One archive, encoded anew into memory."""
    if archive.kind == "particles" and (extra or isinstance(codec, Portable)):
        raise WorkbenchError(
            f"particles are encoded anew without loss, by pcodec; got extra={extra:g}, codec={codec!r}: leave these out"
        )
    place, arrays, certificate = MemoryStore(), [], archive.certificate
    promised = {promise.array: promise for promise in certificate.promises}
    if extra and archive.kind == "variable" and certificate[archive.data.layout.name].bound not in (None, Exact()):
        raise WorkbenchError(
            "complex numbers, and those of 16 bits or more than four axes, have a bound of their own, not that of the "
            "stored numbers: leave extra out, which keeps it"
        )
    sources = {one: stored for one, stored in archive.arrays.items() if stored.layout.role != "model"}
    with as_source(archive.store.name):
        for done, (array, stored) in enumerate(sources.items()):
            lossy = _has_room(stored, promised.get(array), extra)
            own = codec if lossy or not extra or isinstance(codec, Portable) else "auto"   # exact arrays stay exact
            conversion = _Conversion(archive, stored, promised.get(array), own, extra if lossy else 0.0, name)
            arrays.append(conversion.into(place))
            if progress is not None:
                progress((done + 1) / len(sources), f"converted {array}")
    for encoded in arrays:
        assemble(encoded.layout, place, InProcess())
    new = {one.layout.name: one.promise for one in arrays if one.promise is not None}
    entry = _entry(archive, name, arrays[0], extra)
    promises = tuple(new.get(name, _without_price(promise)) for name, promise in promised.items())
    kept = Certificate(promises, certificate.notes, "", (*certificate.history, entry))
    attributes = {**archive.attributes, "certificate": kept.to_document(), "machine": platform.machine()}
    documents = documents_of(attributes, [archive.content.named(one.layout, attributes) for one in arrays])
    made = Archive(place.finished(documents, [key for one in arrays for key in one.layout.file_keys()]))
    made.beside = archive.beside
    return made


def _without_price(promise: Promise) -> Promise:
    """The promise without what another codec would take, as the codec is another."""
    figures = {name: figure for name, figure in promise.figures.items() if name != portable.OWN}
    return dataclasses.replace(promise, figures=figures)


def _has_room(stored: StoredArray, promise: Promise | None, extra: float) -> bool:
    """Whether an array may be encoded with a loss: floats that have a bound, and no equal ones."""
    if not extra or promise is None or promise.bound is None or promise.limit is None:
        return False
    if promise.keep:
        raise WorkbenchError("what is kept beside the bound may break with extra errors: leave extra out")
    if stored.layout.dtype.kind != "f":
        return False
    if is_relative(promise.limit):
        raise WorkbenchError(
            "a bound relative to each value cannot take extra errors, which are absolute: leave extra out, which keeps it"
        )
    return any(limit.value > 0 for limit in _all(promise.limit))


def _all(limits: Limits) -> tuple[Limit, ...]:
    return limits.limits if isinstance(limits, SliceLimits) else (limits,)


def _times(limits: Limits, share: float) -> Limits:
    """Limits that are this share of others."""
    if isinstance(limits, SliceLimits):
        return SliceLimits(limits.axis, tuple(Limit("absolute", share * one.value) for one in limits.limits))
    return Limit("absolute", share * limits.value)


@dataclasses.dataclass(frozen=True)
class _Conversion:
    """One array that is encoded anew."""

    archive: Archive
    stored: StoredArray
    promise: Promise | None
    codec: Any
    extra: float
    name: str

    def into(self, place: MemoryStore) -> EncodedArray:
        """The array, whose chunks are put there."""
        if self.extra:
            return self._within(place)
        layout = self._layout(self._lossless())
        codec, chunks = codecs.from_dict(layout.configuration["codec"]), []
        for index, values in self.stored.chunks():
            chunk = exact_chunk(values, codec) if codec.bare else exact_chunk(values)
            self._require_same(opened_chunk(layout, index, chunk.data, chunk.checksum), codec)
            place.put(layout.chunk_key(index), chunk.data)
            chunks.append(chunk.without_bytes())
        return EncodedArray(with_checksums(layout, chunks), chunks)

    def _require_same(self, opened: Frame, codec: Codec) -> None:
        """Refuse a chunk that does not decode to the values that it was made of, bit for bit."""
        require_as_written(opened, decode_frame(opened, codec, self.stored.layout.dtype), codec, {})

    def _lossless(self) -> Codec | None:
        """The codec that keeps all bits; None for pcodec, and the coder of masks."""
        if isinstance(self.codec, Portable):
            return self._portable(NOTHING)
        if is_free(self.codec) or self._given.id == "pcodec":
            return None
        raise WorkbenchError(
            f"without extra errors, arrays are encoded anew by codec='pcodec' or profile='portable'; got {self._given!r}: "
            "give extra=0.1, say, for a tenth of the bound more"
        )

    @property
    def _given(self) -> Codec:
        return codecs.get(self.codec) if isinstance(self.codec, str) else self.codec

    def _layout(self, codec: Codec | None) -> ArrayLayout:
        """The layout of the array with another codec: only what the codec had to say of its chunks is left out."""
        old = self.stored.layout
        if codec is None or codec.bare:
            new = exact_layout(old.name, old.shape, old.dtype, old.chunk_shape, codec)
        else:
            new = layout_for(old.name, old.shape, old.dtype, old.chunk_shape, codec)
        attributes = {name: entry for name, entry in old.attributes.items() if name != CHECKSUMS}
        warns = {WARNS: True} if old.configuration.get(WARNS) is True else {}
        return dataclasses.replace(new, attributes=attributes, configuration={**new.configuration, **warns})

    def _within(self, place: MemoryStore) -> EncodedArray:
        """The array within a share of its bound, with the sum as its promise."""
        assert self.promise is not None
        assert self.promise.limit is not None
        added = _times(self.promise.limit, self.extra)
        codec = self._suited(added)
        try:
            return self._encoded(place, codec, added)
        except OffLattice:
            assert isinstance(codec, Portable)
            return self._encoded(place, codec.rounding(), added)

    def _encoded(self, place: MemoryStore, codec: Codec, added: Limits) -> EncodedArray:
        """The array by a codec, with errors that are added."""
        old, layout = self.stored, self._layout(codec)
        derivation = Derivation((self._source(),), NOTHING, added)
        _, typical = sample_of(layout.shape, added)
        task = Task(layout, codec, derivation.bound, typical, slices=added if isinstance(added, SliceLimits) else None)
        mask, ready = self.archive.arrays.get(MASK), []
        for index, values in old.chunks():
            hidden = mask.chunk(index) if mask is not None and old.layout.name == self.archive.content.data else None
            one = encode_values(task.of_chunk(index), values, hidden)
            place.put(layout.chunk_key(index), one.data.data)
            ready.append(dataclasses.replace(one, data=one.data.without_bytes()))
        made = assembled(task, ready)
        assert made.promise is not None
        figures = {name: figure for name, figure in made.promise.figures.items() if name != "largest_error"}
        promise = Promise(layout.name, derivation.bound, derivation.limit, (), figures, derivation)
        return dataclasses.replace(made, promise=promise)

    def _source(self) -> Source:
        assert self.promise is not None
        assert self.promise.limit is not None
        return Source(1.0, self.name, checksum_of(self.archive.documents), self.promise.limit)

    def _suited(self, added: Limits) -> Codec:
        """The codec for errors within a limit."""
        if isinstance(self.codec, Portable):
            return self._portable(added)
        place, limit = sample_of(self.stored.layout.shape, added)
        if not is_free(self.codec):
            return self._given
        return choice.chosen(*self._sample(place), limit)[0]

    def _portable(self, limits: Limits) -> Codec:
        """The way in which Zarr's codecs take least room."""
        layout = self.stored.layout
        own = Portable().in_chunks(layout.chunk_shape)
        if layout.dtype == np.dtype(bool):
            found = mask_codec(own)
            assert found is not None
            return found
        place, limit = sample_of(layout.shape, limits)
        values, mask = self._sample(place)
        lattice = MASK not in self.archive.arrays and isinstance(limits, Limit)
        return portable.chosen(own, values, mask, limit, lattice).codec

    def _sample(self, place: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """The values in a part, and where they are masked."""
        from workbench.archive.region import grid_part

        mask = self.archive.arrays.get(MASK)
        hidden = None if mask is None or mask is self.stored else grid_part(mask, place)
        return grid_part(self.stored, place), hidden


def _entry(archive: Archive, name: str, main: EncodedArray, extra: float) -> Mapping[str, Any]:
    """What the certificate says of the archive that another was made from."""
    how = "bit for bit" if main.promise is None else f"with errors of {extra:g} times its bound added"
    return {
        "archive": name, "checksum": checksum_of(archive.documents), "codec": archive.codec.id,
        "versions": listed(archive.data.layout.configuration.get(VERSIONS)), "encoding": how,
    }
