"""Masses of particles: one for each, or one number where all have the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.backend import Array
from workbench.data.taking import as_array
from workbench.errors import WorkbenchError

Masses = Array | float


def checked_masses(given: Any, count: int) -> Masses:
    """Masses of so many particles, or the one that all have; refused unless they are finite and not negative.

    >>> checked_masses([1, 2.5], 2).tolist(), checked_masses(3, 2)
    ([1.0, 2.5], 3.0)
    """
    masses = as_array("masses", given)
    if masses.shape not in ((), (count,)) or masses.dtype.kind not in "fiu":
        got = f"{masses.dtype} of shape {masses.shape}"
        raise WorkbenchError(f"masses must be numbers of shape ({count},), or one number for all; got {got}")
    if not (bool((masses >= 0).all()) and bool((masses < np.inf).all())):   # neither holds of NaN
        raise WorkbenchError(f"masses must be finite and not negative; got {masses.min()} to {masses.max()}")
    if masses.shape == ():
        return float(masses)
    return masses if masses.dtype.kind == "f" and masses.dtype.itemsize in (4, 8) else masses.astype(np.float64)
