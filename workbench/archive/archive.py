"""An archive: compressed particles or a compressed field, with a promise that was checked.

In memory or on disk it is the same Zarr group: `positions` (with `extents`, and `velocities`, `ids`, `masses`,
`permutation` if there are any) or `values` (with `mask`). Chunks are decoded on demand, and only those that are needed.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench import backend, ordering
from workbench.archive import checks
from workbench.archive import region as regions
from workbench.archive.as_array import ArchivedArray
from workbench.archive.certificate import Certificate
from workbench.archive.contents import DATA, DATA_ARRAYS, curve_from, require_consistent
from workbench.archive.frame import Damaged
from workbench.archive.layout import ArrayLayout, require_plausible
from workbench.archive.preview import MOST_LEVEL, every
from workbench.archive.provenance import VERSIONS
from workbench.archive.reading import StoredArray
from workbench.archive.root import read_root
from workbench.archive.salvage import salvage, salvage_mask
from workbench.archive.store import Store, open_store
from workbench.archive.trust import DEFAULT, Trust
from workbench.archive.writing import in_order, write
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.codecs import Codec, CodecFailed, Columns
from workbench.data import Field, Particles
from workbench.data.labelled import width_in_file
from workbench.data.particles import COMPANIONS
from workbench.data.summary_html import size, summary
from workbench.errors import WorkbenchError
from workbench.guarantees.enforce import decoded_permutation
from workbench.metrics.report import Report
from workbench.run.chunked_field import ChunkedField
from workbench.run.executors import Progress
from workbench.run.submission import submittable


class Archive:
    """Compressed particles or a compressed field, as returned by `wb.compress` and `wb.open`.

    >>> import workbench as wb
    >>> field = wb.Field(np.linspace(0, 1, 1000, dtype=np.float32))
    >>> archive = wb.compress(field, wb.Absolute(1e-3), codec="prequantised")
    >>> archive.decompress()
    Field(1000, float32)
    >>> archive.verify(field).passed
    True
    """

    def __init__(self, store: Store, trust: Trust = DEFAULT, damaged: bool = False) -> None:
        self.store = store
        self._described = read_root(store, damaged)
        self.attributes, layouts = self._described.attributes, self._described.layouts
        for layout in layouts.values():
            require_plausible(layout, store, damaged)
        require_consistent(self._described, store.name, damaged)
        self._trust = trust
        self.arrays = {name: StoredArray(store, layout, self._trust) for name, layout in layouts.items()}

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
    ) -> Archive:
        """The archive at a path; `wb.open` opens all other known formats too.

        `codecs` lists the codecs that may decode it, besides the built-in ones; `most_bytes` limits the decoded size of one
        call; `isolate=False` decodes in this process, which a hostile file could crash; `patience` is how many seconds by
        the clock another process may take for each second of processor time (3 unless given): more on a busy machine.
        `damaged=True` opens the readable part of an archive that cannot be opened otherwise: a truncated zip file, or a
        folder with missing files. `damage()` then lists the lost parts, and `salvage()` returns the rest.
        """
        return cls(open_store(path, damaged), Trust(codecs, most_bytes, isolate, patience), damaged)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write one file (`x.zip`) or a directory (`x.zarr` or `x`), completely or not at all.

        Only the parts of the archive are written. Damaged documents are repaired from the root.
        """
        documents = self._described.documents
        parts = ((key, documents[key] if key in documents else self.store.read(key)) for key in in_order(self._keys))
        return write(path, parts, overwrite)

    @functools.cached_property
    def _keys(self) -> list[str]:
        """The keys of all parts. Other files in a folder are not parts."""
        chunks = (stored.layout.chunk_key(i) for stored in self.arrays.values() for i in stored.layout.chunk_indices())
        return [*self._described.documents, *chunks]

    def chunked_field(self) -> ChunkedField:
        """The field, of which each part is decoded where it is read."""
        if self.kind != "field":
            raise WorkbenchError(f"the archive must hold a field; got {self!r}")
        about = self.attributes
        return ChunkedField(ArchivedArray(self), self.spacing, about.get("name"), metadata=about.get("metadata"))

    # Description.

    @property
    def kind(self) -> str:
        """"particles" or "field"."""
        return str(self.attributes["kind"])

    @property
    def data(self) -> StoredArray:
        """The positions, or the values of the field."""
        return self.arrays[DATA[self.kind]]

    @property
    def codec(self) -> Codec:
        """The codec of the positions or values."""
        return self.data.codec

    @property
    def certificate(self) -> Certificate:
        """The promises, how they were checked, and the figures."""
        layouts = {name: stored.layout for name, stored in self.arrays.items()}
        counts = {name: {"values": math.prod(one.shape), "chunks": one.chunk_count} for name, one in layouts.items()}
        return Certificate.from_dict(self.attributes.get("certificate"), counts)

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
        """The size of all parts together."""
        there = set(self.store.keys())
        return sum(self.store.size(key) for key in self._keys if key in there)

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
        layouts = [stored.layout for name, stored in self._data_arrays.items() if name != "mask"]
        return [(self.certificate[one.name].valid_values(math.prod(one.shape)), self._width(one)) for one in layouts]

    def _width(self, layout: ArrayLayout) -> int:
        """The bytes of one original number."""
        metadata = self.attributes.get("metadata") if layout.name == "values" else None
        return width_in_file(layout.dtype, metadata)

    @property
    def _data_arrays(self) -> dict[str, StoredArray]:
        """The arrays that hold data, positions or values first, without indexes and without models that codecs share."""
        names = [name for name in DATA_ARRAYS[self.kind] if name in self.arrays]
        return {name: self.arrays[name] for name in names if self.arrays[name].layout.role == "data"}

    @property
    def bits_per_particle(self) -> float:
        """Bits for the position of each particle: the chunks of the positions alone, without companion arrays."""
        if self.kind != "particles":
            raise WorkbenchError("bits_per_particle is for particles; this archive holds a field: use bits_per_value")
        return 8 * self.data.nbytes / len(self)

    def __len__(self) -> int:
        return self.data.layout.shape[0]

    # Contents.

    def decompress(self) -> Particles | Field:
        """The whole contents, as particles or a field."""
        arrays = self._data_arrays.values()
        self._trust.require_room(sum(one.nbytes_of(one.layout.shape) for one in arrays), self.store.name)
        if self.kind == "field":
            return self._field(self.data.values(), self._optional("mask"))
        return self._particles(self.data.values(), {name: self.arrays[name].values() for name in self._companions})

    def preview(self, level: int = 2) -> Field:
        """Every 2**level-th point of a field along each axis: exactly those of `decompress()`.

        With the codec `interpolation`, only these points are decoded.

        >>> import workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 10_000).reshape(100, 100), wb.Absolute(1e-3), "interpolation")
        >>> bool((archive.preview(3).values == archive.decompress().values[::8, ::8]).all())
        True
        """
        if self.kind != "field":
            raise WorkbenchError("only fields have a preview; this archive holds particles: read a region instead")
        spacing = 1 << whole_number("level", level, least=0, most=MOST_LEVEL)
        mask = every(self.arrays["mask"], spacing) if "mask" in self.arrays else None
        found = self._field(every(self.data, spacing), mask)
        return Field(found.values, [length * spacing for length in found.spacing], found.name, found.mask, found.metadata)

    def read(self, region: Any) -> Particles | Field:
        """The data in a region; only the chunks that hold it are decoded.

        For particles: (lower, upper) along each axis, lower <= x < upper; it may reach across a periodic face. For fields:
        a slice, a pair (start, stop) or None for each axis, in grid points.
        """
        if self.kind == "field":
            slices = regions.slices_of(region, self.data.layout.shape)
            mask = regions.grid_part(self.arrays["mask"], slices) if "mask" in self.arrays else None
            return self._field(regions.grid_part(self.data, slices), mask)
        wanted = regions.cuboids(region, self.data.layout.shape[1], self.box)
        positions, places = regions.particles_in(self.data, self._extents, wanted)
        if not len(positions):
            raise WorkbenchError(f"no particle lies in the region {region!r}")
        return self._particles(positions, {name: self._rows(name, places) for name in self._companions})

    @functools.cached_property
    def _extents(self) -> np.ndarray:
        """The smallest and largest decoded coordinates of each chunk."""
        if "extents" not in self.arrays:
            raise WorkbenchError("the extents of the chunks are lost, and reading a region needs them: use salvage()")
        return self.arrays["extents"].values()

    def permutation(self, original: Particles | None = None) -> Array:
        """The index of each decoded particle in the original: decoded[i] is original[permutation[i]].

        It can be computed from the original, so it need not be stored; if it was stored (`store_permutation`), `original`
        may be left out. Any other set of particles is refused.
        """
        if self.kind != "particles":
            raise WorkbenchError("only particles have a permutation; this archive holds a field")
        if "permutation" in self.arrays:
            return checks.permutation_of(self.arrays["permutation"].values())
        if original is None and self.reordered:
            raise WorkbenchError("the permutation was not stored: pass the original, from which it is computed")
        if original is None or not self.reordered:
            return np.arange(len(self), dtype=ordering.stored_index(len(self)))
        self.require_like(original)
        order = self._order_of(original.positions)
        checks.require_same_order(self.attributes.get("permutation"), order)
        return order

    def _order_of(self, positions: Array) -> Array:
        """The permutation from these positions, which must be those of the original, to the decoded ones."""
        curve = curve_from(self.attributes.get("curve"), self.data.layout.shape[1])
        order = ordering.sort_by_key(curve.keys(positions), curve.key_bits)
        limit = self.certificate["positions"].limit
        if limit is None:
            raise WorkbenchError("the certificate states no bound of the positions, and the permutation depends on it")
        for index in self.data.layout.chunk_indices():
            rows = self.data.layout.chunk_slices(index)[0]
            sections = {tag: bytes(part) for tag, part in self.data.frame(index).sections.items()}
            try:
                within = decoded_permutation(self.data.decoder, sections, positions[order[rows]], limit)
            except CodecFailed as error:
                raise Damaged(self.data.layout.chunk_key(index), str(error)) from error
            if within is not None:
                order[rows] = order[rows][within]
        return order

    def damage(self) -> list[Damaged]:
        """Every damaged document and chunk, each with the reason; empty for an intact archive."""
        return [*self.damaged_documents(), *(found for stored in self.arrays.values() for found in stored.damage())]

    def damaged_documents(self) -> list[Damaged]:
        """Every document that is damaged or missing, with the reason."""
        return self._described.checked(self.store)

    def salvage(self) -> tuple[Particles | Field, list[Damaged]]:
        """The undamaged values, and the damage.

        Particles whose position, velocity, id or mass is lost are left out. If all velocities (or all ids or masses) are
        lost, that array is left out instead. Lost values of a field are NaN (of integers, zero) and masked. Where the mask
        is lost, values are masked that hold the number for missing values; if there is none, all of them.
        """
        if self.kind == "field":
            found, gone, damage = salvage({"values": self.data}, len(self.data.layout.shape), "values")
            hidden = gone if gone.any() else None
            if "mask" in self.arrays:
                masked, of_mask = salvage_mask(self.arrays["mask"], found["values"], self.data.layout.attributes)
                hidden, damage = masked | gone, [*damage, *of_mask]
            return self._field(found["values"], hidden), [*self.damaged_documents(), *damage, *self._beside_data()]
        data = {name: self.arrays[name] for name in DATA_ARRAYS[self.kind] if name in self.arrays}
        values, gone, damage = salvage(data, 1, DATA[self.kind])
        damage = [*self.damaged_documents(), *damage, *self._beside_data()]
        kept = {name: whole[~gone] for name, whole in values.items()}
        return self._particles(kept.pop("positions"), kept), damage

    def _beside_data(self) -> list[Damaged]:
        """The damage of the arrays that hold no data, such as indexes."""
        others = [stored for name, stored in self.arrays.items() if name not in DATA_ARRAYS[self.kind]]
        return [found for stored in others for found in stored.damage()]

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
        from workbench.archive.verify import verify  # it reads archives

        return verify(self, original, client, parts, scratch, progress)

    def require_like(self, original: Particles) -> None:
        """Refuse particles of another number, or in another box."""
        expected = (self.data.layout.shape, self.box)
        if not isinstance(original, Particles) or (tuple(original.positions.shape), original.box) != expected:
            raise WorkbenchError(f"the original must be {len(self):,} particles in {_space(self.box)}; got {original!r}")

    def _optional(self, name: str) -> np.ndarray | None:
        return self.arrays[name].values() if name in self.arrays else None

    @property
    def _companions(self) -> list[str]:
        return [name for name in COMPANIONS if name in self.arrays]

    def _rows(self, name: str, places: np.ndarray) -> np.ndarray:
        """Some rows of an array; only the chunks that hold them are decoded."""
        stored = self.arrays[name]
        step = stored.layout.chunk_shape[0]
        rest = (0,) * (len(stored.layout.shape) - 1)
        found = [chunk[places[places // step == i[0]] - i[0] * step] for i, chunk in stored.chunks(
            (number, *rest) for number in np.unique(places // step).tolist()
        )]
        return np.concatenate(found)   # `places` increase, so they are in the order of the chunks

    def _particles(self, positions: np.ndarray, companions: Mapping[str, np.ndarray] = MappingProxyType({})) -> Particles:
        handed_over: dict[str, Any] = {name: backend.read_only(array) for name, array in companions.items()}
        own = {"masses": self.mass, **handed_over}
        return Particles(backend.read_only(positions), self.box, metadata=self.attributes.get("metadata"), **own)

    def _field(self, values: np.ndarray, mask: np.ndarray | None) -> Field:
        name, metadata = (self.attributes.get(key) for key in ("name", "metadata"))
        return Field(backend.read_only(values), self.spacing, name, mask, metadata)

    def __repr__(self) -> str:
        layout, inner = self.data.layout, self.codec
        name = inner.codec.id if isinstance(inner, Columns) else inner.id
        shape = " x ".join(map(str, layout.shape))
        what = f"{len(self):,} particles" if self.kind == "particles" else f"field of {shape}"
        ratio = self.ratio
        change = f"{ratio:.3g}x smaller" if ratio >= 1 else f"{1 / ratio:.3g}x larger" if ratio else "no valid value"
        return f"Archive({what}, {layout.dtype}, {name}, {self.nbytes:,} bytes, {change})"

    def _repr_html_(self) -> str:
        there = {name: stored for name, stored in self.arrays.items() if stored.layout.role == "data"}
        rows = {
            "kind": self.kind,
            "space": _space(self.box) if self.kind == "particles" else "",
            "order": "free" if self.reordered else "",
            **{name: f"{_shape(stored)}, {stored.nbytes:,} bytes" for name, stored in there.items()},
            "size": size(self.nbytes),
            "original": f"{size(self.original_nbytes)}: {self.ratio:.4g} times as large",
        }
        shown = summary(repr(self), rows, self.attributes.get("metadata"))
        return f'{shown}<div style="margin-top: 0.6em">{self.certificate._repr_html_()}</div>'


def _shape(stored: StoredArray) -> str:
    return f"{stored.layout.dtype}, {' x '.join(f'{n:,}' for n in stored.layout.shape)}"


def _space(box: tuple[float, ...] | None) -> str:
    return "an open space" if box is None else f"a box of {' x '.join(f'{length:g}' for length in box)}"
