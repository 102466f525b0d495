"""What has to change: nothing exactly where groups agree, and otherwise pairs that are wrong, as few as join the parts."""

import dataclasses

import numpy as np
from hypothesis import example, given, settings

import oracles
import workbench as wb
from clusters.keep.scenarios import Scenario, decoded_with, scenarios
from workbench.clusters.keep.needs import CANNOT_LINK, MUST_LINK, find_needs, groups_with_needs
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.promise import KeepClusters
from workbench.clusters.keep.state import State

# A staircase of links of exactly one linking length. One is lost, and longer as decoded than lists of neighbours reach.
STEPS = [
    (0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (4, 3),
    (4, 4), (4, 5), (5, 5), (5, 6), (6, 6), (7, 6), (8, 6), (8, 7),
]
OFF = [
    (1, 1), (-1, 1), (-1, -1), (1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1),
    (-1, -1), (-1, -1), (1, -1), (-1, 1), (1, 1), (1, -1), (-1, 1), (1, -1),
]
RELATIVE = wb.PointwiseRelative(3.8961039926133585e-06)
STAIRS = wb.Particles((np.array([0.53, 0.5]) + 0.03 * np.array(STEPS)).astype(np.float32))
LOST = Scenario(STAIRS, decoded_with(STAIRS, 0.999 * np.array(OFF), RELATIVE), RELATIVE, (0.03,))


def state_of(scenario: Scenario) -> State:
    promise = KeepClusters(scenario.lengths, "length", scenario.min_members)
    return State(Problem(scenario.original, scenario.decoded, scenario.limit, promise, len(scenario.original)))


def wrong_pairs(state: State, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Parts by friends of one original group, and all strangers too close, each with the margin; all groups count."""
    problem = state.problem
    wanted = problem.wanted[number].labels
    near = oracles.friend_pairs(state.particles(), problem.near(number))
    far = oracles.friend_pairs(state.particles(), problem.far(number))
    parts = oracles.smallest_index_labels(len(wanted), near[wanted[near[:, 0]] == wanted[near[:, 1]]])
    return parts, far[wanted[far[:, 0]] != wanted[far[:, 1]]]


@given(scenarios(60).filter(lambda scenario: scenario.min_members == 1))
@settings(max_examples=120)
def test_needs_are_what_differs_and_no_more(scenario: Scenario) -> None:
    state = state_of(scenario)
    problem, needs = state.problem, find_needs(state, exempt=False)
    concerned = groups_with_needs(state, needs)
    pairs_of = {kind: needs.pairs[needs.kind == kind] for kind in range(2 * len(problem.lengths))}
    assert len(needs) == sum(map(len, pairs_of.values()))
    for number, groups in enumerate(problem.wanted):
        parts, strangers = wrong_pairs(state, number)
        apart, touch = pairs_of[2 * number + CANNOT_LINK], pairs_of[2 * number + MUST_LINK]
        expected = {tuple(pair) for pair in strangers.tolist()}
        found = {tuple(pair) for pair in apart.tolist()}
        assert found == expected if len(expected) <= 64 else found <= expected
        assert {i for pair in found for i in pair} == {i for pair in expected for i in pair}   # no particle is left out
        assert len(touch) == len(set(parts.tolist())) - len(groups)
        friends = {tuple(pair) for pair in oracles.friend_pairs(scenario.original, problem.lengths[number]).tolist()}
        assert {tuple(sorted(pair)) for pair in touch.tolist()} <= friends
        links = np.concatenate([touch, np.stack([np.arange(len(parts)), parts], axis=1)])
        joined = oracles.smallest_index_labels(len(parts), links)
        np.testing.assert_array_equal(joined, groups.labels)
        torn = groups.labels[np.concatenate([touch, apart]).ravel()]
        np.testing.assert_array_equal(np.flatnonzero(concerned[number]), np.unique(torn))


@given(scenarios(60))
@settings(max_examples=100)
def test_what_is_needed_is_missed_and_lies_beyond_the_margin_of_the_original(scenario: Scenario) -> None:
    """Exemptions only take away: what is needed with them is needed without, and nothing else decides within the margin."""
    state = state_of(scenario)
    used = np.zeros(len(state.problem), np.uint8)
    needs, without = find_needs(state, used=used), find_needs(state, exempt=False)
    assert bool(needs.missed(state).all())
    if not used.any():
        np.testing.assert_array_equal(needs.pairs, without.pairs)
        np.testing.assert_array_equal(needs.kind, without.kind)


@given(scenarios(60))
@settings(max_examples=100)
def test_the_original_satisfies_every_constraint(scenario: Scenario) -> None:
    """However close its pairs are to a linking length: giving original coordinates back always ends in success."""
    exact = dataclasses.replace(scenario, decoded=scenario.original.positions.copy())
    assert len(find_needs(state_of(exact))) == 0


@given(scenarios(60))
@example(LOST)
@settings(max_examples=100)
def test_after_a_correction_nothing_is_needed(scenario: Scenario) -> None:
    """Anew; and without exemptions, exactly where nothing is too close."""
    correction = scenario.correct()
    state = state_of(dataclasses.replace(scenario, decoded=correction.positions))
    assert correction.close_calls == len(find_needs(state, exempt=False))
    assert len(find_needs(state)) == 0
