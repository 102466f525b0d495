"""Archives on web servers: the same values, few requests, few bytes; and servers that break are errors, not wrong bytes."""

import io
import pickle
import time
import zipfile

import numpy as np
import pytest
import xarray

import workbench as wb
from archive.remote.served import Served, served, silent, stated, status
from workbench.archive.remote import http, retries, stores
from workbench.archive.store import open_store
from workbench.cli import main

CORNER = [(0, 20), (4, 20), (3, 11)]
FIELD = wb.synthetic.gaussian_field((40, 40, 40), seed=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Archives of each kind, as one file and as a folder."""
    here = tmp_path_factory.mktemp("served")
    particles = wb.synthetic.cosmic_web(n=24, seed=1)
    made = {
        "field": wb.compress(FIELD, wb.Relative(1e-3), chunks=(16, 16, 16)),
        "particles": wb.compress(particles, wb.Absolute(0.01), order="free", chunk_values=2048),
        "dataset": wb.compress({"T": FIELD.values, "P": 2 * FIELD.values, "n": np.arange(5)}, wb.Relative(1e-3)),
        "shards": wb.compress(wb.Field(np.arange(4200.0)), wb.Absolute(0.1), "pcodec", chunks=(2,)),
    }
    for name, archive in made.items():
        archive.save(here / f"{name}.zip")
        archive.save(here / f"{name}.zarr")
    return here


@pytest.fixture
def web(folder, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    with served(folder) as server:
        yield server


@pytest.mark.long_with("zip")
@pytest.mark.parametrize("form", ["zip", "zarr"])
def test_what_is_read_is_what_is_there(form, web, folder):
    there, here = wb.open(web.at(f"field.{form}")), wb.open(folder / f"field.{form}")
    assert repr(there) == repr(here)
    np.testing.assert_array_equal(there.decompress().values, here.decompress().values)
    assert there.certificate.promises == here.certificate.promises
    region = wb.open(web.at(f"particles.{form}")).read(CORNER)
    expected = wb.open(folder / f"particles.{form}").read(CORNER)
    np.testing.assert_array_equal(region.positions, expected.positions)
    np.testing.assert_array_equal(region.velocities, expected.velocities)
    dataset = wb.open(web.at(f"dataset.{form}"))
    assert list(dataset) == ["T", "P", "n"]
    np.testing.assert_array_equal(dataset["n"].decompress().values, np.arange(5))


@pytest.mark.parametrize("form", ["zip", "zarr"])
def test_a_region_asks_for_its_chunks_alone(form, web, monkeypatch):
    monkeypatch.setattr(stores, "LAST", 6000)
    archive = wb.open(web.at(f"field.{form}"))
    opening = len(web.asked)
    assert opening <= 2
    web.asked.clear()
    part = archive.read((slice(0, 20), slice(0, 16), slice(0, 16)))
    chunks = [archive.data.chunk_nbytes((i, 0, 0)) for i in (0, 1)]
    assert part.shape == (20, 16, 16)
    assert len([one for one in web.asked if one[0] == "GET"]) == len(chunks)
    assert web.sent == sum(chunks)


def test_a_region_of_shards_is_read_by_ranges(web):
    archive = wb.open(web.at("shards.zip"))
    layout = archive.data.layout
    assert layout.shard_shape is not None
    web.asked.clear()
    np.testing.assert_allclose(archive.read((slice(100, 103),)).values, [100, 101, 102], atol=0.1)
    shards = {layout.shard_of((i,)) for i in (50, 51)}
    assert len(web.asked) == 2 + len(shards)   # an index for each shard, and each chunk
    assert web.sent < 1000


def test_a_directory_longer_than_the_last_bytes(web, folder, monkeypatch):
    monkeypatch.setattr(stores, "LAST", 100)
    archive = wb.open(web.at("field.zip"))
    assert len(web.asked) <= 3
    np.testing.assert_array_equal(archive.decompress().values, wb.open(folder / "field.zip").decompress().values)


def test_zip_files_with_something_between_their_members(web, folder):
    """Other programs align members, or write extra fields: then a header is read before its bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(folder / "field.zip") as source, zipfile.ZipFile(buffer, "w") as packed:
        for member in source.infolist():
            other = zipfile.ZipInfo(member.filename)
            other.extra = b"\x99\x99\x04\x00abcd"
            packed.writestr(other, source.read(member))
    (folder / "extra.zip").write_bytes(buffer.getvalue())
    archive = wb.open(web.at("extra.zip"))
    np.testing.assert_array_equal(archive.decompress().values, wb.open(folder / "field.zip").decompress().values)


def test_archives_go_to_other_processes(web):
    archive = wb.open(web.at("field.zip"))
    again = pickle.loads(pickle.dumps(archive))
    np.testing.assert_array_equal(again.decompress().values, archive.decompress().values)
    folder = pickle.loads(pickle.dumps(open_store(web.at("field.zarr"))))
    assert folder.size("zarr.json") > 0


def test_particles_in_chunks(web, folder):
    there, here = (wb.open_chunked(path, chunk=2048) for path in (web.at("particles.zip"), folder / "particles.zip"))
    assert len(there) == len(here) == 24**3
    np.testing.assert_array_equal(there.chunk(3).positions, here.chunk(3).positions)
    with pytest.raises(wb.WorkbenchError, match="headers must be text by name"):
        wb.open_chunked(web.at("particles.zip"), storage_options={"headers": {"X": 5}})


def test_xarray_and_the_shell(web, capsys, tmp_path):
    opened = xarray.open_dataset(web.at("dataset.zip"), engine="lossbench")
    assert opened["T"].shape == FIELD.shape
    assert main(["info", web.at("field.zip"), "--json"]) == 0
    assert '"holds": "field"' in capsys.readouterr().out
    assert main(["decompress", web.at("field.zip"), str(tmp_path / "out.npy")]) == 0
    assert np.load(tmp_path / "out.npy").shape == FIELD.shape
    assert main(["info", web.at("nothing.zip")]) == 2
    assert "there is no nothing.zip at its address: check it" in capsys.readouterr().err


def test_headers_are_sent_and_stay_with_their_machine(web, folder):
    wb.open(web.at("field.zip"), storage_options={"headers": {"Authorization": "Bearer 5"}})
    assert web.headers[-1]["Authorization"] == "Bearer 5"
    with served(folder) as other:
        other.fault = status(302, Location=web.at("field.zip").replace("127.0.0.1", "localhost"))
        web.headers.clear()
        wb.open(other.at("field.zip"), storage_options={"headers": {"Authorization": "Bearer 5"}})
        assert other.headers[-1]["Authorization"] == "Bearer 5"
        assert "Authorization" not in web.headers[-1]
        assert "Range" in web.headers[-1]
        other.fault = status(302, Location=web.at("field.zip"))   # another port: another server
        wb.open(other.at("field.zip"), storage_options={"headers": {"Authorization": "Bearer 5"}})
        assert "Authorization" not in web.headers[-1]


def test_an_address_without_a_suffix(web, folder):
    """Repositories of data have such: what is there is found out."""
    (folder / "content").write_bytes((folder / "field.zip").read_bytes())
    assert wb.open(web.at("content")).kind == "field"
    assert wb.open(web.at("field.zip?download=1")).kind == "field"


# What breaks.

def test_a_server_that_fails_for_a_moment(web, folder):
    web.fault = status(503, times=2)
    assert wb.open(web.at("field.zip")).kind == "field"
    assert len(web.asked) == 3


@pytest.mark.parametrize(("fault", "words"), [
    (status(503), r"cannot be read \(its server answers 503 Service Unavailable; 4 tries\): try again later"),
    (status(404), "there is no field.zip at its address: check it"),
    (status(401), r"refuses it \(401 Unauthorized\): give storage_options"),
    (status(400), r"refuses it \(400 Bad Request\): check the address"),
    (stated("bytes 0-9/1000", b"0123456789"), "must send the end of it; it answers 'bytes 0-9/1000'"),
    (stated(f"bytes 0-{10**12 - 1}/{10**12}", b"0" * 100), "must send the end of it"),
    (status(302, Location="ftp://127.0.0.1/field.zip"), "redirects to an address that is not of HTTP"),
    (stated("bytes 5-2/1000", b"0123456789"), "must send the end of it; it answers 'bytes 5-2/1000'"),
    (stated("something", b"0123456789"), "must send the end of it; it answers 'something'"),
    (stated("bytes 0-999/1000", b"0123456789"), r"the answer ended after 10 of 1,000 bytes; 4 tries"),
    (stated(None, b"0123456789"), "does not say how long it is: download it first"),
    (stated(None, b"0123456789", length=2**40), "ignores ranges of bytes, and all of it takes 1,099,511,627,776 bytes"),
])
def test_servers_that_refuse_or_lie(fault, words, web):
    web.fault = fault
    with pytest.raises(wb.WorkbenchError, match=words):
        wb.open(web.at("field.zip"))


@pytest.mark.parametrize("content_range", ["bytes 0-9/{}", "bytes 10-19/{}"])
def test_a_part_of_a_file_is_not_all_of_it(content_range, web, folder):
    archive, size = wb.open(web.at("field.zarr")), (folder / "field.zarr/values/c/0/0/0").stat().st_size
    web.fault = stated(content_range.format(size), b"0" * 10)
    with pytest.raises(wb.WorkbenchError, match=r"must send (all|[\d,]+ bytes) of it; it answers 'bytes"):
        archive.data.chunk((0, 0, 0))


def test_another_place_of_the_same_length_is_refused(web):
    file = http.HTTPFile(web.at("field.zip"))
    web.fault = stated("bytes 5-14/1000", b"0123456789")
    with pytest.raises(wb.WorkbenchError, match="must send 10 bytes of it; it answers 'bytes 5-14/1000'"):
        file.read(0, 10)


@pytest.mark.parametrize(("address", "headers"), [
    ("http://user:secret@127.0.0.1/field.zip", {}), ("http://[::1/field.zip?token=secret", {}),
    ("http://127.0.0.1:x/field.zip?token=secret", {}), ("http:///field.zip?token=secret", {}),
    ("http://127.0.0.1/field.zip", {"X": "secret\r\nY: z"}), ("http://127.0.0.1/field.zip", {"X": "secret\u20ac"}),
    ("s3://data/nothing.zip?token=secret", None),
])
def test_messages_hold_no_passwords(address, headers):
    options = {"damaged": True} if headers is None else {"storage_options": {"headers": headers}}
    with pytest.raises(wb.WorkbenchError) as caught:
        wb.open(address, **options)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content_range", ["bytes 0-99/100", "bytes 7-7/99999999", "bytes */5"])
def test_wrong_ranges_of_chunks(content_range, web):
    archive = wb.open(web.at("field.zip"))
    web.fault = stated(content_range, b"0" * 100)
    with pytest.raises(wb.WorkbenchError, match=r"must send [\d,]+ bytes of it; it answers"):
        archive.decompress()


def test_bytes_beside_those_of_the_request_are_refused(web):
    archive = wb.open(web.at("field.zip"))

    def beside(request, number):
        begin, last = map(int, request.headers["Range"].removeprefix("bytes=").split("-"))
        return stated(f"bytes {begin + 1}-{last + 1}/99999999", b"0" * (last + 1 - begin))(request, number)

    web.fault = beside
    with pytest.raises(wb.WorkbenchError, match=r"must send [\d,]+ bytes of it; it answers"):
        archive.decompress()


def test_other_bytes_fail_their_checksums(web, folder):
    data = bytearray((folder / "field.zip").read_bytes())
    data[1000:60000] = bytes(59000)
    (folder / "broken.zip").write_bytes(data)
    archive = wb.open(web.at("broken.zip"))
    with pytest.raises(wb.GuaranteeBroken):
        archive.decompress()
    assert archive.damage()


def test_silence_ends(web):
    web.fault = silent(0.5)
    with pytest.raises(wb.WorkbenchError, match="its server does not answer in time; 4 tries"):
        wb.open(web.at("field.zip"), storage_options={"timeout": 0.05})


def test_bytes_that_trickle_are_given_up(web, monkeypatch):
    monkeypatch.setattr(http, "SLOWEST", 1e9)

    def trickle(request, number):
        request.send_response(206)
        request.send_header("Content-Length", "1000")
        request.send_header("Content-Range", "bytes 0-999/1000")
        request.end_headers()
        for _ in range(100):
            try:
                request.wfile.write(b"0" * 10)
            except OSError:
                break
            time.sleep(0.02)
        request.close_connection = True
        return True

    web.fault = trickle
    with pytest.raises(wb.WorkbenchError, match=r"of 1,000 bytes in 0\.1 s; 4 tries"):
        wb.open(web.at("field.zip"), storage_options={"timeout": 0.1})


@pytest.mark.parametrize("piece", [b"a", b"X-More: yes\r\n"])
def test_a_head_that_trickles_is_given_up(web, piece):
    def trickle(request, number):
        request.send_response(206)
        request.flush_headers()
        try:
            for _ in range(80):
                request.wfile.write(piece)
                time.sleep(0.01)
        except OSError:
            pass
        request.close_connection = True
        return True

    web.fault = trickle
    with pytest.raises(wb.WorkbenchError, match="its server does not answer in time; 4 tries"):
        wb.open(web.at("field.zip"), storage_options={"timeout": 0.1})


def test_one_file_of_a_folder_is_kept(web, folder):
    web.ranges = False
    archive = wb.open(web.at("shards.zarr"))
    archive.decompress()
    kept = [file.is_kept for file in archive.store._files.values()]
    assert (sum(kept), len(kept) > 3) == (1, True)


def test_a_server_that_ignores_ranges(web, folder):
    web.ranges = False
    archive = wb.open(web.at("field.zip"))
    np.testing.assert_array_equal(archive.decompress().values, wb.open(folder / "field.zip").decompress().values)
    assert len(web.asked) == 1   # a small file is kept


@pytest.mark.parametrize("form", ["zip", "zarr"])
def test_a_file_that_is_replaced(form, web, folder):
    archive = wb.open(web.at(f"field.{form}"))
    archive.data.chunk((0, 0, 0))
    web.mark = '"second"'
    with pytest.raises(wb.WorkbenchError, match=r"field\.z\S+ changed since it was opened: open it again"):
        archive.decompress()


def test_what_is_no_archive(web, folder):
    (folder / "text.txt").write_text("hello " * 100)
    (folder / "empty.zip").write_bytes(b"")
    with pytest.raises(wb.WorkbenchError, match=r"text\.txt is no archive of Lossbench .*: other files are read"):
        wb.open(web.at("text.txt"))
    with pytest.raises(wb.WorkbenchError):
        wb.open(web.at("empty.zip"))
    with pytest.raises(wb.WorkbenchError, match=r"is read from files of this machine: download field\.zip first"):
        wb.open(web.at("field.zip"), format="npy")
    with pytest.raises(wb.WorkbenchError, match="download it first"):
        wb.open(web.at("field.zip"), damaged=True)
    with pytest.raises(wb.WorkbenchError, match="storage_options of http are headers and timeout; got 'anon'"):
        wb.open(web.at("field.zip"), storage_options={"anon": True})
    with pytest.raises(wb.WorkbenchError, match="storage_options are for addresses"):
        wb.open(folder / "field.zip", storage_options={"anon": True})


def test_a_web_server_lists_nothing(web: Served):
    with pytest.raises(wb.WorkbenchError, match="is a folder of a web server, which is not listed"):
        open_store(web.at("field.zarr")).keys()
