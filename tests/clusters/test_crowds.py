"""Crowded cells: the closest particle of another label by trees, against all pairs; and how much work that is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import workbench as wb
from workbench import backend
from workbench.clusters import crowds
from workbench.clusters.alike import Exempt, Parts, parts_of
from workbench.clusters.broken import spanning_links
from workbench.clusters.discord import closest_discords
from workbench.clusters.sorted_cells import SortedCells
from workbench.data.synthetic import adversarial

LENGTH = 1.0
CROWD = backend.constant("unlike.cuh", "CROWD")


@st.composite
def crowded(draw: st.DrawFn) -> tuple[wb.Particles, np.ndarray]:
    """Heaps of some hundred particles, smaller than a cell, about a linking length apart; labels mixed, or one a heap."""
    dimensions, dtype = draw(st.sampled_from([2, 3])), draw(st.sampled_from([np.float32, np.float64]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    heaps, count = draw(st.integers(1, 2)), draw(st.sampled_from([190, 200]))
    size = draw(st.sampled_from([0.0, 1e-4, 0.3]))
    place = np.repeat(np.arange(heaps), count)
    points = random.random((heaps * count, dimensions)) * size + 0.6
    points[:, 0] += place * draw(st.sampled_from([0.9, 1.0, LENGTH - size / 2, 1.001]))
    several = draw(st.sampled_from([1, 2, 9]))
    label = random.integers(-1, several, len(points))
    if draw(st.booleans()):
        label = place + 10 * (random.random(len(points)) < 0.01)
    box = draw(st.sampled_from([None, 4.0, 12.0]))
    points = points - draw(st.sampled_from([0.0, 0.7]))
    particles = wb.Particles.wrapped(points.astype(dtype), box) if box else wb.Particles(points.astype(dtype))
    return particles, label.astype(np.int32)


def nearest_of_each(particles: wb.Particles, pairs: np.ndarray) -> set[tuple[int, ...]]:
    """Of all these pairs, the closest one of each particle; of several, the one with the least other index."""
    squared = oracles.squared_distances(particles, pairs[:, 0], pairs[:, 1])
    both, far = np.concatenate([pairs, pairs[:, ::-1]]), np.concatenate([squared, squared])
    order = np.lexsort((both[:, 1], far, both[:, 0]))
    first = order[np.unique(both[order, 0], return_index=True)[1]]
    return {tuple(pair) for pair in np.sort(both[first], axis=1).tolist()}


@given(crowded(), st.sampled_from([0.0, 1e-3]))
@settings(max_examples=40)
def test_the_closest_conflict_of_each_particle_is_found_and_nothing_else(case, margin) -> None:
    particles, label = case
    near, far = LENGTH - margin, LENGTH + margin
    found = parts_of(SortedCells.of(particles, near), label, near, far, Exempt(particles.positions, LENGTH))
    apart = parts_of(SortedCells.of(particles, near), label, near, far)
    close = oracles.friend_pairs(particles, far)
    conflicts = close[label[close[:, 0]] != label[close[:, 1]]]
    pairs = {tuple(pair) for pair in apart.unlike.tolist()}
    assert pairs <= {tuple(pair) for pair in conflicts.tolist()}
    assert {i for pair in pairs for i in pair} == set(conflicts.ravel().tolist())   # no particle is left out
    if len(pairs) == len(apart.crowded.pairs) and len(conflicts):
        assert nearest_of_each(particles, conflicts) <= pairs
    squared = oracles.squared_distances(particles, conflicts[:, 0], conflicts[:, 1])
    spared = conflicts[(squared <= LENGTH**2)]   # these particles are their own originals
    assert {i for pair in found.unlike.tolist() for i in pair} == set(spared.ravel().tolist())


@given(crowded(), st.integers(0, 2**32))
@settings(max_examples=25)
def test_the_spanning_forest_of_torn_crowds_is_the_shortest(case, seed) -> None:
    """Friends here, and far apart elsewhere; some have no label."""
    particles, label = wb.Particles(case[0].positions), case[1]
    random = np.random.default_rng(seed)
    shift = label[:, None] * np.eye(particles.dimensions)[0] * 3.0
    elsewhere = np.ascontiguousarray((random.random(particles.positions.shape) + shift).astype(particles.positions.dtype))
    found = spanning_links(SortedCells.of(particles, LENGTH), label, LENGTH, elsewhere, None)
    pairs = oracles.friend_pairs(particles, LENGTH)
    one, other = label[pairs[:, 0]], label[pairs[:, 1]]
    pairs = pairs[(one != other) & (one >= 0) & (other >= 0)]
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    squared = oracles.squared_distances(wb.Particles(elsewhere), pairs[:, 0], pairs[:, 1])
    expected = pairs[oracles.cheapest_forest(label, pairs, squared)] if len(pairs) else pairs
    assert {tuple(pair) for pair in found.tolist()} == {tuple(pair) for pair in expected.tolist()}


def searched(particles: wb.Particles, length: float, label: np.ndarray) -> list[crowds.Crowded]:
    """The searches among crowds for conflicts, and for lost links in positions where each label has moved away."""
    cells = SortedCells.of(particles, length)
    moved = np.ascontiguousarray(particles.positions + (length * label[:, None]).astype(particles.positions.dtype))
    found: Parts = parts_of(cells, label, length, length)
    return [found.crowded, closest_discords(cells, label, length, moved).crowded]


def crowds_of(count: int) -> dict[str, tuple[wb.Particles, float, np.ndarray]]:
    """Adversarial crowds, with the labels of sides, of halves at random, and of many."""
    random, found = np.random.default_rng(count), {}
    for name, make in {
        "sheets": adversarial.two_sheets, "clumps": adversarial.two_clumps, "clump": adversarial.dense_clump,
        "coincident": adversarial.coincident,
    }.items():
        particles = make(2 if name == "sheets" else 3, np.float64, count=2 * count)
        side = (particles.positions[:, 0] > np.median(particles.positions[:, 0])).astype(np.int32)
        for kind, label in {"sides": side, "mixed": random.integers(0, 2, len(side)), "many": np.arange(len(side))}.items():
            found[f"{name}, {kind}"] = particles, 1.01 * adversarial.LINK, np.asarray(label, np.int32)
    sites = random.integers(0, 4, count)[:, None] * np.array([0.9, 0.0])
    piles = wb.Particles(sites + random.uniform(-0.05, 0.05, (count, 2)))
    found["piles"] = piles, 0.95, (sites[:, 0] / 0.9).astype(np.int32)
    return found


@pytest.mark.parametrize("name", crowds_of(16))
def test_work_in_crowds_grows_like_the_particles_and_is_spread_over_them(name: str) -> None:
    """Distances are counted: so many for each particle and doubling, far fewer than pairs, and no particle takes many."""
    for count in (2000, 8000):
        case = crowds_of(count)[name]
        for found in searched(*case):
            assert found.evaluated <= 200 * len(case[0]) * np.log2(len(case[0]))
            assert found.dearest <= 16 * found.spent.mean() + 1000


def test_crowds_are_what_these_tests_say_they_are() -> None:
    evaluated = {name: sum(one.evaluated for one in searched(*case)) for name, case in crowds_of(4000).items()}
    assert sum(count > 0 for count in evaluated.values()) >= 9
    assert CROWD < 190**2   # the heaps of the first tests


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads: int) -> None:
    particles, length, label = crowds_of(3000)["clumps, mixed"]
    expected = searched(particles, length, label)
    with backend.using_threads(threads):
        found = searched(particles, length, label)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.pairs, other.pairs)
        np.testing.assert_array_equal(one.spent, other.spent)


@pytest.mark.parametrize("name", ["clumps, mixed", "sheets, sides"])
def test_the_way_to_the_gpu_gives_the_same_pairs(stand_in, name: str) -> None:
    particles, length, label = crowds_of(2000)[name]
    there = wb.Particles(stand_in.asarray(particles.positions), particles.box)
    found = parts_of(SortedCells.of(there, length), stand_in.asarray(label), length, length)
    expected = parts_of(SortedCells.of(particles, length), label, length, length)
    assert len(expected.crowded.pairs) > 0
    np.testing.assert_array_equal(found.unlike.get(), expected.unlike)
    np.testing.assert_array_equal(found.crowded.spent.get(), expected.crowded.spent)


@pytest.mark.gpu
def test_a_gpu_finds_the_same_pairs() -> None:
    cupy = backend.gpu()
    for particles, length, label in crowds_of(4000).values():
        there = wb.Particles(cupy.asarray(particles.positions), particles.box)
        found = parts_of(SortedCells.of(there, length), cupy.asarray(label), length, length)
        expected = parts_of(SortedCells.of(particles, length), label, length, length)
        np.testing.assert_array_equal(found.unlike.get(), expected.unlike)
        np.testing.assert_array_equal(found.crowded.spent.get(), expected.crowded.spent)
