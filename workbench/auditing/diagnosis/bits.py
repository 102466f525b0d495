"""Bits that were taken for others: the order of bytes, and numbers of 32 bits in place of 64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.auditing.diagnosis.probe import Probe
from workbench.auditing.finding import FAILED, NOTE, Finding


def swapped_bytes(member: str, probe: Probe) -> Finding | None:
    """Whether the bytes of all values, in the other order, are the original."""
    if probe.raw.dtype.itemsize == 1 or not probe.varies:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        turned = probe.raw.byteswap().astype(np.float64)
        turned[~(np.abs(turned) < 1e150)] = np.nan
    known = np.isfinite(probe.original)
    near = known & (np.abs(turned - probe.original) <= 0.01 * probe.scale)
    with np.errstate(invalid="ignore"):
        before = known & (np.abs(probe.lossy - probe.original) <= 0.01 * probe.scale)
    if int(near.sum()) < 0.9 * int(known.sum()) or int(before.sum()) > 0.5 * int(known.sum()):
        return None
    words = "the bytes of every value are in the other order (big-endian in place of little-endian)"
    return Finding(FAILED, member, "byte order", words, {"share": float(near.sum() / max(known.sum(), 1))})


def narrowed(member: str, wide: np.dtype, narrow: np.dtype, holds: bool) -> Iterator[Finding]:
    """Numbers of fewer bits than those of the original: a defect, unless a promise holds with them."""
    if wide.kind != narrow.kind or narrow.itemsize >= wide.itemsize:
        return
    words, evidence = f"the values are {narrow} in place of {wide}", {"dtype": str(narrow), "original": str(wide)}
    if holds:
        yield Finding(NOTE, member, "narrower type", f"{words}; the promise holds with them", evidence)
    else:
        digits = f", and keep {np.finfo(narrow).precision} digits" if narrow.kind == "f" else ""
        yield Finding(FAILED, member, "narrower type", f"{words}{digits}", evidence)
