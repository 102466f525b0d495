"""An archive: compressed particles or a compressed field, with a promise that was checked.

In memory or on disk it is the same Zarr group: `positions` (with `extents`, and `velocities`, `ids`, `permutation` if there
are any) or `values` (with `mask`). Nothing is decoded before it is asked for, and then only the chunks that are needed.
"""

from __future__ import annotations

import functools
import html
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench import backend, ordering
from workbench.archive import clusters, document
from workbench.archive import region as regions
from workbench.archive import verify as verification
from workbench.archive.certificate import Certificate
from workbench.archive.contents import ARRAYS, DATA, FORMAT, curve_from, named, require_consistent
from workbench.archive.encoding import EncodedArray
from workbench.archive.frame import Damaged
from workbench.archive.layout import ROOT, group_metadata, read_group, require_plausible
from workbench.archive.reading import StoredArray
from workbench.archive.salvage import salvage
from workbench.archive.store import MemoryStore, Store, open_store
from workbench.archive.writing import write
from workbench.backend import Array
from workbench.codecs import Codec, Columns
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees.enforce import decoded_permutation
from workbench.metrics.report import Check, Report

INDEXES = ("extents", "permutation")   # arrays that are not data


class Archive:
    """What `wb.compress` returns and `wb.open` finds.

    >>> import workbench as wb
    >>> field = wb.Field(np.linspace(0, 1, 1000, dtype=np.float32))
    >>> archive = wb.compress(field, wb.Absolute(1e-3), codec="prequantised")
    >>> archive.decompress()
    Field(1000, float32)
    >>> archive.verify(field).passed
    True
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.attributes, layouts = read_group(store)
        for layout in layouts.values():
            require_plausible(layout, store)
        require_consistent(self.attributes, layouts, store.name)
        self.arrays = {name: StoredArray(store, layout) for name, layout in layouts.items()}

    @classmethod
    def of(cls, arrays: Sequence[EncodedArray], attributes: dict[str, Any]) -> Archive:
        """The archive of these arrays, in memory."""
        entries = {key: data for array in arrays for key, data in array.entries()}
        root = group_metadata({"format": FORMAT, **attributes, ARRAYS: named(array.layout for array in arrays)})
        return cls(MemoryStore({ROOT: document.to_bytes(root), **entries}))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Archive:
        """The archive at a path. `wb.open` does the same for a path that may be anything."""
        return cls(open_store(path))

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write a directory or, when the name ends in `.zip`, a single file: entirely, or not at all."""
        return write(path, ((key, self.store.read(key)) for key in self.store.keys()), overwrite)   # noqa: SIM118

    # What it is.

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
        """What the positions or values were encoded with."""
        return self.data.codec

    @property
    def certificate(self) -> Certificate:
        """What was promised, how it was checked, and the figures."""
        return Certificate.from_dict(self.attributes.get("certificate"))

    @property
    def box(self) -> tuple[float, ...] | None:
        """The lengths of the periodic box, if there is one."""
        box = self.attributes.get("box")
        return None if box is None else tuple(map(float, box))

    @property
    def reordered(self) -> bool:
        """Whether particles come back in another order than they were given in."""
        return self.attributes.get("order") == "free"

    @property
    def nbytes(self) -> int:
        """The size of everything together."""
        return self.store.nbytes

    @property
    def original_nbytes(self) -> int:
        """The size of what it decodes to."""
        layouts = [stored.layout for name, stored in self.arrays.items() if name not in INDEXES]
        return sum(math.prod(layout.shape) * layout.dtype.itemsize for layout in layouts)

    @property
    def ratio(self) -> float:
        """How many times smaller it is than what it decodes to."""
        return self.original_nbytes / self.nbytes

    @property
    def bits_per_value(self) -> float:
        """Bits for each number of what it decodes to, everything included."""
        layouts = [stored.layout for name, stored in self.arrays.items() if name not in INDEXES]
        return 8 * self.nbytes / sum(math.prod(layout.shape) for layout in layouts)

    @property
    def bits_per_particle(self) -> float:
        """Bits for the position of each particle: its chunks alone, without what rides along."""
        if self.kind != "particles":
            raise WorkbenchError("bits_per_particle is for particles; this archive holds a field: use bits_per_value")
        return 8 * self.data.nbytes / len(self)

    def __len__(self) -> int:
        return self.data.layout.shape[0]

    # What is in it.

    def decompress(self) -> Particles | Field:
        """Everything, as it was given: particles or a field."""
        if self.kind == "field":
            return self._field(self.data.values(), self._optional("mask"))
        positions = self.data.values()
        return self._particles(positions, self._optional("velocities"), self._optional("ids"))

    def read(self, region: Any) -> Particles | Field:
        """A part, decoding only the chunks that hold it.

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
        return self._particles(positions, self._rows("velocities", places), self._rows("ids", places))

    @functools.cached_property
    def _extents(self) -> np.ndarray:
        """How far the decoded positions of each chunk reach."""
        return self.arrays["extents"].values()

    def permutation(self, original: Particles | None = None) -> Array:
        """Which particle of the original each decoded one is: decoded[i] is original[permutation[i]].

        It follows from the original alone, so it need not be stored; when it was (`store_permutation`), none is needed.
        """
        if self.kind != "particles":
            raise WorkbenchError("only particles have a permutation; this archive holds a field")
        if "permutation" in self.arrays:
            return verification.permutation_of(self.arrays["permutation"].values())
        if original is None and self.reordered:
            raise WorkbenchError("the permutation was not stored: give the original, from which it follows")
        if original is None or not self.reordered:
            return np.arange(len(self), dtype=np.int32)
        self._require_like(original)
        curve = curve_from(self.attributes.get("curve"), original.dimensions)
        positions = original.positions
        order = ordering.sort_by_key(curve.keys(positions), curve.key_bits)
        limit = self.certificate["positions"].limit
        assert limit is not None
        for index in self.data.layout.chunk_indices():
            rows = self.data.layout.chunk_slices(index)[0]
            sections = {tag: bytes(part) for tag, part in self.data.frame(index).sections.items()}
            within = decoded_permutation(self.codec, sections, positions[order[rows]], limit)
            if within is not None:
                order[rows] = order[rows][within]
        return order

    def damage(self) -> list[Damaged]:
        """Every damaged chunk, each with what is wrong with it; empty when all is well."""
        return [found for stored in self.arrays.values() for found in stored.damage()]

    def salvage(self) -> tuple[Particles | Field, list[Damaged]]:
        """What is undamaged, and what is not.

        Particles are left out when their position, velocity or id is lost. Lost values of a field are NaN and masked.
        """
        data = {name: stored for name, stored in self.arrays.items() if name not in INDEXES}
        values, gone, damage = salvage(data, 1 if self.kind == "particles" else len(self.data.layout.shape))
        damage += [found for name in INDEXES if name in self.arrays for found in self.arrays[name].damage()]
        if self.kind == "field":
            mask = values.get("mask", gone) | gone
            return self._field(values["values"], mask if "mask" in values or gone.any() else None), damage
        kept = {name: whole[~gone] for name, whole in values.items()}
        return self._particles(kept["positions"], kept.get("velocities"), kept.get("ids")), damage

    def verify(self, original: Particles | Field | np.ndarray | None = None) -> Report:
        """Decode everything and check it: against its checksums and, when given, against the original.

        Raises `wb.GuaranteeBroken`, which says what is wrong, when the promise does not hold.
        """
        figures = verification.undamaged(self.arrays)
        checks: list[Check] = []
        notes = [promise.describe() for promise in self.certificate.promises]
        kept = clusters.promised(self.certificate[DATA[self.kind]]) if self.kind == "particles" else []
        for promise in kept:
            figures |= clusters.require_fingerprint(promise, Particles(self.data.values(), self.box))
        if original is None:
            checked = "checksums and the fingerprint of its groups" if kept else "checksums"
            notes.append(f"held against its {checked} only; give the original to hold it against the bound")
            return verification.report("the archive", figures, checks, notes)
        originals = self._originals(original)
        unseen = set(self.arrays) - set(INDEXES) - {name for name, *_ in originals}
        notes += [f"{name}: held against checksums only, as the original has none" for name in sorted(unseen)]
        for name, values, period, mask in originals:
            found, held = verification.kept(self.certificate[name], self.arrays[name], values, period, mask)
            figures |= found
            checks += [held] if held else []
            for promise in kept if name == "positions" else ():
                pair = (Particles(positions, self.box) for positions in (values, self.data.values()))
                clusters.require_same_groups(promise, *pair)
        return verification.report("the archive and its original", figures, checks, notes)

    def _originals(self, original: Any) -> list[tuple[str, Any, tuple[float, ...] | None, Any]]:
        """Each array of the original, in the order of the archive, with its period and mask."""
        if self.kind == "field":
            field = original if isinstance(original, Field) else Field(original)
            mask = self._optional("mask")   # its own: under it, and under no other, the bits were promised
            found: list[tuple[str, Any, tuple[float, ...] | None, Any]] = [("values", field.values, None, mask)]
            return found if mask is None or field.mask is None else [*found, ("mask", field.mask, None, None)]
        if not isinstance(original, Particles):
            raise WorkbenchError(f"this archive holds particles; got {type(original).__name__} as its original")
        self._require_like(original)
        order = backend.to_host(self.permutation(original))
        riders = {"positions": original.positions, "velocities": original.velocities, "ids": original.ids}
        return [
            (name, backend.to_host(values)[order], self.box if name == "positions" else None, None)
            for name, values in riders.items()
            if name in self.arrays and values is not None
        ]

    def _require_like(self, original: Any) -> None:
        expected = (self.data.layout.shape, self.box)
        if not isinstance(original, Particles) or (tuple(original.positions.shape), original.box) != expected:
            raise WorkbenchError(f"the original must be {len(self):,} particles in {_space(self.box)}; got {original!r}")

    def _optional(self, name: str) -> np.ndarray | None:
        return self.arrays[name].values() if name in self.arrays else None

    def _rows(self, name: str, places: np.ndarray) -> np.ndarray | None:
        """Some rows of an array, decoding only the chunks they are in."""
        if name not in self.arrays:
            return None
        stored = self.arrays[name]
        step = stored.layout.chunk_shape[0]
        rest = (0,) * (len(stored.layout.shape) - 1)
        found = [chunk[places[places // step == i[0]] - i[0] * step] for i, chunk in stored.chunks(
            (number, *rest) for number in np.unique(places // step).tolist()
        )]
        return np.concatenate(found)   # places rise, so that chunk by chunk is their order

    def _particles(self, positions: np.ndarray, velocities: np.ndarray | None, ids: np.ndarray | None) -> Particles:
        return Particles(positions, self.box, velocities, ids, self.attributes.get("metadata"))

    def _field(self, values: np.ndarray, mask: np.ndarray | None) -> Field:
        spacing, name, metadata = (self.attributes.get(key) for key in ("spacing", "name", "metadata"))
        return Field(values, spacing, name, mask, metadata)

    def __repr__(self) -> str:
        layout, inner = self.data.layout, self.codec
        name = inner.codec.id if isinstance(inner, Columns) else inner.id
        shape = " x ".join(map(str, layout.shape))
        what = f"{len(self):,} particles" if self.kind == "particles" else f"field of {shape}"
        return f"Archive({what}, {layout.dtype}, {name}, {self.nbytes:,} bytes, {self.ratio:.3g}x smaller)"

    def _repr_html_(self) -> str:
        return f"<div><strong>{html.escape(repr(self))}</strong>{self.certificate._repr_html_()}</div>"


def _space(box: tuple[float, ...] | None) -> str:
    return "an open space" if box is None else f"a box of {' x '.join(f'{length:g}' for length in box)}"
