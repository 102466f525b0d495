"""Trajectories: xyz, LAMMPS dumps, trr, xtc, gsd."""

import importlib
from pathlib import Path

import gsd.hoomd
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers import written
from workbench import WorkbenchError
from workbench.data.readers import open_file, other_process

FRAMES = [written.points(6, seed=seed) for seed in range(3)]


def test_xyz(file):
    path = file(written.xyz(FRAMES), "gas.xyz")
    for number, frame in enumerate(FRAMES):
        particles = open_file(path, frame=number)
        np.testing.assert_array_equal(particles.positions.astype("f4"), frame)
        assert particles.positions.dtype == np.float64
    assert particles.box is None
    assert particles.metadata["comment"] == "atoms"
    assert open_file(path, box=written.BOX).box == (written.BOX,) * 3


def test_extended_xyz_states_its_lattice_and_columns(file):
    comment = 'Lattice="10 0 0 0 11 0 0 0 12" Properties=pos:R:3:species:S:1'
    text = f"2\n{comment}\n1.0 2.0 3.0 He\n-1.0 12.0 3.0 He\n"
    particles = open_file(file(text))
    assert particles.box == (10.0, 11.0, 12.0)
    assert particles.positions.tolist() == [[1.0, 2.0, 3.0], [9.0, 1.0, 3.0]]
    with pytest.raises(WorkbenchError, match="pass box=None"):
        open_file(file('1\nLattice="10 0 0 0 11 0 0 0 12" pbc="T T F"\nHe 1 2 3\n'))
    assert open_file(file('1\nLattice="10 0 0 0 11 0 0 0 12" pbc="F F F"\nHe 1 2 3\n')).box is None
    with pytest.raises(WorkbenchError, match="Lattice must have nine numbers"):
        open_file(file('1\nLattice="10 11"\nHe 1 2 3\n'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3\nc\nHe 1 2 3\nHe 1 2 3\n", "expected 3 lines of atoms in frame 0; got 2"),
        ("2\nc\nHe 1 2 3\nHe 1 x 3\n", "expected x, y and z from column 2 on; got 'He 1 x 3'"),
        ("2\nc\nHe 1 2 3\nHe 1 2\n", "expected x, y and z .* got 'He 1 2'"),
        ("0\nc\nHe 1 2 3\n", "expected the number of atoms of frame 0; got '0'"),
        ("99999999999999999999\nc\nHe 1 2 3\n", "expected the number of atoms"),
        ("1\nc\nHe 1 2 nan\n", "positions must be finite"),
    ],
)
def test_xyz_that_is_damaged(file, text, message):
    with pytest.raises(WorkbenchError, match=message):
        open_file(file(text))


def test_lammps_rows_are_sorted_and_the_corner_is_the_origin(file):
    points = written.points(6, "f8")
    text = written.lammps(points + 100, low=100.0, order=np.array([3, 1, 5, 0, 2, 4]))
    particles = open_file(file(text * 2), frame=1)
    np.testing.assert_allclose(particles.positions, points, atol=1e-12)
    assert particles.ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert particles.box == (10.0,) * 3
    assert (particles.metadata["step"], particles.metadata["origin"]) == (7, [100.0] * 3)


def test_lammps_fractions_and_velocities(file):
    points = written.points(4, "f8")
    particles = open_file(file(written.lammps(points / 10, low=-5.0, columns="xs ys zs")))
    np.testing.assert_allclose(particles.positions, points, atol=1e-12)
    both = np.concatenate([points, -points], axis=1)
    np.testing.assert_array_equal(open_file(file(written.lammps(both, columns="x y z vx vy vz"))).velocities, -points)


def test_lammps_cells_that_are_no_boxes(file):
    points = written.points(4)
    assert open_file(file(written.lammps(points, flags="ff ff ff"))).box is None
    with pytest.raises(WorkbenchError, match="pass box=None"):
        open_file(file(written.lammps(points, flags="pp pp ff")))
    assert open_file(file(written.lammps(points, tilts=(0.0, 0.0, 0.0)))).box == (10.0,) * 3


