"""What the page shows at first: a simulated universe with its clusters kept at several bounds, and a random field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.archive import compress
from workbench.clusters import absolute_linking_length
from workbench.clusters.keep import KeepClusters
from workbench.codecs.curve import Lattice
from workbench.data import Field, Particles, synthetic
from workbench.data.units import unit_of_length, unit_of_values
from workbench.guarantees import Absolute

LINKED = 0.2                                        # mean spacings
KEPT = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)      # bounds at which clusters are kept, in linking lengths
TITLE = "Lossbench: what an error bound does"


def universe(n: int = 64) -> dict[str, Any]:
    """The simulated universe."""
    snapshot = synthetic.cosmic_web(n=n)
    return particles_example(snapshot, "A simulated universe", f"{len(snapshot):,} particles of a simulation of structure formation")


def random_field(size: int = 512) -> dict[str, Any]:
    """A random field whose large scales dominate, as in maps of turbulence or of the sky."""
    field = synthetic.gaussian_field((size, size), 3.0, seed=1)
    values = Field(field.values.astype(np.float32))
    return field_example(values, "A field", f"{size} × {size} values of a Gaussian random field with the power spectrum k⁻³")


def field_example(field: Field, title: str, subject: str) -> dict[str, Any]:
    """A field as the page takes it."""
    values = np.where(field.valid, field.values, np.nan).astype(field.values.dtype)
    return {
        "kind": "field", "title": title, "subject": subject, "values": values, "shape": list(values.shape),
        "unit": unit_of_values(field),
    }


def particles_example(
    particles: Particles, title: str, subject: str, linked: float = LINKED, kept: Sequence[float] = KEPT
) -> dict[str, Any]:
    """Particles as the page takes them, with the moves that keep their clusters at bounds of so many linking lengths."""
    bare, length = Particles(particles.positions, particles.box), absolute_linking_length(particles, linked)
    return {
        "kind": "particles", "title": title, "subject": subject, "positions": bare.positions, "length": length,
        "box": None if bare.box is None else list(map(float, bare.box)), "unit": unit_of_length(particles.metadata),
        "rungs": [_rung(bare, share * length, linked) for share in kept],
    }


def _rung(particles: Particles, bound: float, linked: float) -> dict[str, Any]:
    """The size of an archive with clusters kept, and where it differs from the lattice of the bound."""
    archive = compress(particles, Absolute(bound), order="free", keep=[KeepClusters(linked)])
    found = np.empty_like(particles.positions)
    found[archive.permutation(particles)] = archive.decompress().positions
    box = None if particles.box is None else list(map(float, particles.box))
    lattice = Lattice.fitted(particles.lower.tolist(), particles.upper.tolist(), bound, found.dtype, box)
    plain = lattice.positions(lattice.keys(particles.positions), np.zeros(0, np.uint64), found.dtype)
    index = np.flatnonzero((found != plain).any(axis=1)).astype(np.int32)
    return {"bound": bound, "bytes": archive.nbytes, "index": index, "positions": found[index]}
