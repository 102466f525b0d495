"""H5MD: what the specification allows, files of MDAnalysis, and ours read by MDAnalysis."""

import warnings

import h5py
import numpy as np
import pytest

import workbench as wb
from workbench.data.writers import write_trajectory
from workbench.errors import WorkbenchError

FRAMES, ATOMS = 4, 6
random = np.random.default_rng(3)
POSITIONS = random.random((FRAMES, ATOMS, 3)).astype("f4")
STEPS = np.array([0, 10, 20, 40])


def h5md(path, **elements):
    """A file by the specification 1.1; an element is an array for all times, or a mapping of `value`, `step` and `time`."""
    given = {"position": {"value": POSITIONS, "step": STEPS, "time": STEPS * 0.5}, **elements}
    with h5py.File(path, "w") as file:
        file.create_group("h5md").attrs["version"] = [1, 1]
        box = file.create_group("particles/all/box")
        box.attrs["dimension"] = 3
        box.attrs["boundary"] = given.pop("boundary", ["periodic"] * 3)
        for name, element in given.items():
            place = f"particles/{name}" if "/" in name else f"particles/all/{'box/' * (name == 'edges')}{name}"
            if isinstance(element, dict):
                for part, array in element.items():
                    file[f"{place}/{part}"] = array
            elif element is not None:
                file[place] = element
    return path


def test_what_the_specification_allows(tmp_path):
    kinds = np.array([0, 1, 1, 0, 1, 1])
    path = h5md(
        tmp_path / "walk.h5", edges=[2.0, 3.0, 4.0], mass=np.arange(6.0),
        charge={"value": np.ones((FRAMES, ATOMS)), "step": STEPS},
        species=kinds.astype(h5py.enum_dtype({"O": 0, "H": 1}, "i1")),
        species_label=np.array(["OW", "HW1", "HW2"] * 2, "S3"),
        force={"value": POSITIONS, "step": STEPS}, image={"value": np.ones((FRAMES, ATOMS, 3), "i1"), "step": STEPS},
        density={"value": random.random((FRAMES, ATOMS)), "step": STEPS},
    )
    with h5py.File(path, "r+") as file:
        file["particles/all/position/value"].attrs["unit"] = "A"
        file["particles/all/position/time"].attrs["unit"] = "ps"
    walk = wb.open_trajectory(path)
    assert np.array_equal(walk.positions, POSITIONS)
    assert np.array_equal(walk.edges(), [np.diag([2.0, 3.0, 4.0])] * FRAMES)
    assert (walk.times.tolist(), walk.steps.tolist()) == ([0, 5, 10, 20], STEPS.tolist())
    assert (walk.images.dtype, walk.images.sum()) == (np.int32, FRAMES * ATOMS * 3)
    assert {name: column.tolist() for name, column in walk.atoms.items()} == {
        "type": ["O", "H", "H", "O", "H", "H"], "mass": [0, 1, 2, 3, 4, 5], "charge": [1] * 6,
        "species_label": ["OW", "HW1", "HW2"] * 2,
    }
    assert walk.metadata["units"] == {"length": "angstrom", "time": "ps"}
    assert walk.metadata["left_out"] == ["elements density, force"]
    one = wb.open(path, frame=3)
    assert (one.box, one.metadata["step"], one.masses.tolist()) == ((2, 3, 4), 40, [0, 1, 2, 3, 4, 5])
    assert np.array_equal(one.positions, POSITIONS[3])


def test_steps_and_times_as_increments(tmp_path):
    path = h5md(
        tmp_path / "walk.h5", position={"value": POSITIONS, "step": 5, "time": 0.25},
        edges={"value": np.full((FRAMES, 3), 2.0), "step": 5}, velocity={"value": POSITIONS, "step": 10},
    )
    with h5py.File(path, "r+") as file:
        file["particles/all/position/time"].attrs["offset"] = 100.0
    walk = wb.open_trajectory(path)
    assert (walk.steps.tolist(), walk.times.tolist()) == ([0, 5, 10, 15], [100, 100.25, 100.5, 100.75])
    assert (walk[2:].steps.tolist(), walk[2:].times.tolist()) == ([10, 15], [100.5, 100.75])
    assert walk.metadata["left_out"] == ["velocities, which are sampled at other steps than positions"]
    with h5py.File(path, "r+") as file:
        file["particles/all/box/edges/step"][()] = 7
    with pytest.raises(WorkbenchError, match=r"the box of particles/all in .* is given at other steps than positions"):
        wb.open_trajectory(path)


