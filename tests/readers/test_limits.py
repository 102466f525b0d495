"""Small files that describe large arrays, and files that name others as their data: refused unless the caller allows it."""

import os
import zipfile

import numpy as np
import pytest

import workbench as wb
from readers import written
from workbench import WorkbenchError

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
netcdf = pytest.importorskip("netCDF4")
hoomd = pytest.importorskip("gsd.hoomd")

SIDE = 2**10   # 2^30 values


def unwritten_hdf5(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("density", (SIDE, SIDE, SIDE), "f4", chunks=(64, 64, 64))


def unwritten_netcdf(path):
    with netcdf.Dataset(path, "w") as file:
        for name in "zyx":
            file.createDimension(name, SIDE)
        file.createVariable("density", "f4", tuple("zyx"), chunksizes=(64, 64, 64))


def unwritten_zarr(path):
    zarr.create_array(store=path, shape=(SIDE, SIDE, SIDE), chunks=(64, 64, 64), dtype="f4")


def zarr_of_many_chunks(path):
    zarr.create_array(store=path, shape=(2**24,), chunks=(1,), dtype="f4")


def packed_npz(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file, file.open("density.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": (2**27,)})


def unwritten_snapshot(path):
    with h5py.File(path, "w") as file:
        file.create_group("Header").attrs["NumPart_Total"] = np.array([0, SIDE**3, 0, 0, 0, 0], "u4")
        file["Header"].attrs["BoxSize"] = 1.0
        file.create_dataset("PartType1/Coordinates", (SIDE**3, 3), "f4", chunks=(2**16, 3))


def unwritten_columns(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("p", (SIDE**3, 3), "f4", chunks=(2**16, 3))


def gsd_without_positions(path):
    from gsd import fl
    with fl.open(path, "w", application="a", schema="hoomd", schema_version=(1, 4)) as file:
        file.write_chunk("particles/N", np.array([2**30], np.uint32))
        file.end_frame()


@pytest.mark.parametrize(("make", "name", "options"), [
    (unwritten_hdf5, "a.h5", {}), (unwritten_netcdf, "a.nc", {}), (unwritten_zarr, "a.zarr", {}),
    (packed_npz, "a.npz", {}), (gsd_without_positions, "a.gsd", {}),
    (unwritten_snapshot, "a.hdf5", {}), (unwritten_columns, "a.h5", {"positions": "p"}),
])
def test_an_array_far_larger_than_what_is_stored_is_refused(tmp_path, make, name, options):
    make(tmp_path / name)
    with pytest.raises(WorkbenchError, match=r"takes [\d,]+ bytes in memory, and only [\d,]+ are stored: pass most_b"):
        wb.open(tmp_path / name, **options)


def test_chunks_that_cannot_be_there_are_not_counted_one_by_one(tmp_path):
    zarr_of_many_chunks(tmp_path / "a.zarr")
    with pytest.raises(WorkbenchError, match=r"has 16,777,216 chunks, of which 1 can be there at most"):
        wb.open(tmp_path / "a.zarr")


def test_most_bytes_allows_more_and_refuses_less(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("density", (10, 10), "f4", chunks=(5, 5))
    assert wb.open(tmp_path / "a.h5", most_bytes=400).values.shape == (10, 10)
    with pytest.raises(WorkbenchError, match=r"takes 400 bytes in memory, and most_bytes= allows 399"):
        wb.open(tmp_path / "a.h5", most_bytes=399)
    unwritten_columns(tmp_path / "b.h5")
    with pytest.raises(WorkbenchError, match="most_bytes= allows 1,000"):
        wb.open_chunked(tmp_path / "b.h5", positions="p", most_bytes=1000).chunk(0)
    assert len(wb.open_chunked(tmp_path / "b.h5", positions="p", most_bytes=2**30).chunk(3)) > 2**16


MANY = written.points(500).astype("f8")
SIMPLE = {
    "xyz": lambda: written.xyz([MANY]).encode(), "gro": lambda: written.gro(MANY).encode(),
    "lammps": lambda: written.lammps(MANY).encode(), "trr": lambda: written.trr([MANY], box=None),
    "ff": lambda: written.fast_food(MANY.astype("f4")), "raw": MANY.tobytes,
    "gadget": lambda: written.gadget(MANY.astype("f4"), MANY.astype("f4"), np.arange(500), (0, 500, 0, 0, 0, 0)),
    "genericio": lambda: written.genericio([written.hacc_columns(500)]),
}


@pytest.mark.parametrize("key", SIMPLE)
def test_most_bytes_holds_in_every_format(tmp_path, key):
    (tmp_path / "data").write_bytes(SIMPLE[key]())
    options = {"shape": (500, 3), "dtype": "f8"} if key == "raw" else {}
    assert len(wb.open(tmp_path / "data", format=key, most_bytes=2**20, **options)) == 500
    with pytest.raises(WorkbenchError, match=r"data takes [\d,]+ bytes in memory, and most_bytes= allows 1,000"):
        wb.open(tmp_path / "data", format=key, most_bytes=1000, **options)


def test_a_snapshot_may_have_its_data_elsewhere_if_that_is_asked_for(private):
    path, layout = private / "downloads" / "snapshot.hdf5", h5py.VirtualLayout((2, 3), "f4")
    layout[:] = h5py.VirtualSource("../private.h5", "a", (2, 4), "f4")[:, :3]
    with h5py.File(path, "w") as file:
        file.create_group("Header").attrs.update({"NumPart_Total": np.array([0, 2, 0, 0, 0, 0], "u4"), "BoxSize": 100.0})
        file.create_virtual_dataset("PartType1/Coordinates", layout)
    assert wb.open(path, external=True).positions.tolist() == [[0, 1, 2], [4, 5, 6]]
    with pytest.raises(WorkbenchError, match="only files in its own folder"):
        wb.open(path)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2)])
