"""Ids of particles, by which those of one set are found in another one.

Ids are integers of any type and sign, and each names one particle. Those of two types are compared exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench import backend, ordering
from workbench.errors import WorkbenchError, briefly


def row_of_ids(given: Any, where: str) -> np.ndarray:
    """Ids as a row of integers on the host, at least one; `where` says whose they are.

    >>> row_of_ids([7, 3], "step 0").tolist()
    [7, 3]
    """
    try:
        ids = np.asarray(backend.to_host(given) if backend.on_device(given) else given)
    except ValueError:
        raise WorkbenchError(f"the ids of {where} must be a row of integers; got {briefly(given)}") from None
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or not len(ids):
        raise WorkbenchError(f"the ids of {where} must be a row of integers; got {ids.dtype} of shape {ids.shape}")
    return ids


def are_rising(ids: np.ndarray) -> bool:
    """Whether each of these ids is larger than the one before, so that none occurs twice."""
    return bool((ids[1:] > ids[:-1]).all())


def require_distinct(ids: np.ndarray, where: str) -> None:
    """Refuse ids of which two are the same: they could not tell particles apart.

    >>> require_distinct(np.array([7, 3]), "step 0")
    """
    if are_rising(ids) or are_rising(rising := np.sort(ids)):
        return
    twice = rising[1:][rising[1:] == rising[:-1]]
    raise WorkbenchError(
        f"ids must name each particle once; {where} has id {twice[0]} twice, and {len(twice):,} repeated ids in all: give "
        "other ids, or none if the order tells which particle is which"
    )


def common(
    first: Any, second: Any, sets: tuple[str, str] = ("the first set", "the second set")
) -> tuple[np.ndarray, np.ndarray]:
    """Where the particles that both sets have are in either, by rising id; ids must name each particle of a set once.

    >>> [place.tolist() for place in common([7, 3, 5], [5, 9, 7])]
    [[2, 0], [0, 2]]
    """
    ids = [row_of_ids(given, where) for given, where in zip((first, second), sets, strict=True)]
    low = min(int(one.min()) for one in ids)
    bits = (max(int(one.max()) for one in ids) - low).bit_length()
    if bits > 64:
        raise WorkbenchError(f"ids must span less than 2^64; got ids from {low} on that span {bits} bits")
    (key, places), (other, others) = (_sorted(one, where, low, bits) for one, where in zip(ids, sets, strict=True))
    if np.array_equal(key, other):
        return places, others
    place = np.minimum(np.searchsorted(key, other), len(key) - 1)
    there = np.flatnonzero(key[place] == other)
    return places[place[there]], others[there]


def _sorted(ids: np.ndarray, where: str, low: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids less the lowest one, rising, and their places."""
    key = ids.astype(np.uint64) - np.uint64(low % 2**64)   # modulo 2^64, so that it is right for negative ids
    order = ordering.sort_by_key(key, bits)
    if not are_rising(key):
        require_distinct(ids, where)
    return key, order
