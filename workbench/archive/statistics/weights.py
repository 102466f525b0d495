"""Weights of the values of a field: an array for each of some axes, whose product counts, or one of the field's shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.archive.statistics.latitudes import latitudes
from workbench.archive.statistics.selection import axes_of, require_field
from workbench.errors import WorkbenchError, briefly
from workbench.slabs import Slices

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

WEIGHTED = ("mean", "sum", "std")


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights as arrays that broadcast to the field; the weight of a value is their product, rounded to float64."""

    factors: tuple[np.ndarray, ...]

    def at(self, place: Slices) -> np.ndarray:
        """Those of a part of the field, as an array that broadcasts to it."""
        product: np.ndarray = np.ones((1,) * len(place))
        for factor in self.factors:
            product = product * factor[tuple(
                part if size > 1 else slice(None) for part, size in zip(place, factor.shape, strict=True)
            )]
        return product


def weights_of(archive: Archive, name: str, given: Any) -> Weights | None:
    """Weights as a user gives them: by axis, as an array of the field's shape, or "area" for cosines of latitudes."""
    if given is None:
        return None
    if name not in WEIGHTED:
        raise WorkbenchError(f"the {name} takes no weights; {', '.join(WEIGHTED)} do")
    require_field(archive)
    shape = archive.data.layout.shape
    if isinstance(given, str):
        if given != "area":
            raise WorkbenchError(f'weights must be "area", arrays by axis, or one of the shape {shape}; got {given!r}')
        name_of_axis, degrees = latitudes(archive)
        given = {name_of_axis: np.cos(np.deg2rad(degrees)).clip(min=0)}
    if not isinstance(given, Mapping):
        return Weights((_checked(given, shape, "weights"),))
    factors = []
    for key, along in given.items():
        (axis,) = axes_of(archive, key)
        checked = _checked(along, (shape[axis],), f"the weights along {key!r}")
        factors.append(checked.reshape([shape[axis] if each == axis else 1 for each in range(len(shape))]))
    if not factors:
        raise WorkbenchError("weights by axis must name at least one axis; got none: leave them out")
    return Weights(tuple(factors))


def _checked(given: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    try:
        weights = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise WorkbenchError(f"{what} must be numbers; got {briefly(given)}") from None
    if weights.shape != shape:
        raise WorkbenchError(f"{what} must have the shape {shape}; got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise WorkbenchError(f"{what} must be finite and not negative; got {briefly(given)}")
    return weights
