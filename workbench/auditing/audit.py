"""`wb.audit`: a lossy file of any origin against its original, member by member.

Each member has a promise, by a rule of the caller or by what the lossy file states, which is checked for every value.
Figures are those of `wb.compare`. Where something is wrong, its most probable cause is named. An audit passes only if every
member is identical or keeps a promise, so that a script may delete the original after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench import backend
from workbench.archive.archive import Archive
from workbench.archive.collection.sources import is_files
from workbench.archive.earlier_loss import largest_of
from workbench.auditing.arrays import Audited, Pair, audited
from workbench.auditing.call import Call
from workbench.auditing.metadata import of_metadata, of_sides
from workbench.auditing.pairing import paired
from workbench.auditing.particles import audited_particles
from workbench.auditing.picture import error_picture
from workbench.auditing.promised import Promise, Statements, archive_of, of_archive, ruled, stated
from workbench.auditing.result import Audit
from workbench.auditing.row import Row
from workbench.auditing.rules import bound_of_array, bounds_of, require_rules
from workbench.auditing.sides import Side, opened_side
from workbench.auditing.stored import stored_bytes
from workbench.auditing.tolerances import exceeded, tolerances_of
from workbench.data import Field
from workbench.data.chunked import ChunkedParticles, joined
from workbench.data.particles import Particles
from workbench.data.readers.address import is_address
from workbench.data.readers.paths import is_several, listed
from workbench.errors import WorkbenchError
from workbench.progress import Progress
from workbench.run.chunked_field import ChunkedField, grid
from workbench.run.submission import submittable


@submittable
def audit(
    original: Any,
    lossy: Any,
    bounds: Any = None,
    *,
    tolerance: Mapping[str, Any] | None = None,
    only: Iterable[str] = (),
    quick: bool = False,
    linking_length: float = 0.2,
    client: Any = None,
    scratch: str | Path | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Whether a lossy copy keeps what was promised of it, and what it does to the data; `Audit.passed` says yes or no.

    Both sides are whatever `wb.compress` and `wb.open` take, in any two formats: paths, datasets, arrays, particles,
    archives. Large arrays are read part by part; particles are read whole.

    `bounds` is a bound, or rules as for `wb.compress`; without one for a member, what the lossy file states is the promise:
    digits and bits of NetCDF and CF 1.12, filters of HDF5 and SWIFT, codecs of Zarr, packing, GRIB, xtc, certificates of
    archives. A bound alone is for positions, where the members are particles. `tolerance` limits figures, as in
    `{"spectrum_worst": 0.01, "T": {"ssim": 0.99}}`; it is no promise about values. `only` names the members to audit.
    `quick` leaves out spectra and halos, which `linking_length` (in mean spacings) is for.

    >>> import numpy as np
    >>> import workbench as wb
    >>> wave = np.sin(np.linspace(0, 20, 1000))
    >>> found = audit({"T": wave}, {"T": np.round(wave, 2)}, {"T": wb.Absolute(0.004)})
    >>> found.passed, found.findings[0].kind
    (False, 'bound broken')
    >>> audit({"T": wave}, {"T": np.round(wave, 2)}, {"T": wb.Absolute(0.005001)}).passed
    True
    """
    limits = tolerances_of(tolerance)
    _require_two(original, lossy)
    with ExitStack() as stack:
        sides = [stack.enter_context(opened_side(one, which)) for one, which in ((original, "original"), (lossy, "lossy"))]
        first, second = sides
        pairs, missing, extra = paired(first, second, only)
        if first.holds_particles:
            require_rules(bounds, _names_of_arrays(first))
        call = Call(
            first, second, bounds_of(bounds, first), (Statements(first), Statements(second)), quick, client, scratch,
            linking_length, tuple([only] if isinstance(only, str) else only), progress,
        )
        audits: list[Audited] = []
        for number, (name, other) in enumerate(pairs):
            within = None if progress is None else _share(progress, name, number, len(pairs))
            audits += _of_pair(replace(call, progress=within), name, other, bounds)
        findings = [*of_sides(first, second, missing, extra, bool(call.only))]
        findings += [one for _, about in audits for one in about]
        seen = [*(row.name for row, _ in audits), *(one.member for one in findings)]
        if unknown := [one for one in call.only if not any(replace(call, only=(one,)).wants(name) for name in seen)]:
            has = f": particles may have {', '.join(map(repr, _names_of_arrays(first)))}" if first.holds_particles else ""
            raise WorkbenchError(f"only must name arrays of {first.name}; got {', '.join(unknown)}{has}")
        rows = _with_bytes([row for row, _ in audits], first, second, dict(pairs))
        findings += exceeded(limits, rows)
        picture = error_picture(call, dict(pairs), rows)
        return Audit(
            first.name, second.name, tuple(rows), tuple(findings), first.nbytes, second.nbytes, picture,
            tuple(map(str, limits)),
        )


