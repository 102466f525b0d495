"""HDF5 snapshots as Gadget, IllustrisTNG and SWIFT write them, and grids of no particular layout."""

import h5py
import numpy as np
import pytest

from readers import written
from workbench import WorkbenchError
from workbench.data.readers import open_file

N = 12


def gadget(path, positions, *, number=0, files=1, totals=None, kind=1, **header):
    """A snapshot in the layout of Gadget-2, 3 and 4; further header entries as they come."""
    count = np.zeros(6, np.int32)
    count[kind] = len(positions)
    with h5py.File(path, "w") as file:
        entries = {
            "BoxSize": written.BOX, "Redshift": 0.5, "Time": 2 / 3, "Omega0": 0.3, "OmegaLambda": 0.7, "HubbleParam": 0.68,
            "NumFilesPerSnapshot": files, "NumPart_ThisFile": count, "NumPart_Total_HighWord": np.zeros(6, np.uint32),
            "NumPart_Total": count if totals is None else np.asarray(totals, np.uint32),
        } | header
        file.create_group("Header").attrs.update(entries)
        if len(positions):
            group = file.create_group(f"PartType{kind}")
            group["Coordinates"] = positions
            group["Velocities"] = -positions
            group["ParticleIDs"] = np.arange(len(positions), dtype=np.uint64) + 100 * number
    return path


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_gadget(tmp_path, dtype):
    points = written.points(N, dtype)
    particles = open_file(gadget(tmp_path / "snap_004.hdf5", points))
    np.testing.assert_array_equal(particles.positions, points)
    np.testing.assert_array_equal(particles.velocities, -points)
    assert particles.positions.dtype == dtype
    assert particles.ids.dtype == np.uint64
    assert particles.box == (written.BOX,) * 3
    expected = {"redshift": 0.5, "omega_m": 0.3, "hubble": 0.68, "particle_counts": {1: N}}
    assert {key: particles.metadata[key] for key in expected} == expected
    assert open_file(tmp_path / "snap_004.hdf5", box=None).box is None


def test_illustris_tng(tmp_path):
    """Units in the header; gas and stars beside the dark matter."""
    path = gadget(tmp_path / "snap_099.hdf5", written.points(N, "f8"), UnitLength_in_cm=3.085678e21, Git_commit=b"d203ec8")
    with h5py.File(path, "a") as file:
        for kind in (0, 4):
            file[f"PartType{kind}/Coordinates"] = written.points(kind + 1)
        file["PartType1/Coordinates"].attrs["length_scaling"] = -1.0
    particles = open_file(path)
    assert particles.metadata["particle_counts"] == {0: 1, 1: N, 4: 5}
    assert particles.metadata["units"] == {"UnitLength_in_cm": 3.085678e21}
    assert particles.metadata["header"]["Git_commit"] == "d203ec8"
    stars = open_file(path, particle_type=4)
    assert (len(stars), stars.velocities, stars.ids) == (5, None, None)
    with pytest.raises(WorkbenchError, match="no particles of particle_type 5; it has 1 of type 0, 12 of type 1, 5"):
        open_file(path, particle_type=5)


def test_swift(tmp_path):
    points = written.points(N, "f8")
    path = gadget(tmp_path / "swift_0000.hdf5", points, BoxSize=np.array([10.0, 20.0, 30.0]), Redshift=np.array([0.5]))
    with h5py.File(path, "a") as file:
        file.create_group("InternalCodeUnits").attrs["Unit length in cgs (U_L)"] = np.array([3.08568e24])
        file.create_group("Cosmology").attrs.update({"Omega_m": np.array([0.3]), "H0 [internal units]": np.array([68.1])})
        file.create_group("Parameters").attrs["InitialConditions:periodic"] = np.bytes_(b"1")
        file["DMParticles"] = h5py.SoftLink("/PartType1")
        file["PartType1/Coordinates"].attrs["a-scale exponent"] = np.array([1.0])
    particles = open_file(path)
    assert particles.box == (10.0, 20.0, 30.0)
    assert particles.metadata["format"] == "SWIFT HDF5 snapshot"
    assert particles.metadata["redshift"] == 0.5
    assert particles.metadata["cosmology"]["Omega_m"] == 0.3
    assert particles.metadata["units"] == {"Unit length in cgs (U_L)": 3.08568e24}
    assert particles.metadata["positions"] == {"a-scale exponent": 1.0}
    with h5py.File(path, "a") as file:
        file["Parameters"].attrs["InitialConditions:periodic"] = np.bytes_(b"0")
    assert open_file(path).box is None


def test_positions_on_or_over_a_face_are_wrapped(tmp_path):
    path = gadget(tmp_path / "a.hdf5", np.array([[written.BOX, -1.0, 11.0]], np.float32))
    assert open_file(path, wrap=True).positions.tolist() == [[0.0, 9.0, 1.0]]


def test_gas_alone_needs_no_choice_and_several_others_do(tmp_path):
    path = gadget(tmp_path / "a.hdf5", written.points(N), kind=0)
    assert open_file(path).metadata["particle_type"] == 0
    with h5py.File(path, "a") as file:
        file["PartType4/Coordinates"] = written.points(2)
    with pytest.raises(WorkbenchError, match=r"no dark matter \(type 1\): choose by particle_type"):
        open_file(path)


