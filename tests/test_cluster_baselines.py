"""The methods that ours is compared with: against slow definitions, with the strengths and faults they are known for."""

import doctest
import importlib
import math
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import workbench as wb
from conftest import ROOT

with mock.patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):   # as in test_gpu_check.py
    from peers.clusters import Baseline, published, vulnerable_lossless
    from peers.clusters.constraints import Constraints, watched_pairs
    from peers.clusters.descent import Schedule, descend
    from peers.clusters.edits import EditCoder, count_edits
    from peers.clusters.problem import Problem

MODULES = ("baseline", "constraints", "edits", "methods")   # those with examples
MODES = ("pairwise", "filtered", "forest")


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Small random sets in open spaces and boxes, on a lattice half of the time, and something near them."""
    dimensions = draw(st.sampled_from([2, 3]))
    count = draw(st.integers(1, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    positions = random.random((count, dimensions))
    if draw(st.booleans()):
        positions = np.floor(positions * 6) / 6
    length = draw(st.sampled_from([0.05, 1 / 6, 0.21, 0.4]))
    xi = length * draw(st.sampled_from([0.01, 0.1, 0.25, 0.4]))
    noise = random.uniform(-xi, xi, positions.shape) * (1 - 1e-9)
    if draw(st.booleans()):
        return Problem(wb.Particles(positions), positions + noise, xi, length)
    box = draw(st.sampled_from([1.0, 1.3]))
    return Problem(wb.Particles(positions, box), wb.Particles.wrapped(positions + noise, box).positions, xi, length)


def problem_of(particles: wb.Particles, share: float, seed: int = 0) -> Problem:
    """Noise of up to this share of the usual linking length on every coordinate."""
    length = 0.2 * particles.spacing
    noise = np.random.default_rng(seed).uniform(-1, 1, particles.positions.shape) * (share * length * (1 - 1e-3))
    moved = (particles.positions + noise).astype(particles.positions.dtype)
    decoded = moved if particles.box is None else wb.Particles.wrapped(moved, particles.box).positions
    return Problem(particles, decoded, share * length, length)


def solve(problem: Problem, **options) -> Baseline:
    return published(problem.original, problem.decoded, problem.xi, problem.linking_length, **options)


def groups_of(problem: Problem, positions: np.ndarray | None = None) -> wb.Groups:
    particles = problem.original if positions is None else wb.Particles(positions, problem.original.box)
    return wb.friends_of_friends(particles, problem.linking_length, unit="length")


def clustered(n: int) -> wb.Particles:
    """A clustered snapshot in float64, so that what is measured is the methods' error and not that of float32."""
    snapshot = wb.synthetic.cosmic_web(n=n, seed=2)
    return wb.Particles(snapshot.positions.astype(np.float64), snapshot.box)


@pytest.fixture(scope="module")
def web() -> wb.Particles:
    return clustered(24)


# Which pairs are watched.

def as_set(constraints: Constraints) -> set[tuple[int, int, bool]]:
    ends = np.sort(np.stack([constraints.first, constraints.second]), axis=0)
    listed = list(zip(*ends.tolist(), constraints.linked.tolist(), strict=True))
    assert len(set(listed)) == len(listed)
    return set(listed)


def every_pair(problem: Problem) -> list[tuple[int, int, float]]:
    i, j = np.triu_indices(len(problem.original), k=1)
    distances = np.sqrt(oracles.squared_distances(problem.original, i, j))
    return list(zip(i.tolist(), j.tolist(), distances.tolist(), strict=True))


def is_linked(problem: Problem, i: int, j: int) -> bool:
    squared = oracles.squared_distances(problem.original, np.array([i]), np.array([j]))[0]
    return bool(squared <= problem.linking_length * problem.linking_length)


def reach(problem: Problem) -> float:
    """Two errors along the diagonal."""
    return 2 * problem.original.dimensions**0.5 * problem.xi


def safe_labels(problem: Problem) -> np.ndarray:
    safe = [(i, j) for i, j, d in every_pair(problem) if d <= problem.linking_length - reach(problem)]
    return oracles.smallest_index_labels(len(problem.original), np.array(safe, int).reshape(-1, 2))


@given(problems())
def test_vulnerable_pairs_are_those_that_errors_can_turn(problem):
    low, high = problem.linking_length - reach(problem), problem.linking_length + reach(problem)
    expected = {(i, j, is_linked(problem, i, j)) for i, j, d in every_pair(problem) if low < d <= high}
    assert as_set(watched_pairs(problem)) == expected