def test_a_gsd_box_of_another_shape_is_refused(tmp_path, shape):
    from gsd import fl
    with fl.open(tmp_path / "a.gsd", "w", application="a", schema="hoomd", schema_version=(1, 4)) as file:
        file.write_chunk("particles/N", np.array([1], np.uint32))
        file.write_chunk("configuration/box", np.ones(shape, np.float32))
        file.end_frame()
    with pytest.raises(WorkbenchError, match=r"a\.gsd"):
        wb.open(tmp_path / "a.gsd")


@pytest.fixture
def private(tmp_path):
    """A file outside of the folder in which files that name it are put."""
    with h5py.File(tmp_path / "private.h5", "w") as file:
        file["a"] = np.arange(8.0, dtype="f4").reshape(2, 4)
    (tmp_path / "private.raw").write_bytes(np.arange(8, dtype="f4").tobytes())
    (tmp_path / "downloads").mkdir()
    return tmp_path


def virtual(path, name):
    layout = h5py.VirtualLayout((2, 4), "f4")
    layout[:] = h5py.VirtualSource(name, "a", (2, 4), "f4")
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("b", layout)


def by_pattern(path, name):
    """The file is named by a pattern that the library fills in: private%b.h5 for private0.h5, private1.h5, ..."""
    os.link(os.path.join(os.path.dirname(path), name), os.path.join(os.path.dirname(path), name.replace(".h5", "0.h5")))
    blocks = h5py.h5s.create_simple((2, 4), (h5py.h5s.UNLIMITED, 4))
    blocks.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), stride=(2, 1), block=(2, 4))
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_virtual(blocks, name.replace(".h5", "%b.h5").encode(), b"a", h5py.h5s.create_simple((2, 4)))
    with h5py.File(path, "w") as file:
        file.attrs["Conventions"] = "CF-1.8"   # so that the NetCDF library reads it
        h5py.h5d.create(file.id, b"b", h5py.h5t.IEEE_F32LE, blocks, settings)


def external_storage(path, name):
    with h5py.File(path, "w") as file:
        file.create_dataset("b", (2, 4), "f4", external=[(str(name).replace(".h5", ".raw"), 0, 32)])


def external_link(path, name):
    with h5py.File(path, "w") as file:
        file["links/far"] = h5py.ExternalLink(name, "/a")
        file["b"] = h5py.SoftLink("/links/far")


def netcdf_by_link(path, name):
    external_link(path, name)
    with h5py.File(path, "a") as file:
        file.attrs["Conventions"] = "CF-1.8"
        file["c"] = np.zeros((2, 4), "f4")


