"""Decoded positions that coincide, nearly coincide or collapse, up to bounds of twenty linking lengths.

Of many conflicts between two places a search lists those of one particle with all others; when it has moved away, the
others are still together.
"""

import numpy as np
import pytest

import workbench as wb
from clusters.keep.scenarios import SOLVERS, TOGETHER, Scenario, require_kept, require_stored, thrown_together
from combinations import in_pairs
from workbench.backend import Array
from workbench.clusters.keep.attempts import Attempts
from workbench.clusters.keep.needs import Needs


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the finder disagreed with the repair, each time that it was asked."""
    told: list[bool] = []
    judge = Attempts._in_other_groups

    def recorded(self: Attempts) -> Array:
        found = judge(self)
        told.append(bool(found.any()))
        return found

    monkeypatch.setattr(Attempts, "_in_other_groups", recorded)
    return told


@pytest.mark.few
@pytest.mark.parametrize(("kind", "boxed", "solver"), in_pairs(TOGETHER, [True, False], SOLVERS))
def test_decoded_positions_in_few_places_are_taken_apart(
    kind: str, boxed: bool, solver: str, verdicts: list[bool]
) -> None:
    """By the repair itself: the finder is asked once for each, and agrees."""
    for share in (0.1, 0.6, 2.5, 6.0, 20.0):
        for seed, dimensions, members, dtype in ((7, 3, 1, np.float64), (8, 2, 3, np.float32)):
            scenario = thrown_together(seed, share, kind, boxed, dimensions, members, dtype)
            correction = scenario.correct(solver)
            require_kept(scenario, correction)
            require_stored(scenario, correction)
    assert verdicts == [False] * 10


def apart() -> Scenario:
    """Pairs that are pulled apart, and one that is not."""
    first = np.stack([np.arange(0, 40, 4.0), np.zeros(10)], axis=1)
    original = wb.Particles(np.concatenate([first, first + np.array([0.95, 0.0])]))
    decoded = original.positions + np.where(np.arange(20) < 10, -0.1, 0.1)[:, None] * np.array([1.0, 0.0])
    decoded[[0, 10]] = original.positions[[0, 10]]
    return Scenario(original, decoded, wb.Absolute(0.11), (1.0,))


def test_the_finder_decides_whatever_the_search_for_constraints_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The groups that differ get their original coordinates, and no others."""
    monkeypatch.setattr(Attempts, "_look", lambda self, *_: Needs.none(self.state))
    correction = apart().correct()
    require_kept(apart(), correction)
    require_stored(apart(), correction)
    assert correction.pinned.tolist() == [*range(1, 10), *range(11, 20)]


def test_if_the_finder_disagrees_again_all_particles_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Attempts, "_look", lambda self, *_: Needs.none(self.state))
    monkeypatch.setattr(Attempts, "_groups_of", lambda self, chosen: np.empty(0, np.int32))
    correction = apart().correct()
    require_kept(apart(), correction)
    assert len(correction.pinned) == 20
