"""The alphabet of moves: archives hold its ranks, so it can never change."""

import hashlib
import itertools

import numpy as np
import pytest

from workbench.clusters.keep.moves import FINE, PARTS, alphabet

GOLDEN = {2: "de1e558104ee4716451ad28804fd5345", 3: "31d6a4f4ec217e7c6c5c794f98e51530"}
BOTH = pytest.mark.parametrize("dimensions", [2, 3])


@BOTH
def test_every_vector_has_one_rank_and_none_is_first(dimensions: int) -> None:
    moves = alphabet(dimensions).moves
    assert sorted(map(tuple, moves.tolist())) == list(itertools.product(range(-FINE, FINE + 1), repeat=dimensions))
    assert not moves[0].any()
    assert len(moves) < 2**16   # ranks are stored in 16 bits


@BOTH
def test_ranks_are_those_that_archives_hold(dimensions: int) -> None:
    moves = np.ascontiguousarray(alphabet(dimensions).moves.astype("<i4"))
    assert hashlib.blake2b(moves.tobytes(), digest_size=16).hexdigest() == GOLDEN[dimensions]


def test_some_ranks_by_name() -> None:
    moves = alphabet(3).moves
    assert moves[[1, 6, 7, 26, 27, 343]].tolist()[:5] == [[8, 0, 0], [-8, 0, 0], [8, 8, 0], [-8, -8, -8], [4, 0, 0]]
    assert moves[-1].tolist() == [-16, -16, -16]


@BOTH
def test_ranks_are_found_by_number(dimensions: int) -> None:
    found = alphabet(dimensions)
    number = (found.moves + FINE) @ ((2 * FINE + 1) ** np.arange(dimensions - 1, -1, -1))
    np.testing.assert_array_equal(found.ranks[number], np.arange(len(found.moves)))


@BOTH
@pytest.mark.parametrize("parts", [1, 2, 4, 8])
def test_moves_of_whole_parts_come_first(dimensions: int, parts: int) -> None:
    """Up to the last rank of these parts there is all that is whole parts, and less than two bounds long; nothing else."""
    found = alphabet(dimensions)
    steps = PARTS // parts
    whole = ((found.moves % steps == 0) & (abs(found.moves) < FINE)).all(axis=1)
    assert found.last(parts) == int(whole.sum()) - 1
    assert bool(whole[: found.last(parts) + 1].all())


@BOTH
def test_costs_never_fall(dimensions: int) -> None:
    costs = alphabet(dimensions).costs
    assert costs.shape == (len(alphabet(dimensions).moves),)
    assert bool((np.diff(costs) >= 0).all())


def test_the_tables_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        alphabet(2).moves[0] = 1