def test_axes_without_periods(tmp_path):
    path = h5md(tmp_path / "slab.h5", edges=np.diag([2.0, 3.0, 4.0]), boundary=["periodic", "periodic", "none"])
    assert np.array_equal(wb.open_trajectory(path).edges()[1], np.diag([2.0, 3.0, 0.0]))
    with pytest.raises(WorkbenchError, match="periodic along some axes only"):
        wb.open(path)
    path = h5md(tmp_path / "open.h5", edges=[2.0, 3.0, 4.0], boundary=["none"] * 3)
    assert (wb.open_trajectory(path).cells, wb.open(path).box) == (None, None)


def test_particles_that_change_places_are_ordered_by_their_ids(tmp_path):
    ids = np.array([random.permutation([7, 2, 90, 11, 5, 3]) for _ in range(FRAMES)])
    moved = np.array([POSITIONS[frame][np.argsort(np.argsort(ids[frame]))] for frame in range(FRAMES)])
    path = h5md(
        tmp_path / "walk.h5", position={"value": moved, "step": STEPS}, id={"value": ids, "step": STEPS},
        velocity={"value": -moved, "step": STEPS}, edges={"value": np.full((FRAMES, 3), 9.0), "step": STEPS},
    )
    walk, place = wb.open_trajectory(path), np.argsort(np.argsort(ids[0]))
    assert walk.atoms["id"].tolist() == ids[0].tolist()
    assert np.array_equal(walk.positions, POSITIONS[:, place])
    assert np.array_equal(walk[1:3].velocities, -POSITIONS[1:3, place])
    assert np.array_equal(wb.open(path, frame=2).positions, POSITIONS[2, place])
    with h5py.File(path, "r+") as file:
        file["particles/all/id/value"][2, 0] = 4
    with pytest.raises(WorkbenchError, match=r"the particles of frame 2 of walk\.h5 are others than those of frame 0"):
        wb.open_trajectory(path).positions   # noqa: B018


def test_a_group_is_chosen_by_name(tmp_path):
    path = h5md(tmp_path / "two.h5", **{"wall/position": np.zeros((2, 3))})
    with pytest.raises(WorkbenchError, match=r"several groups of particles: choose one by name=\.\.\.; it has all, wall"):
        wb.open_trajectory(path)
    with pytest.raises(WorkbenchError, match="no group of particles 'gas'; it has all, wall"):
        wb.open(path, name="gas")
    wall = wb.open_trajectory(path, name="wall")
    assert (wall.shape, wall.metadata["left_out"]) == ((1, 2, 3), ["group particles/all"])
    assert wb.open(path, name="particles/all", frame=1).positions.tolist() == POSITIONS[1].tolist()


def test_frames_without_a_time_are_left_out_and_said(tmp_path):
    path = h5md(tmp_path / "cut.h5", position={"value": POSITIONS, "step": STEPS[:3]})
    walk = wb.open_trajectory(path)
    assert (len(walk), walk.metadata["left_out"]) == (3, ["1 frames at the end, of which no step or time is stated"])


def test_two_axes_are_single_frames(tmp_path):
    position = {"value": POSITIONS[..., :2], "step": STEPS}
    path = h5md(tmp_path / "flat.h5", position=position, edges=[2.0, 3.0], boundary=["periodic"] * 2)
    assert wb.open(path, frame=1).box == (2, 3)
    with pytest.raises(WorkbenchError, match=r"positions along three axes; flat\.h5 has 2"):
        wb.open_trajectory(path)


@pytest.mark.parametrize(("elements", "said"), [
    ({"position": {"value": POSITIONS.astype("i4"), "step": STEPS}}, "must be float32 or float64 of shape"),
    ({"position": {"value": POSITIONS[:, :, 0], "step": STEPS}}, "must be float32 or float64 of shape"),
    ({"position": {"value": POSITIONS, "step": STEPS[:0]}}, "positions have no steps"),
    ({"position": {"other": POSITIONS}}, "particles/all/position must be a data set, or a group with one named value"),
    ({"edges": np.ones((2, 2))}, "edges of a box along 3 axes have the shape"),
    ({"edges": [1.0, 1.0, 1.0], "boundary": ["none", "none"]}, "edges of a box along 3 axes have the shape"),
], ids=["whole", "flat", "empty", "no-value", "edges", "boundary"])
def test_what_no_trajectory_can_be_is_refused(tmp_path, elements, said):
    path = h5md(tmp_path / "bad.h5", **elements)
    with pytest.raises(WorkbenchError, match=said):
        wb.open_trajectory(path)
    with pytest.raises(WorkbenchError, match=said):
        wb.open(path)


