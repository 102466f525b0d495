"""What is done about pairs that stay wrong: each remedy by itself ends in the groups of the original."""

import numpy as np
import pytest

import workbench as wb
from workbench.clusters.keep import attempts
from workbench.clusters.keep.state import State
from workbench.errors import GuaranteeBroken

PARTICLES = wb.synthetic.cosmic_web(n=12, seed=3)
BOUND = 0.07


def decoded() -> np.ndarray:
    noise = np.random.default_rng(0).uniform(-0.99 * BOUND, 0.99 * BOUND, PARTICLES.positions.shape)
    moved = (PARTICLES.positions + noise).astype(np.float32) % np.float32(12)
    return np.where(moved >= np.float32(12), np.float32(0), moved)


def no_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts.Attempts, "_moved", lambda self, needs: needs.ends(self.state))


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


def test_neighbours_are_pinned_where_pins_were_not_enough(monkeypatch):
    monkeypatch.setattr(attempts, "PIN_AFTER", 0)
    alone = len(corrected().pinned)
    monkeypatch.setattr(attempts, "SPREAD_AFTER", 0)
    assert alone < len(corrected().pinned) < len(PARTICLES)


def test_a_growing_vicinity_gets_its_original_coordinates_as_the_last_resort(monkeypatch):
    """All that have violated constraints, and their neighbours; nothing far away, and in the end everything."""
    wanted = wb.friends_of_friends(PARTICLES)
    broken = wb.clusters.broken_links(PARTICLES, wb.Particles(decoded(), PARTICLES.box), wanted)
    monkeypatch.setattr(attempts, "RESORT_AFTER", 0)
    pinned = corrected().pinned
    assert np.isin(np.concatenate([broken.missing, broken.false]), pinned).all()
    assert len(pinned) < len(PARTICLES)
    monkeypatch.setattr(attempts, "RESORT_AFTER", -10)   # a thousand steps, from neighbour to neighbour
    assert len(pinned) < len(corrected().pinned) < len(PARTICLES)


def test_there_is_an_error_rather_than_other_groups(monkeypatch):
    no_moves(monkeypatch)
    monkeypatch.setattr(State, "pin", lambda self, index: None)
    with pytest.raises(GuaranteeBroken, match="could not be repaired"):
        wb.clusters.correct(PARTICLES, decoded(), BOUND)