def snapshot_set(folder, files=3):
    counts = [N, 0, 5]
    totals = [0, sum(counts), 0, 0, 0, 0]
    for number in range(files):
        points = written.points(counts[number], seed=number)
        gadget(folder / f"snap_099.{number}.hdf5", points, number=number, files=3, totals=totals)


@pytest.mark.parametrize("opened", [0, 1, 2])
def test_a_set_of_files_is_read_as_one(tmp_path, opened):
    snapshot_set(tmp_path)
    particles = open_file(tmp_path / f"snap_099.{opened}.hdf5")
    assert particles.ids.tolist() == [*range(N), *range(200, 205)]
    assert particles.metadata["files"] == 3


def test_an_incomplete_set(tmp_path):
    snapshot_set(tmp_path, files=1)
    with pytest.raises(WorkbenchError, match=r"missing snap_099\.1\.hdf5, snap_099\.2\.hdf5\. Copy the whole set"):
        open_file(tmp_path / "snap_099.0.hdf5")


def test_a_set_that_does_not_add_up(tmp_path):
    snapshot_set(tmp_path)
    gadget(tmp_path / "snap_099.2.hdf5", written.points(4), number=2, files=3)
    with pytest.raises(WorkbenchError, match="promises 17 particles of type 1; the files hold 16"):
        open_file(tmp_path / "snap_099.0.hdf5")


def test_a_virtual_snapshot_without_its_files(tmp_path):
    snapshot_set(tmp_path)
    layout = h5py.VirtualLayout((N, 3), "f4")
    layout[:] = h5py.VirtualSource("snap_099.0.hdf5", "PartType1/Coordinates", (N, 3), "f4")
    path = gadget(tmp_path / "snap_099.hdf5", np.empty((0, 3)))
    with h5py.File(path, "a") as file:
        file.create_virtual_dataset("PartType1/Coordinates", layout)
    np.testing.assert_array_equal(open_file(path).positions, written.points(N))
    (tmp_path / "snap_099.0.hdf5").unlink()
    with pytest.raises(WorkbenchError, match=r"only refers to the data in 1 other files; missing snap_099\.0\.hdf5"):
        open_file(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"BoxSize": np.array([1.0, 2.0])}, "one length or three"),
        ({"BoxSize": "large"}, "expected a number in the snapshot header; got 'large'"),
        ({"BoxSize": -5.0}, "box lengths must be positive"),
    ],
)
def test_headers_that_make_no_sense(tmp_path, header, message):
    with pytest.raises(WorkbenchError, match=message):
        open_file(gadget(tmp_path / "a.hdf5", written.points(N), **header))


def test_integer_positions_are_refused(tmp_path):
    with pytest.raises(WorkbenchError, match="positions as uint32; only floats"):
        open_file(gadget(tmp_path / "a.hdf5", written.points(N).astype(np.uint32)))


def grid(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file["native_fields/" + name] = array
        file.create_group("derived_fields")
        domain = {"size": np.array([8.0, 8.0, 4.0]), "shape": np.array([4, 4, 4], np.int32)}
        file.create_group("domain").attrs.update(domain)
        file.create_group("universe").attrs["redshift"] = 4.2
    return path


def test_grids_by_name(tmp_path):
    path = grid(tmp_path / "z.h5", rho=np.ones((4, 4, 4), np.float32), T=np.zeros((4, 4, 4)))
    field = open_file(path, name="rho")
    assert (field.name, field.shape, field.values.dtype) == ("rho", (4, 4, 4), np.float32)
    assert field.spacing == (2.0, 2.0, 1.0)
    assert field.metadata["file_attributes"]["universe"] == {"redshift": 4.2}
    assert open_file(path, name="native_fields/T", spacing=3).spacing == (3.0,) * 3
    with pytest.raises(WorkbenchError, match=r"choose one by name=.*native_fields/T 4x4x4, native_fields/rho 4x4x4"):
        open_file(path)
    with pytest.raises(WorkbenchError, match="no array named 'p'"):
        open_file(path, name="p")
    with pytest.raises(WorkbenchError, match="'particle_type' makes no sense"):
        open_file(path, particle_type=1)


def test_the_unit_of_h5md(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["particles/all/position/value"] = np.zeros((2, 3, 3))
        file["particles/all/position/value"].attrs["unit"] = "nm"
    assert open_file(tmp_path / "a.h5").metadata["units"] == "nm"


def test_the_obvious_grid_needs_no_name(tmp_path):
    path = grid(tmp_path / "z.h5", x=np.arange(4.0), y=np.arange(4.0), rho=np.ones((4, 4, 4)))
    assert open_file(path).name == "rho"


def test_too_many_axes(tmp_path):
    path = grid(tmp_path / "z.h5", much=np.ones((1, 2, 1, 2, 1)), rho=np.ones((4, 4, 4)))
    assert open_file(path, name="rho").shape == (4, 4, 4)
    with pytest.raises(WorkbenchError, match="native_fields/much has 5 axes and a field at most 4: choose another of"):
        open_file(path)


def test_a_file_without_arrays(tmp_path):
    with pytest.raises(WorkbenchError, match="holds no array of numbers"):
        open_file(grid(tmp_path / "z.h5"))


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_truncated_files(tmp_path, share):
    for path in (gadget(tmp_path / "a.hdf5", written.points(500)), grid(tmp_path / "z.h5", rho=np.ones((16, 16, 16)))):
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(WorkbenchError, match=r"h5py cannot read .* truncated or damaged"):
            open_file(path)
