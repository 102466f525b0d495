"""The audit of particles: their arrays one by one, in one order and one box, with what becomes of their halos."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import backend
from workbench.auditing.arrays import Audited, Pair, audited, figures_of
from workbench.auditing.call import Call
from workbench.auditing.finding import FAILED, NOTE, WARNING, Finding
from workbench.auditing.metadata import of_units
from workbench.auditing.promised import Promise
from workbench.auditing.row import BROKEN, IDENTICAL, UNPROMISED
from workbench.data import Field
from workbench.data.chunked import ChunkedParticles, joined
from workbench.data.ids import common
from workbench.data.particles import Particles
from workbench.errors import WorkbenchError
from workbench.run.chunked_field import ChunkedField

AXES = "xyz"


@dataclass(frozen=True, eq=False)
class Sets:
    """Two sets of the same particles in one order, and what had to be done for that."""

    original: Particles
    lossy: Particles
    findings: list[Finding]


def audited_particles(
    call: Call, name: str, original: Any, lossy: Any, promise: Callable[[str, Any], Promise | None], order: Any = None
) -> list[Audited]:
    """The rows and findings of all arrays; `promise` says what is promised of each, by its name."""
    first: Particles = joined(original)
    second = _as_particles(lossy, first)
    prefix = "" if name == "particles" else f"{name}/"
    if len(first) != len(second) or first.dimensions != second.dimensions:
        return _of_counts(call, prefix, first, second, promise)
    sets = _matched(f"{prefix}positions", first, second, order)
    bare = not isinstance(lossy, Particles | ChunkedParticles)
    found, findings = [], [*sets.findings, *(() if bare else of_units(f"{prefix}positions", sets.original, sets.lossy))]
    arrays, others = _arrays(sets.original), _arrays(sets.lossy)
    arrays, others = _with_masses(arrays, others), _with_masses(others, arrays)
    for array, values in arrays.items():
        own = f"{prefix}{array}"
        if not call.wants(own):
            continue
        if array not in others:
            findings.append(Finding(FAILED, own, "missing member", f"the lossy file lacks {array}"))
            continue
        period = sets.original.box if array == "positions" else None
        pair = Pair(own, _field(array, values), _field(array, others[array]), promise(array, values), False, period)
        row, about = audited(call, pair)
        if array == "positions":
            about += _swapped(own, sets) if row.over or row.outcome == UNPROMISED else []
            if row.outcome != IDENTICAL:
                row = replace(row, **figures_of(call, sets.original, sets.lossy, call.quick))
        found.append((row, about))
    if not found:
        if lacking := [finding.member for finding in findings if finding.kind == "missing member"]:
            raise WorkbenchError(f"the lossy file lacks {', '.join(lacking)}: nothing is left to compare")
        return found
    row, about = found[0]
    return [(row, findings + about), *found[1:]]


def _as_particles(given: Any, like: Particles) -> Particles:
    """The other side: particles, or an array of positions without more."""
    if isinstance(given, Particles | ChunkedParticles):
        found: Particles = joined(given)
        return found
    field = ChunkedField.of(given)
    if len(field.shape) != 2:
        raise WorkbenchError(f"the lossy side of particles must be particles, or positions of shape (N, 3); got {field!r}")
    values = np.asarray(field.part(tuple(slice(0, size) for size in field.shape)).values)
    return Particles.wrapped(values, like.box) if like.box is not None else Particles(values)


def _arrays(particles: Particles) -> dict[str, np.ndarray]:
    """All arrays by name; one mass for all is an array of one."""
    named = {"positions": particles.positions, **particles.companions, **particles.columns}
    masses = particles.masses
    if masses is not None:
        named["masses"] = np.atleast_1d(masses) if np.ndim(masses) == 0 else masses
    return {name: backend.to_host(array) for name, array in named.items() if array is not None and np.ndim(array)}


def _with_masses(arrays: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays with a mass for each particle, where the other side has one for each."""
    if "masses" not in arrays or "masses" not in others or len(arrays["masses"]) > 1:
        return arrays
    return {**arrays, "masses": np.broadcast_to(arrays["masses"], others["masses"].shape)}


def _field(name: str, values: np.ndarray) -> Field:
    numbers = values.astype(np.uint8) if values.dtype == bool else values
    axes = ["particle", "axis"][: numbers.ndim]
    return Field(numbers, name=name, metadata={"dimensions": axes} if len(axes) == numbers.ndim else {})


def _matched(name: str, original: Particles, lossy: Particles, order: Any) -> Sets:
    """The lossy particles in the order and the box of the original."""
    findings: list[Finding] = []
    if order is not None:
        lossy = lossy.select(np.argsort(np.asarray(order)))
        findings.append(Finding(NOTE, name, "order", "the particles are in another order, as the archive states"))
    elif original.ids is not None and lossy.ids is not None:
        ids, others = (backend.to_host(one.ids) for one in (original, lossy))
        if not np.array_equal(ids, others):
            lossy = _by_ids(name, original, lossy, findings)
    if original.box != lossy.box:
        lossy = _in_box(name, original, lossy, findings)
    if not findings and original.ids is None and _is_reordered(original, lossy):
        words = "the particles are in another order, and have no ids that tell which is which"
        findings.append(Finding(FAILED, name, "another order", words))
    return Sets(original, lossy, findings)


