"""Links that another grouping tears apart, against the definition."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import workbench as wb
from clusters.keep.scenarios import originals
from combinations import in_pairs
from workbench import backend
from workbench.clusters.discord import UNLABELLED, Pairs, discords, split_labels
from workbench.clusters.sorted_cells import SortedCells


def found_among(particles: wb.Particles, label: np.ndarray, length: float) -> list[tuple[int, ...]]:
    return [tuple(pair) for pair in discords(SortedCells.of(particles, length), label, length).tolist()]


def by_definition(particles: wb.Particles, label: np.ndarray, length: float) -> set[tuple[int, ...]]:
    pairs = oracles.friend_pairs(particles, length)
    one, other = label[pairs[:, 0]], label[pairs[:, 1]]
    return {tuple(pair) for pair in pairs[(one != other) & (one != UNLABELLED) & (other != UNLABELLED)].tolist()}


@given(originals(150), st.integers(0, 2**32), st.sampled_from([1, 2, 5, 150]), st.floats(0, 1))
@settings(max_examples=200)
def test_discords_are_those_of_the_definition(case, seed, several, unlabelled) -> None:
    particles, length = case
    random = np.random.default_rng(seed)
    label = random.integers(0, several, len(particles)).astype(np.int32)
    label[random.random(len(particles)) < unlabelled] = UNLABELLED
    found, expected = found_among(particles, label, length), by_definition(particles, label, length)
    assert set(found) == expected if len(expected) <= 64 else set(found) <= expected
    assert bool(found) == bool(expected)
    assert all(i < j for i, j in found)


BOXES = [0.4, 1.0, 1.9, 2.4, 3.0, 4.5, 7.0, (2.2, 4.9, 9.0), (9.0, 2.2, 4.9), (4.9, 9.0, 2.2)]


@pytest.mark.parametrize(("box", "dimensions"), in_pairs(BOXES, [2, 3]))
def test_boxes_of_few_blocks(box: float | tuple[float, ...], dimensions: int) -> None:
    random = np.random.default_rng(dimensions)
    periods = np.broadcast_to(np.array(box), 3)[:dimensions]
    particles = wb.Particles(random.random((220, dimensions)) * periods, tuple(periods.tolist()))
    label = random.integers(-1, 30, 220).astype(np.int32)
    for length in (0.3, 1.0):
        found, expected = found_among(particles, label, length), by_definition(particles, label, length)
        assert set(found) <= expected
        assert len(set(found)) > 0.9 * len(expected) or np.prod(periods) < 8


def test_far_strays_leave_a_sparse_grid() -> None:
    random = np.random.default_rng(2)
    points = np.concatenate([random.random((300, 3)), [[1e9, -1e12, 0], [1e9, -1e12, 0.05], [1e30, 0, 0]]])
    label = random.integers(-1, 4, 303).astype(np.int32)
    label[300:] = 0, 1, 2
    particles = wb.Particles(points)
    found = found_among(particles, label, 0.1)
    assert set(found) == by_definition(particles, label, 0.1)
    assert (300, 301) in found


def test_chunks_with_too_little_room_are_walked_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the particles are in a crowd with many more pairs than blocks, the others have few."""
    random = np.random.default_rng(4)
    sparse, crowd = random.random((600, 3)) * [0.5, 1, 1], [0.8, 0.5, 0.5] + random.normal(size=(600, 3)) * 0.03
    particles, label = wb.Particles(np.concatenate([sparse, crowd]), 1.0), np.arange(1200, dtype=np.int32)
    walked: list[float] = []
    all_pairs = Pairs.all

    def counting(self: Pairs, place: Callable[..., None], given: dict[str, object], *asked: np.ndarray) -> object:
        def placed(items: int, *bundles: object, **named: object) -> None:
            walked.append(items / int((self.found > 0).sum()))
            place(items, *bundles, **named)
        return all_pairs(self, placed, given, *asked)

    monkeypatch.setattr(Pairs, "all", counting)
    found = []
    for chunks in (1, 2, 7, 40):
        monkeypatch.setattr(backend, "chunks", lambda count, array, most=chunks: max(1, min(most, count)))
        found.append(found_among(particles, label, 0.03))
    assert len(found[0]) == len(set(found[0]))
    assert set(found[0]) == by_definition(particles, label, 0.03)
    assert found == found[:1] * 4
    assert walked[0] == 1
    assert all(0 < share < 1 for share in walked[1:])
    assert len(walked) == 4


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_nothing_not_even_the_order(threads: int) -> None:
    random = np.random.default_rng(4)
    particles = wb.Particles.wrapped(random.normal(size=(4000, 3)) * 0.3, box=2.0)
    label = random.integers(-1, 9, 4000).astype(np.int32)
    with backend.using_threads(1):
        expected = found_among(particles, label, 0.12)
    with backend.using_threads(threads):
        assert found_among(particles, label, 0.12) == expected


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(0, 2**32))
def test_torn_groups_are_those_with_several_of_the_other_labels(groups, seed) -> None:
    wanted = wb.Groups.from_labels(np.array(groups), 1.0)
    other = np.random.default_rng(seed).integers(0, 3, len(groups)).astype(np.int32)
    torn = split_labels(wanted, other)
    for index, label in enumerate(wanted.labels.tolist()):
        several = len(set(other[wanted.labels == label].tolist())) > 1
        assert torn[index] == (other[index] if several else UNLABELLED)


@given(originals(100), st.integers(0, 2**32))
def test_no_discords_either_way_is_to_be_equal(case, seed) -> None:
    """The proof that a grouping is right: no link of the one leaves a group of the other."""
    particles, length = case
    moved = wb.Particles(np.random.default_rng(seed).permutation(particles.positions), particles.box)
    one, other = (wb.friends_of_friends(some, length, unit="length") for some in (particles, moved))
    torn = [
        found_among(some, split_labels(groups, theirs.labels.astype(np.int32)), length)
        for some, groups, theirs in ((particles, one, other), (moved, other, one))
    ]
    assert (torn == [[], []]) == one.equals(other)
