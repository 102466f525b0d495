"""What has to change: nothing exactly where groups agree, and otherwise pairs that are wrong, as few as join the parts."""

import dataclasses

import numpy as np
from hypothesis import given, settings

import oracles
from clusters.keep.scenarios import Scenario, scenarios
from workbench.clusters.keep.needs import APART, TOUCH, find_needs, groups_with_needs
from workbench.clusters.keep.promise import KeepClusters
from workbench.clusters.keep.scene import Scene


def scene_of(scenario: Scenario) -> Scene:
    promise = KeepClusters(scenario.lengths, "length", scenario.min_members)
    return Scene(scenario.original, scenario.decoded, scenario.limit, promise, len(scenario.original))


def wrong_pairs(scene: Scene, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Parts by friends of one original group, and all strangers too close, each with the margin; all groups count."""
    wanted = scene.wanted[number].labels
    near = oracles.friend_pairs(scene.particles(), scene.near(number))
    far = oracles.friend_pairs(scene.particles(), scene.far(number))
    parts = oracles.smallest_index_labels(len(wanted), near[wanted[near[:, 0]] == wanted[near[:, 1]]])
    return parts, far[wanted[far[:, 0]] != wanted[far[:, 1]]]


@given(scenarios(60).filter(lambda scenario: scenario.min_members == 1))
@settings(max_examples=300)
def test_needs_are_what_differs_and_no_more(scenario: Scenario) -> None:
    scene = scene_of(scenario)
    needs = find_needs(scene)
    concerned = groups_with_needs(scene, needs)
    pairs_of = {kind: needs.pairs[needs.kind == kind] for kind in range(2 * len(scene.lengths))}
    assert len(needs) == sum(map(len, pairs_of.values()))
    assert bool(needs.missed(scene).all())
    for number, groups in enumerate(scene.wanted):
        parts, strangers = wrong_pairs(scene, number)
        apart, touch = pairs_of[2 * number + APART], pairs_of[2 * number + TOUCH]
        expected = {tuple(pair) for pair in strangers.tolist()}
        found = {tuple(pair) for pair in apart.tolist()}
        assert found == expected if len(expected) <= 64 else found <= expected
        assert len(touch) == len(set(parts.tolist())) - len(groups)
        friends = {tuple(pair) for pair in oracles.friend_pairs(scenario.original, scene.lengths[number]).tolist()}
        assert {tuple(sorted(pair)) for pair in touch.tolist()} <= friends
        links = np.concatenate([touch, np.stack([np.arange(len(parts)), parts], axis=1)])
        joined = oracles.smallest_index_labels(len(parts), links)
        np.testing.assert_array_equal(joined, groups.labels)
        torn = groups.labels[np.concatenate([touch, apart]).ravel()]
        np.testing.assert_array_equal(np.flatnonzero(concerned[number]), np.unique(torn))


@given(scenarios(60))
@settings(max_examples=200)
def test_after_a_correction_nothing_is_needed(scenario: Scenario) -> None:
    """Anew, with the linking lengths themselves for thresholds; and with the margin exactly where nothing is too close."""
    correction = scenario.correct()
    scene = scene_of(dataclasses.replace(scenario, decoded=correction.positions))
    assert correction.close_calls == len(find_needs(scene))
    scene.strict = True
    scene.__dict__.pop("decoded_cells", None)   # cells are those for a threshold
    assert len(find_needs(scene)) == 0
