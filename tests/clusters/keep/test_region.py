"""The particles that are compared again after some have moved: all near one of these now, their groups, and no others."""

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench import backend
from workbench.clusters.keep import KeepClusters
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.region import region_around
from workbench.clusters.keep.state import State
from workbench.guarantees import Limit

MOST_COMPARED = backend.constant("region.cu", "MOST_COMPARED")


def state_of(positions: np.ndarray, box: float | tuple[float, ...] | None, *lengths: float) -> State:
    original = wb.Particles(positions, box)
    promise = KeepClusters(lengths, "length")
    return State(Problem(original, original.positions, Limit("absolute", lengths[0]), promise, len(original)))


def by_comparing_all(state: State, moved: np.ndarray) -> np.ndarray:
    """Which particles are in a group of a moved one, or so near one now that they would conflict."""
    problem = state.problem
    apart = state.current[:, None].astype(np.float64) - state.current[moved].astype(np.float64)
    for axis, period in enumerate(problem.original.box or ()):
        apart[..., axis] -= period * np.round(apart[..., axis] / period)
    near = ((apart**2).sum(axis=-1) <= problem.far(len(problem.lengths) - 1) ** 2).any(axis=1)
    return near | np.logical_or.reduce([np.isin(group, group[moved]) for group in problem.group])


def arranged(kind: str, count: int, dimensions: int, random: np.random.Generator) -> np.ndarray:
    places = random.random((count, dimensions))
    if kind == "clumps":   # with empty space between them
        places = places[random.integers(min(count, 4), size=count)] + random.normal(scale=0.01, size=places.shape)
    if kind == "piles":
        places = places[random.integers(min(count, 12), size=count)]
    if kind == "lattice":   # many pairs exactly as far apart as a linking length
        places = np.round(places * 8) / 8
    return np.clip(places, 0, 0.99)


@settings(max_examples=150)
@given(
    kind=st.sampled_from(["uniform", "clumps", "piles", "lattice"]),
    dimensions=st.sampled_from([2, 3]),
    dtype=st.sampled_from([np.float32, np.float64]),
    length=st.sampled_from([0.004, 0.03, 0.125, 0.3, 0.9]),
    shape=st.sampled_from(["open", "periodic", "thin", "shifted"]),
    several=st.booleans(),
    count=st.integers(2, 150),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_region_is_what_comparing_all_finds(
    kind: str, dimensions: int, dtype: type, length: float, shape: str, several: bool, count: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    places, box = arranged(kind, count, dimensions, random).astype(dtype), None
    if shape == "periodic":
        box = (1.0,) * dimensions
    if shape == "thin":
        box = (0.05, *(1.0,) * (dimensions - 1))
        places[:, 0] *= dtype(0.05)
    if shape == "shifted":
        places -= dtype(1000)
    state = state_of(places, box, *([length / 2, length] if several else [length]))
    moved = np.sort(random.choice(count, random.integers(1, count + 1), replace=False)).astype(np.int32)
    if random.random() < 0.5:   # far, for some
        shift = random.normal(size=(len(moved), dimensions)) * random.choice([0.01, 0.5])
        state.current[moved] = state.current[moved] + shift if box is None else np.mod(state.current[moved] + shift, box)
        state.current[...] = np.where(state.current < (box or np.inf), state.current, 0)
    region = region_around(state, moved)
    if len(moved) > 100:
        assert region is None
        return
    assert region is not None
    expected = by_comparing_all(state, moved)
    np.testing.assert_array_equal(region.index, np.flatnonzero(expected))
    for number, group in enumerate(state.problem.group):
        np.testing.assert_array_equal(region.whole[number], np.isin(group, group[moved])[region.index])


@pytest.mark.parametrize("box", [None, 10.0])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_of_many_particles_the_region_is_exact(box: float | None, dimensions: int) -> None:
    random = np.random.default_rng(dimensions)
    state = state_of(10 * random.random((8_000, dimensions)), box, 2 * 8_000 ** (-1 / dimensions))
    moved = np.sort(random.choice(8_000, 150, replace=False)).astype(np.int32)
    region = region_around(state, moved)
    assert region is not None
    np.testing.assert_array_equal(region.index, np.flatnonzero(by_comparing_all(state, moved)))


def test_nothing_is_near_no_particles() -> None:
    region = region_around(state_of(np.random.default_rng(0).random((50, 3)), 1.0, 0.3), np.empty(0, np.int32))
    assert region is not None
    assert len(region) == 0


def test_a_crowd_of_moved_particles_beside_others_takes_them_unseen() -> None:
    crowd, others = np.full((3 * MOST_COMPARED, 2), 0.5), np.full((60_000, 2), 0.511)
    state = state_of(np.concatenate([crowd, others, [[0.9, 0.9]]]), 1.0, 0.01)
    region = region_around(state, np.arange(len(crowd), dtype=np.int32))
    assert region is not None
    np.testing.assert_array_equal(region.index, np.arange(len(crowd) + len(others)))
    assert not region.whole[0, len(crowd):].any()


def test_an_outlier_that_no_block_can_number_is_found() -> None:
    places = np.array([[0.0, 0.0], [0.001, 0.0], [1e25, 0.0], [1e25, 0.0], [-1e25, 0.0]])
    state = state_of(places, None, 1e-4)
    for moved, expected in (0, [0]), (2, [2, 3]), (4, [4]):
        region = region_around(state, np.array([moved], np.int32))
        assert region is not None
        np.testing.assert_array_equal(region.index, expected)


def test_a_gpu_finds_the_same_moves_across_empty_space(stand_in: ModuleType) -> None:
    random = np.random.default_rng(2)
    places = random.random((60, 3))
    places = np.concatenate([places, places[:30] + random.normal(scale=0.01, size=(30, 3))])
    decoded = places + random.uniform(-0.0899, 0.0899, places.shape)
    expected = wb.clusters.correct(wb.Particles(places), decoded, 0.09, 0.03, "length")
    there = wb.Particles(stand_in.asarray(places))
    found = wb.clusters.correct(there, stand_in.asarray(decoded), 0.09, 0.03, "length")
    np.testing.assert_array_equal(backend.to_host(found.positions), expected.positions)
