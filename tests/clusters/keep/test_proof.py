"""Nothing that is wrong escapes the proof: whatever has moved, suspects are in each conflict and in each torn group."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from clusters.keep.scenarios import Scenario, decoded_with, scenarios
from clusters.keep.test_again import moved, state_of
from workbench.clusters.keep.needs import CANNOT_LINK, find_needs
from workbench.clusters.keep.proof import FirstLook, _mark_conflicts
from workbench.clusters.keep.state import State
from workbench.clusters.keep.surroundings import Surroundings


def first_look(state: State, lists: str) -> FirstLook:
    """What is known before anything moves; with lists of neighbours, without, or with short ones."""
    needs = find_needs(state)
    radius = {"no": None, "usual": 2.0, "short": 0.5}[lists]
    if radius is None or not len(needs):
        return FirstLook(needs, None)
    return FirstLook(needs, Surroundings.of(state, needs, np.full(len(state.problem), radius)))


def require_suspects_in_all_that_is_wrong(state: State, first: FirstLook) -> np.ndarray:
    used = np.zeros(len(state.problem), np.uint8)
    suspects, wrong = first.suspects(state, used), find_needs(state)
    if suspects is None:   # all are searched
        return np.arange(len(state.problem))
    conflicts, number = wrong.kind & 1 == CANNOT_LINK, wrong.kind >> 1
    assert np.isin(wrong.pairs[conflicts], suspects).any(axis=1).all()
    for length, group in enumerate(state.problem.group):
        torn = wrong.pairs[~conflicts & (number == length)]
        assert np.isin(group[torn], group[suspects]).all()
    return suspects


@given(
    scenarios(150).filter(lambda scenario: not scenario.limit.relative), st.sampled_from([0.02, 0.2, 0.9]),
    st.sampled_from(["no", "usual", "short"]), st.data(),
)
@settings(max_examples=120)
def test_whatever_moves_suspects_are_in_all_that_is_wrong(
    scenario: Scenario, share: float, lists: str, data: st.DataObject
) -> None:
    state, seed = state_of(scenario), data.draw(st.integers(0, 2**32))
    first = first_look(state, lists)
    moved(state, np.flatnonzero(np.random.default_rng(seed).random(len(scenario.original)) < share), seed)
    require_suspects_in_all_that_is_wrong(state, first)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_few_are_suspects_where_little_is_wrong(share: float) -> None:
    """Repaired but for a few particles: the proof holds for nearly all others."""
    original = wb.synthetic.cosmic_web(n=24, seed=2)
    original = wb.Particles(original.positions, original.box)
    noise = np.random.default_rng(0).uniform(-1, 1, original.positions.shape)
    decoded = decoded_with(original, noise, share * 0.2)
    state = state_of(Scenario(original, decoded, wb.Absolute(share * 0.2), (0.2,)))
    first = first_look(state, "usual")
    repaired = wb.clusters.correct(original, decoded, share * 0.2, 0.2, "length")
    state.current[...] = repaired.positions
    state.rank[repaired.index], state.rank[repaired.pinned] = repaired.rank, -1
    assert len(find_needs(state)) == 0 < len(first.needs)
    assert len(require_suspects_in_all_that_is_wrong(state, first)) < 0.02 * len(first.needs)
    some = repaired.index[::20]
    state.current[some], state.rank[some] = decoded[some], 0   # these constraints are violated again
    suspects = require_suspects_in_all_that_is_wrong(state, first)
    assert np.isin(some, suspects).any()
    assert len(suspects) < 0.3 * len(first.needs)


def test_all_conflicts_of_particles_that_have_moved_are_marked_in_crowds_too() -> None:
    """Two piles come within the linking length: more pairs than are listed, so each particle comes with the closest one."""
    random = np.random.default_rng(1)
    piles = np.repeat([[0.3, 0.5, 0.5], [0.3 + 0.106, 0.5, 0.5]], 40, axis=0) + random.normal(0, 0.001, (80, 3))
    alone = random.random((40, 3)) * [0.2, 1, 1] + [0.7, 0, 0]
    original = wb.Particles(np.concatenate([piles, alone]))
    state = state_of(Scenario(original, original.positions, wb.Absolute(0.01), (0.1,)))
    state.current[:40, 0] += 0.004
    state.rank[...] = 1
    used, suspect = np.zeros(120, np.uint8), np.zeros(120, bool)
    _mark_conflicts(state, np.arange(120), suspect, used)
    label, far = state.problem.group[0], state.problem.far(0)
    apart = np.linalg.norm(state.current[:, None] - state.current, axis=2)
    conflicts = (apart <= far) & (label[:, None] != label)
    assert conflicts[:40, 40:80].sum() > 64
    assert np.array_equal(suspect, conflicts.any(axis=1))
    assert not suspect[:80].all()


def test_where_too_many_move_too_far_all_are_searched() -> None:
    original = wb.synthetic.cosmic_web(n=16, seed=2)
    original = wb.Particles(original.positions, original.box)
    state = state_of(Scenario(original, original.positions, wb.Absolute(0.19), (0.2,)))
    state.current[...] = decoded_with(original, np.ones_like(original.positions), 0.19)
    state.rank[...] = 1
    assert first_look(state, "no").suspects(state, np.zeros(len(original), np.uint8)) is None
