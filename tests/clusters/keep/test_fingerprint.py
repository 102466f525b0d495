"""The fingerprint of a partition: the same for labels in any chunks, and a digest of digests where there are many."""

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.clusters.keep import partition
from workbench.clusters.keep.partition import blocks, digest_of, fingerprint, fingerprint_of, joined


@given(st.lists(st.integers(-1, 2**31 - 1), min_size=1, max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_chunks_and_blocks_agree(values, cuts):
    labels = np.array(values, np.int64)
    ends = [0, *sorted(min(cut, len(labels)) for cut in cuts), len(labels)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(partition, "BLOCK", 8)
        expected = fingerprint(labels)
        assert fingerprint_of((labels[begin:end] for begin, end in itertools.pairwise(ends)), len(labels)) == expected
        digests = [digest_of(labels[block.start : block.stop], len(labels)) for block in blocks(len(labels))]
        assert joined(digests) == expected


def test_what_the_format_says():
    labels = np.arange(2**20 + 3)
    halves = labels[: 2**20], labels[2**20 :]
    pieces = [hashlib.blake2b(half.astype("<i4").tobytes(), digest_size=16) for half in halves]
    together = hashlib.blake2b(pieces[0].digest() + pieces[1].digest(), digest_size=16)
    assert fingerprint(labels) == together.hexdigest()
    assert fingerprint(labels[: 2**20]) == pieces[0].hexdigest()