def _require_two(original: Any, lossy: Any) -> None:
    """Refuse one thing on both sides: it is identical to itself, and nothing would be known of the lossy file."""
    own, other = (_files(one) for one in (original, lossy))
    twice = next((one for one in own for same in other if os.path.samefile(one, same)), None)
    if twice is not None or original is lossy or (is_address(original) and original == lossy):
        raise WorkbenchError(f"original and lossy must be two; got {twice or 'the same object'} twice")


def _files(given: Any) -> list[Path]:
    """The files and folders that are named, as far as they exist."""
    if not is_files(given) or is_address(given):
        return []
    paths = listed(given) if is_several(given) else [given]
    return [path for one in paths if (path := Path(one).expanduser()).exists()]


def _of_pair(call: Call, name: str, other: str, rules: Any) -> list[Audited]:
    """The audit of two members."""
    original, lossy = call.original.members[name], call.lossy.members[other]
    try:
        if isinstance(original, Particles | ChunkedParticles):
            promise = _of_arrays(call, name, other, lossy, rules)
            return audited_particles(call, name, original, lossy, promise, _order(call, original))
        if isinstance(lossy, Particles | ChunkedParticles):
            lossy = Field(joined(lossy).positions)
        has_figures = name not in call.original.coordinates
        pair = Pair(name, original, lossy, _promise(call, name, other, original, lossy), has_figures)
        row, findings = audited(call, pair)
    except WorkbenchError as error:
        raise WorkbenchError(f"{name!r}: {error}") from error
    return [(row, [*findings, *of_metadata(name, original, lossy, call.lossy.bare)])]


def _promise(call: Call, name: str, other: str, original: Any, lossy: Any) -> Promise | None:
    """What is promised of an array of a dataset."""
    if (bound := call.bounds.get(name)) is not None:
        return ruled(bound.for_data(getattr(original, "described", original)))
    if (archive := archive_of(call.lossy, other)) is not None:
        return of_archive(archive, archive.data.layout.name)
    own, others = call.statements[0].of(name, original), call.statements[1].of(other, lossy)
    return stated(own, others, lambda: _largest(original))


def _of_arrays(call: Call, name: str, other: str, lossy: Any, rules: Any) -> Any:
    """What is promised of the arrays of particles, by their names."""
    def promise(array: str, values: Any) -> Promise | None:
        whole = array if name == "particles" else f"{name}/{array}"
        if (bound := bound_of_array(rules, whole, array, values.dtype.kind == "f")) is not None:
            return ruled(bound.for_data(call.original.members[name]) if array == "positions" else bound)
        if (archive := archive_of(call.lossy, other)) is not None:
            return of_archive(archive, array)
        return stated([], call.statements[1].of(other, lossy, array), lambda: largest_of(values))

    return promise


def _order(call: Call, original: Any) -> Any:
    """The permutation of an archive whose particles are in another order."""
    archive = call.lossy.archive
    if not isinstance(archive, Archive) or archive.kind != "particles" or not archive.reordered:
        return None
    return archive.permutation(joined(original))


def _largest(member: Any) -> float:
    """The size of the largest value, read part by part."""
    field = ChunkedField.of(member)
    return max(largest_of(backend.to_host(field.part(place).values)) for place in grid(field.shape, field.chunk_shape))


def _names_of_arrays(side: Side) -> list[str]:
    first = side.members[next(iter(side.members))]
    return ["positions", "velocities", "ids", "masses", *getattr(first, "columns", ())]


def _with_bytes(rows: list[Row], original: Side, lossy: Side, names: Mapping[str, str]) -> list[Row]:
    """The rows with the bytes of their arrays on both sides, where the files say them."""
    own, other = stored_bytes(original), stored_bytes(lossy)
    return [
        replace(row, nbytes=own.get(row.name), lossy_nbytes=other.get(names.get(row.name, row.name))) for row in rows
    ]


def _share(progress: Progress, name: str, number: int, count: int) -> Progress:
    """The progress of one member as that of all."""
    return lambda share, text: progress((number + (share or 0.0)) / count, f"{name}: {text}")