def test_a_file_that_asks_for_too_much_memory_is_refused(tmp_path):
    path = h5md(tmp_path / "huge.h5", position=None)
    with h5py.File(path, "r+") as file:
        file.create_dataset("particles/all/position/value", (2**20, 2**30, 3), "f4", chunks=(1, 2**10, 3))
    with pytest.raises(WorkbenchError, match=r"only .* are stored"):
        wb.open_trajectory(path).positions   # noqa: B018
    with pytest.raises(WorkbenchError, match=r"only .* are stored"):
        wb.open(path)


def test_a_box_and_observables_alone_are_no_trajectory(tmp_path):
    path = h5md(tmp_path / "none.h5", position=None, edges=[1.0, 2.0, 3.0])
    assert wb.open(path).metadata["format"] == "HDF5 grid"


def sample():
    cells = np.array([[[4, 0, 0], [0.5, 5, 0], [0.25, 0, 6]]], "f4") * np.arange(4, 8, dtype="f4")[:, None, None] / 4
    return wb.Trajectory(
        POSITIONS, cells=cells, times=STEPS * 0.5, steps=STEPS, velocities=-POSITIONS,
        images=np.arange(FRAMES * ATOMS * 3).reshape(POSITIONS.shape),
        atoms={
            "name": ["C Ω", "", "H\n", "O", "N", "H"], "type": [1, 2, 3, 1, 2, 3], "mass": np.arange(6.0, dtype="f4"),
            "position": [0] * 6,
        },
        metadata={"units": {"length": "angstrom", "time": "ps", "velocity": "angstrom/ps"}},
    )


def test_everything_comes_back(tmp_path):
    walk, path = sample(), tmp_path / "walk.h5md"
    said = write_trajectory(walk, path, ".h5md")
    assert (said.rounding, said.left_out, said.notes) == (0, ("the column position of atoms",), ())
    back = wb.open_trajectory(path)
    assert back.arrays == walk.arrays
    for name in walk.arrays:
        assert np.array_equal(back.read(0, FRAMES, (name,))[name], walk.read(0, FRAMES, (name,))[name])
    for name in ("name", "type", "mass"):
        assert back.atoms[name].dtype == walk.atoms[name].dtype
        assert np.array_equal(back.atoms[name], walk.atoms[name])
    assert back.metadata["units"] == {"length": "Angstrom", "time": "ps", "velocity": "Angstrom ps-1"}
    again = tmp_path / "again.h5md"
    write_trajectory(back, again, ".h5md")
    assert wb.open_trajectory(again).metadata == back.metadata


def test_files_of_mdanalysis_and_for_it(tmp_path):
    universe = pytest.importorskip("MDAnalysis").Universe
    path, other = tmp_path / "ours.h5md", tmp_path / "theirs.h5md"
    write_trajectory(sample(), path, ".h5md")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = universe.empty(ATOMS, trajectory=True, velocities=True).load_new(str(path))
        seen = [
            (one.positions.copy(), one.velocities.copy(), one.triclinic_dimensions.copy(), one.time)
            for one in theirs.trajectory
        ]
        theirs.atoms.write(str(other), frames="all")
        theirs.trajectory.close()
    positions, velocities, cells, times = (np.array(array) for array in zip(*seen, strict=True))
    assert np.allclose(positions, POSITIONS, atol=1e-6)
    assert np.allclose(velocities, -POSITIONS, atol=1e-6)
    assert np.allclose(cells, sample().cells, atol=1e-5)
    assert times.tolist() == [0, 5, 10, 20]
    back = wb.open_trajectory(other)
    assert np.allclose(back.positions, POSITIONS, atol=1e-6)
    assert np.allclose(back.edges(), sample().cells, atol=1e-5)
    assert back.times.tolist() == [0, 5, 10, 20]
