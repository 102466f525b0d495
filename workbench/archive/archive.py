"""An archive: compressed particles or a compressed field, with a promise that was checked.

In memory or on disk it is the same Zarr group: `positions` (with `extents`, and `velocities`, `ids`, `masses`, columns of
other names, `permutation` if there are any) or `values` (with `mask`). Chunks are decoded on demand, and only those that
are needed.
What depends on the kind of content is asked of its object in `content/`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.algebra import Algebra
from workbench.archive.array_files import require_plausible
from workbench.archive.certificate import Certificate, Promise
from workbench.archive.content.consistency import require_consistent
from workbench.archive.content.registry import KINDS
from workbench.archive.frame import Damaged
from workbench.archive.layout import ArrayLayout
from workbench.archive.members import nbytes_in_zip
from workbench.archive.provenance import VERSIONS
from workbench.archive.reading import StoredArray
from workbench.archive.root import IntactRoot, read_root
from workbench.archive.statistics.methods import Statistics
from workbench.archive.store import Store, open_store
from workbench.archive.trust import DEFAULT, Trust
from workbench.archive.verify import verify
from workbench.archive.writing import in_order, write
from workbench.backend import Array
from workbench.codecs import Codec, Columns
from workbench.data.chunked import POSITIONS
from workbench.data.labelled import width_in_file
from workbench.data.summary_html import size, summary
from workbench.errors import WorkbenchError
from workbench.metrics.report import Report
from workbench.progress import Progress
from workbench.run.chunked_field import ChunkedField
from workbench.run.submission import submittable

if TYPE_CHECKING:
    from workbench.archive.content.content import Content
    from workbench.archive.earlier import EarlierSteps

IDS = "ids"


class Archive(Statistics, Algebra):
    """Compressed particles or a compressed field, as returned by `wb.compress` and `wb.open`.

    >>> import workbench as wb
    >>> field = wb.Field(np.linspace(0, 1, 1000, dtype=np.float32))
    >>> archive = wb.compress(field, wb.Absolute(1e-3), codec="prequantised")
    >>> archive.decompress()
    Field(1000, float32)
    >>> archive.verify(field).passed
    True
    """

    def __init__(
        self, store: Store, trust: Trust = DEFAULT, damaged: bool = False, root: IntactRoot | None = None,
        step: EarlierSteps | None = None,
    ) -> None:
        self.store, self.step = store, step
        self._described = read_root(store, damaged, root)
        self.attributes, layouts = self._described.attributes, self._described.layouts
        for layout in layouts.values():
            require_plausible(layout, store, damaged)
        require_consistent(self._described, store.name, damaged)
        self._trust = trust
        positions = self._stored(layouts[POSITIONS], None) if POSITIONS in layouts else None
        self.arrays = {name: self._stored(layout, positions) for name, layout in layouts.items()}
        if step is not None and step.ids is not None and IDS not in layouts:
            self.arrays[IDS] = step.ids
        self._whole: dict[str, np.ndarray] = {}
        self.beside: Mapping[str, Archive] = {}   # coordinates of its dataset, by their own names

    def _stored(self, layout: ArrayLayout, positions: StoredArray | None) -> StoredArray:
        """An array, which may have been predicted from earlier steps of a series."""
        earlier = self.step.before(layout) if self.step is not None and layout.predicted else None
        return StoredArray(
            self.store, layout, self._trust, positions, earlier, kept=None if self.step is None else self.step.kept
        )

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        codecs: Collection[str] | None = None,
        most_bytes: int | None = None,
        isolate: bool = True,
        patience: float | None = None,
        damaged: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Archive:
        """The archive at a path; `wb.open` opens all other known formats too.

        `codecs` lists the codecs that may decode it, besides the built-in ones; `most_bytes` limits the decoded size of one
        call; `isolate=False` decodes in this process, which a hostile file could crash; `patience` is how many seconds by
        the clock another process may take for each second of processor time (3 unless given): more on a busy machine.
        `damaged=True` opens the readable part of an archive that cannot be opened otherwise: a truncated zip file, or a
        folder with missing files. `damage()` then lists the lost parts, and `salvage()` returns the rest.
        `path` may be an address: `https://...`, or one that fsspec knows, such as `s3://...`. What is read needs its chunks
        alone. `storage_options` are `headers` and `timeout` of HTTP, or what fsspec takes, such as `{"anon": True}`.
        """
        return cls(open_store(path, damaged, storage_options), Trust(codecs, most_bytes, isolate, patience), damaged)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write one file (`x.zip`) or a directory (`x.zarr` or `x`), completely or not at all.

        Only the parts of the archive are written. Damaged documents are repaired from the root.
        """
        return write(path, self._parts(), overwrite)

    def upload(self, address: str, overwrite: bool = False, storage_options: Mapping[str, Any] | None = None) -> str:
        """Write one file to an object store, such as `s3://bucket/x.zip`, completely or not at all; returns its address.

        >>> import workbench as wb
        >>> wb.compress(np.linspace(0, 1, 100), wb.Absolute(0.01), "prequantised").upload("memory://x.zip", overwrite=True)
        'memory://x.zip'
        >>> wb.open("memory://x.zip")
        Archive(field of 100, float64, prequantised, ... bytes, ...)
        """
        from workbench.archive.remote.sending import upload

        return upload(address, self._parts(), overwrite, storage_options)

    def _parts(self) -> Iterator[tuple[str, bytes]]:
        """All parts by their keys, in the order of a zip file."""
        documents = self.documents
        return ((key, documents[key] if key in documents else self.store.read(key)) for key in in_order(self._keys))

    @functools.cached_property
    def _keys(self) -> list[str]:
        """The keys of all parts. Other files in a folder are not parts."""
        return [*self.documents, *(key for layout in self._described.layouts.values() for key in layout.file_keys())]

    @property
    def documents(self) -> Mapping[str, bytes]:
        """The correct bytes of its documents, by key."""
        return self._described.documents

    def chunked_field(self) -> ChunkedField:
        """The field, of which each part is decoded where it is read."""
        return self.content.chunked_field(self)

    # Description.

    @property
    def kind(self) -> str:
        """"particles" or "field"."""
        return self.content.kind

    @property
    def content(self) -> Content:
        """What is known of this kind of content."""
        return KINDS[self.attributes["kind"]]

    @property
    def data(self) -> StoredArray:
        """The positions, or the values of the field."""
        return self.arrays[self.content.data]

    @property
    def data_arrays(self) -> dict[str, StoredArray]:
        """The arrays that hold data, positions or values first, without indexes and without models that codecs share."""
        return {name: self.arrays[name] for name in self.content.data_names(self._described.layouts) if name in self.arrays}

    @property
    def codec(self) -> Codec:
        """The codec of the positions or values."""
        return self.data.codec

    @property
    def certificate(self) -> Certificate:
        """The promises, how they were checked, and the figures."""
        layouts = {name: stored.layout for name, stored in self.arrays.items()}
        counts = {name: {"values": math.prod(one.shape), "chunks": one.chunk_count} for name, one in layouts.items()}
        found = Certificate.from_dict(self.attributes.get("certificate"), counts)
        if IDS not in self.arrays or IDS in self._described.layouts:
            return found
        return dataclasses.replace(found, promises=(*found.promises, Promise(IDS, None, None)))   # with another step

    @property
    def box(self) -> tuple[float, ...] | None:
        """The lengths of the periodic box, if there is one."""
        box = self.attributes.get("box")
        return None if box is None else tuple(map(float, box))

    @property
    def spacing(self) -> tuple[float, ...]:
        """The distance between neighbouring points of a field along each axis."""
        return tuple(self.attributes.get("spacing", (1.0,) * len(self.data.layout.shape)))

    @property
    def mass(self) -> float | None:
        """The mass of each particle, where all have the same."""
        mass = self.attributes.get("mass")
        return None if mass is None else float(mass)

    @property
    def provenance(self) -> dict[str, Any]:
        """The versions of the packages that wrote the data, and the kind of machine."""
        return {VERSIONS: self.data.layout.configuration.get(VERSIONS), "machine": self.attributes.get("machine")}

    @property
    def reordered(self) -> bool:
        """Whether the decoded particles are in another order than the original ones."""
        return self.attributes.get("order") == "free"

    @functools.cached_property
    def nbytes(self) -> int:
        """The size of all parts together, as in a zip file: in a folder, documents are not deflated, and take more."""
        chunks = (key for key in self._keys if key not in self.documents)
        return nbytes_in_zip(self.documents) + sum(self.store.size(key, missing=0) for key in chunks)

    @property
    def original_nbytes(self) -> int:
        """The size of the original numbers in their own type; for a field, of the valid values only.

        Masked and non-finite cells are not counted, nor is the mask: leaving out land does not compress the ocean. Values
        that a file held packed, as `metadata["stored"]` says, count as they were stored there.
        """
        return sum(count * width for count, width in self._counted())

    @property
    def ratio(self) -> float:
        """The compression ratio, `original_nbytes` divided by `nbytes`: 0 when no value is valid."""
        return self.original_nbytes / self.nbytes

    @property
    def bits_per_value(self) -> float:
        """Bits per original number, with all parts counted; for a field, per valid value (see `ratio`)."""
        count = sum(count for count, _ in self._counted())
        return 8 * self.nbytes / count if count else math.inf

    def _counted(self) -> list[tuple[int, int]]:
        """The number of counted values in each array, and the bytes of one."""
        layouts = [stored.layout for name, stored in self.data_arrays.items() if name != "mask"]
        return [(self.certificate[one.name].valid_values(math.prod(one.shape)), self._width(one)) for one in layouts]

    def _width(self, layout: ArrayLayout) -> int:
        """The bytes of one original number."""
        metadata = self.attributes.get("metadata") if layout.name == "values" else None
        return width_in_file(layout.dtype, metadata)

    @property
    def bits_per_particle(self) -> float:
        """Bits for the position of each particle: the chunks of the positions alone, without companion arrays."""
        return self.content.bits_per_particle(self)

    def __len__(self) -> int:
        return self.data.layout.shape[0]

    # Contents.

    def decompress(self) -> Any:
        """The whole contents, as particles or a field."""
        arrays = self.data_arrays.items()
        self._trust.require_room(sum(stored.nbytes_of(stored.layout.shape) for _, stored in arrays), self.store.name)
        return self.content.assembled(self, {name: stored.values() for name, stored in arrays})

    def preview(self, level: int = 2) -> Any:
        """Every 2**level-th point of a field along each axis: exactly those of `decompress()`.

        With the codec `interpolation`, only these points are decoded.

        >>> import workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 10_000).reshape(100, 100), wb.Absolute(1e-3), "interpolation")
        >>> bool((archive.preview(3).values == archive.decompress().values[::8, ::8]).all())
        True
        """
        return self.content.preview(self, level)

    def read(self, region: Any = None, *, frames: Any = None, atoms: Any = None) -> Any:
        """The data in a region; only the chunks that hold it are decoded.

        For particles: (lower, upper) along each axis, lower <= x < upper; it may reach across a periodic face. For fields:
        a slice, a pair (start, stop) or None for each axis, in grid points. For trajectories: `frames`, a slice, a pair or
        a number, and `atoms`, indices, a mask or names.
        """
        in_frames, chosen = self.kind == "trajectory", frames is not None or atoms is not None
        if chosen != in_frames or (chosen and region is not None):
            raise WorkbenchError(
                f"frames and atoms are for trajectories, and a region for other contents; this archive holds "
                f"{self.content.words}: give what fits"
            )
        return self.content.read(self, (frames, atoms) if in_frames else region)

    def whole(self, name: str) -> np.ndarray:
        """A small array, which is decoded once."""
        if name not in self._whole:
            self._whole[name] = self.arrays[name].values()
        return self._whole[name]

    def permutation(self, original: Any = None) -> Array:
        """The index of each decoded particle in the original: decoded[i] is original[permutation[i]].

        It can be computed from the original, so it need not be stored; if it was stored (`store_permutation`), `original`
        may be left out. Any other set of particles is refused.
        """
        return self.content.permutation(self, original)

    def damage(self) -> list[Damaged]:
        """Every damaged document and chunk, each with the reason; empty for an intact archive."""
        return [*self.damaged_documents(), *(found for stored in self.arrays.values() for found in stored.damage())]

    def damaged_documents(self) -> list[Damaged]:
        """Every document that is damaged or missing, with the reason."""
        return self._described.checked(self.store)

    def salvage(self) -> tuple[Any, list[Damaged]]:
        """The undamaged values, and the damage.

        Particles whose position, velocity, id, mass or other column is lost are left out. If all velocities (or all of
        another column) are lost, that array is left out instead. Lost values of a field are NaN (of integers, zero) and
        masked. Where the mask is lost, values are masked that hold the number for missing values; if there is none, all.
        """
        data, damage = self.content.salvaged(self)
        others = [stored for name, stored in self.arrays.items() if name not in self.data_arrays]
        damage = [*self.damaged_documents(), *damage, *(found for stored in others for found in stored.damage())]
        return data, damage

    @submittable
    def verify(
        self,
        original: Any = None,
        *,
        client: Any = None,
        parts: int | None = None,
        scratch: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Decode everything and check it: against its checksums and, when given, against the original.

        Raises `wb.GuaranteeBroken` with the reason when the promise does not hold. Without the original the bound itself
        cannot be checked; the notes of the report say so.

        `original` is all that `wb.compress` takes. What is not in memory is read chunk by chunk, in this process or on the
        workers of a Dask `client` (or the address of a scheduler), which must see the archive, the original and the
        `scratch` folder. Groups are then searched in `parts` subdomains (by default, about a million particles each).
        `progress` is called with the completed share of each step and its name.
        """
        return verify(self, original, client, parts, scratch, progress)

    def __repr__(self) -> str:
        layout, inner = self.data.layout, self.codec
        name = inner.codec.id if isinstance(inner, Columns) else inner.id
        ratio = self.ratio
        change = f"{ratio:.3g}x smaller" if ratio >= 1 else f"{1 / ratio:.3g}x larger" if ratio else "no valid value"
        return f"Archive({self.content.size(self)}, {layout.dtype}, {name}, {self.nbytes:,} bytes, {change})"

    def _repr_html_(self) -> str:
        there = {name: stored for name, stored in self.arrays.items() if stored.layout.role == "data"}
        rows = {
            "kind": self.kind,
            "space": self.content.space(self),
            "order": "free" if self.reordered else "",
            **{name: f"{_shape(stored)}, {stored.nbytes:,} bytes" for name, stored in there.items()},
            "size": size(self.nbytes),
            "original": f"{size(self.original_nbytes)}: {self.ratio:.4g} times as large",
        }
        shown = summary(repr(self), rows, self.attributes.get("metadata"))
        return f'{shown}<div style="margin-top: 0.6em">{self.certificate._repr_html_()}</div>'


def _shape(stored: StoredArray) -> str:
    return f"{stored.layout.dtype}, {' x '.join(f'{n:,}' for n in stored.layout.shape)}"
