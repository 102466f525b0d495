"""A partition as stored in a certificate: one label for every particle, and a fingerprint of all labels.

Labels are the smallest particle index of each group, so equal partitions have equal labels, and equal fingerprints,
wherever they were computed. Groups too small to count have no label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.groups import Groups
from workbench.ordering import stored_index

TOO_SMALL = -1

PREDICATE = (
    "two particles are friends when d*d <= b*b: float64, nearest periodic image, squares added axis by axis, no fused "
    "multiply-add"
)


def kept_labels(groups: Groups, min_members: int = 1) -> Array:
    """The label of every particle (int64) in a group of at least `min_members` members; TOO_SMALL for all others.

    >>> kept_labels(Groups.from_labels([0, 0, 2], 0.1), min_members=2).tolist()
    [0, 0, -1]
    """
    xp = backend.namespace(groups.labels)
    if min_members == 1:
        return groups.labels
    members = xp.bincount(groups.labels, minlength=len(groups.labels))
    return xp.where(members[groups.labels] >= min_members, groups.labels, TOO_SMALL)


def fingerprint(labels: Array) -> str:
    """The fingerprint of these labels: see `fingerprint_of`.

    >>> fingerprint(np.array([0, 0, 2]))
    '4b1498922e76c823ed99f8f04ddfdee6'
    """
    return fingerprint_of([backend.to_host(labels)], len(labels))


def fingerprint_of(chunks: Iterable[np.ndarray], count: int) -> str:
    """The 16-byte BLAKE2b digest, in hexadecimal, of the labels of `count` particles in chunks.

    They are little-endian integers: of 32 bits, or of 64 where there are more than 2^31 particles.

    >>> fingerprint_of([np.array([0, 0]), np.array([2])], 3)
    '4b1498922e76c823ed99f8f04ddfdee6'
    """
    digest, kind = hashlib.blake2b(digest_size=16), stored_index(count)
    for labels in chunks:
        digest.update(np.ascontiguousarray(labels, kind).data)
    return digest.hexdigest()
