"""`wb.compress`: from particles or a field, a bound and a codec to an archive whose promise was checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.choice import Speed
from workbench.archive.encoding import Progress
from workbench.archive.fields import compress_field
from workbench.archive.particles import compress_particles
from workbench.archive.plausibility import notes_on
from workbench.archive.request import Request, promises, require_storable
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound


def compress(
    data: Particles | Field | np.ndarray,
    bound: Bound,
    codec: str | Codec = "auto",
    keep: Any = (),
    order: str = "keep",
    progress: Progress | None = None,
    *,
    velocities: Bound | None = None,
    store_permutation: bool = False,
    chunk_values: int | None = None,
    speed: Speed = "small",
) -> Archive:
    """Compress particles or a field so that the bound holds for every value, decoded and checked before this returns.

    `archive.certificate.notes` names a bound or a linking length that may be in another unit than the data.

    `codec` is a name or a codec with options; "auto" takes the built-in codec for particles, and for fields of floats the
    built-in codec that makes a sample smallest, as the certificate states; with `speed="fast"` it takes `prequantised`,
    which is many times as fast and usually larger. `order="free"` sorts the
    particles along a curve: positions become much smaller, consecutive ids larger; `store_permutation` then stores the
    permutation. `keep` is one promise beyond the bound, or several. `velocities` bounds the error of velocities, which are
    exact otherwise; ids are always exact. Velocities are encoded by `codec` or, if it is only for positions, by
    `prequantised`. Arrays are treated as fields, also those of shape (N, 3): give
    `wb.Particles(array)` if they are positions. The mask of a NumPy masked array is kept, and what an array of xarray
    carries.

    `progress` is called with the completed share and the current task; an exception that it raises stops the work. If it
    has a method `watch`, that is called with every step of keeping clusters: its number, phase, violations and loss.

    >>> import workbench as wb
    >>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    >>> archive = wb.compress(snapshot, wb.Absolute(0.01), order="free")
    >>> decoded = archive.decompress()
    >>> order = archive.permutation(snapshot)
    >>> bool(abs(decoded.positions - snapshot.positions[order]).max() <= 0.01)
    True
    """
    request = Request(
        bound, codec, promises(keep), order, progress, velocities, store_permutation, chunk_values, speed=speed
    )
    if isinstance(data, Particles):
        require_storable(data.metadata)
        request = replace(request, bound=request.bound.for_data(data))
        return compress_particles(data, _noted(request, data))
    if velocities is not None or store_permutation or order == "free":
        raise WorkbenchError("velocities, store_permutation and order='free' are for particles; got a field")
    field = Field.of(data)
    require_storable(field.metadata)
    request = replace(request, bound=request.bound.for_data(field))
    return compress_field(field, _noted(request, field))


def _noted(request: Request, data: Particles | Field) -> Request:
    return replace(request, notes=notes_on(data, request.bound, request.keep, request.velocities))
