"""Values at other places: axes swapped or turned round, and shifts along an axis, by one step or half the globe."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from workbench.auditing.diagnosis.probe import Probe
from workbench.auditing.finding import FAILED, Finding

MOST_SHIFT = 4   # beyond which a shift is looked for by correlation
NEAR = 1e-3      # standard deviations: values at other places differ by more


def moved(member: str, probe: Probe) -> Finding | None:
    """The change of places that explains the difference best, if there is one."""
    if not probe.varies or probe.distance < NEAR:
        return None
    best: tuple[float, str, str, dict[str, object]] | None = None
    for kind, words, evidence, x, y in _candidates(probe):
        distance = probe.between(x, y)
        if probe.explains(distance) and (best is None or distance < 0.5 * best[0]):
            best = distance, kind, words, evidence
    if best is None:
        return None
    distance, kind, words, evidence = best
    measured = {**evidence, "rms_before": probe.distance * probe.scale, "rms_after": distance * probe.scale}
    left = f"the rms difference falls from {measured['rms_before']:.3g} to {measured['rms_after']:.3g}"
    return Finding(FAILED, member, kind, f"{words}: {left} when that is undone", measured)


Candidate = tuple[str, str, dict[str, object], np.ndarray, np.ndarray]


def _candidates(probe: Probe) -> Iterator[Candidate]:
    """What may have happened, with both arrays as they would then agree."""
    yield from _swapped(probe)
    yield from _flipped(probe)
    yield from _shifted(probe)


def _swapped(probe: Probe) -> Iterator[Candidate]:
    shape, x = probe.original.shape, probe.original
    for order in itertools.permutations(range(len(shape))):
        if list(order) == sorted(order) or tuple(shape[axis] for axis in order) != shape:
            continue
        names = [probe.axes[axis] for axis in order if order[axis] != axis]
        words = f"the axes {' and '.join(names)} are swapped"
        yield "axes swapped", words, {"axes": names}, x.transpose(order), probe.lossy


def _flipped(probe: Probe) -> Iterator[Candidate]:
    long = [axis for axis, size in enumerate(probe.original.shape) if size > 1]
    for count in range(1, len(long) + 1):
        for axes in itertools.combinations(long, count):
            names = [probe.axes[axis] for axis in axes]
            which = f"the axis {names[0]} runs" if count == 1 else f"the axes {' and '.join(names)} run"
            yield "axis flipped", f"{which} the other way", {"axes": names}, np.flip(probe.original, axes), probe.lossy


def _shifted(probe: Probe) -> Iterator[Candidate]:
    for axis, size in enumerate(probe.original.shape):
        x, y, name = (*(np.moveaxis(one, axis, 0) for one in (probe.original, probe.lossy)), probe.axes[axis])
        for step in _steps(probe, axis):
            words = f"the values are shifted by {step:+d} step{'s' if abs(step) > 1 else ''} along {name}"
            evidence: dict[str, object] = {"axis": name, "steps": step}
            if 2 * abs(step) < size:
                first, second = (x[:-step], y[step:]) if step > 0 else (x[-step:], y[:step])
                yield "shifted", words, evidence, first, second
            yield "shifted", f"{words}, round the end", evidence, np.roll(x, step, 0), y


def _steps(probe: Probe, axis: int) -> list[int]:
    """Shifts to try: a few steps, half of a periodic axis, and the largest correlation."""
    size = probe.original.shape[axis]
    steps = {step for step in range(-MOST_SHIFT, MOST_SHIFT + 1) if step and abs(step) < size}
    if probe.whole_axes[axis] and size > 2:
        filled = [np.nan_to_num(np.moveaxis(one, axis, -1).reshape(-1, size)) for one in (probe.original, probe.lossy)]
        waves = [np.fft.rfft(one - one.mean(), axis=1) for one in filled]
        alike = np.fft.irfft((np.conj(waves[0]) * waves[1]).sum(0), n=size)
        step = int(np.argmax(alike))
        steps |= {step - size if step > size // 2 else step, size // 2} - {0}
    return sorted(steps, key=abs)
