"""Pruning by magnitude: the smallest values of a tensor become zeros, which the built-in codec keeps exactly.

Zeros cost little there: what was coded before says how dense their rows and columns are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.arguments import share_of_one
from workbench.codecs import Codec
from workbench.codecs.prequantised import Prequantised
from workbench.errors import WorkbenchError
from workbench.propagation.weight_arrays import largest
from workbench.propagation.weights.bounding import scale_of
from workbench.propagation.weights.groups import chosen_names


def pruned_tensors(
    arrays: Mapping[str, np.ndarray], prune: float | Mapping[str, float] | None, codec: Codec
) -> dict[str, np.ndarray]:
    """The tensors that are pruned: all matrices to one share, or those that are named to shares of their own."""
    if prune is None:
        return {}
    if not isinstance(codec, Prequantised):
        raise WorkbenchError(
            f"pruned values stay zero in the built-in codec for weights only; got {codec.id}: leave codec= out"
        )
    shares: dict[str, Any] = {}
    if isinstance(prune, Mapping):
        for pattern, share in prune.items():
            shares |= dict.fromkeys(chosen_names("prune", pattern, arrays), share)
    else:
        shares = {name: prune for name, each in arrays.items() if each.ndim > 1 and scale_of(each) > 0}
    kept = {name: share_of_one(f"the share of {name!r} that is kept", share) for name, share in shares.items()}
    return {name: pruned(arrays[name], share) for name, share in kept.items()}


def pruned(values: np.ndarray, share: float) -> np.ndarray:
    """The values of which only this share, the largest, are left.

    >>> pruned(np.array([3.0, -1.0, 2.0, -4.0]), 0.5).tolist()
    [3.0, 0.0, 0.0, -4.0]
    """
    left = values.copy()
    left[~largest(np.abs(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)), share)] = 0
    return left
