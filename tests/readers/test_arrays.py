"""Bare arrays: npy, npz, raw floats and BOV headers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers import written
from workbench import Field, Particles, WorkbenchError
from workbench.data.readers import open_file


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
def test_npy_points_are_particles_and_grids_are_fields(tmp_path, dtype):
    points, grid = written.points(20).astype(dtype), np.arange(60, dtype=dtype).reshape(3, 4, 5)
    for name, array in (("points.npy", points), ("plane.npy", points[:, :2]), ("grid.npy", grid)):
        np.save(tmp_path / name, array)
    assert open_file(tmp_path / "points.npy", box=written.BOX).box == (written.BOX,) * 3
    assert open_file(tmp_path / "plane.npy").dimensions == 2
    np.testing.assert_array_equal(open_file(tmp_path / "grid.npy", spacing=2).values, grid)
    np.testing.assert_array_equal(open_file(tmp_path / "points.npy", kind="field").values, points)
    assert open_file(tmp_path / "points.npy").metadata["kind"].startswith("particles, by the shape (N, ")
    assert "kind" not in open_file(tmp_path / "points.npy", kind="particles").metadata
    assert open_file(tmp_path / "points.npy").positions.dtype == np.dtype(dtype).newbyteorder("=")


def test_npy_positions_outside_the_box_are_wrapped(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[-1.0, 10.0, 25.0]]))
    assert open_file(tmp_path / "a.npy", box=10.0, wrap=True).positions.tolist() == [[9.0, 0.0, 5.0]]


def test_npz_particles_with_all_that_rides_along(tmp_path):
    points = written.points(9)
    np.savez(tmp_path / "a.npz", positions=points, box=written.BOX, velocities=-points, ids=np.arange(9), redshift=0.5)
    particles = open_file(tmp_path / "a.npz")
    np.testing.assert_array_equal(particles.positions, points)
    np.testing.assert_array_equal(particles.velocities, -points)
    assert particles.ids.tolist() == list(range(9))
    assert particles.box == (written.BOX,) * 3
    assert particles.metadata["redshift"] == 0.5
    assert open_file(tmp_path / "a.npz", box=None).box is None
    assert isinstance(open_file(tmp_path / "a.npz", name="velocities", kind="field"), Field)


@pytest.mark.parametrize("box", [[1.0, 2.0], 0.0, np.nan])
def test_npz_with_a_box_that_is_none(tmp_path, box):
    np.savez(tmp_path / "a.npz", positions=written.points(9), box=box)
    with pytest.raises(WorkbenchError, match="box"):
        open_file(tmp_path / "a.npz")
    assert open_file(tmp_path / "a.npz", box=None).box is None


def test_npz_fields_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", rho=np.ones((4, 4)), T=np.ones((4, 4)))
    assert open_file(tmp_path / "a.npz", name="T").name == "T"
    with pytest.raises(WorkbenchError, match=r"choose one by name=.*T 4x4, rho 4x4"):
        open_file(tmp_path / "a.npz")
    with pytest.raises(WorkbenchError, match="no array named 'p'"):
        open_file(tmp_path / "a.npz", name="p")


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_pickles_are_never_opened(tmp_path, name):
    objects = np.array([{"a": 1}, print], dtype=object)
    if name.endswith("npy"):
        np.save(tmp_path / name, objects, allow_pickle=True)
    else:
        np.savez(tmp_path / name, positions=objects)
    with pytest.raises(WorkbenchError, match="NumPy cannot read"):
        open_file(tmp_path / name)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_truncated_numpy_files(tmp_path, name, share):
    path = tmp_path / name
    np.save(path, written.points(50)) if name.endswith("npy") else np.savez(path, positions=written.points(50))
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(WorkbenchError, match="cannot read"):
        open_file(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "fields"}, "kind must be 'particles' or 'field'; got 'fields'"),
        ({"kind": "field", "box": 1.0}, "box makes no sense for a field"),
        ({"spacing": 1.0}, "spacing makes no sense for particles"),
        ({"frame": 0}, "frame needs a trajectory"),
        ({"shape": (3, 3)}, "'shape' makes no sense for points.npy, which is read as NumPy array"),
        ({"colour": 1}, "'colour' is not an option of points.npy.* it takes kind, frame, box, wrap, spacing"),
        ({"format": "fits"}, "format must be one of .*gadget.*; got 'fits'"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, message):
    np.save(tmp_path / "points.npy", written.points(5))
    with pytest.raises(WorkbenchError, match=message):
        open_file(tmp_path / "points.npy", **options)


def test_a_trajectory_array_by_frame(tmp_path):
    frames = np.stack([written.points(7, seed=seed) for seed in range(3)])
    np.save(tmp_path / "a.npy", frames)
    np.testing.assert_array_equal(open_file(tmp_path / "a.npy", kind="particles", frame=2).positions, frames[2])
    with pytest.raises(WorkbenchError, match="frame must be between 0 and 2; got 3"):
        open_file(tmp_path / "a.npy", kind="particles", frame=3)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8"])
def test_raw_floats(file, dtype):
    values = np.arange(24, dtype=dtype).reshape(2, 3, 4)
    path = file(values.tobytes(), "slab.raw")
    field = open_file(path, shape=(2, 3, 4), dtype=dtype, spacing=(1, 2, 3))
    np.testing.assert_array_equal(field.values, values)
    assert field.spacing == (1.0, 2.0, 3.0)
    assert isinstance(open_file(path, shape=(8, 3), dtype=dtype, box=24.0), Particles)
    assert open_file(path, shape=24, dtype=dtype).shape == (24,)


def test_raw_floats_that_look_like_something_else(file):
    path = file(b"ITEM: " + bytes(10))
    assert open_file(path, format="raw", shape=4).shape == (4,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (5,)}, r"takes 20 bytes; slab.raw has 48"),
        ({"shape": (0, 12)}, "shape must be whole numbers of at least 1"),
        ({"shape": "12"}, "shape must be whole numbers"),
        ({"shape": (10**12, 10**12)}, "takes 4,000,000,000,000,000,000,000,000 bytes"),
        ({"shape": 12, "dtype": "i4"}, "dtype must be float32 or float64"),
        ({"shape": 12, "dtype": "nonsense"}, "dtype must be float32 or float64"),
        ({"format": "raw"}, "needs their shape"),
        ({}, "no known format"),
    ],
)
def test_raw_options(file, options, message):
    with pytest.raises(WorkbenchError, match=message):
        open_file(file(np.ones(12, np.float32).tobytes(), "slab.raw"), **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bov(tmp_path, dtype):
    values = np.arange(24, dtype=dtype).reshape(2, 3, 4)
    field = open_file(written.bov(tmp_path, values))
    np.testing.assert_array_equal(field.values, values)
    assert field.name == "density"
    assert field.spacing == (2 / 2, 4 / 3, 8 / 4)   # the header has the fastest axis first
    assert field.metadata["time"] == "1.5"


def test_bov_nodes_span_the_brick(tmp_path):
    values = np.zeros((2, 3, 5), np.float32)
    assert open_file(written.bov(tmp_path, values, CENTERING="nodal")).spacing == (2.0, 2.0, 2.0)


def test_bov_with_offset_and_big_endian(tmp_path):
    values = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    path = written.bov(tmp_path, values, DATA_ENDIAN="BIG", BYTE_OFFSET="16")
    (tmp_path / "values.raw").write_bytes(bytes(16) + values.astype(">f4").tobytes())
    np.testing.assert_array_equal(open_file(path).values, values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"DATA_FILE": "nowhere.raw"}, "only a header, for 'nowhere.raw' beside it: there is no file"),
        ({"DATA_FILE": "."}, "which is a folder"),
        ({"DATA_SIZE": "4 3 9"}, "do not belong together"),
        ({"DATA_SIZE": "0 0 0"}, "do not belong together"),
        ({"DATA_SIZE": "four 3 2"}, "DATA_SIZE in field.bov must be numbers"),
        ({"DATA_SIZE": "-4 3 2"}, "must be whole numbers"),
        ({"DATA_FORMAT": "BYTE"}, "must be FLOAT or DOUBLE; got 'BYTE'"),
        ({"DATA_FORMAT": ""}, "missing DATA_FORMAT"),
        ({"DATA_ENDIAN": "MIDDLE"}, "must be LITTLE or BIG"),
        ({"DATA_COMPONENTS": "3"}, "holds vectors"),
        ({"BRICK_SIZE": "1"}, "must have 3 numbers"),
    ],
)
def test_bov_refusals(tmp_path, changes, message):
    path = written.bov(tmp_path, np.zeros((2, 3, 4), np.float32), **changes)
    with pytest.raises(WorkbenchError, match=message):
        open_file(path)


@given(cut=st.integers(1, 95))
def test_bov_with_a_truncated_raw_file(scratch, cut):
    path = written.bov(scratch, np.zeros((2, 3, 4), np.float32))
    raw = scratch / "values.raw"
    raw.write_bytes(raw.read_bytes()[:cut])
    with pytest.raises(WorkbenchError, match="do not belong together"):
        open_file(path)


@given(data=st.data())
def test_bov_with_a_damaged_header(scratch, survives, data):
    content = written.bov(scratch, np.zeros((2, 3, 4), np.float32)).read_bytes()
    changes = data.draw(st.dictionaries(st.integers(0, len(content) - 1), st.integers(0, 255), max_size=4))
    survives(content, changes)
    survives(content, changes, format="bov")
    survives(content[: data.draw(st.integers(1, len(content)))], {}, format="bov")
