"""All frames of trajectory files: the same values as frame by frame, in every format, and back from what we write."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.data.writers import SUFFIXES, write_trajectory
from workbench.errors import WorkbenchError

FRAMES, ATOMS = 5, 12
NAMES = ["C", "CA", "N", "O"] * 3
NM = {"length": "nm", "time": "ps", "velocity": "nm/ps"}


def sample(dtype="f4", unit="nm", triclinic=False, count=ATOMS, frames=FRAMES, **more) -> wb.Trajectory:
    """Multiples of a thousandth; cells that change."""
    random = np.random.default_rng(5)
    positions = (random.integers(-500, 4500, (frames, count, 3)) / 1000).astype(dtype)
    cells = np.array([np.diag([4.0, 4.5, 5.0]) * (1 + frame / 64) for frame in range(frames)])
    cells[:, 1, 0] = 0.5 * triclinic
    given = {
        "cells": cells.astype(dtype), "times": np.arange(frames) * 0.5, "steps": np.arange(frames) * 10,
        "atoms": {"name": np.array(NAMES * (count // 4 + 1))[:count]}, "metadata": {"units": {**NM, "length": unit}},
    }
    return wb.Trajectory(positions, **{**given, **more})


def written(tmp_path: Path, walk: wb.Trajectory, suffix: str) -> Path:
    path = tmp_path / f"walk{suffix}"
    write_trajectory(walk, path, suffix)
    return path


def in_unit(walk: wb.Trajectory, suffix: str) -> float:
    """What lengths in nm are multiplied by in a format."""
    return 10.0 if suffix in (".dcd", ".nc", ".ncdf", ".xyz") else 1.0


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("triclinic", [False, True], ids=["rectangular", "triclinic"])
def test_what_is_written_comes_back(tmp_path, suffix, triclinic):
    walk = sample(triclinic=triclinic)
    path = tmp_path / f"walk{suffix}"
    said = write_trajectory(walk, path, suffix)
    back, factor = wb.open_trajectory(path), in_unit(walk, suffix)
    assert back.shape == walk.shape
    error = np.abs(back.positions / factor - walk.positions).max()
    assert error <= said.rounding + 1e-6
    assert said.rounding < 1e-6   # multiples of a thousandth, which xtc and gro keep
    assert np.allclose(back.edges() / factor, walk.edges(), atol=1e-5)
    for name in ("times", "steps"):
        if name in back.arrays and name not in said.left_out and suffix not in (".gsd", ".lammpstrj", ".xyz"):
            assert np.allclose(back.read(0, FRAMES, (name,))[name], walk.read(0, FRAMES, (name,))[name])
    middle = back[1:4]
    assert np.array_equal(middle.positions, back.positions[1:4])
    assert np.array_equal(back[4].positions[0], back.positions[4])


@pytest.mark.parametrize("suffix", [".trr", ".nc", ".lammpstrj", ".gsd"])
def test_velocities_and_images_come_back(tmp_path, suffix):
    random = np.random.default_rng(1)
    velocities = random.normal(size=(FRAMES, ATOMS, 3)).astype("f4")
    images = random.integers(-2, 3, (FRAMES, ATOMS, 3)).astype("i4")
    walk = sample(velocities=velocities, images=images)
    back = wb.open_trajectory(written(tmp_path, walk, suffix))
    assert np.allclose(back.velocities, velocities * in_unit(walk, suffix), rtol=1e-6)
    if suffix in (".lammpstrj", ".gsd"):
        assert np.array_equal(back.images, images)


def test_each_frame_is_that_of_open(tmp_path):
    for suffix in SUFFIXES:
        path = written(tmp_path, sample(), suffix)
        walk = wb.open_trajectory(path)
        for frame in (0, FRAMES - 1):
            one = wb.open(path, frame=frame, box=None).positions
            assert np.array_equal(one, walk[frame].positions[0]) or suffix in (".lammpstrj", ".gsd")   # other origins


def test_double_precision_stays(tmp_path):
    walk = sample("f8")
    thirds = wb.Trajectory(walk.positions / 3, cells=walk.cells, metadata=walk.metadata)
    for suffix in (".trr", ".nc", ".xyz", ".lammpstrj"):
        back = wb.open_trajectory(written(tmp_path, thirds, suffix))
        assert back.dtype == np.float64
        assert np.allclose(back.positions, thirds.positions * in_unit(walk, suffix), rtol=1e-15, atol=0)
    said = write_trajectory(thirds, tmp_path / "thirds.xtc", ".xtc")
    assert 3e-4 < said.rounding < 5.01e-4   # thirds of thousandths
    assert write_trajectory(thirds, tmp_path / "finer.xtc", ".xtc", within=1e-5).rounding < 6e-6


@pytest.mark.parametrize("suffix", [".xtc", ".trr", ".xyz", ".gro", ".lammpstrj"])
def test_a_frame_that_is_cut_is_left_out_and_said(tmp_path, suffix):
    path = written(tmp_path, sample(count=40), suffix)
    data, whole = path.read_bytes(), wb.open_trajectory(path).positions
    path.write_bytes(data[: len(data) - len(data) // (3 * FRAMES)])
    cut = wb.open_trajectory(path)
    assert len(cut) == FRAMES - 1
    assert np.array_equal(cut.positions, whole[:-1])
    assert any("cut short" in one or "cannot be read" in one for one in cut.metadata["left_out"])


def test_an_xtc_that_is_cut_anywhere_has_its_whole_frames(tmp_path):
    path = written(tmp_path, sample(), ".xtc")
    data = path.read_bytes()
    starts = [at for at in range(0, len(data), 4) if data[at : at + 4] == (1995).to_bytes(4, "big")]
    assert len(starts) == FRAMES
    for length in range(starts[-1], len(data)):
        cut = tmp_path / f"{length}.xtc"
        cut.write_bytes(data[:length])
        assert len(wb.open_trajectory(cut)) == FRAMES - 1
    assert wb.open(cut).metadata["frames"] == FRAMES - 1


def test_a_dcd_that_is_cut_says_so(tmp_path):
    path = written(tmp_path, sample(count=40), ".dcd")
    path.write_bytes(path.read_bytes()[:-300])
    cut = wb.open_trajectory(path)
    assert len(cut) == FRAMES - 1
    assert cut.metadata["left_out"] == ["1 of 5 frames that the header states: the file is cut short"]


def test_a_dcd_without_cells_has_none(tmp_path):
    path = written(tmp_path, sample(cells=None), ".dcd")
    assert wb.open_trajectory(path).cells is None
    assert wb.open(path).box is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_one_frame_of_one_atom(tmp_path, suffix):
    walk = wb.Trajectory(np.array([[[0.25, 0.5, 0.75]]], "f4"), cells=[[1.0, 1.0, 1.0]], metadata={"units": NM})
    back = wb.open_trajectory(written(tmp_path, walk, suffix))
    assert back.shape == (1, 1, 3)
    assert np.allclose(back.positions / in_unit(walk, suffix), walk.positions, atol=1e-6)


@pytest.mark.parametrize("suffix", [".xtc", ".trr", ".xyz", ".gro", ".lammpstrj"])
def test_other_numbers_of_atoms_are_refused(tmp_path, suffix):
    path, other = written(tmp_path, sample(), suffix), tmp_path / f"other{suffix}"
    write_trajectory(sample(count=16), other, suffix)
    path.write_bytes(path.read_bytes() + other.read_bytes())
    with pytest.raises(WorkbenchError, match=r"frame 5 of walk\S+ has 16 atoms, and frame 0 has 12: .*frame=5"):
        wb.open_trajectory(path)


def test_other_atoms_are_refused(tmp_path):
    path = tmp_path / "swapped.xyz"
    path.write_text("2\n\nO 0 0 0\nH 1 0 0\n2\n\nH 0 0 0\nO 1 0 0\n")
    with pytest.raises(WorkbenchError, match=r"the atoms of frame 1 of swapped\.xyz are others than those of frame 0"):
        wb.open_trajectory(path).positions   # noqa: B018
    path.write_text('1\n\nO 0 0 0\n1\nLattice="1 0 0 0 1 0 0 0 1"\nO 1 0 0\n')
    with pytest.raises(WorkbenchError, match=r"only some frames of swapped\.xyz have cells"):
        wb.open_trajectory(path).positions   # noqa: B018


def test_names_come_from_a_topology(tmp_path):
    path, gro = written(tmp_path, sample(), ".xtc"), written(tmp_path, sample(frames=1), ".gro")
    assert wb.open_trajectory(path, topology=gro).select("CA").n_atoms == 3
    pdb = tmp_path / "walk.pdb"
    pdb.write_text("TITLE\n" + "".join(
        f"ATOM  {at + 1:5d} {name:<4} ALA A{at // 4 + 1:4d}    {0:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00          {name[0]:>2}\n"
        for at, name in enumerate(NAMES)
    ) + "ENDMDL\nATOM  the next model\n")
    named = wb.open_trajectory(path, topology=pdb)
    assert named.atoms["name"].tolist() == NAMES
    assert named.atoms["residue"].tolist() == [1] * 4 + [2] * 4 + [3] * 4
    assert named.atoms["element"].tolist() == [name[0] for name in NAMES]
    short = written(tmp_path, sample(count=4), ".trr")
    with pytest.raises(WorkbenchError, match=r"the topology walk\.trr|names no atoms"):
        wb.open_trajectory(path, topology=short)
    with pytest.raises(WorkbenchError, match="has 12 atoms, and the trajectory 4"):
        wb.open_trajectory(short, topology=pdb)


def test_what_is_no_trajectory_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3)))
    with pytest.raises(WorkbenchError, match="no trajectory"):
        wb.open_trajectory(tmp_path / "x.npy")
    (tmp_path / "empty.xtc").touch()
    with pytest.raises(WorkbenchError, match="is empty"):
        wb.open_trajectory(tmp_path / "empty.xtc")
    path = written(tmp_path, sample(), ".xtc")
    with pytest.raises(WorkbenchError, match="'wrap' is not an option of trajectories"):
        wb.open_trajectory(path, wrap=True)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(WorkbenchError, match="no complete frame"):
        wb.open_trajectory(path)


def test_a_file_that_is_written_again_is_read_again(tmp_path):
    path = written(tmp_path, sample(), ".xyz")
    assert len(wb.open_trajectory(path)) == FRAMES
    other = tmp_path / "more.xyz"
    write_trajectory(sample(frames=9), other, ".xyz")
    shutil.copy(other, path)
    assert len(wb.open_trajectory(path)) == 9


def test_units_are_converted_and_said(tmp_path):
    walk = sample(unit="angstrom")
    said = write_trajectory(walk, tmp_path / "walk.trr", ".trr")
    assert said.notes == ("lengths in angstrom are written in nm, as the format has them",)
    assert np.allclose(wb.open_trajectory(tmp_path / "walk.trr").positions * 10, walk.positions)
    unknown = wb.Trajectory(walk.positions)
    assert "is not stated" in write_trajectory(unknown, tmp_path / "unknown.trr", ".trr").notes[0]
    with pytest.raises(WorkbenchError, match=r"ends in \.xtc"):
        write_trajectory(walk, tmp_path / "walk.mp4", ".mp4")
    with pytest.raises(WorkbenchError, match=r"holds coordinates up to 2.14748e\+06 nm; got 1e\+07"):
        write_trajectory(wb.Trajectory(np.full((1, 10, 3), 1e7)), tmp_path / "far.xtc", ".xtc")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_a_format_does_not_hold_are_written_otherwise(tmp_path, suffix):
    atoms = {
        "name": ["a b", "", "Ω", "longer"] * 3, "element": ["C l", "", "\n7", "O"] * 3,
        "residue": np.array(["A1", "B2", "C3", "D4"] * 3), "mass": np.array(["heavy"] * 12),
    }
    walk = sample(atoms=atoms)
    path = tmp_path / f"walk{suffix}"
    said = write_trajectory(walk, path, suffix)
    back = wb.open_trajectory(path)
    assert np.abs(back.positions / in_unit(walk, suffix) - walk.positions).max() <= said.rounding + 1e-6
    for name, column in atoms.items():
        kept = name in back.atoms and np.array_equal(back.atoms[name], column)
        assert kept or f"the column {name} of atoms" in " ".join((*said.left_out, *said.notes))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "steps", [np.arange(FRAMES) * 2**40, -np.arange(FRAMES), np.full(FRAMES, 7)], ids=["huge", "falling", "equal"]
)
def test_steps_that_a_format_does_not_hold_are_left_out(tmp_path, suffix, steps):
    path = tmp_path / f"walk{suffix}"
    said = write_trajectory(sample(steps=steps), path, suffix)
    back = wb.open_trajectory(path)
    kept = "steps" in back.arrays and np.array_equal(back.steps, steps)
    assert kept or "steps" in " ".join(said.left_out)


def test_times_that_are_not_even_are_said(tmp_path):
    times = np.array([0, 1, 3, 4, 9.0])
    said = write_trajectory(sample(times=times), tmp_path / "walk.dcd", ".dcd")
    assert "times, which do not rise evenly with the steps" in said.left_out
    for bad in (np.inf, -np.inf, np.nan):
        other = wb.Trajectory(sample().positions, times=np.array([bad, 0, 1, 2, 3.0]))
        assert "times" in " ".join(write_trajectory(other, tmp_path / f"{bad}.dcd", ".dcd").left_out)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rounding_beside_what_is_not_finite_is_measured(tmp_path, suffix, bad):
    positions = np.random.default_rng(2).random((FRAMES, ATOMS, 3))
    positions[1, 3, 2] = bad
    walk, path = wb.Trajectory(positions, metadata={"units": NM}), tmp_path / f"walk{suffix}"
    try:
        said = write_trajectory(walk, path, suffix)
    except WorkbenchError as error:
        assert suffix in (".xtc", ".gro")
        assert "write .trr" in str(error)   # noqa: PT017
        return
    back = wb.open_trajectory(path).positions.astype(np.float64) / in_unit(walk, suffix)
    assert np.array_equal(np.isfinite(back), np.isfinite(positions))
    finite = np.isfinite(positions)
    error = np.abs(back[finite] - positions[finite]).max()
    assert error <= said.rounding * 1.0001 + 1e-15
    assert suffix not in (".dcd", ".gsd") or said.rounding > 1e-9


def test_numbers_too_large_for_a_format_are_refused(tmp_path):
    large = wb.Trajectory(np.full((1, 12, 3), 1e300), metadata={"units": NM})
    for suffix in (".dcd", ".gsd", ".gro", ".xtc"):
        with pytest.raises(WorkbenchError, match=r"write \.(npz|trr)"):
            write_trajectory(large, tmp_path / f"large{suffix}", suffix)
