"""Blocks that are wrong while the rest is right: a missing chunk, a repeated step, clipped values, numbers that wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.auditing.diagnosis.probe import Probe
from workbench.auditing.finding import FAILED, Finding

LEAST = 4          # values that are no accident
SHARE = 0.95       # of the wrong values that must have the same cause


def blocks(member: str, probe: Probe, allowed: float) -> Finding | None:
    """What the values beyond `allowed` have in common, if anything."""
    finite = np.isfinite(probe.original)
    with np.errstate(invalid="ignore"):
        wrong = finite & ~(np.abs(probe.lossy - probe.original) <= allowed)
    if int(wrong.sum()) < LEAST:
        return None
    for look in (_repeated, _blank, _wrapped):
        if (found := look(member, probe, wrong, allowed)) is not None:
            return found
    return None


def _blank(member: str, probe: Probe, wrong: np.ndarray, allowed: float) -> Finding | None:
    """One value, or none, in place of many: a missing chunk where it fills a block, clipping where it is an extreme."""
    seen = probe.lossy[wrong]
    missing = np.isnan(seen)
    if missing.mean() >= SHARE:
        return _block(member, probe, wrong, "missing or infinite", None)
    values, counts = np.unique(seen[~missing], return_counts=True)
    value, count = float(values[counts.argmax()]), int(counts.max())
    if count < SHARE * len(seen) or len(np.unique(probe.original[wrong])) < 2:
        return None
    beyond = probe.original[wrong & (probe.lossy == value)]
    for end, clipped in (("larger", beyond.min() >= value == np.nanmax(probe.lossy)),
                         ("smaller", beyond.max() <= value == np.nanmin(probe.lossy))):
        if clipped and value != 0:
            words = f"{count:,} values that are {end} in the original are {value:.6g}: they are clipped"
            return Finding(FAILED, member, "clipped", words, {"value": value, "count": count})
    return _block(member, probe, wrong, f"{value:.6g}", value)


def _block(member: str, probe: Probe, wrong: np.ndarray, what: str, value: float | None) -> Finding:
    box = _box(wrong)
    full = float(wrong[box].mean())
    span = _span(probe, box)
    count = int(wrong.sum())
    evidence = {"value": value, "count": count, "block": span, "share_of_block": full}
    if full < 0.5:
        words = f"{count:,} values are {what} where the original has others, between {_place(span)}"
        return Finding(FAILED, member, "values lost", words, evidence)
    words = f"{count:,} values in the block {_place(span)} are {what}, as of a chunk that is missing"
    return Finding(FAILED, member, "missing chunk", words, evidence)


def _repeated(member: str, probe: Probe, wrong: np.ndarray, allowed: float) -> Finding | None:
    """A step along an axis that repeats the one before or after it."""
    for axis, size in enumerate(probe.original.shape):
        others = tuple(other for other in range(wrong.ndim) if other != axis)
        bad = np.flatnonzero(wrong.any(axis=others))
        if not 1 <= len(bad) < max(size // 2, 2):
            continue
        x, y, bad_there = (np.moveaxis(one, axis, 0) for one in (probe.original, probe.lossy, wrong))
        if bad_there[bad].mean() < 0.5:
            continue
        for step in (-1, 1):
            sources = bad + step
            if sources.min() < 0 or sources.max() >= size or x[0].size < 2:
                continue
            with np.errstate(invalid="ignore"):
                same = np.abs(y[bad] - x[sources]) <= allowed
            if (same | (np.isnan(y[bad]) & np.isnan(x[sources]))).mean() > SHARE:
                return _repeat(member, probe, axis, bad, step)
    return None


def _repeat(member: str, probe: Probe, axis: int, bad: np.ndarray, step: int) -> Finding:
    name, first = probe.axes[axis], int(probe.places[axis][bad[0]])
    words = f"step {first} along {name} repeats step {first + step} of the original"
    more = f", and {len(bad) - 1} others do likewise" if len(bad) > 1 else ""
    return Finding(FAILED, member, "repeated step", words + more, {"axis": name, "step": first, "repeats": first + step})


def _wrapped(member: str, probe: Probe, wrong: np.ndarray, allowed: float) -> Finding | None:
    """Differences that are all the same number, or its negative: whole numbers that wrapped, or a box."""
    moved = np.abs(probe.lossy - probe.original)[wrong]
    if not np.isfinite(moved).all():
        return None
    size = float(np.median(moved))
    if size <= 10 * allowed or (np.abs(moved - size) <= max(2 * allowed, 1e-6 * size)).mean() < SHARE:
        return None
    words = f"{len(moved):,} values are wrong by {size:.6g} each, as where packed integers or a periodic axis wrap"
    return Finding(FAILED, member, "wrapped", words, {"size": size, "count": len(moved)})


def _box(wrong: np.ndarray) -> tuple[slice, ...]:
    """The smallest block that has all of these values."""
    found = []
    for axis in range(wrong.ndim):
        at = np.flatnonzero(wrong.any(axis=tuple(other for other in range(wrong.ndim) if other != axis)))
        found.append(slice(int(at[0]), int(at[-1]) + 1))
    return tuple(found)


def _span(probe: Probe, box: tuple[slice, ...]) -> dict[str, list[int]]:
    """A block by the names of axes, as indices in the whole array."""
    places: dict[str, Any] = {}
    for name, at, part in zip(probe.axes, probe.places, box, strict=True):
        places[name] = [int(at[part.start]), int(at[part.stop - 1]) + 1]
    return places


def _place(span: dict[str, list[int]]) -> str:
    return ", ".join(f"{name} {low}:{high}" for name, (low, high) in span.items())
