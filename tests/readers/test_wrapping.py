"""Positions outside a box: wrapped and told of where a face was rounded, refused where box and positions do not fit."""

import json
import re

import asdf
import numpy as np
import pytest

import workbench as wb
from readers import written
from workbench.cli import main
from workbench.data.readers.images import Images, require_placed

SPACING = written.BOX / 10   # of a thousand particles


@pytest.fixture
def snapshot(tmp_path):
    """A file of a thousand positions in a box of 10, some of them given."""

    def write(*outside):
        points = written.points(1000, np.float64)
        for row, position in enumerate(outside):
            points[row] = position
        np.savez(tmp_path / "snap.npz", positions=points, box=written.BOX)
        return tmp_path / "snap.npz"

    return write


@pytest.mark.parametrize("inside", [0.0, np.nextafter(10.0, 0)])
def test_nothing_is_told_of_positions_inside(snapshot, inside):
    assert "wrapped" not in wb.open(snapshot([inside] * 3)).metadata


@pytest.mark.parametrize("where", [10.0, -1e-7 * written.BOX, 10 + 0.9e-3 * SPACING, -0.9e-3 * SPACING])
def test_rounding_at_a_face_is_wrapped_and_counted(snapshot, where):
    particles = wb.open(snapshot([where, 5, 5], [1, where, 1]))
    far = max(where - 10, -where)
    assert particles.metadata["wrapped"] == f"2 positions, at most {far:.3g} outside the box"
    np.testing.assert_allclose(particles.positions[0], [where % 10, 5, 5], atol=1e-12)


@pytest.mark.parametrize("where", [10 + 1.1e-3 * SPACING, -1.1e-3 * SPACING, -10.0, 35.0])
def test_positions_farther_outside_are_refused_unless_wrapped(snapshot, where):
    path = snapshot([5, 5, where])
    with pytest.raises(wb.WorkbenchError, match=r"reach from .* to .* on axis 2, outside the box of length 10: give the"):
        wb.open(path)
    assert wb.open(path, box=None).positions[0, 2] == where
    folded = wb.open(path, wrap=True)
    np.testing.assert_allclose(folded.positions[0, 2], where % 10)
    assert folded.metadata["wrapped"].startswith("1 positions, at most")


def test_a_box_in_the_wrong_unit_is_refused(snapshot):
    for box in (0.5, (10, 10, 9)):
        with pytest.raises(wb.WorkbenchError, match=r"box=None, or fold positions into the box as images with wrap=True"):
            wb.open(snapshot(), box=box)


def test_wrapping_needs_a_box(snapshot, tmp_path):
    np.save(tmp_path / "a.npy", written.points(5))
    for path, options in ((snapshot(), {"box": None}), (tmp_path / "a.npy", {})):
        with pytest.raises(wb.WorkbenchError, match="wrap=True needs a periodic box, and there is none"):
            wb.open(path, wrap=True, **options)


def test_the_shell_refuses_wraps_and_says_so(snapshot, capsys):
    path = str(snapshot([-3.0, 1, 1]))
    assert main(["info", path]) == 2
    assert "outside the box of length 10" in capsys.readouterr().err
    assert main(["info", path, "--wrap", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata.wrapped"] == "1 positions, at most 3 outside the box"
    assert main(["info", path, "--wrap"]) == 0
    assert re.search(r"metadata\.wrapped +1 positions, at most 3 outside the box", capsys.readouterr().out)


def test_what_the_particles_themselves_refuse_is_left_to_them():
    assert require_placed(np.zeros((0, 3)), (1.0,) * 3, Images.CORNER, wrap=False) == {}


# Trajectories keep molecules whole across faces: images are usual there, in the box that the file states.

def test_images_of_trajectories_are_wrapped_and_told_of(tmp_path):
    whole = written.points(50)
    whole[:5] += 25
    (tmp_path / "a.trr").write_bytes(written.trr([whole], box=np.diag([written.BOX] * 3)))
    (tmp_path / "a.dump").write_text(written.lammps(whole, columns="xu yu zu"))
    (tmp_path / "a.xyz").write_text(written.xyz([whole], 'Lattice="10 0 0 0 10 0 0 0 10"'))
    for path in sorted(tmp_path.iterdir()):
        particles = wb.open(path)
        assert re.match("5 positions, at most 2.* outside the box", particles.metadata["wrapped"]), path.name
        with pytest.raises(wb.WorkbenchError, match="outside the box of length 9"):
            wb.open(path, box=9.0)   # the caller's own


def test_old_lammps_dumps_do_not_say_what_is_periodic(tmp_path):
    path = tmp_path / "old.dump"
    path.write_text(written.lammps(written.points(5), flags=""))
    with pytest.raises(wb.WorkbenchError, match=r"faces of its box \(10 x 10 x 10\) are periodic.*box=\(10, 10, 10\) if"):
        wb.open(path)
    assert wb.open(path, box=None).box is None
    assert wb.open(path, box=(10, 10, 10)).box == (10.0,) * 3


# Abacus counts from the centre of the box, except in light cones.

def abacus(path, positions, **header):
    path.parent.mkdir(parents=True, exist_ok=True)
    tree = {"header": {"BoxSize": 2000.0, **header}, "data": {"pos": positions}}
    asdf.AsdfFile(tree).write_to(path)
    return path


def test_centred_coordinates_are_the_rule_in_abacus(tmp_path):
    centred = ((written.points(30) - 5) * 199).astype(np.float32)
    particles = wb.open(abacus(tmp_path / "halo_rv_A_000.asdf", centred))
    np.testing.assert_allclose(particles.positions, centred % 2000, atol=1e-3)
    assert particles.metadata["origin"].startswith("positions are relative to the centre of the box in the file")
    assert "wrapped" not in particles.metadata


@pytest.mark.parametrize(
    ("place", "header"),
    [("lc_pid_rv.asdf", {}), ("halo_light_cones/sim/z2.250/a.asdf", {}), ("a.asdf", {"OutputType": "LightCone"})],
)
def test_light_cones_are_in_an_open_space(tmp_path, place, header):
    cone = np.array([[100.0, 2269, -637], [200, 2727, 899]], np.float32)
    particles = wb.open(abacus(tmp_path / place, cone, **header))
    assert (particles.box, particles.metadata["light_cone"]) == (None, True)
    np.testing.assert_array_equal(particles.positions, cone)


def test_a_light_cone_that_says_nothing_is_refused(tmp_path):
    cone = np.array([[100.0, 2269, -637], [200, 2727, 899]], np.float32)
    with pytest.raises(wb.WorkbenchError, match="reach from 2269 to 2727 on axis 1, outside the box of length 2000"):
        wb.open(abacus(tmp_path / "a.asdf", cone))