def by_another_file(path, name):
    virtual(path.with_name("between.h5"), name)
    layout = h5py.VirtualLayout((2, 4), "f4")
    layout[:] = h5py.VirtualSource("between.h5", "b", (2, 4), "f4")
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("b", layout)


def zarr_by_link(path, name):
    """A chunk of the store is a link."""
    zarr.create_array(store=path, name="b", shape=(2, 4), chunks=(2, 4), dtype="f4", compressors=None)
    (path / "b/c/0").mkdir(parents=True)
    os.symlink(os.path.join(os.path.dirname(path), name.replace(".h5", ".raw")), path / "b/c/0/0")


def brick(path, name):
    path.write_text(f"DATA_FILE: {str(name).replace('.h5', '.raw')}\nDATA_SIZE: 4 2\nDATA_FORMAT: FLOAT\n")


@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
@pytest.mark.parametrize(
    "make", [virtual, by_pattern, external_storage, external_link, netcdf_by_link, by_another_file, brick, zarr_by_link]
)
def test_data_outside_of_the_folder_are_read_only_when_asked_for(private, make, absolute, monkeypatch):
    path = private / "downloads" / "data"
    monkeypatch.chdir(private / "downloads")   # names of raw storage are relative to it
    make(path, str(private / "private.h5") if absolute else "../private.h5")
    name = {} if make is brick else {"name": "c" if make is netcdf_by_link else "b"}
    with pytest.raises(WorkbenchError, match=r"names '.*(private(%b)?\.\w+|c/0/0)' as its data, and only files in its own"):
        wb.open(path, **name)
    if make is not external_link:   # the list of arrays has none that links lead to
        assert wb.open(path, external=True, **name).values.shape == (2, 4)


def test_a_virtual_netcdf_variable_whose_data_are_missing_is_refused(private):
    virtual(private / "data", "absent.h5")
    with h5py.File(private / "data", "a") as file:
        file.attrs["Conventions"] = "CF-1.8"
    with pytest.raises(WorkbenchError, match=r"refers to the data in 1 other files; missing absent\.h5"):
        wb.open(private / "data")


@pytest.mark.parametrize("make", [virtual, brick])
def test_data_in_the_folder_are_read(private, make):
    make(private / "data", "private.h5")
    assert wb.open(private / "data").values[1, 3] == 7


def test_a_name_beside_the_file_that_is_missing_there_is_not_taken_from_the_working_directory(private, monkeypatch):
    monkeypatch.chdir(private)
    external_link(private / "downloads" / "data", "private.h5")
    with pytest.raises(WorkbenchError, match="only files in its own folder"):
        wb.open(private / "downloads" / "data")


def test_a_link_in_the_folder_leads_nowhere_else(private):
    os.symlink(private / "private.raw", private / "downloads" / "values.raw")
    brick(private / "downloads" / "data", "values.raw")
    with pytest.raises(WorkbenchError, match="only files in its own folder"):
        wb.open(private / "downloads" / "data")


def test_limits_hold_for_every_file_of_a_snapshot(tmp_path):
    np.save(tmp_path / "part.0.npy", written.points(10))
    np.save(tmp_path / "part.1.npy", written.points(20))
    with pytest.raises(WorkbenchError, match=r"part\.1\.npy takes 240 bytes in memory, and most_bytes= allows 200"):
        wb.open(f"{tmp_path}/part.*.npy", most_bytes=200)
    for wrong, message in (({"most_bytes": 0}, "most_bytes must be"), ({"external": 1}, "external must be True or False")):
        with pytest.raises(WorkbenchError, match=message):
            wb.open(tmp_path / "part.0.npy", **wrong)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "~nobody/x"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name):
    (tmp_path / "data").write_text(f"DATA_FILE: {name}\nDATA_SIZE: 4 2\nDATA_FORMAT: FLOAT\n")
    with pytest.raises(WorkbenchError, match="data"):
        wb.open(tmp_path / "data", format="bov")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "values.raw")
    brick(tmp_path / "data", "values.raw")
    with pytest.raises(WorkbenchError, match="it is a pipe or a device"):
        wb.open(tmp_path / "data")
