"""Triclinic cells are kept from every format that has them, come back from archives, and stop searches for clusters."""

import warnings

import numpy as np
import pytest

import workbench as wb
from readers import written
from workbench.cli import main
from workbench.data.readers.dcd import _cell
from workbench.data.triclinic import edges_of

POINTS = np.random.default_rng(0).uniform(-3, 12, (20, 3)).astype(np.float32)
EDGES = np.array([[10.0, 0, 0], [-2.0, 9.0, 0], [3.0, 1.0, 8.0]])
LENGTHS = np.linalg.norm(EDGES, axis=1)
ANGLES = [
    np.degrees(np.arccos(EDGES[i] @ EDGES[j] / LENGTHS[i] / LENGTHS[j])).item() for i, j in ((1, 2), (0, 2), (0, 1))
]


def by_mdanalysis(path):
    mda = pytest.importorskip("MDAnalysis")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        universe = mda.Universe.empty(len(POINTS), trajectory=True)
        universe.atoms.positions, universe.dimensions = POINTS, [*LENGTHS, *ANGLES]
        universe.atoms.write(str(path))
    return path


def by_gsd(path):
    hoomd = pytest.importorskip("gsd.hoomd")
    frame = hoomd.Frame()
    frame.particles.N, frame.particles.position = len(POINTS), POINTS
    frame.configuration.box = [10, 9, 8, EDGES[1, 0] / 9, EDGES[2, 0] / 8, EDGES[2, 1] / 8]
    with hoomd.open(str(path), "w") as frames:
        frames.append(frame)
    return path


def lammps(path, fractions=False):
    """The bounds in the file are those of the smallest box around the cell."""
    corners = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]) @ EDGES
    values = POINTS @ np.linalg.inv(EDGES) if fractions else POINTS
    text = written.lammps(values.astype("f8"), columns="xs ys zs" if fractions else "x y z", tilts=(-2.0, 3.0, 1.0))
    for axis, (low, high) in enumerate(zip(corners.min(axis=0), corners.max(axis=0), strict=True)):
        tilt = (-2.0, 3.0, 1.0)[axis]
        text = text.replace(f"0.0 10.0 {tilt}\n", f"{low} {high} {tilt}\n")
    path.write_text(text)
    return path


def xyz(path):
    lattice = " ".join(map(str, EDGES.ravel()))
    path.write_text(written.xyz([POINTS], f'Lattice="{lattice}"'))
    return path


def trr(path):
    path.write_bytes(written.trr([POINTS], box=EDGES))
    return path


WRITERS = {
    "a.gro": by_mdanalysis, "a.xtc": by_mdanalysis, "a.dcd": by_mdanalysis, "a.ncdf": by_mdanalysis, "a.trr": trr,
    "a.gsd": by_gsd, "a.lammpstrj": lammps, "b.lammpstrj": lambda path: lammps(path, fractions=True), "a.xyz": xyz,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_cell_is_read_kept_and_given_back(tmp_path, name):
    path = WRITERS[name](tmp_path / name)
    particles = wb.open(path)
    scale = 0.1 if name in ("a.gro", "a.xtc") else 1.0   # nanometres
    assert particles.box is None
    assert "triclinic cell" in repr(particles)
    back = wb.open(wb.compress(particles, wb.Absolute(1e-3)).save(tmp_path / "a.zip")).decompress()
    assert back.metadata["cell"]["periodic"] is True
    np.testing.assert_allclose(back.metadata["cell"]["edges"], EDGES * scale, atol=2e-3 * scale)
    np.testing.assert_allclose(particles.positions, POINTS * scale, atol=0.006)   # three decimals in some formats
    with pytest.raises(wb.WorkbenchError, match="these particles are in a triclinic cell"):
        wb.friends_of_friends(particles)
    assert wb.open(path, box=None).metadata["cell"]["periodic"] is False
    assert wb.open(path, box=20.0, wrap=True).box == (20.0,) * 3


def test_searches_on_workers_and_promises_refuse_the_cell(tmp_path):
    particles = wb.open(xyz(tmp_path / "a.xyz"))
    for act in (
        lambda: wb.compress(particles, wb.Absolute(0.01), keep=wb.KeepClusters(0.2)),
        lambda: wb.friends_of_friends(particles, parts=2),
        lambda: wb.compress(particles, wb.Absolute(0.01), keep=wb.KeepClusters(0.2), out=tmp_path / "b.zarr"),
    ):
        with pytest.raises(wb.WorkbenchError, match="these particles are in a triclinic cell"):
            act()
    open_space = wb.open(tmp_path / "a.xyz", box=None)
    assert len(wb.friends_of_friends(open_space).labels) == len(POINTS)


def test_errors_are_compared_without_halos_and_numpy_files_keep_the_cell(tmp_path):
    particles = wb.open(xyz(tmp_path / "a.xyz"))
    archive = wb.compress(particles, wb.Absolute(0.01))
    report = wb.compare(particles, archive.decompress())
    assert report["max_error"] <= 0.01
    assert "halos_original" not in report.figures
    assert "the periods of a triclinic cell are not supported" in str(report)
    with pytest.raises(wb.WorkbenchError, match="a power spectrum needs a rectangular box"):
        wb.metrics.particle_spectrum(particles)
    assert main(["decompress", str(archive.save(tmp_path / "a.zip")), str(tmp_path / "a.npz")]) == 0
    back = wb.open(tmp_path / "a.npz")
    assert (back.box, back.metadata["cell"], back.metadata.get("left_out")) == (None, particles.metadata["cell"], None)
    assert wb.open(tmp_path / "a.npz", box=20.0, wrap=True).box == (20.0,) * 3


def test_other_ways_to_write_a_cell_in_dcd():
    cosines = np.cos(np.radians(ANGLES))
    np.testing.assert_allclose(_cell((*LENGTHS, *cosines)).edges, EDGES, atol=1e-9)
    assert _cell((4, 5, 6, 0, 0, 0)).box == (4, 5, 6)
    assert _cell((40, 50, 60, -10, -20, -30)).edges.tolist() == [[40, -30, -20], [-30, 50, -10], [-20, -10, 60]]


def test_impossible_angles_are_refused():
    with pytest.raises(wb.WorkbenchError, match="must enclose a volume; got 90, 90, 180"):
        edges_of((1, 1, 1), (90, 90, 180))
    with pytest.raises(wb.WorkbenchError, match="must enclose a volume"):
        edges_of((1, 1, 1), (10, 10, 90))
