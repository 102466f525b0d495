"""Values in another unit: a factor, an offset, the sign; found by a straight line through (original, lossy)."""

from __future__ import annotations

import math

import numpy as np

from workbench.auditing.diagnosis.probe import Probe
from workbench.auditing.finding import FAILED, Finding

FACTORS = {
    10.0: "", 0.1: "", 1e6: "", 1e-6: "", 1.8: "as degF in place of degC",
    100.0: "as Pa in place of hPa", 0.01: "as hPa in place of Pa, or a share in place of per cent",
    1000.0: "as g in place of kg, or m in place of km", 0.001: "as kg in place of g, or km in place of m",
    86400.0: "as a day in place of a second", 1 / 86400.0: "as a second in place of a day",
    180 / math.pi: "as degrees in place of radians", math.pi / 180: "as radians in place of degrees",
    9.80665: "as geopotential in place of height", 1 / 9.80665: "as height in place of geopotential",
    3.6: "as km/h in place of m/s", 1 / 3.6: "as m/s in place of km/h",
}
OFFSETS = {273.15: "as K in place of degC", -273.15: "as degC in place of K"}


def rescaled(member: str, probe: Probe) -> Finding | None:
    """The factor and offset that explain the difference, the simplest first."""
    x, y = probe.original[probe.both], probe.lossy[probe.both]
    if not x.size or not probe.distance > 0:
        return None
    for factor, offset in _lines(x, y, probe.varies):
        if factor == 0 or (factor == 1 and offset == 0) or not math.isfinite(factor) or not math.isfinite(offset):
            continue
        left = probe.between(factor * x + offset, y) / max(abs(factor), 1e-300)
        if probe.explains(left) and _is_gross(probe, factor, offset):
            kind, words = _in_words(factor, offset)
            evidence = {"factor": factor, "offset": offset, "rms_before": probe.distance * probe.scale}
            return Finding(FAILED, member, kind, words, evidence)
    return None


def _is_gross(probe: Probe, factor: float, offset: float) -> bool:
    """Whether this is more than the bias of a rounding."""
    return abs(factor - 1) > 1e-3 or abs(offset) > 1e-3 * probe.scale


def _lines(x: np.ndarray, y: np.ndarray, varies: bool) -> list[tuple[float, float]]:
    """Lines to try: the other sign, an offset alone, a factor alone, both."""
    offset = float(np.median(y - x))
    sizes = float(np.dot(x, x))
    factor = float(np.dot(x, y)) / sizes if sizes else 0.0
    lines = [(1.0, _near(offset, OFFSETS)), (-1.0, 0.0), (_near(factor, FACTORS), 0.0)]
    if varies:
        spread = x - x.mean()
        slope = float(np.dot(spread, y - y.mean())) / float(np.dot(spread, spread))
        slope = _near(slope, FACTORS)
        lines.append((slope, float(y.mean() - slope * x.mean())))
    return lines


def _near(number: float, known: dict[float, str]) -> float:
    """A known factor or offset that is nearly this one; or this."""
    return next((one for one in known if abs(number - one) <= 1e-3 * abs(one)), number)


def _in_words(factor: float, offset: float) -> tuple[str, str]:
    if factor == -1 and offset == 0:
        return "sign", "every value has the other sign"
    if offset == 0:
        return "unit or scale", f"every value is {factor:.6g} times the original{_guess(FACTORS.get(factor, ''))}"
    if factor == 1:
        return "offset", f"every value is the original {offset:+.6g}{_guess(OFFSETS.get(offset, ''))}"
    return "unit or scale", f"every value is {factor:.6g} times the original {offset:+.6g}{_guess(FACTORS.get(factor, ''))}"


def _guess(words: str) -> str:
    return f", {words}" if words else ""
