"""What need not be searched again: a second look finds what a look at everything finds, and lists can be taken over."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from clusters.keep.scenarios import Scenario, decoded_with, scenarios
from workbench.clusters.alike import Doubt, parts_of
from workbench.clusters.broken import cheapest_links, squared_distances
from workbench.clusters.crowds import each_once
from workbench.clusters.discord import closest_discords
from workbench.clusters.keep.needs import Needs, find_needs
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.promise import KeepClusters
from workbench.clusters.keep.state import State
from workbench.clusters.keep.surroundings import Surroundings
from workbench.clusters.keep.view import Again
from workbench.clusters.sorted_cells import SortedCells


def state_of(scenario: Scenario) -> State:
    promise = KeepClusters(scenario.lengths, "length")
    return State(Problem(scenario.original, scenario.decoded, scenario.limit, promise, len(scenario.original)))


def listed(needs: Needs) -> list[tuple[int, ...]]:
    return sorted(map(tuple, np.column_stack([needs.pairs, needs.kind]).tolist()))


def moved(state: State, which: np.ndarray, seed: int) -> None:
    """Some particles anywhere within the bound, as if moved; or back at their original coordinates."""
    original, random = state.problem.original, np.random.default_rng(seed)
    bound = wb.Absolute(state.problem.limit.value)
    elsewhere = decoded_with(original, random.uniform(-1, 1, original.positions.shape), bound)
    state.current[which], state.rank[which] = elsewhere[which], 1
    state.pin(which[random.random(len(which)) < 0.3])


@given(scenarios(150).filter(lambda scenario: not scenario.limit.relative), st.sampled_from([0.02, 0.2, 0.9]), st.data())
@settings(max_examples=120)
def test_a_second_look_finds_what_a_look_at_everything_finds(scenario: Scenario, share: float, data: st.DataObject) -> None:
    """Whatever has moved in the meantime, whether or not it repaired anything."""
    state, seed = state_of(scenario), data.draw(st.integers(0, 2**32))
    ends = find_needs(state).ends(state)
    moved(state, np.flatnonzero(np.random.default_rng(seed).random(len(scenario.original)) < share), seed)
    again = find_needs(state, Again(state.problem, ends))
    assert listed(again) == listed(find_needs(state))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_a_second_look_at_a_universe(share: float) -> None:
    original = wb.synthetic.cosmic_web(n=24, seed=2)
    original = wb.Particles(original.positions, original.box)
    noise = np.random.default_rng(0).uniform(-1, 1, original.positions.shape)
    state = state_of(Scenario(original, decoded_with(original, noise, share * 0.2), wb.Absolute(share * 0.2), (0.2, 0.25)))
    first = find_needs(state)
    ends = first.ends(state)
    for which in (ends[:0], ends[::2], np.arange(0, len(original), 7)):
        moved(state, which, 1)
        again, whole = find_needs(state, Again(state.problem, ends)), find_needs(state)
        assert len(whole) > 50
        assert listed(again) == listed(whole)


@pytest.mark.parametrize("length", [0.2, 0.45])   # mean spacings: with one particle in most cells, and with several
def test_the_closest_discords_of_split_groups_are_found_although_main_parts_are_left_out(length: float) -> None:
    original = wb.synthetic.cosmic_web(n=24, seed=4)
    groups = wb.friends_of_friends(original, length)
    parts = wb.friends_of_friends(original, 0.75 * length).labels.astype(np.int32)   # within the groups
    noise = np.random.default_rng(0).uniform(-0.2, 0.2, original.positions.shape)
    elsewhere = wb.Particles.wrapped((original.positions + noise).astype(np.float32), original.box)
    cells, given = SortedCells.of(original, groups.linking_length), (groups.linking_length, elsewhere.positions)
    every, found = closest_discords(cells, parts, *given), closest_discords(cells, parts, *given, groups)
    assert every.complete
    pairs = each_once(every.pairs)
    assert len(pairs) > 1000
    assert {*map(tuple, found.pairs.tolist())} <= {*map(tuple, pairs.tolist())}
    assert len(found.pairs) < len(pairs)
    forests = []
    for listed_pairs in (pairs, each_once(found.pairs)):
        squared = squared_distances(elsewhere.positions, listed_pairs, original.box)
        forests.append(listed_pairs[cheapest_links(listed_pairs, parts, squared)].tolist())
    assert forests[0] == forests[1]


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("box", [None, 0.35, 0.8, 1.7, 12.0])
def test_every_pair_of_blocks_is_searched_from_a_block_that_is_marked(box: float | None, dimensions: int) -> None:
    """Across the faces of a periodic box, too, where a block may be its own neighbour; and not from every block."""
    random = np.random.default_rng(dimensions)
    particles = wb.Particles(random.random((900, dimensions)) * (box or 6.0), box)
    label = np.arange(900, dtype=np.int32)
    cells = SortedCells.of(particles, 0.2)
    chosen = np.where(random.random(cells.blocks) < 0.05, cells.occupied, 0).astype(np.uint64)
    block = np.repeat(np.arange(cells.blocks), np.diff(cells.first[cells.first_cell]))
    of_particle = np.empty(900, np.int64)
    of_particle[cells.order] = block
    marked = cells.blocks_before(chosen, 0.2).astype(bool)
    assert marked[chosen != 0].all()
    assert cells.blocks < 100 or marked.sum() < cells.blocks / 2
    moved = np.isin(of_particle, np.flatnonzero(chosen)).astype(np.uint8)
    settled = np.ones(900, np.uint8)
    settled[moved.astype(bool)] = 0
    found = parts_of(SortedCells.of(particles, 0.2), label, 0.2, 0.2, doubt=Doubt(moved, settled)).unlike
    every = parts_of(cells, label, 0.2, 0.2).unlike
    expected = every[moved[every].any(axis=1)]
    assert {tuple(pair) for pair in expected.tolist()} <= {tuple(pair) for pair in found.tolist()}


def test_surroundings_of_some_constraints_are_taken_from_those_of_all() -> None:
    original = wb.synthetic.cosmic_web(n=16, seed=5)
    original = wb.Particles(original.positions, original.box)
    noise = np.random.default_rng(0).uniform(-1, 1, original.positions.shape)
    state = state_of(Scenario(original, decoded_with(original, noise, 0.06), wb.Absolute(0.06), (0.2,)))
    needs, radius = find_needs(state), np.full(len(original), 2.0)
    some = needs.chosen(np.arange(0, len(needs), 3))
    whole, expected = Surroundings.of(state, needs, radius), Surroundings.of(state, some, radius)
    found = whole.among(some)
    assert 100 < len(found) < len(whole)
    for name in ("candidates", "slot", "need_start", "partner", "kind"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.listed, expected.listed)
    np.testing.assert_array_equal(found.end - found.start, expected.end - expected.start)
