"""Gadget binaries and fast-food files: byte orders, precisions, particle types, sets of files, damage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers import written
from workbench import WorkbenchError
from workbench.data.readers import open_file

COUNTS = (5, 20, 0, 0, 3, 0)


def snapshot(order="<", version=1, floats="f4", integers="u4", **options):
    total = sum(COUNTS)
    ids = np.arange(100, 100 + total, dtype=integers)
    points, velocities = written.points(total, floats), written.velocities(total, floats)
    content = written.gadget(points, velocities, ids, COUNTS, order=order, version=version, **options)
    return content, points, ids


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("floats", "integers"), [("f4", "u4"), ("f8", "u8")])
def test_gadget(file, order, version, floats, integers):
    content, points, ids = snapshot(order, version, floats, integers)
    particles = open_file(file(content, "snap_007"))
    np.testing.assert_array_equal(particles.positions, points[5:25])
    np.testing.assert_array_equal(particles.velocities, written.velocities(28, floats)[5:25])
    np.testing.assert_array_equal(particles.ids, ids[5:25])
    assert particles.positions.dtype == floats
    assert particles.box == (written.BOX,) * 3
    metadata = particles.metadata
    assert metadata["format"] == f"Gadget-{version} binary"
    assert (metadata["redshift"], metadata["omega_m"], metadata["hubble"]) == (1.0, 0.3, 0.68)
    assert metadata["particle_counts"] == list(COUNTS)


@pytest.mark.parametrize(("kind", "rows"), [(0, slice(0, 5)), (1, slice(5, 25)), (4, slice(25, 28))])
def test_gadget_particle_types(file, kind, rows):
    content, points, ids = snapshot()
    particles = open_file(file(content), particle_type=kind)
    np.testing.assert_array_equal(particles.positions, points[rows])
    np.testing.assert_array_equal(particles.ids, ids[rows])


@pytest.mark.parametrize("kind", [2, 6, -1, "dust", 1.0, True])
def test_gadget_absent_particle_types(file, kind):
    with pytest.raises(WorkbenchError, match="it has 5 of type 0, 20 of type 1, 3 of type 4"):
        open_file(file(snapshot()[0]), particle_type=kind)


def test_gadget_open_space_and_other_boxes(file):
    assert open_file(file(snapshot(box=0.0)[0])).box is None
    assert open_file(file(snapshot()[0]), box=None).box is None
    assert open_file(file(snapshot()[0]), box=20.0).box == (20.0,) * 3
    with pytest.raises(WorkbenchError, match="box must be None, a length"):
        open_file(file(snapshot()[0]), box="periodic")


def test_a_box_that_is_far_too_small(file):
    with pytest.raises(WorkbenchError, match=r"positions reach .* and the box is only 1e-09 long"):
        open_file(file(snapshot(box=1e-9)[0]))


def test_gadget_positions_on_the_far_face_are_wrapped(file):
    points = np.array([[written.BOX, -1e-3, 1.0]], np.float32)
    content = written.gadget(points, points, np.arange(1), (0, 1, 0, 0, 0, 0))
    assert open_file(file(content)).positions.tolist() == [[0.0, np.float32(9.999), 1.0]]


def gadget_set(folder, files=3, **options):
    """Several files of 2 gas and 4 dark matter particles each; one has no gas at all."""
    counts = [(2 if part else 0, 4, 0, 0, 0, 0) for part in range(files)]
    totals = tuple(np.sum(counts, axis=0).tolist())
    for part, count in enumerate(counts):
        n = sum(count)
        ids = np.arange(n, dtype=np.uint32) + 10 * part
        content = written.gadget(
            written.points(n, seed=part), written.velocities(n), ids, count, totals=totals, files=files, **options
        )
        (folder / f"snap_007.{part}").write_bytes(content)


@pytest.mark.parametrize("opened", [0, 1, 2])
def test_a_set_of_gadget_files_is_read_as_one(tmp_path, opened):
    gadget_set(tmp_path)
    particles = open_file(tmp_path / f"snap_007.{opened}")
    assert particles.ids.tolist() == [0, 1, 2, 3, 12, 13, 14, 15, 22, 23, 24, 25]
    assert particles.metadata["files"] == 3
    assert len(open_file(tmp_path / f"snap_007.{opened}", particle_type=0)) == 4


def test_an_incomplete_set_of_gadget_files(tmp_path):
    gadget_set(tmp_path)
    (tmp_path / "snap_007.1").unlink()
    with pytest.raises(WorkbenchError, match=r"one of 3 files .* missing snap_007.1\. Copy the whole set"):
        open_file(tmp_path / "snap_007.0")
    (tmp_path / "snap_007.0").rename(tmp_path / "snapshot")
    with pytest.raises(WorkbenchError, match="has no number in its name"):
        open_file(tmp_path / "snapshot")


def test_a_set_whose_files_do_not_add_up(tmp_path):
    gadget_set(tmp_path)
    (tmp_path / "snap_007.1").write_bytes((tmp_path / "snap_007.0").read_bytes())
    with pytest.raises(WorkbenchError, match=r"the header promises .* particles by type; 3 files hold"):
        open_file(tmp_path / "snap_007.2")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("weights", [True, False])
def test_fast_food(file, order, dtype, weights):
    points = written.points(30, dtype)
    particles = open_file(file(written.fast_food(points, order=order, weights=weights), "mock.ff"))
    np.testing.assert_array_equal(particles.positions, points)
    assert particles.positions.dtype == dtype
    assert particles.box == (written.BOX,) * 3
    assert particles.metadata["redshift"] == 0.25
    assert open_file(file(written.fast_food(points), "mock.ff"), box=None).box is None


def test_fast_food_with_too_few_columns(file):
    with pytest.raises(WorkbenchError, match="expected columns x, y and z"):
        open_file(file(written.fast_food(written.points(5)[:, :2], weights=False)))


CASES = {
    "gadget-1": (snapshot()[0], "gadget"),
    "gadget-2": (snapshot(">", 2)[0], "gadget"),
    "fast food": (written.fast_food(written.points(20)), "ff"),
}


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_cut_anywhere_is_refused(refused_when_cut, case, data):
    content, key = CASES[case]
    least = len(content) - (4 * 20 + 8) if key == "ff" else len(content)   # without the weights it is a whole file again
    cut = data.draw(st.integers(1, len(content) - 1).filter(lambda place: place != least))
    refused_when_cut(content, cut, format=key)
    refused_when_cut(content, cut)


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_changed_bytes_are_refused_or_read(survives, case, data):
    content, key = CASES[case]
    places = st.integers(0, len(content) - 1) | st.integers(0, 280)
    changes = data.draw(st.dictionaries(places, st.integers(0, 255), min_size=1, max_size=6))
    survives(content, changes)
    survives(content, changes, format=key)


@pytest.mark.parametrize("key", ["gadget", "ff"])
@given(content=st.binary(min_size=1, max_size=600))
def test_any_bytes_are_refused_or_read(survives, key, content):
    survives(content, {}, format=key)


def test_a_file_of_zeros_is_no_endless_loop(file):
    with pytest.raises(WorkbenchError):
        open_file(file(b"\x00\x01\0\0" + bytes(256) + b"\x00\x01\0\0" + bytes(10**6)), format="gadget")