def _by_ids(name: str, original: Particles, lossy: Particles, findings: list[Finding]) -> Particles:
    """The lossy particles by the ids of the original."""
    try:
        places, others = common(original.ids, lossy.ids)
    except WorkbenchError as error:   # ids that are not unique
        findings.append(Finding(WARNING, name, "ids", f"the ids do not tell the particles apart: {error}"))
        return lossy
    if len(places) < len(original):
        words = f"{len(original) - len(places):,} of {len(original):,} ids are not in the lossy file"
        findings.append(Finding(FAILED, name, "ids differ", words, {"missing": len(original) - len(places)}))
        return lossy
    order = np.empty(len(original), np.int64)
    order[places] = others
    words = "the particles are in another order; they are compared by their ids"
    findings.append(Finding(NOTE, name, "another order", words))
    return lossy.select(order)


def _in_box(name: str, original: Particles, lossy: Particles, findings: list[Finding]) -> Particles:
    """The lossy particles in the box of the original; another box is a finding."""
    own, other = original.box, lossy.box
    if own is None:
        words = f"the lossy file has a box, {_lengths(other)}, and the original none"
        findings.append(Finding(WARNING, name, "box", words))
        return Particles(lossy.positions, None, lossy.velocities, lossy.ids, lossy.metadata, lossy.masses, lossy.columns)
    if other is not None and not np.allclose(own, other, rtol=1e-5, atol=0):
        factors = np.asarray(other) / np.asarray(own)
        alike = np.allclose(factors, factors[0], rtol=1e-5, atol=0)
        scaled = f": {factors[0]:.6g} times, as in another unit" if alike else ""
        words = f"the box is {_lengths(other)} in place of {_lengths(own)}{scaled}"
        findings.append(Finding(FAILED, name, "box", words, {"original": list(own), "lossy": list(other)}))
    elif other is None:
        findings.append(Finding(WARNING, name, "box lost", f"the lossy file has no box; the original has {_lengths(own)}"))
    positions = backend.to_host(lossy.positions)
    outside = int(((positions < 0) | (positions >= np.asarray(own))).any(axis=1).sum())
    if outside and other is None:
        words = f"{outside:,} particles are outside the box: their periodic images inside are compared"
        findings.append(Finding(WARNING, name, "outside the box", words, {"count": outside}))
    return Particles.wrapped(positions, own, lossy.velocities, lossy.ids, lossy.metadata, lossy.masses, lossy.columns)


def _lengths(box: Any) -> str:
    return " x ".join(f"{length:.6g}" for length in box)


def _is_reordered(original: Particles, lossy: Particles) -> bool:
    """Whether the sorted coordinates agree far better than those in order."""
    x, y = (np.asarray(backend.to_host(one.positions), np.float64) for one in (original, lossy))
    near = np.abs(np.sort(x, axis=0) - np.sort(y, axis=0)).mean()
    return bool(near < 0.01 * np.abs(x - y).mean())


def _swapped(name: str, sets: Sets) -> list[Finding]:
    """Whether axes of the positions are swapped."""
    x, y = (np.asarray(one.positions, np.float64) for one in (sets.original, sets.lossy))
    before = np.abs(x - y).mean()
    for order in itertools.permutations(range(x.shape[1])):
        if list(order) != sorted(order) and np.abs(x[:, order] - y).mean() < 0.05 * before:
            names = "".join(AXES[axis] for axis in order)
            words = f"the axes of the positions are swapped: {names} in place of {AXES[: len(order)]}"
            return [Finding(FAILED, name, "axes swapped", words, {"order": list(order)})]
    return []


def _of_counts(
    call: Call, prefix: str, original: Particles, lossy: Particles, promise: Callable[[str, Any], Promise | None]
) -> list[Audited]:
    """Sets of different numbers or of another number of axes: of the first, the positions that both have are compared."""
    name = f"{prefix}positions"
    x, y = (backend.to_host(one.positions) for one in (original, lossy))
    shorter = min(len(x), len(y))
    pair = Pair(name, _field("positions", x[:shorter]), _field("positions", y[:shorter]), promise("positions", x), False)
    row, findings = audited(call, pair)
    if len(x) != len(y):
        kind = "truncated" if len(y) < len(x) else "longer"
        words = f"{len(y):,} particles in place of {len(x):,}: nothing more is compared"
        findings = [Finding(FAILED, name, kind, words, {"original": len(x), "lossy": len(y)})]
    return [(replace(row, outcome=BROKEN, shape=tuple(x.shape)), findings)]