LAMMPS = written.lammps(written.points(4))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAMMPS.replace("x y z", "a b c"), "no columns x, y, z .* it has id, type, a, b, c"),
        (LAMMPS.replace("ITEM: NUMBER OF ATOMS\n4", "ITEM: NUMBER OF ATOMS\n9"), "expected 9 lines after 'ITEM: ATOMS"),
        (LAMMPS.replace("ITEM: NUMBER OF ATOMS\n4", "ITEM: NUMBER OF ATOMS\n-4"), "expected a whole number .* got '-4'"),
        (LAMMPS.replace("ITEM: NUMBER OF ATOMS\n4\n", ""), "expected a whole number .* got 'nothing'"),
        (LAMMPS.replace("0.0 10.0", "10.0 0.0"), "expected three lines 'low high' of the box"),
        (LAMMPS.replace("ITEM: TIMESTEP\n7\n", ""), "expected the sections TIMESTEP and BOX BOUNDS"),
        (LAMMPS.replace("ITEM: BOX", "BOX"), "expected a line that begins with ITEM:"),
        (LAMMPS.rsplit(" ", 1)[0], "expected lines of the 5 columns"),
        (LAMMPS.replace("1 1 ", "1 1 x", 1), "expected numbers in the lines of atoms"),
    ],
)
def test_lammps_that_is_damaged(file, text, message):
    with pytest.raises(WorkbenchError, match=message):
        open_file(file(text), format="lammps")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("velocity", [True, False])
def test_trr_in_both_precisions(file, dtype, velocity):
    frames = [frame.astype(dtype) for frame in FRAMES]
    path = file(written.trr(frames, box=np.diag([10.0, 11.0, 12.0]), velocity=velocity))
    for number, frame in enumerate(frames):
        particles = open_file(path, frame=number)
        np.testing.assert_array_equal(particles.positions, frame)
        assert particles.positions.dtype == dtype
        assert particles.box == (10.0, 11.0, 12.0)
        assert (particles.metadata["step"], particles.metadata["time"]) == (100 * number, 0.5 * number)
        assert (particles.velocities is None) != velocity


def test_trr_cells_that_are_no_boxes(file):
    assert open_file(file(written.trr(FRAMES, box=None))).box is None
    assert open_file(file(written.trr(FRAMES, box=np.zeros((3, 3))))).box is None


TRR = written.trr(FRAMES[:1], box=np.diag([10.0] * 3))


@given(cut=st.integers(1, len(TRR) - 1))
def test_trr_cut_anywhere_is_refused(refused_when_cut, cut):
    refused_when_cut(TRR, cut)
    refused_when_cut(TRR, cut, format="trr")


PLACES = st.integers(0, len(TRR) - 1) | st.integers(20, 90)


@given(changes=st.dictionaries(PLACES, st.integers(0, 255), min_size=1, max_size=5))
def test_trr_with_changed_bytes(survives, changes):
    survives(TRR, changes)
    survives(TRR * 2, changes, format="trr", frame=1)


TEXTS = {"xyz": written.xyz(FRAMES).encode(), "lammps": LAMMPS.encode()}


@pytest.mark.parametrize("key", TEXTS)
@given(data=st.data())
def test_text_with_changed_bytes(survives, key, data):
    text = TEXTS[key]
    changes = data.draw(st.dictionaries(st.integers(0, len(text) - 1), st.integers(0, 255), max_size=5))
    survives(text[: data.draw(st.integers(1, len(text)))], changes, format=key)


