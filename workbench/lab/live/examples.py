"""What the page shows at first: a simulated universe with its clusters kept at several bounds, and a random field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive import compress
from workbench.clusters import absolute_linking_length
from workbench.clusters.keep import KeepClusters
from workbench.codecs.curve import Lattice
from workbench.data import Field, Particles, synthetic
from workbench.data.units import unit_of_length, unit_of_values
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute

LINKED = 0.2                                        # mean spacings
KEPT = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)      # bounds at which clusters are kept, in linking lengths
FEWER = (0.05, 0.1, 0.2)                            # the same for data of others, which may be large
LEAST = 20                                          # members of a halo
MOST_VALUES, MOST_PARTICLES = 2**24, 2_000_000      # as in front/npy.js and live.js
TITLE = "Lossbench: what an error bound does"
ABOUT = (
    "Drag an error bound. What you see is computed in this page, by the kernels of Lossbench compiled to WebAssembly: "
    "nothing is installed, and nothing leaves your machine."
)


def universe(n: int = 64) -> dict[str, Any]:
    """The simulated universe."""
    snapshot = synthetic.cosmic_web(n=n)
    subject = f"{len(snapshot):,} particles of a simulation of the large-scale structure"
    return particles_example(snapshot, "A simulated universe", subject)


def random_field(size: int = 512) -> dict[str, Any]:
    """A random field whose large scales dominate, as in maps of turbulence or of the sky."""
    field = synthetic.gaussian_field((size, size), 3.0, seed=1)
    values = Field(field.values.astype(np.float32))
    subject = f"{size} by {size} values of a Gaussian random field with the power spectrum k⁻³"
    return field_example(values, "A field", subject)


def example_of(data: Particles | Field, title: str, **more: Any) -> dict[str, Any]:
    """Data of others as the page takes them; `more` goes to `particles_example` or `field_example`."""
    if isinstance(data, Particles):
        return particles_example(data, title, repr(data), kept=FEWER, **more)
    return field_example(data, title, repr(data), **more)


def field_example(field: Field, title: str, subject: str, start: float | None = None) -> dict[str, Any]:
    """A field as the page takes it, with the bound to begin with.

    >>> field_example(Field([[1.0, 2.0]]), "two", "two values")["shape"]
    [1, 2]
    """
    values, valid = backend.to_host(field.values), backend.to_host(field.valid)
    if values.ndim not in (2, 3) or values.dtype.kind != "f" or values.size > MOST_VALUES or not valid.any():
        raise WorkbenchError(
            f"a live page takes fields of two or three axes in float32 or float64, of at most {MOST_VALUES:,} values, not "
            f"all of them missing; got {field!r}: save what fits, such as np.save(\"part.npy\", field.values[0])"
        )
    return {
        "kind": "field", "title": title, "subject": subject, "values": np.where(valid, values, values.dtype.type(np.nan)),
        "shape": list(values.shape), "unit": unit_of_values(field), "start": start,
    }


def particles_example(
    particles: Particles, title: str, subject: str, *, length: float | None = None, least: int = LEAST,
    start: float | None = None, kept: Sequence[float] = KEPT,
) -> dict[str, Any]:
    """Particles as the page takes them, with the moves that keep their clusters at bounds of so many linking lengths."""
    positions = backend.to_host(particles.positions)
    if particles.dimensions != 3 or len(positions) > MOST_PARTICLES:
        raise WorkbenchError(
            f"a live page takes at most {MOST_PARTICLES:,} particles in three dimensions; got {particles!r}: take some"
        )
    length = absolute_linking_length(particles, LINKED) if length is None else length
    bare = Particles(positions, particles.box)
    return {
        "kind": "particles", "title": title, "subject": subject, "positions": positions, "length": length, "least": least,
        "box": None if bare.box is None else list(map(float, bare.box)), "unit": unit_of_length(particles.metadata),
        "start": start, "archives": [_archive(bare, share * length, length) for share in kept],
    }


def _archive(particles: Particles, bound: float, length: float) -> dict[str, Any]:
    """The size of an archive with clusters kept, and where it differs from the lattice of the bound."""
    archive = compress(particles, Absolute(bound), order="free", keep=[KeepClusters(length, unit="length")])
    found = np.empty_like(particles.positions)
    found[archive.permutation(particles)] = archive.decompress().positions
    box = None if particles.box is None else list(map(float, particles.box))
    lattice = Lattice.fitted(particles.lower.tolist(), particles.upper.tolist(), bound, found.dtype, box)
    plain = lattice.positions(lattice.keys(particles.positions), np.zeros(0, np.uint64), found.dtype)
    index = np.flatnonzero((found != plain).any(axis=1)).astype(np.int32)
    return {"bound": bound, "bytes": archive.nbytes, "index": index, "positions": found[index]}
