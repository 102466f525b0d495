"""The promise itself: whatever was decoded within the bound, the groups of what comes out are those of the original."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from clusters.keep.scenarios import SOLVERS, Scenario, decoded_with, require_kept, require_stored, scenarios
from workbench.clusters.keep import KeepClusters, keep_clusters
from workbench.clusters.keep.promise import MOST_LENGTHS

EACH_SOLVER = [pytest.param(solver, marks=() if solver == "auto" else pytest.mark.long) for solver in SOLVERS]


@pytest.mark.parametrize("solver", EACH_SOLVER)
@given(scenarios())
@settings(max_examples=100)
def test_groups_bound_and_box_are_kept_and_stored(solver: str, scenario: Scenario) -> None:
    correction = scenario.correct(solver)
    require_kept(scenario, correction)
    require_stored(scenario, correction)


@pytest.mark.long
@pytest.mark.parametrize("solver", EACH_SOLVER)
def test_as_many_linking_lengths_as_there_can_be(solver: str) -> None:
    random = np.random.default_rng(64)
    original = wb.Particles.wrapped(random.random((300, 2)).astype(np.float32), box=1.0)
    bound = wb.Absolute(0.004)
    decoded = decoded_with(original, random.uniform(-1, 1, (300, 2)), bound)
    scenario = Scenario(original, decoded, bound, tuple(np.linspace(0.01, 0.09, MOST_LENGTHS).tolist()))
    correction = scenario.correct(solver)
    assert len(correction.groups) == MOST_LENGTHS
    require_kept(scenario, correction)
    require_stored(scenario, correction)


@given(scenarios(), st.sampled_from(SOLVERS), st.integers(1, 40))
@settings(max_examples=80)
def test_chunks_decode_alone(scenario: Scenario, solver: str, chunk: int) -> None:
    promise = KeepClusters(scenario.lengths, "length", scenario.min_members, solver)
    correction = keep_clusters(scenario.original, scenario.decoded, scenario.limit, promise, chunk=chunk)
    require_kept(scenario, correction)
    require_stored(scenario, correction, chunk)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", [1, 2, 9, 49, 52, 56, 61, 80])
def test_particles_that_move_across_empty_space_are_compared_where_they_arrive(solver: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    places = random.random((60, 3))
    places = np.concatenate([places, places[:30] + random.normal(scale=0.01, size=(30, 3))])
    original, bound = wb.Particles(places), wb.Absolute(0.09)
    scenario = Scenario(original, decoded_with(original, random.uniform(-1, 1, places.shape), bound), bound, (0.03,))
    require_kept(scenario, scenario.correct(solver))
