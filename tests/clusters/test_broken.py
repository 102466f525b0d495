"""Broken links against slow definitions and SciPy's graphs: as few as join what was torn, and every false one."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fake_cupy
import oracles
import workbench as wb
from clusters.keep.scenarios import Scenario, decoded_with, scenarios
from workbench import backend
from workbench.clusters import broken_links
from workbench.clusters.broken import cheapest_links, distances, squared_distances
from workbench.clusters.discord import MOST_BETWEEN_CELLS
from workbench.errors import WorkbenchError

CHAIN = wb.Particles([[0.10, 0.5], [0.19, 0.5], [0.28, 0.5], [0.40, 0.5]], box=1.0)


def pairs_of(links: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in links.tolist()}


def parts_by_definition(decoded: wb.Particles, labels: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray]:
    """The parts into which groups have fallen, and all pairs of particles from several groups that are friends."""
    friends = oracles.friend_pairs(decoded, length)
    alike = labels[friends[:, 0]] == labels[friends[:, 1]]
    return oracles.smallest_index_labels(len(decoded), friends[alike]), friends[~alike]


@given(scenarios(60), st.integers(0, 2))
@settings(max_examples=200)
def test_missing_links_join_what_was_torn_and_false_links_are_all_there_are(scenario: Scenario, number: int) -> None:
    length = scenario.lengths[number % len(scenario.lengths)]
    original, decoded = scenario.original, wb.Particles(scenario.decoded, scenario.original.box)
    groups = wb.friends_of_friends(original, length, "length")
    broken = broken_links(original, decoded, groups)
    parts, strangers = parts_by_definition(decoded, groups.labels, length)
    if len(strangers) <= MOST_BETWEEN_CELLS:
        assert pairs_of(broken.false) == pairs_of(strangers)
        assert len(broken.false) == len(strangers)
    assert pairs_of(broken.false) <= pairs_of(strangers)
    assert pairs_of(broken.missing) <= pairs_of(oracles.friend_pairs(original, length))
    assert len(broken.missing) == len(set(parts.tolist())) - len(groups)   # a forest: one fewer would not do
    hung = np.stack([np.arange(len(parts)), parts], axis=1)
    joined = oracles.smallest_index_labels(len(parts), np.concatenate([hung, broken.missing]))
    np.testing.assert_array_equal(joined, groups.labels)
    assert broken.missing.dtype == broken.false.dtype == np.int32
    assert (len(broken) == 0) == groups.equals(wb.friends_of_friends(decoded, length, "length"))


def require_what_scipy_finds(original: wb.Particles, length: float, bound: float) -> None:
    """With errors of up to the bound: the cheapest forest of all links that are lost, and every link between groups."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
    from scipy.spatial import cKDTree

    noise = np.random.default_rng(0).uniform(-1, 1, original.positions.shape)
    decoded = wb.Particles(decoded_with(original, noise, bound), original.box)
    labels = oracles.scipy_labels(original, length)
    broken = broken_links(original, decoded, wb.friends_of_friends(original, length, "length"))
    lost, now = (
        cKDTree(particles.positions.astype(float), boxsize=particles.box).query_pairs(length, output_type="ndarray")
        for particles in (original, decoded)
    )
    alike = labels[now[:, 0]] == labels[now[:, 1]]
    assert pairs_of(np.sort(now[~alike])) == pairs_of(broken.false)
    graph = coo_matrix((np.ones(alike.sum()), now[alike].T), (len(original), len(original)))
    count, part = connected_components(graph, directed=False)
    lost = lost[part[lost[:, 0]] != part[lost[:, 1]]]
    far = distances(decoded.positions, lost, decoded.box)
    order = np.argsort(far)[::-1]   # of several links between two parts the shortest is the last that is written
    between = np.sort(part[lost[order]], axis=1)
    cheapest = {tuple(ends): weight for ends, weight in zip(between.tolist(), far[order].tolist(), strict=True)}
    ends, weights = np.array(list(cheapest)), np.array(list(cheapest.values()))
    forest = minimum_spanning_tree(coo_matrix((weights, ends.T), (count, count)))
    found = distances(decoded.positions, broken.missing, decoded.box)
    assert 50 < forest.nnz == len(found)
    assert found.sum() == pytest.approx(forest.sum())
    assert (found > length).all()


@pytest.mark.parametrize("box", [None, 1.0])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_missing_links_are_the_cheapest_forest(box: float | None, dimensions: int) -> None:
    random = np.random.default_rng(dimensions)
    centres = random.random((150, dimensions))
    points = centres[random.integers(0, 150, 3000)] + 0.01 * random.normal(size=(3000, dimensions))
    length = 0.25 * 3000 ** (-1 / dimensions)
    require_what_scipy_finds(wb.Particles.wrapped(points, box) if box else wb.Particles(points), length, 0.2 * length)


