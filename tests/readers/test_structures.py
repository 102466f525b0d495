"""GRO and DCD, written by hand and by MDAnalysis."""

import warnings

import numpy as np
import pytest

from workbench import WorkbenchError
from workbench.data.readers import open_file

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


def test_dcd(written):
    path = written("a.dcd", [40, 40, 40, 90, 90, 90])
    for frame in (0, 1):
        particles = open_file(path, frame=frame)
        np.testing.assert_allclose(particles.positions, POINTS + frame, atol=1e-5)
        assert particles.box == (40.0, 40.0, 40.0)
    assert particles.metadata["frames"] == 2
    with pytest.raises(WorkbenchError, match="frame must be between 0 and 1; got 2"):
        open_file(path, frame=2)


def test_a_tilted_cell_is_refused_unless_the_caller_decides(written):
    path = written("a.dcd", [40, 40, 40, 90, 60, 90])
    with pytest.raises(WorkbenchError, match="the cell is triclinic"):
        open_file(path)
    assert open_file(path, box=None).box is None


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
