"""The most probable cause of a difference: candidates are tried in an order, and the first that explains it is named."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from workbench.auditing.diagnosis.bits import swapped_bytes
from workbench.auditing.diagnosis.blocks import blocks
from workbench.auditing.diagnosis.moved import moved
from workbench.auditing.diagnosis.probe import Probe
from workbench.auditing.diagnosis.rescaled import rescaled
from workbench.auditing.finding import FAILED, Finding
from workbench.auditing.tally import Peak, Tally
from workbench.run.chunked_field import ChunkedField

FEW = 0.01   # of the values: what changes all of them breaks a bound more often


def causes(
    member: str, original: ChunkedField, lossy: ChunkedField, tally: Tally, allowed: float, axes: tuple[str, ...]
) -> list[Finding]:
    """The causes of a difference; errors up to `allowed` are none."""
    return [*_of_mask(member, tally), *_of_values(member, original, lossy, tally, allowed, axes)]


def _of_mask(member: str, tally: Tally) -> Iterator[Finding]:
    """Values where the original has none: a mask that is lost, or a fill value that became data."""
    if not tally.gained:
        return
    low, high = tally.filled
    evidence = {"count": tally.gained, "smallest": low, "largest": high, "first": tally.first_gained.at}
    if low == high:
        words = f"the fill value {low:.6g} is data at {tally.gained:,} places where the original has no value"
        yield Finding(FAILED, member, "fill value as data", words, evidence)
    else:
        words = f"{tally.gained:,} places without a value in the original have one: their mask is lost"
        yield Finding(FAILED, member, "mask lost", words, evidence)


def _of_values(
    member: str, original: ChunkedField, lossy: ChunkedField, tally: Tally, allowed: float, axes: tuple[str, ...]
) -> Iterator[Finding]:
    probe = Probe.of(original, lossy, axes)
    near = probe
    if not probe.whole and (place := _place(tally)) is not None:
        near = Probe.of(original, lossy, axes, place)
    cause = None
    if not tally.over or tally.over > FEW * tally.values:
        cause = swapped_bytes(member, probe) or _shifted_coordinate(member, probe) or _changed(member, probe)
    if cause is None:
        cause = blocks(member, near, allowed if math.isfinite(allowed) else 0.1 * probe.scale)
    if cause is not None:
        yield cause
    elif tally.lost:
        words = f"{tally.lost:,} values of the original are missing (NaN or masked)"
        yield Finding(FAILED, member, "values lost", words, {"count": tally.lost, "first": tally.first_lost.at})


def _changed(member: str, probe: Probe) -> Finding | None:
    """Other places or another unit, whichever leaves less of the difference."""
    places, unit = moved(member, probe), rescaled(member, probe)
    if places is None or unit is None:
        return places or unit
    left = float(places.evidence["rms_after"])
    factor, offset = float(unit.evidence["factor"]), float(unit.evidence["offset"])
    return unit if probe.between(factor * probe.original + offset, probe.lossy) * probe.scale < left else places


def _shifted_coordinate(member: str, probe: Probe) -> Finding | None:
    """Along an axis with equal steps, an offset is a shift, as of time stamps."""
    x, y = probe.original, probe.lossy
    if x.ndim != 1 or not probe.whole or len(x) < 3 or not probe.both.all():
        return None
    steps, offsets = np.diff(x), y - x
    step, offset = float(np.median(steps)), float(np.median(offsets))
    size = float(np.abs(x).max())
    even = bool((np.abs(steps - step) <= 1e-6 * abs(step) + 1e-12 * size).all())
    if step == 0 or offset == 0 or not even or not (np.abs(offsets - offset) <= 1e-6 * abs(offset) + 1e-12 * size).all():
        return None
    count = offset / step
    words = f"all values are shifted by {offset:.6g}, {count:.4g} of the steps between them"
    return Finding(FAILED, member, "coordinates shifted", words, {"offset": offset, "steps": count})


def _place(tally: Tally) -> tuple[int, ...] | None:
    """Where to look closely."""
    peaks: tuple[Peak, ...] = (tally.worst, tally.first_lost, tally.largest)
    return next((peak.at for peak in peaks if peak.at is not None), None)