@given(problems())
def test_filtered_pairs_are_those_that_safe_links_do_not_join(problem):
    label = safe_labels(problem)
    expected = {pair for pair in as_set(watched_pairs(problem)) if label[pair[0]] != label[pair[1]]}
    assert as_set(watched_pairs(problem, "filtered")) == expected


@given(problems())
def test_the_forest_takes_links_in_order_and_what_lies_between_groups(problem):
    pairs = watched_pairs(problem)
    label, group = safe_labels(problem), groups_of(problem).labels
    expected = set()
    for i, j, linked in zip(pairs.first.tolist(), pairs.second.tolist(), pairs.linked.tolist(), strict=True):
        if (label[i] != label[j]) if linked else (group[i] != group[j]):
            expected.add((min(i, j), max(i, j), linked))
        if linked:
            label[label == label[j]] = label[i]
    assert as_set(watched_pairs(problem, "forest")) == expected


@given(problems())
def test_each_mode_watches_a_part_of_what_the_one_before_watches(problem):
    pairwise, filtered, forest = (as_set(watched_pairs(problem, mode)) for mode in MODES)
    assert pairwise >= filtered >= forest


@given(problems(), st.sampled_from(MODES))
@settings(max_examples=200)
def test_positions_that_satisfy_the_watched_pairs_have_the_same_groups(problem, mode):
    watched, wanted, box = watched_pairs(problem, mode), groups_of(problem), problem.original.box
    for share in (1.0, 0.7, 0.5, 0.3, 0.1, 0.03, 0.0):   # ever nearer to the original, until all are satisfied
        moved = problem.exact + share * (problem.start - problem.exact)
        positions = moved if box is None else wb.Particles.wrapped(moved, box).positions
        if watched.violated(positions, box, problem.linking_length) == 0:
            assert groups_of(problem, positions).equals(wanted)
            return
    assert wanted.equals(groups_of(problem, problem.original.positions))
    pytest.fail("the original positions violate their own pairs")


def test_on_a_snapshot_each_mode_watches_far_fewer_pairs(web):
    pairwise, filtered, forest = (len(watched_pairs(problem_of(web, 0.05), mode)) for mode in MODES)
    assert pairwise > 5 * filtered
    assert filtered > 1.5 * forest > 0


def test_nothing_is_safe_when_two_errors_reach_the_linking_length(web):
    problem = problem_of(web, 0.3)
    assert as_set(watched_pairs(problem)) == as_set(watched_pairs(problem, "filtered"))


# The descent.

def slow_descent(problem: Problem, constraints: Constraints, margin: float, schedule: Schedule) -> np.ndarray:
    """The same, pair by pair and number by number."""
    position, shape = problem.start.copy(), problem.start.shape
    mean, square = np.zeros(shape), np.zeros(shape)
    box = problem.original.box
    for step in range(1, schedule.iterations + 1):
        gradient = np.zeros(shape)
        for i, j, linked in zip(constraints.first, constraints.second, constraints.linked, strict=True):
            apart = position[i] - position[j]
            if box is not None:
                apart = np.array([a - length * round(a / length) for a, length in zip(apart, box, strict=True)])
            distance = math.sqrt(sum(a * a for a in apart))
            too_far = distance - (problem.linking_length - margin)
            too_near = problem.linking_length + margin - distance
            if (too_far if linked else too_near) <= 0 or distance < 1e-20:
                continue
            slope = 2 * too_far if linked else -2 * too_near
            gradient[i] += slope * apart / distance
            gradient[j] -= slope * apart / distance
        if not gradient.any():
            break
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        root = np.sqrt(square / (1 - 0.999**step))
        position = position - schedule.rate * (mean / (1 - 0.9**step)) / (root + schedule.epsilon)
        position = np.minimum(np.maximum(position, problem.exact - problem.xi), problem.exact + problem.xi)
    return position - problem.start


@given(problems())
@settings(max_examples=40)
def test_the_descent_is_adam_on_the_squared_violations_and_stays_in_bounds(problem):
    constraints = watched_pairs(problem, "forest")
    schedule = Schedule(0.05 * problem.xi, 1e-3 * problem.xi, tolerance=0.0, iterations=12)
    margin = 0.01 * problem.xi
    edits, _ = descend(problem, constraints, margin, schedule)
    np.testing.assert_allclose(edits, slow_descent(problem, constraints, margin, schedule), atol=1e-6 * problem.xi)
    assert problem.largest_error(problem.start + edits) <= 1 + 1e-9


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_with_a_step_in_units_of_the_bound_every_mode_repairs_a_snapshot(web, mode, share):
    problem = problem_of(web, share)
    wanted = groups_of(problem)
    assert not groups_of(problem, problem.decoded).equals(wanted)
    result = solve(problem, mode=mode)
    assert result.violated == 0
    assert result.iterations < 1000
    assert groups_of(problem, result.positions).equals(wanted)
    assert result.halos_broken(wanted) == 0
    assert 0 < result.edited < len(web)


