"""What is done about pairs that stay wrong: each remedy by itself ends in the groups of the original."""

import numpy as np
import pytest

import workbench as wb
from workbench.clusters.keep import attempts
from workbench.errors import GuaranteeBroken

PARTICLES = wb.synthetic.cosmic_web(n=12, seed=3)
BOUND = 0.07


def decoded() -> np.ndarray:
    noise = np.random.default_rng(0).uniform(-0.99 * BOUND, 0.99 * BOUND, PARTICLES.positions.shape)
    moved = (PARTICLES.positions + noise).astype(np.float32) % np.float32(12)
    return np.where(moved >= np.float32(12), np.float32(0), moved)


def no_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts.Attempts, "_moved", lambda self, needs: needs)


def corrected() -> wb.clusters.Correction:
    correction = wb.clusters.correct(PARTICLES, decoded(), BOUND)
    after = wb.friends_of_friends(wb.Particles(correction.positions, PARTICLES.box))
    assert after.equals(wb.friends_of_friends(PARTICLES))
    return correction


def test_pins_alone_are_enough(monkeypatch):
    no_moves(monkeypatch)
    correction = corrected()
    assert len(correction.index) == 0
    assert 0 < len(correction.pinned) < len(PARTICLES)


def test_groups_are_pinned_as_a_whole(monkeypatch):
    monkeypatch.setattr(attempts, "GROUPS_AFTER", 0)
    correction = corrected()
    labels = wb.friends_of_friends(PARTICLES).labels
    pinned = np.isin(np.arange(len(PARTICLES)), correction.pinned)
    assert 0 < pinned.sum() < len(PARTICLES)
    for label in np.unique(labels[pinned]):
        assert pinned[labels == label].all()


def test_the_original_is_the_last_resort(monkeypatch):
    monkeypatch.setattr(attempts, "EVERYTHING_AFTER", 0)
    assert (corrected().positions == PARTICLES.positions).all()


def test_there_is_an_error_rather_than_other_groups(monkeypatch):
    no_moves(monkeypatch)
    monkeypatch.setattr(attempts, "pin", lambda scene, index: 0)
    with pytest.raises(GuaranteeBroken, match="could not be repaired"):
        wb.clusters.correct(PARTICLES, decoded(), BOUND)
