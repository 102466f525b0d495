"""Every way of asking wrongly, refused with a sentence before any work is done."""

import re
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.clusters.keep import KeepClusters

POSITIONS = np.random.default_rng(0).random((20, 3))
ORIGINAL = wb.Particles(POSITIONS, box=1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"linking_length": 0}, "linking_length must be positive and finite; got 0"),
        ({"linking_length": -0.2}, "linking_length must be positive and finite; got -0.2"),
        ({"linking_length": np.nan}, "linking_length must be positive and finite; got nan"),
        ({"linking_length": np.inf}, "linking_length must be positive and finite; got inf"),
        ({"linking_length": True}, "linking_length must be positive and finite; got True"),
        ({"linking_length": "0.2"}, "linking_length must be positive and finite; got '0.2'"),
        ({"linking_length": None}, "linking_length must be positive and finite; got None"),
        ({"linking_length": [0.2, -1.0]}, "linking_length must be positive and finite; got -1.0"),
        ({"linking_length": []}, "linking_length must be a number, or 1 to 64 of them; got 0 of them"),
        ({"linking_length": [0.1] * 65}, "linking_length must be a number, or 1 to 64 of them; got"),
        ({"unit": "mpc"}, "unit must be one of spacing, length; got 'mpc'"),
        ({"linking_length": np.array(-1.0)}, "linking_length must be positive and finite; got -1.0"),
        ({"unit": np.array(["length", "spacing"])}, "unit must be one of spacing, length; got an array of <U7"),
        ({"solver": np.array(["pgd", "auto"])}, "solver must be one of auto, pgd, refine; got an array of <U4"),
        ({"min_members": 2**63}, "min_members must be less than 2^63; got 9223372036854775808"),
        ({"min_members": 0}, "min_members must be a whole number, at least 1; got 0"),
        ({"min_members": 2.0}, "min_members must be a whole number, at least 1; got 2.0"),
        ({"min_members": True}, "min_members must be a whole number, at least 1; got True"),
        ({"min_members": "20"}, "min_members must be a whole number, at least 1; got '20'"),
        ({"solver": "newton"}, "solver must be one of auto, pgd, refine; got 'newton'"),
    ],
)
def test_impossible_promises_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=re.escape(message)):
        KeepClusters(**given)
    with pytest.raises(wb.WorkbenchError, match=re.escape(message)):
        wb.clusters.correct(ORIGINAL, POSITIONS, 0.01, **given)


def test_promises_that_say_the_same_are_the_same() -> None:
    said = KeepClusters([np.float32(0.5), 0.2, 0.2], min_members=np.int64(3))
    assert said == KeepClusters((0.2, 0.5), min_members=3)
    assert said.linking_length == (0.2, 0.5)
    assert type(said.min_members) is int
    assert KeepClusters(np.array([0.2])) == KeepClusters(0.2)


def test_promises_go_through_json_without_the_solver() -> None:
    promise = KeepClusters([0.1, 0.3], "length", 7, "pgd")
    assert KeepClusters.from_dict(promise.to_dict()) == KeepClusters([0.1, 0.3], "length", 7)
    assert promise.to_dict() == {"kind": "clusters", "linking_length": [0.1, 0.3], "unit": "length", "min_members": 7}


@pytest.mark.parametrize("described", [{}, {"linking_length": 0.2}, {"linking_length": 0.2, "unit": "spacing"}])
def test_promises_with_parts_missing_are_refused(described: dict[str, Any]) -> None:
    with pytest.raises(wb.WorkbenchError, match="the promise to keep clusters cannot be read"):
        KeepClusters.from_dict(described)


@pytest.mark.parametrize(
    "described",
    [
        {"linking_length": "x", "unit": "spacing", "min_members": 1},
        {"linking_length": [0.2], "unit": ["spacing"], "min_members": 1},
        {"linking_length": [[0.2]], "unit": "spacing", "min_members": 1},
        {"linking_length": [0.2], "unit": "spacing", "min_members": None},
    ],
)
def test_promises_with_foreign_parts_are_refused(described: dict[str, Any]) -> None:
    with pytest.raises(wb.WorkbenchError):
        KeepClusters.from_dict(described)


