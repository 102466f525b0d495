"""The value that masked cells hold, for programs that know no mask: xarray, plotting programs, tools for NetCDF.

An archive has its mask beside the values, and the values in masked cells are kept bit for bit. They are often one number
that marks a missing value. Where no valid cell may be taken for such a number, the array states it by the attribute
`missing_value` of the CF conventions. Where all of them are NaN, nothing needs to be said. Otherwise a comment says that
the mask is needed, and programs that read the values by Zarr are warned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.backend import Array

MISSING, COMMENT = "missing_value", "comment"
NEEDS_MASK = "masked cells hold numbers: use values.where(~mask)"
WARNS = "masked_numbers"   # in the configuration of such an array


@dataclass(frozen=True)
class Hidden:
    """The range of the values in masked cells, and that of the others; None where there is none. NaN does not count."""

    masked: tuple[Any, Any] | None = None
    valid: tuple[Any, Any] | None = None

    @classmethod
    def of(cls, values: Array, mask: Array) -> Self:
        """From the decoded values of a chunk.

        >>> Hidden.of(np.array([3, -99, 5, -99]), np.array([False, True, False, True]))
        Hidden(masked=(-99, -99), valid=(3, 5))
        """
        mask = backend.namespace(values).asarray(mask)
        return cls(_range(values[mask]), _range(values[~mask]))


def attributes(chunks: Iterable[Hidden]) -> dict[str, Any]:
    """The attributes of an array whose chunks hide these values.

    >>> attributes([Hidden((-99, -99), (3, 5)), Hidden(None, (0, 2))]), attributes([Hidden(None, (0, 2))])
    ({'missing_value': -99}, {})
    """
    known = list(chunks)
    masked = [end for one in known for end in one.masked or ()]
    valid = [end for one in known for end in one.valid or ()]
    if not masked:
        return {}
    one = masked[0]
    alone = min(masked) == max(masked) and np.isfinite(one) and not (valid and min(valid) <= one <= max(valid))
    return {MISSING: one} if alone else {COMMENT: NEEDS_MASK}


def _range(values: Array) -> tuple[Any, Any] | None:
    values = values[values == values]
    return (values.min().item(), values.max().item()) if values.size else None


def masked_by_value(values: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """The mask that `attributes` state, for values whose own mask is lost: all are masked where only the mask tells.

    >>> masked_by_value(np.array([3, -99, 5]), {"missing_value": -99}), masked_by_value(np.array([3, 1]), {"comment": ""})
    (array([False,  True, False]), array([ True,  True]))
    """
    stated = attributes.get(MISSING, np.nan)
    if COMMENT in attributes or not isinstance(stated, int | float):
        return np.ones(values.shape, bool)
    with np.errstate(over="ignore"):   # a number beyond the type of the values equals none of them
        hidden: np.ndarray = values != values if stated != stated else values == stated
    return hidden