def test_fewer_pairs_make_smaller_edits(web):
    problem = problem_of(web, 0.05)
    pairwise, filtered, forest = (solve(problem, mode=mode) for mode in MODES)
    assert pairwise.bits_per_particle > filtered.bits_per_particle > forest.bits_per_particle > 0
    assert pairwise.bits_per_particle > 4 * forest.bits_per_particle
    assert pairwise.edited > filtered.edited > forest.edited


def test_no_iteration_changes_nothing_and_still_counts_what_is_broken(web):
    problem = problem_of(web, 0.1)
    result = solve(problem, iterations=0)
    np.testing.assert_array_equal(result.positions, problem.decoded)
    assert (result.edited, result.nbytes, result.iterations) == (0, 0, 0)
    broken = watched_pairs(problem).violated(problem.decoded, web.box, problem.linking_length)
    assert result.violated == broken > 0
    assert solve(problem, tolerance=math.inf).iterations == 0


def test_a_lower_tolerance_takes_more_iterations(web):
    problem = problem_of(web, 0.1)
    loose, usual, none = (solve(problem, mode="forest", tolerance=t) for t in (problem.xi**2, None, 0.0))
    assert 0 < loose.iterations < usual.iterations <= none.iterations
    assert loose.violated > 0


def scaled(problem: Problem, unit: float) -> Problem:
    original = wb.Particles(problem.original.positions * unit, np.array(problem.original.box) * unit)
    return Problem(original, problem.decoded * unit, problem.xi * unit, problem.linking_length * unit)


@pytest.mark.parametrize("unit", [2.0**-10, 2.0**10])
def test_a_step_in_units_of_the_bound_does_not_depend_on_the_unit_of_length(web, unit):
    problem = problem_of(web, 0.1)
    once, again = solve(problem, mode="forest"), solve(scaled(problem, unit), mode="forest")
    np.testing.assert_array_equal(once.positions * unit, again.positions)
    assert (once.nbytes, once.iterations, once.violated) == (again.nbytes, again.iterations, again.violated)


@pytest.mark.long
def test_the_literal_step_fails_in_other_units():
    problem = problem_of(clustered(16), 0.1)
    wanted = groups_of(problem)
    for unit in (1e-3, 1e3):
        result = solve(scaled(problem, unit), step=None)
        assert result.violated > 400
        assert result.iterations == 1000
        assert not groups_of(scaled(problem, unit), result.positions).equals(wanted)
    small, large = (solve(scaled(problem, unit), mode="forest", step=None).iterations for unit in (1e-5, 1e5))
    assert small == 0      # the loss is below the tolerance before anything is repaired
    assert large == 1000   # and here all the steps together do not cross the bound


