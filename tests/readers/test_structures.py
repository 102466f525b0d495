"""GRO and DCD, written by hand and by MDAnalysis."""

import warnings

import numpy as np
import pytest

from workbench import WorkbenchError
from workbench.data.readers import open_file, other_process
from workbench.data.readers.source import Source

mda = pytest.importorskip("MDAnalysis")
POINTS = np.random.default_rng(0).uniform(0, 30, (20, 3)).astype(np.float32)

GRO = """water, t= 0.0
    2
    1SOL     OW    1   0.126   1.624   1.679  0.1227 -0.0580  0.0434
    1SOL    HW1    2   0.190   1.661   1.747  0.8085  0.3191 -0.7791
   1.82060   1.82060   1.82060
"""

@pytest.fixture
def written(tmp_path):
    """The same atoms in two frames, as MDAnalysis writes them."""

    def write(name, box):
        path = tmp_path / name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            universe = mda.Universe.empty(len(POINTS), trajectory=True)
            with mda.Writer(str(path), len(POINTS)) as writer:
                for shift in (0.0, 1.0):
                    universe.atoms.positions = POINTS + shift
                    universe.dimensions = box
                    writer.write(universe.atoms)
        return path

    return write


def test_gro(tmp_path):
    path = tmp_path / "no_suffix"
    path.write_text(GRO)
    particles = open_file(path)
    np.testing.assert_allclose(particles.positions, [[0.126, 1.624, 1.679], [0.190, 1.661, 1.747]], atol=1e-6)
    np.testing.assert_allclose(particles.velocities[0], [0.1227, -0.0580, 0.0434], atol=1e-6)
    assert particles.box == pytest.approx((1.8206,) * 3)
    assert particles.metadata["units"]["length"] == "nm"


def test_every_frame_of_gro(tmp_path):
    path = tmp_path / "a.gro"
    path.write_text(GRO + GRO.replace("0.126", "0.500").replace("t= 0.0", "t= 2.5 step= 10") + "\n")
    second = open_file(path, frame=1)
    assert second.positions[0, 0] == np.float32(0.5)
    assert (second.metadata["time"], second.metadata["step"]) == (2.5, 10)
    assert "all frames but frame 0" in open_file(path).metadata["left_out"]
    with pytest.raises(WorkbenchError, match="frame must be between 0 and 1; got 2"):
        open_file(path, frame=2)


def test_gro_with_more_decimals(tmp_path):
    path = tmp_path / "a.gro"
    atoms = "".join(f"    1SOL     OW    1{0.123456789:12.8f}{1.5:12.8f}{-2.25:12.8f}\n" for _ in range(2))
    path.write_text(f"fine\n2\n{atoms} 0 0 0\n")
    assert open_file(path).positions[0].tolist() == [0.12345679, 1.5, -2.25]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1.624", "1.6x4", "expected 6 numbers of 8 characters"),
        ("   1.82060\n", "\n", "the cell must have three numbers or nine"),
        ("    2\n", "    3\n", "expected 3 lines of atoms and one of the cell in frame 0; got 3"),
    ],
)
def test_gro_that_is_damaged(tmp_path, old, new, message):
    (tmp_path / "a.gro").write_text(GRO.replace(old, new))
    with pytest.raises(WorkbenchError, match=message):
        open_file(tmp_path / "a.gro", format="gro")


def test_dcd(written):
    path = written("a.dcd", [40, 40, 40, 90, 90, 90])
    for frame in (0, 1):
        particles = open_file(path, frame=frame)
        np.testing.assert_allclose(particles.positions, POINTS + frame, atol=1e-5)
        assert particles.box == (40.0, 40.0, 40.0)
    assert particles.metadata["frames"] == 2
    with pytest.raises(WorkbenchError, match="frame must be between 0 and 1; got 2"):
        open_file(path, frame=2)


@pytest.mark.parametrize("keep", [30, 90, 200, 400, 700])
def test_cut_dcd(written, keep):
    path = written("a.dcd", [40, 40, 40, 90, 90, 90])
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(WorkbenchError):
        open_file(path, frame=1)


@pytest.mark.parametrize("keep", [60, 100, 180])
def test_cut_gro(tmp_path, keep):
    path = tmp_path / "cut"
    path.write_text(GRO[:keep])
    with pytest.raises(WorkbenchError):
        open_file(path)


@pytest.mark.parametrize("reused", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_library_that_crashes_is_a_damaged_file_and_a_fresh_process_reads_the_next(tmp_path, monkeypatch, reused):
    (tmp_path / "crashes.py").write_text(
        "import os, numpy\n"
        "def frame_at(path, frame):\n    if frame: os.abort()\n    return {'positions': numpy.ones(3)}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    other_process.end_all()
    (tmp_path / "some.dcd").write_bytes(b"bytes")
    source = Source.at(tmp_path / "some.dcd")
    if reused:
        assert other_process.arrays_of_frame(source, "crashes", "frame_at", 0)["positions"].tolist() == [1, 1, 1]
    with pytest.raises(WorkbenchError, match=r"some\.dcd is truncated or damaged: .* ended with signal SIGABRT"):
        other_process.arrays_of_frame(source, "crashes", "frame_at", 1)
    assert other_process.arrays_of_frame(source, "crashes", "frame_at", 0)["positions"].tolist() == [1, 1, 1]
    other_process.end_all()
