"""Parts of groups, and strangers too close, against the definitions: all pairs tried, one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import workbench as wb
from clusters.keep.scenarios import originals
from combinations import in_pairs
from workbench import backend
from workbench.clusters.alike import Parts, parts_of
from workbench.clusters.sorted_cells import SortedCells

Asked = tuple[wb.Particles, np.ndarray, float, float]


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    """Any small set, labels of any kind (few, many, none), and the two lengths: the same, or slightly apart."""
    particles, length = draw(originals(150))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    several = draw(st.sampled_from([1, 2, 5, len(particles)]))
    label = random.integers(draw(st.sampled_from([-1, 0])), several, len(particles)).astype(np.int32)
    return particles, label, length, length * draw(st.sampled_from([1.0, 1 + 1e-7, 1.03, 1.06]))


def parts(asked: Asked) -> Parts:
    particles, label, near, far = asked
    return parts_of(SortedCells.of(particles, near), label, near, far)


def require_right(asked: Asked, found: Parts) -> None:
    """Unlike pairs are all there while no pair of cells can have many, and otherwise some wherever there are any."""
    particles, label, near, far = asked
    close, closer = oracles.friend_pairs(particles, far), oracles.friend_pairs(particles, near)
    alike = closer[label[closer[:, 0]] == label[closer[:, 1]]]
    np.testing.assert_array_equal(found.part, oracles.smallest_index_labels(len(label), alike))
    unlike = {tuple(pair) for pair in close[label[close[:, 0]] != label[close[:, 1]]].tolist()}
    pairs = [tuple(pair) for pair in found.unlike.tolist()]
    assert set(pairs) <= unlike
    if len(particles) <= 150:   # so that no pair of cells has more than are found of it
        assert set(pairs) == unlike or len(unlike) > 64
    assert bool(pairs) == bool(unlike)


@given(questions())
@settings(max_examples=200)
def test_parts_and_unlike_pairs_are_those_of_the_definition(asked: Asked) -> None:
    require_right(asked, parts(asked))


BOXES = [0.4, 1.0, 1.9, 2.4, 3.0, 4.5, 7.0, 12.0, (2.2, 4.9, 9), (9, 2.2, 4.9), (4.9, 9, 2.2)]


@pytest.mark.parametrize(("box", "dimensions"), in_pairs(BOXES, [2, 3]))
def test_boxes_of_few_blocks(box: float | tuple[float, ...], dimensions: int) -> None:
    """One, two, three or more blocks along an axis, where a block is its own neighbour, or a neighbour on both sides."""
    random = np.random.default_rng(dimensions)
    periods = np.broadcast_to(np.array(box), 3)[:dimensions]
    particles = wb.Particles(random.random((220, dimensions)) * periods, tuple(periods.tolist()))
    for several, sure, most in ((3, 1.0, 1.0), (40, 0.5, 0.53)):
        label = random.integers(0, several, 220).astype(np.int32)
        require_right((particles, label, sure, most), parts((particles, label, sure, most)))


def test_far_strays_leave_a_sparse_grid() -> None:
    random = np.random.default_rng(2)
    points = np.concatenate([random.random((300, 3)), [[1e9, -1e12, 0], [1e9, -1e12, 0.05], [1e30, 0, 0]]])
    label = random.integers(0, 3, 303).astype(np.int32)
    asked = wb.Particles(points), label, 0.1, 0.101
    require_right(asked, parts(asked))


@pytest.mark.parametrize("several", [1, 2, 5])
def test_dense_cells_of_many_labels_are_linked_by_trees(several: int) -> None:
    """Two shells face each other: hardly any of very many pairs are friends, of one label or of two."""
    random = np.random.default_rng(several)
    shell = random.normal(size=(300, 3))
    shell *= 0.05 / np.linalg.norm(shell, axis=1, keepdims=True)
    points = np.concatenate([shell, shell + np.array([0.3, 0, 0]), [[0.05, 0, 0], [0.25, 0, 0]]])
    label = np.concatenate([np.tile(random.integers(0, several, 300), 2), [0, 0]]).astype(np.int32)
    for length in (0.2, 0.2000001):
        for particles in (wb.Particles(points), wb.Particles.wrapped(points - [0.15, 0, 0], box=1.0)):
            require_right((particles, label, length, length), parts((particles, label, length, length)))


def test_two_labels_in_one_place_do_not_link_through_each_other() -> None:
    chain = np.stack([np.arange(9) * 0.9, np.zeros(9)], axis=1)
    label = np.array([0, 0, 1, 0, 0, 1, 1, 1, 0], np.int32)
    found = parts((wb.Particles(chain), label, 1.0, 1.0))
    assert found.part.tolist() == [0, 0, 2, 3, 3, 5, 5, 5, 8]
    assert found.unlike.tolist() == [[1, 2], [2, 3], [4, 5], [7, 8]]


def pile() -> Asked:
    random = np.random.default_rng(4)
    particles = wb.Particles.wrapped(random.normal(size=(4000, 3)) * 0.3, box=2.0)
    return particles, random.integers(0, 9, 4000).astype(np.int32), 0.12, 0.121


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_nothing_not_even_the_order(threads: int) -> None:
    with backend.using_threads(1):
        expected = parts(pile())
    with backend.using_threads(threads):
        found = parts(pile())
    assert found.part.tobytes() == expected.part.tobytes()
    assert found.unlike.tobytes() == expected.unlike.tobytes()


@pytest.mark.parametrize("chunks", [1, 37, 100_000])
def test_chunks_change_nothing_not_even_the_order(chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch on another machine would change: into how many runs the blocks are cut."""
    expected = parts(pile())
    monkeypatch.setattr(backend, "chunks", lambda count, array: max(1, min(chunks, count)))
    found = parts(pile())
    assert found.part.tobytes() == expected.part.tobytes()
    assert found.unlike.tobytes() == expected.unlike.tobytes()


def test_of_millions_of_unlike_pairs_only_some_are_found() -> None:
    particles = wb.Particles(np.random.default_rng(0).random((4000, 3)) * 0.2)
    label = (np.arange(4000) % 2).astype(np.int32)
    found = parts((particles, label, 1.0, 1.0))
    assert 0 < len(found.unlike) < 100_000
    assert set(found.part.tolist()) == {0, 1}
