"""Partitions: every particle has one home, and every brick borrows all that is near it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb


def distance_to_brick(particles: wb.Particles, part: wb.Partition) -> np.ndarray:
    """The largest distance along an axis from each particle to a brick, over all periodic images: the definition."""
    nearest = np.full(particles.positions.shape, np.inf)
    shifts = [0.0] if particles.box is None else [-1.0, 0.0, 1.0]
    for shift in shifts:
        x = particles.positions.astype(np.float64) + shift * np.asarray(particles.box or 0.0)
        outside = np.maximum(np.maximum(np.asarray(part.lower) - x, x - np.asarray(part.upper)), 0)
        nearest = np.minimum(nearest, outside)
    return nearest.max(axis=1)


@given(
    seed=st.integers(0, 2**32),
    dimensions=st.sampled_from([2, 3]),
    bricks=st.lists(st.integers(1, 4), min_size=3, max_size=3),
    border=st.sampled_from([0.0, 0.05, 0.3, 0.7]),
    periodic=st.booleans(),
)
def test_every_particle_has_one_home_and_borders_are_complete(
    seed: int, dimensions: int, bricks: list[int], border: float, periodic: bool
) -> None:
    positions = np.random.default_rng(seed).random((60, dimensions)).astype(np.float32)
    positions[:4] = np.floor(positions[:4] * 4) / 4   # exactly on the faces between bricks
    particles = wb.Particles(positions, box=1.0 if periodic else None, ids=np.arange(60))
    parts = list(wb.Partition.split(particles, bricks[:dimensions], border))
    assert np.sort(np.concatenate([part.owned for part in parts])).tolist() == list(range(60))
    for part in parts:
        np.testing.assert_array_equal(part.particles.positions, positions[part.index])
        np.testing.assert_array_equal(part.particles.ids, part.index)
        distance = distance_to_brick(particles, part)
        assert (distance[part.owned] == 0).all()
        near = np.flatnonzero(distance <= border)
        assert np.union1d(near, part.owned).tolist() == np.sort(part.index).tolist()


@pytest.mark.parametrize(
    ("bricks", "border", "message"),
    [
        ((2, 2), 0.1, r"bricks must be 3 positive integers, one per axis; got \(2, 2\)"),
        ((2, 2, 0), 0.1, "bricks must be 3 positive integers"),
        ((2, 2, 1.5), 0.1, "bricks must be 3 positive integers"),
        ((1, 1, 1), -0.1, "border must be a length of zero or more; got -0.1"),
        ((1, 1, 1), float("nan"), "border must be a length of zero or more; got nan"),
    ],
)
def test_wrong_arguments_are_refused(bricks: tuple, border: float, message: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=message):
        list(wb.Partition.split(wb.Particles([[0.5, 0.5, 0.5]], box=1), bricks, border))
