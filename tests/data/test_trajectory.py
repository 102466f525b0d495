"""Trajectories as values: their parts, what belongs to them, and the input that they refuse."""

import pickle

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError

FRAMES, ATOMS = 7, 5


def sample(**more) -> wb.Trajectory:
    random = np.random.default_rng(1)
    positions = random.normal(size=(FRAMES, ATOMS, 3)).astype("f4")
    atoms = {"name": ["C", "CA", "C", "O", "N"], "mass": np.ones(ATOMS)}
    return wb.Trajectory(positions, **{"times": np.arange(FRAMES) * 0.5, "atoms": atoms, **more})


def test_parts_are_those_of_the_arrays():
    walk = sample(velocities=np.ones((FRAMES, ATOMS, 3), "f4"), steps=np.arange(FRAMES))
    whole = walk.positions
    for part, frames, atoms in (
        (walk[2:5], slice(2, 5), slice(None)), (walk[-1], slice(6, 7), slice(None)),
        (walk[::-2], slice(None, None, -2), slice(None)),
        (walk[1:6][1:3], slice(2, 4), slice(None)), (walk.select([4, 0]), slice(None), [4, 0]),
        (walk.select("C")[3:], slice(3, None), [0, 2]), (walk.select([3, 0, 2]).select([2, 0]), slice(None), [2, 3]),
        (walk.select(np.arange(ATOMS) > 2), slice(None), [3, 4]), (walk.select(["O", "N"]), slice(None), [3, 4]),
    ):
        assert np.array_equal(part.positions, whole[frames][:, atoms])
        assert np.array_equal(part.times, walk.times[frames])
        assert np.array_equal(part.velocities, walk.velocities[frames][:, atoms])
        assert part.atoms["name"].tolist() == walk.atoms["name"][atoms].tolist()
        assert part.shape == part.positions.shape
        assert np.array_equal(part.loaded().positions, part.positions)
        assert np.array_equal(pickle.loads(pickle.dumps(part)).positions, part.positions)
    assert [one.n_frames for one in walk] == [1] * FRAMES
    assert [len(block) for block in walk[1:].blocks(4)] == [4, 2]
    assert walk.images is None
    assert "5 atoms" in repr(walk)
    assert "velocities" in walk._repr_html_()


def test_blocks_begin_where_frames_are_read_together(monkeypatch):
    walk = sample()
    monkeypatch.setattr(walk.frames, "together", 3, raising=False)
    assert [len(block) for block in walk[1:].blocks()] == [2, 3, 1]
    assert np.array_equal(np.concatenate([block.positions for block in walk[1:].blocks()]), walk[1:].positions)


def test_cells_become_edges():
    lengths = np.array([[2.0, 3.0, 4.0]] * FRAMES)
    assert np.array_equal(sample(cells=lengths).edges(), lengths[:, :, None] * np.eye(3))
    six = sample(cells=np.hstack([lengths, [[90, 90, 60]] * FRAMES])).edges()
    assert six[0].round(6).tolist() == [[2, 0, 0], [1.5, 2.598076, 0], [0, 0, 4]]
    assert sample().edges() is None


def test_a_frame_is_particles_in_its_box():
    walk = sample(cells=np.full((FRAMES, 3), 10.0), origins=np.full((FRAMES, 3), -5.0))
    one = walk.particles(3, wrap=True)
    assert one.box == (10.0, 10.0, 10.0)
    assert np.allclose(one.positions, walk.positions[3] + 5)
    assert sample().particles(0).box is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"times": np.zeros(3)}, r"times must have the shape \(7,\); got \(3,\)"),
        ({"cells": np.zeros((FRAMES, 4))}, r"cells must have the shape \(7, 3, 3\) or \(7, 6\)"),
        ({"velocities": np.zeros((FRAMES, 2, 3))}, "velocities must have the shape"),
        ({"steps": np.zeros(FRAMES)}, "steps must be integers"),
        ({"images": np.zeros((FRAMES, ATOMS, 3))}, "images must be integers"),
        ({"atoms": {"name": ["C"]}}, "the column 'name' of atoms must be numbers or text, one for each of 5 atoms"),
    ],
)
def test_what_does_not_belong_together_is_refused(change, words):
    with pytest.raises(WorkbenchError, match=words):
        sample(**change)


def test_other_bad_input_is_refused():
    for positions in (np.zeros((4, 3)), np.zeros((2, 4, 2)), np.zeros((2, 4, 3), int), np.zeros((0, 4, 3))):
        with pytest.raises(WorkbenchError, match=r"positions must be float32 or float64|at least one frame"):
            wb.Trajectory(positions)
    walk = sample()
    many = wb.Trajectory(np.zeros((1, 15, 3)), atoms={"name": [f"A{atom:02}" for atom in range(15)]})
    for ask, words in (
        (lambda: walk[7], "frame must be between 0 and 6; got 7"), (lambda: walk[3:3], "at least one frame"),
        (lambda: walk["a"], "a number or a slice"),
        (lambda: walk.select("H"), "no atom is named 'H'; there are C, CA, N, O"),
        (lambda: walk.select([5]), "indices from 0 to 4"), (lambda: walk.select([]), "indices from 0 to 4"),
        (lambda: wb.Trajectory(walk.positions).select("C"), "have no names: choose them by index"),
        (lambda: many.select("B"), "there are A00, .*, A11 and 3 others"),
    ):
        with pytest.raises(WorkbenchError, match=words):
            ask()
