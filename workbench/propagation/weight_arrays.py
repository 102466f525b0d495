"""The arrays of weights that chips hold and reducers change: finite floating-point numbers, in double precision."""

from __future__ import annotations

import math

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.perturbation import Changed, Perturbation


def require_floats(perturbation: Perturbation, values: Array) -> None:
    """Refuse weights that are no real floating-point numbers, or none at all."""
    kind = type(perturbation).__name__
    if not values.size:
        raise WorkbenchError(f"{kind} needs at least one weight at {perturbation.site!r}; got shape {values.shape}")
    if values.dtype.kind != "f":
        raise WorkbenchError(f"{kind} needs floating-point weights at {perturbation.site!r}; got {values.dtype}")


def finite_weights(perturbation: Perturbation, values: Array) -> np.ndarray:
    """The weights as float64 on the host, which must be finite."""
    require_floats(perturbation, values)
    weights = backend.to_host(values).astype(np.float64)
    if not np.isfinite(weights).all():
        kind = type(perturbation).__name__
        raise WorkbenchError(f"{kind} needs finite weights at {perturbation.site!r}; got NaN or infinity there")
    return weights


def changed_weights(values: Array, weights: np.ndarray, note: dict[str, object]) -> Changed:
    """The weights in the type and on the machine of the values; equal ones keep their bits, zeros their sign."""
    xp = backend.namespace(values)
    before = backend.to_host(values)
    with np.errstate(over="ignore"):
        after = weights.astype(values.dtype).reshape(values.shape)
    where = np.flatnonzero(after != before)
    copy = values.copy()
    copy.reshape(-1)[xp.asarray(where)] = xp.asarray(after.reshape(-1)[where])
    return Changed(copy, xp.asarray(where), ({**note, "values_changed": len(where)},))


def largest(sizes: np.ndarray, share: float) -> np.ndarray:
    """Which of these are the largest share: pruning by magnitude. Of equal ones the first are, and NaN before all others.

    >>> largest(np.array([3.0, 1.0, 2.0, 2.0]), 0.5).tolist()
    [True, False, True, False]
    """
    kept = np.zeros(sizes.size, bool)
    order = np.argsort(-np.where(np.isnan(sizes), np.inf, sizes).reshape(-1), kind="stable")
    kept[order[: round(share * sizes.size)]] = True
    return kept.reshape(sizes.shape)


def entropy_of(share: float) -> float:
    """The bits of a yes or no with this probability.

    >>> entropy_of(0.5), entropy_of(0.0), round(entropy_of(0.75), 3)
    (1.0, 0.0, 0.811)
    """
    return sum(part * math.log2(1 / part) for part in (share, 1 - share) if part > 0)