def test_lengths_are_in_the_unit_of_the_positions() -> None:
    assert KeepClusters([0.1, 0.2]).lengths(ORIGINAL) == tuple(b * ORIGINAL.spacing for b in (0.1, 0.2))
    assert KeepClusters(0.1, "length").lengths(ORIGINAL) == (0.1,)


@pytest.mark.parametrize(
    ("decoded", "message"),
    [
        (POSITIONS.astype(np.float32), "must be float64, like the original; got float32"),
        (POSITIONS[:-1], "must have shape (20, 3), like the original; got (19, 3)"),
        (POSITIONS[:, :2], "must have shape (20, 3), like the original; got (20, 2)"),
        (POSITIONS + 0.5, "positions in a periodic box must lie in [0, 1)"),
        (np.where(POSITIONS > 0.9, np.nan, POSITIONS), "finite"),
        (POSITIONS[::-1].copy(), "coordinates are off by up to"),
    ],
)
def test_decoded_positions_of_something_else_are_refused(decoded: np.ndarray, message: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=re.escape(message)):
        wb.clusters.correct(ORIGINAL, decoded, 0.01)


def test_a_bound_that_does_not_hold_is_refused_with_what_does() -> None:
    decoded = POSITIONS.copy()
    decoded[3, 1] += 0.02
    with pytest.raises(wb.WorkbenchError, match=r"within 0.01 of the original ones; 1 coordinates are off by up to 0.02"):
        wb.clusters.correct(ORIGINAL, decoded, 0.01)
    assert wb.clusters.correct(ORIGINAL, decoded, 0.0201).edited >= 0


@pytest.mark.parametrize("bound", [-0.1, np.nan, np.inf, "0.1", None, True])
def test_impossible_bounds_are_refused(bound: Any) -> None:
    with pytest.raises(wb.WorkbenchError, match=r"Absolute\(eb\) must be"):
        wb.clusters.correct(ORIGINAL, POSITIONS, bound)


def test_a_spacing_needs_a_volume() -> None:
    flat = wb.Particles(POSITIONS * [1, 1, 0])
    with pytest.raises(wb.WorkbenchError, match='give unit="length"'):
        wb.clusters.correct(flat, flat.positions, 0.01)


def test_links_too_short_for_the_box_are_refused() -> None:
    with pytest.raises(wb.WorkbenchError, match="linking_length must be at least about"):
        wb.clusters.correct(ORIGINAL, POSITIONS, 0.01, 1e-12, "length")


def test_particles_may_be_given_for_positions() -> None:
    decoded = wb.Particles(np.clip(POSITIONS + 0.01, 0, 0.999), box=1.0)
    one, other = (wb.clusters.correct(ORIGINAL, given, 0.011, 0.3) for given in (decoded, decoded.positions))
    assert one.positions.tobytes() == other.positions.tobytes()


def test_what_comes_out_cannot_be_changed_and_what_went_in_is_not() -> None:
    decoded = np.clip(POSITIONS + 0.05, 0, 0.999)
    before = decoded.copy()
    correction = wb.clusters.correct(ORIGINAL, decoded, 0.0501, 0.5)
    assert not correction.positions.flags.writeable
    np.testing.assert_array_equal(decoded, before)


def test_progress_is_told_and_rises() -> None:
    told: list[tuple[float, str]] = []
    random = np.random.default_rng(0)
    points = random.random((3000, 3))
    decoded = wb.Particles.wrapped(points + random.uniform(-0.0199, 0.0199, points.shape), 1.0).positions
    correction = wb.clusters.correct(
        wb.Particles(points, 1.0), decoded, 0.02, 0.5, progress=lambda share, text: told.append((share, text))
    )
    shares = [share for share, _ in told]
    assert correction.attempts >= 1
    assert len(told) >= 3
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] < 1
    assert any("pairs to repair" in text for _, text in told)
