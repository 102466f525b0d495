"""A partition as stored in a certificate: one label for every particle, and a fingerprint of all labels.

Labels are the smallest particle index of each group, so equal partitions have equal labels, and equal fingerprints,
wherever they were computed. Groups too small to count have no label. A fingerprint is a digest of the digests of blocks of
labels, so that no process must read all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.clusters.groups import Groups
from workbench.ordering import stored_index

TOO_SMALL = -1
BLOCK = 2**20   # labels; part of the format of certificates
DIGEST = 16     # bytes

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
    """The fingerprint, in hexadecimal, of the labels of `count` particles in chunks of any sizes.

    >>> fingerprint_of([np.array([0, 0]), np.array([2])], 3)
    '4b1498922e76c823ed99f8f04ddfdee6'
    """
    digests, block, room = [], hashlib.blake2b(digest_size=DIGEST), BLOCK
    for chunk in chunks:
        labels = np.ascontiguousarray(chunk, stored_index(count))
        while len(labels):
            block.update(labels[:room].data)
            labels, room = labels[room:], room - len(labels[:room])
            if not room:
                digests.append(block.digest())
                block, room = hashlib.blake2b(digest_size=DIGEST), BLOCK
    return joined(digests if digests and room == BLOCK else [*digests, block.digest()])


def blocks(count: int) -> list[range]:
    """The particles whose labels have a digest together, so that many processes can compute them.

    >>> blocks(2**20 + 5)
    [range(0, 1048576), range(1048576, 1048581)]
    """
    return [range(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]


def digest_of(labels: np.ndarray, count: int) -> bytes:
    """The BLAKE2b digest of the labels of a block of `count` particles: little-endian, of 64 bits beyond 2^31 particles.

    >>> digest_of(np.array([0, 0, 2]), 3).hex() == fingerprint(np.array([0, 0, 2]))
    True
    """
    return hashlib.blake2b(np.ascontiguousarray(labels, stored_index(count)).data, digest_size=DIGEST).digest()


def joined(digests: Sequence[bytes]) -> str:
    """The fingerprint: the digest of the digests of all blocks or, if there is one block, its digest."""
    return (digests[0] if len(digests) == 1 else hashlib.blake2b(b"".join(digests), digest_size=DIGEST).digest()).hex()
