"""The undamaged part of an archive: all values outside damaged chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.archive.frame import Damaged, distinct
from workbench.archive.missing import masked_by_value
from workbench.archive.reading import StoredArray
from workbench.errors import GuaranteeBroken


def salvage(
    arrays: Mapping[str, StoredArray], axes: int, main: str
) -> tuple[dict[str, np.ndarray], np.ndarray, list[Damaged]]:
    """The values of arrays that share their first `axes` axes, the places where something is lost, and the damage.

    Arrays that are lost completely are left out; losing all of the array `main` is an error.
    """
    found = {name: stored.salvaged() for name, stored in arrays.items()}
    damage = distinct(damaged for _, lost in found.values() for _, damaged in lost)
    values = {name: whole for name, (whole, _) in found.items() if whole is not None}
    if main not in values:
        raise _nothing_left(damage)
    gone = np.zeros(values[main].shape[:axes], bool)
    for name in values:
        for slices, _ in found[name][1]:
            gone[slices[:axes]] = True
    if gone.all():
        raise _nothing_left(damage)
    return values, gone, damage


def salvage_mask(mask: StoredArray, values: np.ndarray, attributes: Mapping[str, Any]) -> tuple[np.ndarray, list[Damaged]]:
    """Which of the values are masked, and the damage of their mask.

    Where the mask is lost, values are masked that hold the number for missing values; if there is none, all of them.
    """
    whole, lost = mask.salvaged()
    if whole is None:
        return masked_by_value(values, attributes), distinct(damaged for _, damaged in lost)
    for slices, _ in lost:
        whole[slices] = masked_by_value(values[slices], attributes)
    return whole, distinct(damaged for _, damaged in lost)


def _nothing_left(damage: list[Damaged]) -> GuaranteeBroken:
    first = f"chunk {damage[0].where} is damaged: {damage[0].reason}"   # no others can be read
    return GuaranteeBroken(f"nothing can be salvaged; the first of {len(damage):,} damaged chunks: {first}")