def test_particles_in_one_place_stay_there():
    apart = wb.Particles([[0.0, 0.0], [0.15, 0.0]])
    result = published(apart, np.full((2, 2), [0.07, 0.0]), xi=0.1, linking_length=0.1)
    assert (result.constraints, result.violated, result.edited, result.iterations) == (1, 1, 0, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_link_across_the_face_of_a_box_is_restored(dtype):
    original = wb.Particles(np.array([[0.01, 0.5, 0.5], [0.92, 0.5, 0.5]], dtype), box=1.0)
    decoded = np.array([[0.02, 0.5, 0.5], [0.905, 0.5, 0.5]], dtype)
    result = published(original, decoded, xi=0.02, linking_length=0.1)
    assert (result.constraints, result.violated, result.edited) == (1, 0, 2)
    assert result.positions.dtype == dtype
    assert wb.friends_of_friends(wb.Particles(result.positions, 1.0), 0.1, unit="length").labels.tolist() == [0, 0]


def test_decoded_positions_on_the_other_side_of_the_box_are_near():
    original = wb.Particles([[0.001, 0.5], [0.95, 0.5]], box=1.0)
    decoded = np.array([[0.01, 0.5], [0.94, 0.5]])
    for shift in (0.0, 0.995):   # in the second, the first particle and what was decoded of it are on two sides of a face
        moved = wb.Particles.wrapped(original.positions - [shift + 0.005, 0], 1.0)
        result = published(moved, wb.Particles.wrapped(decoded - [shift + 0.005, 0], 1.0).positions, 0.02, 0.052)
        assert result.violated == 0
        assert ((result.positions >= 0) & (result.positions < 1)).all()
        assert result.largest_error < 1.001


def test_inputs_are_left_alone(web):
    problem = problem_of(web, 0.1)
    before = problem.decoded.copy()
    assert not np.shares_memory(solve(problem, mode="forest").positions, problem.decoded)
    vulnerable_lossless(web, problem.decoded, problem.xi, problem.linking_length)
    np.testing.assert_array_equal(problem.decoded, before)


# The edits.

@pytest.mark.parametrize(("bits", "low", "high"), [(8, 1.001, 1 + 2 / 255), (16, 1.000001, 1 + 2 / 65535)])
def test_quantised_edits_break_the_bound_by_up_to_half_a_quantum(web, bits, low, high):
    result = solve(problem_of(web, 0.1), bits=bits)
    assert low < result.largest_error <= high + 1e-9


def test_codes_of_fewer_bits_cost_less(web):
    problem = problem_of(web, 0.05)
    assert solve(problem, mode="forest", bits=8).nbytes < 0.8 * solve(problem, mode="forest", bits=16).nbytes


@given(st.integers(2, 32), st.sampled_from([1e-6, 1.0, 1e6]), st.integers(0, 2**32), st.floats(0, 1))
def test_edits_come_back_within_half_a_quantum(bits, xi, seed, share):
    random = np.random.default_rng(seed)
    edits = random.uniform(-2 * xi, 2 * xi, (40, 3)) * (random.random((40, 1)) < share)
    coder = EditCoder(xi, bits)
    data = coder.encode(edits)
    restored = coder.apply(np.zeros((40, 3)), data, None)
    edited = (np.abs(edits) > coder.quantum).any(axis=1)
    assert count_edits(data) == edited.sum()
    assert (restored[~edited] == 0).all()
    assert (np.abs(restored - edits)[edited] <= coder.quantum / 2 * (1 + 1e-6)).all()


def test_the_bytes_alone_make_the_positions(web):
    problem = problem_of(web, 0.1)
    coder = EditCoder(problem.xi, 12)
    constraints = watched_pairs(problem, "forest")
    schedule = Schedule(0.05 * problem.xi, 1e-8 * problem.xi, coder.margin(3) ** 2, 1000)
    data = coder.encode(descend(problem, constraints, coder.margin(3), schedule)[0])
    result = solve(problem, mode="forest", bits=12)
    assert (result.nbytes, result.edited) == (len(data), count_edits(data))
    np.testing.assert_array_equal(coder.apply(problem.decoded, data, web.box), result.positions)


def test_nothing_watched_costs_nothing():
    far = wb.Particles([[0.0, 0.0], [5.0, 5.0]])
    given_values = far, far.positions, 0.1, 1.0
    for result in (published(*given_values, mode="forest"), vulnerable_lossless(*given_values)):
        assert (result.constraints, result.edited, result.nbytes, result.largest_error) == (0, 0, 0, 0.0)


# All vulnerable particles exactly.

@given(problems())
def test_exact_vulnerable_particles_keep_the_groups(problem):
    result = vulnerable_lossless(problem.original, problem.decoded, problem.xi, problem.linking_length)
    pairs = watched_pairs(problem)
    vulnerable = np.isin(np.arange(len(problem.decoded)), [pairs.first, pairs.second])
    np.testing.assert_array_equal(result.positions[vulnerable], problem.original.positions[vulnerable])
    np.testing.assert_array_equal(result.positions[~vulnerable], problem.decoded[~vulnerable])
    assert (result.constraints, result.edited, result.violated) == (len(pairs), vulnerable.sum(), 0)
    assert groups_of(problem, result.positions).equals(groups_of(problem))


def test_exact_vulnerable_particles_cost_more_than_any_descent(web):
    problem = problem_of(web, 0.1)
    result = vulnerable_lossless(web, problem.decoded, problem.xi, problem.linking_length)
    assert result.largest_error < 1
    assert result.halos_broken(groups_of(problem)) == 0
    assert result.nbytes > solve(problem).nbytes


# What is broken.

@given(problems(), st.integers(1, 4))
def test_broken_halos_are_those_whose_members_are_no_group(problem, least):
    before, after = groups_of(problem), groups_of(problem, problem.decoded)
    sets = [{frozenset(each.members(label).tolist()) for label in each.ids} for each in (before, after)]
    expected = sum(len(members) >= least for members in sets[0] - sets[1])
    untouched = Baseline("none", problem.decoded, 0, 0, 0, 0, 0, 0.0, problem.original.box)
    assert untouched.halos_broken(before, least) == expected


def test_a_result_says_what_it_costs():
    result = Baseline("forest", np.zeros((16, 3)), 5, 4, 10, 7, 1, 1.5)
    assert result.bits_per_particle == 5.0
    assert repr(result) == (
        "Baseline(forest: 5 bits per particle, 4 edited, 1 of 5 constraints violated, error up to 1.5 xi)"
    )


@pytest.mark.long
def test_a_real_snapshot(shared_data):
    snapshot = wb.open(shared_data / "disperse_32" / "disperse_simu_32_id.gad")
    length = 0.2 * snapshot.spacing
    xi = 0.05 * length
    decoded = wb.compress(snapshot, wb.Absolute(xi)).decompress().positions
    wanted = wb.friends_of_friends(snapshot)
    before = Baseline("none", decoded, 0, 0, 0, 0, 0, 0.0, snapshot.box).halos_broken(wanted)
    results = [published(snapshot, decoded, xi, length, mode=mode) for mode in MODES]
    results.append(vulnerable_lossless(snapshot, decoded, xi, length))
    pairwise, filtered, forest, lossless = results
    assert before > 20
    assert all(result.violated == result.halos_broken(wanted) == 0 for result in results)
    assert lossless.constraints == pairwise.constraints
    assert 5500 < filtered.constraints < 6300   # a set of as many particles from another simulation: 6,255
    assert 3000 < forest.constraints < 3400     # and 3,189
    assert lossless.nbytes > 1.5 * pairwise.nbytes > 7 * filtered.nbytes > 10 * forest.nbytes
    assert 0.4 < lossless.edited / len(snapshot) < 0.7
    assert forest.edited / len(snapshot) == pytest.approx(0.02, abs=0.002)


# Refusals.

POINTS = np.array([[0.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"decoded": POINTS.astype(np.float32)}, r"decoded positions must be float64 of shape \(2, 2\).*got float32 of"),
        ({"decoded": POINTS[:1]}, r"like the original; got float64 of shape \(1, 2\)"),
        ({"decoded": POINTS.tolist()}, r"got list of shape \(2, 2\)"),
        ({"decoded": POINTS + 0.11}, r"must lie within xi of the original; got an error of 1\.1 xi"),
        ({"decoded": POINTS * np.nan}, "must lie within xi of the original; got an error of nan xi"),
        ({"xi": 0.0}, "xi must be positive and finite; got 0.0"),
        ({"linking_length": -1.0}, "linking_length must be positive and finite; got -1.0"),
        ({"mode": "tree"}, "mode must be one of pairwise, filtered, forest; got 'tree'"),
        ({"bits": 1}, "bits must be a whole number from 2 to 32; got 1"),
        ({"bits": 8.0}, "bits must be a whole number from 2 to 32; got 8.0"),
        ({"step": 0.0}, "step must be positive and finite, or None for the published one; got 0.0"),
        ({"tolerance": -1.0}, "tolerance must not be negative; got -1.0"),
        ({"iterations": -1}, "iterations must be a whole number, not negative; got -1"),
    ],
)
def test_wrong_requests_are_refused(change, complaint):
    given_values = {"decoded": POINTS, "xi": 0.1, "linking_length": 1.0} | change
    with pytest.raises(wb.WorkbenchError, match=complaint):
        published(wb.Particles(POINTS), **given_values)


def test_arrays_on_a_gpu_are_refused(stand_in):
    with pytest.raises(wb.WorkbenchError, match="the baselines work on NumPy arrays; got a CuPy array"):
        published(wb.Particles(POINTS), stand_in.asarray(POINTS), 0.1, 1.0)


def test_groups_of_other_particles_are_refused():
    with pytest.raises(wb.WorkbenchError, match="groups must be of these 2 particles; got 3"):
        Baseline("none", POINTS, 0, 0, 0, 0, 0, 0.0).halos_broken(wb.Groups.from_labels([0, 1, 2], 0.1))


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    results = doctest.testmod(importlib.import_module(f"peers.clusters.{name}"))
    assert results.attempted > 0
    assert results.failed == 0
