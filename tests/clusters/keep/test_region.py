"""The cells near particles that have moved farther than cells reach."""

from types import ModuleType

import numpy as np
import pytest

import workbench as wb
from workbench import backend
from workbench.clusters.keep import KeepClusters
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.region import MOST_BLOCKS, _blocks_around
from workbench.guarantees import Limit


def problem_of(positions: np.ndarray, box: float | None, length: float) -> Problem:
    original = wb.Particles(positions, box)
    return Problem(original, original.positions, Limit("absolute", length), KeepClusters(length, "length"), len(original))


@pytest.mark.parametrize("box", [None, 1.0])
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("width", [0.15, 0.3, 0.6, 2.0])
def test_blocks_leave_out_no_particle_in_reach(box: float | None, dimensions: int, width: float) -> None:
    positions = np.random.default_rng(dimensions).random((500, dimensions))
    length, moved = 0.02, np.array([3, 77], np.int32)
    problem = problem_of(positions, box, length)
    cells = problem.decoded_cells[-1]
    marked = _blocks_around(problem, cells, moved, width)
    assert marked is not None
    held = np.zeros(len(positions), bool)
    held[cells.order] = np.repeat(backend.to_host(marked), np.diff(cells.first)).astype(bool)
    apart = positions[:, None] - positions[moved]
    apart -= 0 if box is None else np.round(apart)
    near = (np.sqrt((apart**2).sum(axis=-1)) <= width - length).any(axis=1)
    assert held[near].all()
    assert width > 0.15 or not held.all()


def test_blocks_are_not_far_more_than_particles() -> None:
    problem = problem_of(np.random.default_rng(0).random((100, 3)), None, 0.001)
    assert _blocks_around(problem, problem.decoded_cells[-1], np.array([5], np.int32), 1 / MOST_BLOCKS) is None


def test_a_gpu_finds_the_same_moves_across_empty_space(stand_in: ModuleType) -> None:
    random = np.random.default_rng(2)
    places = random.random((60, 3))
    places = np.concatenate([places, places[:30] + random.normal(scale=0.01, size=(30, 3))])
    decoded = places + random.uniform(-0.0899, 0.0899, places.shape)
    expected = wb.clusters.correct(wb.Particles(places), decoded, 0.09, 0.03, "length")
    there = wb.Particles(stand_in.asarray(places))
    found = wb.clusters.correct(there, stand_in.asarray(decoded), 0.09, 0.03, "length")
    np.testing.assert_array_equal(backend.to_host(found.positions), expected.positions)
