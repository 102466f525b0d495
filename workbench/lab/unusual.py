"""Bounds and lengths that are unusual for the data of a panel, which are taken, and said aloud.

Bounds that are too large are those that a certificate would note as well. Bounds that are too small are no matter of
certificates: they cost bits but break no promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.archive.plausibility import notes_on, spread_of
from workbench.data import Field, Particles
from workbench.guarantees import Absolute, Bound
from workbench.lab.extremes import extremes
from workbench.lab.remembered import remembered


def unusual(data: Particles | Field, bound: Bound, keep: Sequence[Any] = ()) -> str:
    """What is unusual about a bound and about kept groups, in a sentence; empty if nothing is.

    >>> particles = Particles(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 40.0]], np.float32), box=48.0)
    >>> unusual(particles, Absolute(1e9))
    'the bound of positions, 1e+09, is larger than the box, 48: any positions would satisfy it'
    >>> unusual(particles, Absolute(1e-30))   # doctest: +ELLIPSIS
    'the error bound, 1e-30, is below the precision of float32 numbers, 1.9e-06 at 40: ...'
    >>> unusual(particles, Absolute(0.1))
    ''
    """
    spread = None if isinstance(data, Particles) else lambda: remembered(
        data, "spread", "", lambda: spread_of(data.values, data.mask)
    )
    return "; ".join([*_below_precision(data, bound), *notes_on(data, bound, keep, spread=spread)])


def _below_precision(data: Particles | Field, bound: Bound) -> list[str]:
    numbers = data.positions if isinstance(data, Particles) else data.values
    largest = max(map(abs, extremes(data)))
    if not isinstance(bound, Absolute) or not np.issubdtype(numbers.dtype, np.floating) or not largest < np.inf:
        return []
    precision = float(np.spacing(np.asarray(largest, numbers.dtype))) / 2
    if bound.eb >= precision:
        return []
    return [
        f"the error bound, {bound.eb:g}, is below the precision of {numbers.dtype.name} numbers, {precision:.2g} at "
        f"{largest:g}: values of this size are stored exactly"
    ]
