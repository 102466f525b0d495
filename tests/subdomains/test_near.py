"""Which particles are near places: all that are, by a slow and plain search, and hardly more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.archive.keeping.near import near


def apart(positions, places, box):
    """The largest distance along an axis of each position and each place."""
    difference = np.abs(positions[:, None].astype(np.float64) - places[None])
    if box is not None:
        difference = np.minimum(difference, np.array(box) - difference)
    return difference.max(axis=2)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_none_too_few_and_hardly_more(data):
    seed, dimensions = data.draw(st.integers(0, 99)), data.draw(st.sampled_from([2, 3]))
    random = np.random.default_rng(seed)
    box = data.draw(st.sampled_from([None, (1.0,) * dimensions]))
    positions = random.random((data.draw(st.integers(0, 300)), dimensions)).astype(np.float32) % np.float32(1)
    places = random.random((data.draw(st.integers(0, 20)), dimensions)).astype(np.float32)
    tags = random.integers(0, data.draw(st.integers(1, 3)), len(places))
    width = data.draw(st.sampled_from([0.003, 0.05, 0.2, 0.7]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("workbench.archive.keeping.near.BLOCK", 50)
        rows, found = near(positions, places, tags, width, box)
    listed = list(zip(rows.tolist(), found.tolist(), strict=True))
    assert listed == sorted(set(listed))
    distance = apart(positions, places, box)
    needed = {(row, int(tags[place])) for row, place in np.argwhere(distance <= width).tolist()}
    assert needed <= set(listed)
    if width < 0.2:
        close = {(row, int(tags[place])) for row, place in np.argwhere(distance <= 2.5 * width).tolist()}
        assert set(listed) <= close