@pytest.mark.parametrize("key", TEXTS)
@given(share=st.floats(0.01, 0.98))
def test_text_that_ends_early_is_refused(refused_when_cut, key, share):
    text = TEXTS[key]
    last = text.rstrip().rfind(b"\n") if key == "lammps" else text.rstrip().rfind(b"\n", 0, len(text) // 3 - 40)
    refused_when_cut(text, max(1, int(share * last)), format=key)


def test_xtc(tmp_path):
    formats = pytest.importorskip("MDAnalysis.lib.formats.libmdaxdr")
    path = tmp_path / "a.xtc"
    with formats.XTCFile(str(path), "w") as file:
        for number, frame in enumerate(FRAMES):
            file.write(frame, np.diag([10.0, 11.0, 12.0]).astype("f4"), number, 0.5 * number, 1000.0)
    particles = open_file(path, frame=2)
    np.testing.assert_allclose(particles.positions, FRAMES[2], atol=5.1e-4)
    assert particles.box == (10.0, 11.0, 12.0)
    assert (particles.metadata["step"], particles.metadata["time"]) == (2, 1.0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.xtc"]
    with pytest.raises(WorkbenchError, match=r"frame 3 does not exist: a.xtc has fewer frames"):
        open_file(path, frame=3)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(WorkbenchError, match=r"a\.xtc is truncated or damaged: it has no complete frame"):
        open_file(path)


@pytest.mark.parametrize("key", ["xyz", "lammps", "gro"])
def test_frames_by_number_are_found_at_once(tmp_path, monkeypatch, key):
    frames = [written.points(5, seed=seed).round(3) for seed in range(40)]
    path = tmp_path / "a.trajectory"
    path.write_text(written.xyz(frames) if key == "xyz" else "".join(map(getattr(written, key), frames)))
    order = [20, 0, 39, 3, 21]
    for number in order:
        np.testing.assert_allclose(open_file(path, frame=number, format=key).positions, frames[number], atol=6e-4)
    module = importlib.import_module(f"workbench.data.readers.{key}")
    calls, parse = [], module._next_frame
    monkeypatch.setattr(module, "_next_frame", lambda *given: calls.append(given[-1]) or parse(*given))
    for number in order:
        open_file(path, frame=number, format=key)
    assert calls == order


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count what a process reads")
@pytest.mark.parametrize("key", ["trr", "xtc"])
def test_frames_by_number_read_little_more_than_themselves(tmp_path, key):
    frames = [written.points(100, seed=seed).round(3) for seed in range(400)]
    path = tmp_path / f"a.{key}"
    if key == "xtc":
        formats = pytest.importorskip("MDAnalysis.lib.formats.libmdaxdr")
        with formats.XTCFile(str(path), "w") as file:
            for number, frame in enumerate(frames):
                file.write(frame, np.eye(3, dtype="f4") * written.BOX, number, 0.5 * number, 1000.0)
    else:
        path.write_bytes(written.trr(frames, box=np.eye(3) * written.BOX))
    open_file(path, frame=20)
    reader = other_process._kept[0].process.pid if key == "xtc" else "self"
    before = bytes_read(reader)
    for number in (0, 399, 3, 21):
        np.testing.assert_allclose(open_file(path, frame=number).positions, frames[number], atol=6e-4)
    assert 0 < bytes_read(reader) - before < 0.5 * path.stat().st_size


def bytes_read(process):
    return int(Path(f"/proc/{process}/io").read_text().split()[1])


def test_a_file_that_has_changed_is_looked_at_again(tmp_path):
    path = tmp_path / "a.xyz"
    for size in (6, 9):
        frames = [written.points(size, seed=seed) for seed in range(3)]
        path.write_text(written.xyz(frames))
        np.testing.assert_array_equal(open_file(path, frame=2).positions.astype("f4"), frames[2])


def gsd_file(path, box, dimensions=3):
    with gsd.hoomd.open(str(path), "w") as file:
        for number in range(2):
            frame = gsd.hoomd.Frame()
            frame.configuration.step = 10 * number
            frame.configuration.box = box
            frame.configuration.dimensions = dimensions
            frame.particles.N = 6
            frame.particles.position = (FRAMES[number] - 5) * ([1, 1, 1] if dimensions == 3 else [1, 1, 0])
            file.append(frame)
    return path


def test_gsd(tmp_path):
    path = gsd_file(tmp_path / "a.gsd", [10, 10, 10, 0, 0, 0])
    particles = open_file(path, frame=1)
    centred = FRAMES[1] - 5
    np.testing.assert_allclose(particles.positions, np.where(centred < 0, centred + 10, centred), atol=1e-5)
    assert particles.positions.dtype == np.float32
    assert (particles.metadata["step"], particles.metadata["frames"]) == (10, 2)


def test_gsd_in_two_dimensions(tmp_path):
    particles = open_file(gsd_file(tmp_path / "a.gsd", [10, 12, 1, 0, 0, 0], dimensions=2))
    assert (particles.dimensions, particles.box, particles.velocities.shape) == (2, (10.0, 12.0), (6, 2))
    tilted = open_file(gsd_file(tmp_path / "b.gsd", [10, 12, 1, 0.5, 0, 0], dimensions=2))
    assert tilted.metadata["cell"] == {"edges": [[10, 0], [6, 12]], "periodic": True}


def test_truncated_gsd(tmp_path):
    path = gsd_file(tmp_path / "a.gsd", [10, 10, 10, 0, 0, 0])
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(WorkbenchError, match="gsd cannot read"):
        open_file(path)