def test_links_of_a_simulation_break_as_scipy_finds(shared_data: Path) -> None:
    require_what_scipy_finds(wb.open(shared_data / "disperse_32/disperse_simu_32_id.gad"), 312.5, 31.25)


@given(st.integers(2, 40), st.integers(0, 120), st.integers(0, 2**32), st.booleans())
@settings(max_examples=100)
def test_the_cheapest_links_are_those_of_kruskal(count: int, links: int, seed: int, ties: bool) -> None:
    random = np.random.default_rng(seed)
    part = random.choice(1000, count, replace=False)[random.integers(0, max(count // 2, 1), count)]
    pairs = random.integers(0, count, (links, 2)).astype(np.int32)
    distance = random.random(links)
    distance = np.floor(distance * 3) if ties else distance
    assert cheapest_links(pairs, part, distance).tolist() == oracles.cheapest_forest(part, pairs, distance)


def test_a_long_chain_of_equal_links_is_needed_whole() -> None:
    """Each of many trees in a row chooses a neighbour, all at once."""
    pairs = np.stack([np.arange(4999), np.arange(1, 5000)], axis=1).astype(np.int32)
    for distance in (np.zeros(4999), np.arange(4999.0), -np.arange(4999.0)):
        assert cheapest_links(pairs, np.arange(5000), distance).tolist() == list(range(4999))


@pytest.mark.parametrize("box", [None, 1.0])
def test_equal_particles_have_no_broken_links(box: float | None) -> None:
    particles = wb.Particles(CHAIN.positions, box)
    assert len(broken_links(particles, particles, wb.friends_of_friends(particles, 0.1, "length"))) == 0


def test_links_across_a_face_of_the_box_break_as_others_do() -> None:
    original = wb.Particles([[0.02, 0.5], [0.96, 0.5], [0.86, 0.5]], box=1.0)
    decoded = wb.Particles([[0.04, 0.5], [0.94, 0.5], [0.86, 0.5]], box=1.0)
    broken = broken_links(original, decoded, wb.friends_of_friends(original, 0.07, "length"))
    assert broken.missing.tolist() == [[0, 1]]
    assert broken.false.tolist() == []
    assert distances(decoded.positions, broken.missing, decoded.box) == pytest.approx([0.1])


def test_pairs_that_are_neighbours_through_two_faces_are_named_once() -> None:
    random = np.random.default_rng(9)
    original = wb.Particles.wrapped(random.random((32, 2)).astype(np.float32), 1.0)
    moved = original.positions + random.uniform(-1, 1, (32, 2)) * 0.13
    decoded = wb.Particles.wrapped(moved.astype(np.float32), 1.0)
    for length in np.linspace(0.1, 0.3, 41):   # from many cells along the box to few
        groups = wb.friends_of_friends(original, length, "length")
        false = broken_links(original, decoded, groups).false
        expected = parts_by_definition(decoded, groups.labels, length)[1]
        assert len(false) == len(pairs_of(false))
        assert len(expected) > MOST_BETWEEN_CELLS or pairs_of(false) == pairs_of(expected)


def test_a_group_that_strangers_hold_together_is_torn_all_the_same() -> None:
    original = wb.Particles([[0.10, 0.5], [0.19, 0.5], [0.145, 0.65]], box=1.0)
    decoded = wb.Particles([[0.08, 0.5], [0.21, 0.5], [0.145, 0.55]], box=1.0)
    groups = wb.friends_of_friends(original, 0.1, "length")
    assert wb.friends_of_friends(decoded, 0.1, "length").sizes.tolist() == [3]
    broken = broken_links(original, decoded, groups)
    assert broken.missing.tolist() == [[0, 1]]
    assert pairs_of(broken.false) == {(0, 2), (1, 2)}


def test_of_two_piles_on_one_another_some_false_links_are_named() -> None:
    points = np.repeat([[0.2, 0.5], [0.8, 0.5]], 300, axis=0)
    original = wb.Particles(points)
    decoded = wb.Particles(np.where(points == 0.8, 0.2, points))
    broken = broken_links(original, decoded, wb.friends_of_friends(original, 0.1, "length"))
    assert len(broken.missing) == 0
    assert 1 <= len(broken.false) < 300 * 300
    assert (broken.false // 300 == [0, 1]).all()


@pytest.mark.parametrize("count", [201, 1500])
def test_a_crowded_cell_that_falls_into_three_is_joined_again(count: int) -> None:
    """Of the very many pairs of friends that are lost, the two shortest that join the parts."""
    random = np.random.default_rng(count)
    points = 0.5 + 0.01 * random.random((count, 3))
    part = np.arange(count) % 3
    decoded = wb.Particles(points + np.array([0.5, 0, 0]) * part[:, None])
    original = wb.Particles(points)
    groups = wb.friends_of_friends(original, 0.2, "length")
    broken = broken_links(original, decoded, groups)
    assert len(groups) == 1
    assert len(broken.missing) == 2
    for one, other in broken.missing:
        sides = (np.flatnonzero(part == part[end]) for end in (one, other))
        pairs = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        between = squared_distances(decoded.positions, np.array([[one, other]]), None)
        assert between == squared_distances(decoded.positions, pairs, None).min()
    assert sorted(map(tuple, np.sort(part[broken.missing], axis=1).tolist())) == [(0, 1), (1, 2)]


def test_many_parts_in_one_cell_are_joined_by_their_shortest_links() -> None:
    """Each particle is a part by itself: all pairs of one cell are lost, far more than are listed."""
    random = np.random.default_rng(5)
    original = wb.Particles(0.01 * random.random((150, 2)))
    decoded = wb.Particles(random.random((150, 2)) * 40)
    broken = broken_links(original, decoded, wb.friends_of_friends(original, 0.2, "length"))
    pairs = np.stack(np.triu_indices(150, 1), axis=1)
    shortest = oracles.cheapest_forest(np.arange(150), pairs, squared_distances(decoded.positions, pairs, None))
    assert pairs_of(broken.missing) == pairs_of(pairs[shortest])


def test_two_runs_and_any_number_of_threads_give_the_same() -> None:
    particles = wb.synthetic.cosmic_web(n=16, seed=2)
    noise = np.random.default_rng(0).uniform(-1, 1, particles.positions.shape)
    decoded = wb.Particles(decoded_with(particles, noise, 0.04), particles.box)
    groups = wb.friends_of_friends(particles)
    expected = broken_links(particles, decoded, groups)
    assert min(len(expected.missing), len(expected.false)) > 10
    for threads in (1, 2, 5):
        with backend.using_threads(threads):
            found = broken_links(particles, decoded, groups)
        np.testing.assert_array_equal(found.missing, expected.missing)
        np.testing.assert_array_equal(found.false, expected.false)


@pytest.mark.parametrize("box", [None, 1.0])
@pytest.mark.parametrize(("dimensions", "dtype"), [(2, np.float32), (3, np.float32), (3, np.float64)])
def test_squared_distances_are_those_of_the_predicate_bit_for_bit(stand_in, box, dimensions, dtype):
    random = np.random.default_rng(dimensions)
    sites = random.integers(0, 10, (500, dimensions)) / 10   # many pairs at nearly equal distances, and at half the box
    particles = wb.Particles(np.concatenate([sites, random.random((500, dimensions))]).astype(dtype), box)
    pairs = random.integers(0, 1000, (20_000, 2)).astype(np.int32)
    expected = oracles.squared_distances(particles, pairs[:, 0], pairs[:, 1])
    np.testing.assert_array_equal(squared_distances(particles.positions, pairs, particles.box), expected)
    there = squared_distances(stand_in.asarray(particles.positions), stand_in.asarray(pairs), particles.box)
    np.testing.assert_array_equal(there.get(), expected)


def test_the_way_to_the_gpu_gives_the_same_links(stand_in: ModuleType) -> None:
    particles = wb.synthetic.cosmic_web(n=12, seed=2)
    noise = np.random.default_rng(0).uniform(-1, 1, particles.positions.shape)
    decoded = decoded_with(particles, noise, 0.05)
    expected = broken_links(particles, wb.Particles(decoded, 12.0), wb.friends_of_friends(particles))
    there, back = (wb.Particles(stand_in.asarray(positions), 12.0) for positions in (particles.positions, decoded))
    found = broken_links(there, back, wb.friends_of_friends(there))
    assert type(found.missing) is type(found.false) is fake_cupy.ndarray
    np.testing.assert_array_equal(found.missing.get(), expected.missing)
    np.testing.assert_array_equal(found.false.get(), expected.false)
    assert len(expected.missing) > 0


@pytest.mark.parametrize(
    ("decoded", "complaint"),
    [
        (wb.Particles(CHAIN.positions[:3], 1.0), r"in order and in one box; got shapes \(4, 2\) and \(3, 2\)"),
        (wb.Particles(CHAIN.positions, 2.0), "in order and in one box"),
        (wb.Particles(CHAIN.positions), "in order and in one box"),
    ],
)
def test_other_particles_are_refused(decoded: wb.Particles, complaint: str) -> None:
    with pytest.raises(WorkbenchError, match=complaint):
        broken_links(CHAIN, decoded, wb.friends_of_friends(CHAIN, 0.1, "length"))


def test_groups_of_others_are_refused() -> None:
    with pytest.raises(WorkbenchError, match="groups must be of these 4 particles; got labels of 3"):
        broken_links(CHAIN, CHAIN, wb.Groups.from_labels([0, 0, 2], 0.1))
