"""Archives in object stores: fsspec's own in memory, and S3 as moto imitates it."""

import numpy as np
import pytest
import xarray

import workbench as wb
from workbench.archive.remote.object_store import ObjectStore
from workbench.cli import main

FIELD = wb.Field(np.linspace(0, 1, 5000).reshape(50, 100))
ARCHIVE = wb.compress(FIELD, wb.Absolute(1e-3), "prequantised", chunks=(10, 100))


@pytest.fixture(scope="module")
def s3():
    """The options of a local S3 with an empty bucket."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "x", "secret": "x", "endpoint_url": f"http://{host}:{port}"}
    store = ObjectStore("s3://data/x.zip", options)
    store._files.mkdir("data")
    yield options
    server.stop()


def test_s3(s3, tmp_path):
    address = ARCHIVE.upload("s3://data/runs/a.zip", storage_options=s3)
    archive = wb.open(address, storage_options=s3)
    np.testing.assert_array_equal(archive.decompress().values, ARCHIVE.decompress().values)
    with pytest.raises(wb.WorkbenchError, match="exists: choose another name, or pass overwrite=True"):
        ARCHIVE.upload(address, storage_options=s3)
    other = wb.compress({"T": FIELD}, wb.Absolute(1e-2), "prequantised")
    other.upload(address, overwrite=True, storage_options=s3)
    assert list(wb.open(address, storage_options=s3)) == ["T"]
    ObjectStore("s3://data/text.zip", s3)._files.pipe("data/text.zip", b"no archive")
    with pytest.raises(wb.WorkbenchError, match="only an archive written by lossbench is overwritten"):
        ARCHIVE.upload("s3://data/text.zip", overwrite=True, storage_options=s3)
    with pytest.raises(wb.WorkbenchError, match=r"there is no file or folder s3://data/nothing\.zip: check the address"):
        wb.open("s3://data/nothing.zip", storage_options=s3)
    folder = ARCHIVE.save(tmp_path / "a.zarr")
    ObjectStore("s3://data", s3)._files.put(str(folder), "data/a.zarr", recursive=True)
    archive = wb.open("s3://data/a.zarr", storage_options=s3)
    np.testing.assert_array_equal(archive.read((slice(5, 15), None)).values, ARCHIVE.read((slice(5, 15), None)).values)


def test_the_shell_sends_archives(tmp_path, capsys):
    np.save(tmp_path / "a.npy", FIELD.values)
    call = ["compress", str(tmp_path / "a.npy"), "memory://shell.zip", "--abs", "0.001", "--kind", "field", "--quiet"]
    assert main(call) == 0
    assert wb.open("memory://shell.zip").kind == "field"
    assert main(call) == 2
    assert "memory://shell.zip exists" in capsys.readouterr().err
    assert main([*call, "--overwrite"]) == 0
    xarray.Dataset(dict.fromkeys(("T", "P"), (("y", "x"), FIELD.values))).to_netcdf(tmp_path / "two.nc")
    two = ["compress", str(tmp_path / "two.nc"), "memory://two.zip", "--abs", "T=0.001", "--exact", "P", "--quiet"]
    assert main(two) == 0
    assert list(wb.open("memory://two.zip")) == ["T", "P"]


@pytest.mark.parametrize(("address", "words"), [
    ("https://example.org/x.zip", "archives are sent to object stores"),
    ("memory://x.zarr", "must be one file that ends in .zip"),
    ("x.zip", "archives are sent to object stores"),
    ("memory://", "it names no file or folder|must be one file"),
    ("nonsense://x.zip", r"cannot open.*: addresses are as https://example.org/x.zip|needs"),
])
def test_where_nothing_can_be_sent(address, words):
    with pytest.raises(wb.WorkbenchError, match=words):
        ARCHIVE.upload(address)


def test_workers_get_options_that_are_text_and_numbers():
    archive = wb.compress(wb.synthetic.cosmic_web(n=8), wb.Absolute(0.01))
    archive.upload("memory://particles.zip", overwrite=True)
    assert len(wb.open_chunked("memory://particles.zip", storage_options={"client": 5})) == 512
    with pytest.raises(wb.WorkbenchError, match="must be text and numbers"):
        wb.open_chunked("memory://particles.zip", storage_options={"client": object()})


def test_saving_names_the_way():
    with pytest.raises(wb.WorkbenchError, match=r"sent by archive\.upload\('memory://x\.zip'\)"):
        ARCHIVE.save("memory://x.zip")
    with pytest.raises(wb.WorkbenchError, match=r"sent by archive\.upload"):
        wb.compress(FIELD, wb.Absolute(0.1), out="memory://x.zip")


class Failing:
    """A file system that fails."""

    def __init__(self, *errors):
        self.errors = list(errors)

    def info(self, path):
        if self.errors:
            raise self.errors.pop(0)
        return {"type": "file", "size": 5}


def test_errors_of_libraries(monkeypatch):
    monkeypatch.setattr("workbench.archive.remote.retries.FIRST_WAIT", 0.001)
    store = ObjectStore("memory://x.zip", {})
    for error, words in (
        (PermissionError("denied"), r"refuses it \(denied\): give storage_options"),
        (ValueError("odd\nlong"), r"reports an error \(ValueError: odd\)"),
    ):
        store._files = Failing(error)
        with pytest.raises(wb.WorkbenchError, match=words):
            store.size()
    store._files = Failing(TimeoutError("slow"), ConnectionResetError())
    assert store.size() == 5
    store._files = Failing(*[TimeoutError("slow")] * 4)
    with pytest.raises(wb.WorkbenchError, match="TimeoutError: slow; 4 tries"):
        store.size()
