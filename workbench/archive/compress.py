"""`wb.compress`: from particles or a field, a bound and a codec to an archive whose promise was checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.encoding import Progress
from workbench.archive.fields import compress_field
from workbench.archive.particles import compress_particles
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
) -> Archive:
    """Compress particles or a field so that the bound holds for every value, decoded and checked before this returns.

    `codec` is a name or a codec with options; "auto" takes the built-in codec for particles and SZ3, if it is installed,
    for fields. `order="free"` lets particles come back sorted along a curve, which is much smaller; `store_permutation`
    then stores which is which. `keep` is one promise beyond the bound, or several. `velocities` bounds the error of
    velocities, which are exact otherwise; ids always are. Velocities are coded by `codec` too or, where that is one for
    positions, by `prequantised`. Arrays count as fields.

    `progress` is called with the share that is done and what is being done, and ends the work by raising. If it has a
    method `watch`, that is called with every step towards kept clusters: its number, phase, violations and loss.

    >>> import workbench as wb
    >>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    >>> archive = wb.compress(snapshot, wb.Absolute(0.01), order="free")
    >>> decoded = archive.decompress()
    >>> order = archive.permutation(snapshot)
    >>> bool(abs(decoded.positions - snapshot.positions[order]).max() <= 0.01)
    True
    """
    request = Request(bound, codec, promises(keep), order, progress, velocities, store_permutation, chunk_values)
    if isinstance(data, Particles):
        require_storable(data.metadata)
        return compress_particles(data, request)
    if velocities is not None or store_permutation or order == "free":
        raise WorkbenchError("velocities, store_permutation and order='free' are for particles; got a field")
    field = data if isinstance(data, Field) else Field(data)
    require_storable(field.metadata)
    return compress_field(field, request)
