import errno
import io
import os
import pickle
import shutil
import struct
import tracemalloc
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.archive import store as store_module
from workbench.archive.frame import Damaged
from workbench.archive.key import require_key
from workbench.archive.store import DirectoryStore, MemoryStore, ZipStore, open_store
from workbench.errors import WorkbenchError

ENTRIES = {"zarr.json": b"{}", "a/zarr.json": b"[1]", "a/c/0/0": b"first", "a/c/0/1": b"", "a/c/10/1": b"x" * 1000}
BAD_KEYS = [
    *".. ../a a/../b a/.. /a //a a//b a/ . ./a a/./b .hidden a/.hidden -a a/-b C:a a:b ~ ~/a $a a*b é".split(),
    *(r"a\b", r"..\a", r"C:\a", "", "a b", "a\0", "\0", "a\n", "a/b\n", "a" * 513, "/".join("a" * 257)),
]


def zipped(path, entries=ENTRIES, compression=zipfile.ZIP_STORED):
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as opened:
        warnings.simplefilter("ignore")   # that a name stands there twice is what some tests want
        for key, data in entries.items() if isinstance(entries, dict) else entries:
            opened.writestr(key, data)
    return path


def with_deflated(path, entries=ENTRIES):
    """As archives are written: documents are deflated, chunks are not."""
    with zipfile.ZipFile(path, "w") as opened:
        for key, data in entries.items():
            opened.writestr(key, data, zipfile.ZIP_DEFLATED if key.endswith("zarr.json") else zipfile.ZIP_STORED)
    return path


def unpacked(path, entries=ENTRIES):
    for key, data in entries.items():
        place = path / key
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return path


@pytest.fixture(params=["memory", "directory", "zip", "deflated"])
def store(request, tmp_path):
    if request.param == "memory":
        return MemoryStore(ENTRIES)
    if request.param == "directory":
        return open_store(unpacked(tmp_path / "some.zarr"))
    return open_store((zipped if request.param == "zip" else with_deflated)(tmp_path / "some.zip"))


def test_a_store_holds_what_was_put_there(store):
    assert store.keys() == sorted(ENTRIES)
    assert {key: store.read(key) for key in store.keys()} == ENTRIES   # noqa: SIM118 - not a dictionary
    assert {key: store.size(key) for key in ENTRIES} == {key: len(data) for key, data in ENTRIES.items()}


def test_a_key_that_is_not_there_is_damage_that_names_it(store):
    for ask in (store.read, store.size):
        with pytest.raises(Damaged, match="chunk a/c/9/9 is damaged: it is missing from"):
            ask("a/c/9/9")


@pytest.mark.parametrize("key", ["../outside", "/etc/passwd", "a/../zarr.json", "a", ""])
def test_nothing_is_read_that_is_not_a_part(store, tmp_path, key):
    (tmp_path / "outside").write_bytes(b"secret")
    with pytest.raises(Damaged, match="it is missing"):
        store.read(key)


def test_a_store_crosses_to_other_processes(store):
    again = pickle.loads(pickle.dumps(store))
    assert {key: again.read(key) for key in again.keys()} == ENTRIES   # noqa: SIM118 - not a dictionary


def test_many_threads_read_at_once(store):
    keys = sorted(ENTRIES) * 200
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(store.read, keys)) == [ENTRIES[key] for key in keys]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_a_key_that_could_lead_elsewhere_is_refused(tmp_path, key):
    with pytest.raises(WorkbenchError, match="a key must be names of"):
        require_key(key)
    with pytest.raises(WorkbenchError, match="a key must be names of"):
        MemoryStore({key: b""})


@given(st.text("ab./\\-~\0", max_size=12))
def test_a_key_that_passes_stays_below_its_folder(tmp_path_factory, key):
    try:
        require_key(key)
    except WorkbenchError:
        return
    inside = os.path.normpath(os.path.join("/root/of/archive", key))
    assert inside == f"/root/of/archive/{key}"


@pytest.mark.parametrize("path", ["missing.zarr", "missing/deeper.zip", "a\0b"])
def test_a_path_that_is_not_there_is_refused(tmp_path, path):
    with pytest.raises(WorkbenchError, match=r"there is no archive|cannot open"):
        open_store(tmp_path / path)


# directories


def test_files_that_cannot_be_parts_are_not_part_of_it(tmp_path):
    folder = unpacked(tmp_path / "some.zarr")
    for name in (".DS_Store", "a/.nfs0001", "my notes.txt", "-x"):
        (folder / name).write_bytes(b"something")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_bytes(b"something")
    assert open_store(folder).keys() == sorted(ENTRIES)


@pytest.mark.parametrize("target", ["../outside", "zarr.json", "/etc/hostname", "nowhere", "..", "a"])
@pytest.mark.parametrize("name", ["link", "a/c/1"])
def test_no_link_is_followed(tmp_path, name, target):
    (tmp_path / "outside").write_bytes(b"secret")
    folder = unpacked(tmp_path / "some.zarr")
    (folder / name).symlink_to(target)
    store = open_store(folder)
    assert store.keys() == sorted(ENTRIES)
    assert store.size(name, missing=0) == 0
    for key in (name, f"{name}/zarr.json", f"{name}/c/0/0", f"{name}/outside"):
        with pytest.raises(Damaged, match=r"it is missing from some\.zarr, where links are not followed"):
            store.read(key)


def test_a_directory_is_not_listed_before_its_keys_are_asked_for(tmp_path, monkeypatch):
    folder = unpacked(tmp_path / "some.zarr")
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", None)
        store = open_store(folder)
        assert (store.read("a/c/0/0"), store.size("a/c/10/1")) == (b"first", 1000)
    assert store.keys() == sorted(ENTRIES)


def test_a_part_of_the_bytes_is_read(store):
    assert [store.read("a/c/0/0", *place) for place in [(0, 5), (1, 3), (5, 0), (2,)]] == [b"first", b"irs", b"", b"rst"]
    for place in [(0, 6), (6, 0), (4, 2), (-1, 2), (0, 2**70), (2**70, 1)]:
        with pytest.raises(Damaged, match=r"a/c/0/0 is damaged: it must have .* bytes; it has 5"):
            store.read("a/c/0/0", *place)


def test_an_archive_may_itself_be_reached_by_a_link(tmp_path):
    unpacked(tmp_path / "some.zarr")
    (tmp_path / "link.zarr").symlink_to("some.zarr")
    assert open_store(tmp_path / "link.zarr").read("a/c/0/0") == b"first"


def test_pipes_are_refused_and_never_waited_for(tmp_path):
    folder = unpacked(tmp_path / "some.zarr")
    store = open_store(folder)
    (folder / "a/c/0/0").unlink()
    os.mkfifo(folder / "a/c/0/0")
    with pytest.raises(Damaged, match="it is missing"):
        store.read("a/c/0/0")


def test_files_that_are_gone_are_damage(tmp_path):
    folder = unpacked(tmp_path / "some.zarr")
    store = open_store(folder)
    (folder / "a/c/10/1").unlink()
    with pytest.raises(Damaged, match="it is missing"):
        store.read("a/c/10/1")
    assert store.read("zarr.json") == b"{}"


def test_an_error_of_the_disk_is_damage(tmp_path, monkeypatch):
    def failing(*given):
        raise OSError(errno.EIO, "Input/output error")

    for path in (unpacked(tmp_path / "some.zarr"), zipped(tmp_path / "some.zip")):
        store = open_store(path)
        monkeypatch.setattr(store_module, "_read", failing)
        with pytest.raises(Damaged, match=r"a/c/0/0 is damaged: it cannot be read \(Input/output error\)"):
            store.read("a/c/0/0")


def test_a_directory_that_was_replaced_is_noticed(tmp_path):
    store = open_store(unpacked(tmp_path / "some.zarr"))
    (tmp_path / "some.zarr").rename(tmp_path / "old.zarr")
    unpacked(tmp_path / "some.zarr")
    with pytest.raises(WorkbenchError, match=r"some\.zarr was replaced since it was opened: open it again"):
        store.read("a/c/0/0")


@pytest.mark.parametrize("write", [unpacked, zipped])
def test_an_archive_is_read_from_any_folder_until_it_is_moved(tmp_path, monkeypatch, write):
    write(tmp_path / "some")
    monkeypatch.chdir(tmp_path)
    store = open_store("some")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert pickle.loads(pickle.dumps(store)).read("a/c/0/0") == b"first"
    (tmp_path / "some").rename("some")
    asked = [lambda: store.read("a/c/0/0")]
    if write is unpacked:
        asked += [lambda: store.size("a/c/0/0", missing=0), store.keys]
    for ask in asked:
        with pytest.raises(WorkbenchError, match="some was moved or deleted since it was opened: open it again") as raised:
            ask()
        assert not isinstance(raised.value, Damaged)


def test_a_directory_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(WorkbenchError, match=r"cannot open the archive .*: No such file"):
        DirectoryStore(tmp_path / "missing")


# zip files


def test_only_what_is_asked_for_is_read(tmp_path):
    path = zipped(tmp_path / "some.zip", {**ENTRIES, "a/c/1/1": bytes(2**25)})
    tracemalloc.start()
    try:
        store = ZipStore(path)
        assert store.read("a/c/0/0") == b"first"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("damaged", [False, True])
def test_documents_may_be_deflated(tmp_path, damaged):
    entries = {**ENTRIES, "zarr.json": b'{"x": 1}' * 1000}
    store = ZipStore(with_deflated(tmp_path / "some.zip", entries), damaged)
    assert {key: store.read(key) for key in store.keys()} == entries   # noqa: SIM118 - not a dictionary
    assert (store.size("zarr.json"), store.read("zarr.json", 8, 4)) == (8000, b'{"x"')
    with pytest.raises(Damaged, match=r"zarr\.json is damaged: it must have at most 7,999 bytes; it has 8,000"):
        store.read("zarr.json", most=7999)


def test_a_document_that_inflates_to_something_else_is_damage(tmp_path):
    path = with_deflated(tmp_path / "some.zip", {"zarr.json": b"x" * 1000 + b"y" * 500, "a/c/0": b"12"})
    whole = path.read_bytes()
    for stated in (1499, 1501):
        data = bytearray(whole)
        struct.pack_into("<I", data, directory_entry(data, "zarr.json") + 24, stated)
        path.write_bytes(data)
        with pytest.raises(Damaged, match=rf"zarr\.json is damaged: it must be inflated to {stated:,} bytes; it is not"):
            open_store(path).read("zarr.json")
    data = bytearray(whole)
    data[30 + len("zarr.json")] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(Damaged, match=r"zarr\.json is damaged: it (cannot|must) be inflated"):
        open_store(path).read("zarr.json")
    assert open_store(path).read("a/c/0") == b"12"


@pytest.mark.parametrize("size", [2**24 + 1, 2**31])
def test_a_deflated_document_that_is_no_document_is_refused_before_it_is_inflated(tmp_path, size):
    path = with_deflated(tmp_path / "bomb.zip", {"zarr.json": bytes(2**25), "a/c/0": b"12"})
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, directory_entry(data, "zarr.json") + 24, size)
    struct.pack_into("<I", data, 22, size)
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(WorkbenchError, match=r"contradicts itself about zarr\.json"):
            open_store(path)
        assert ZipStore(path, damaged=True).keys() == ["a/c/0"]
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.long_with("14")
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compressed_member_is_refused_without_unpacking_it(tmp_path, method):
    path = zipped(tmp_path / "bomb.zip", {**ENTRIES, "a/c/1/1": bytes(2**26)}, method)
    assert path.stat().st_size < 2**18
    tracemalloc.start()
    try:
        with pytest.raises(WorkbenchError, match=r"in bomb\.zip is compressed or encrypted by the zip file itself"):
            open_store(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_name_that_stands_there_twice_is_refused(tmp_path):
    path = zipped(tmp_path / "twice.zip", [*ENTRIES.items(), ("a/c/0/0", b"other")])
    with pytest.raises(WorkbenchError, match="holds several parts with the same name"):
        open_store(path)


@pytest.mark.parametrize("key", ["../outside", "/etc/passwd", "a/../../b", "a\\..\\b"])
def test_a_member_that_could_lead_elsewhere_is_refused(tmp_path, key):
    with pytest.raises(WorkbenchError, match="a key must be names of"):
        open_store(zipped(tmp_path / "bad.zip", {**ENTRIES, key: b"x"}))


@pytest.mark.parametrize("key", ["__MACOSX/._x", ".DS_Store", "a/.nfs0001", "my notes.txt", "-x"])
def test_members_that_cannot_be_parts_are_not_part_of_it(tmp_path, key):
    store = open_store(zipped(tmp_path / "some.zip", {**ENTRIES, key: b"something"}))
    assert store.keys() == sorted(ENTRIES)


def test_a_member_that_is_a_link_is_refused(tmp_path):
    link = zipfile.ZipInfo("a/c/7")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    path = zipped(tmp_path / "bad.zip", [*ENTRIES.items(), (link, b"/etc/passwd")])
    with pytest.raises(WorkbenchError, match=r"a/c/7 in bad\.zip is a link"):
        open_store(path)


def test_directories_in_a_zip_file_do_not_matter(tmp_path):
    folder = unpacked(tmp_path / "some.zarr")
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as opened:
        for path in sorted(folder.rglob("*")):
            opened.write(path, path.relative_to(folder))
        assert any(member.is_dir() for member in opened.infolist())
    assert open_store(tmp_path / "some.zip").keys() == sorted(ENTRIES)


def directory_entry(data, key):
    """Where the central directory of a zip file speaks of a member."""
    place = data.index(b"PK\x01\x02")
    while data[place + 46 : place + 46 + struct.unpack_from("<H", data, place + 28)[0]] != key.encode():
        place = data.index(b"PK\x01\x02", place + 4)
    return place


@pytest.mark.parametrize(("offset", "form", "value", "complaint"), [
    (8, "<H", (1,), "encrypted"),
    (10, "<H", (8,), "compressed"),
    (20, "<I", (10**9,), "contradicts itself about a/c/0/0"),
    (24, "<I", (10**9,), "contradicts itself about a/c/0/0"),
    (20, "<II", (10**9, 10**9), "the parts of some.zip need 1,000,00"),
    (20, "<II", (2**32 - 1, 2**32 - 1), "need 4,29|an incomplete zip"),
    (42, "<I", (10**9,), "contradicts itself about a/c/0/0"),
])
def test_a_directory_that_lies_is_refused(tmp_path, offset, form, value, complaint):
    path = zipped(tmp_path / "some.zip")
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, directory_entry(data, "a/c/0/0") + offset, *value)
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(WorkbenchError, match=complaint):
            open_store(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_member_that_points_at_another_is_damage(tmp_path):
    path = zipped(tmp_path / "some.zip")
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, directory_entry(data, "a/c/0/0") + 42, 0)
    path.write_bytes(data)
    store = open_store(path)
    with pytest.raises(Damaged, match="a/c/0/0 is damaged: the zip file holds something else in its place"):
        store.read("a/c/0/0")
    assert store.read("a/zarr.json") == b"[1]"


def test_a_member_that_reaches_into_the_directory_is_damage(tmp_path):
    path = zipped(tmp_path / "some.zip", {"first": b"x" * 2000, "last": b"y"})
    data = bytearray(path.read_bytes())
    place = directory_entry(data, "last")
    struct.pack_into("<I", data, directory_entry(data, "first") + 20, 1)
    struct.pack_into("<I", data, directory_entry(data, "first") + 24, 1)
    struct.pack_into("<II", data, place + 20, 500, 500)
    path.write_bytes(data)
    with pytest.raises(Damaged, match="last is damaged: it reaches beyond the parts"):
        open_store(path).read("last")


def read_all(path):
    store = open_store(path)
    found = {}
    for key in ENTRIES:
        try:
            found[key] = store.read(key)
        except WorkbenchError as error:
            found[key] = error
    return found


def test_a_truncated_zip_file_is_refused(tmp_path):
    whole = zipped(tmp_path / "whole.zip").read_bytes()
    path = tmp_path / "cut.zip"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(WorkbenchError):
            open_store(path)


@pytest.mark.parametrize(("write", "expansion"), [(zipped, 1), (with_deflated, 1032)])
def test_whatever_happens_to_a_zip_file_only_our_errors_come_of_it(tmp_path, write, expansion):
    entries = {key: data[:20] for key, data in ENTRIES.items()}
    whole = write(tmp_path / "whole.zip", entries).read_bytes()
    path = tmp_path / "changed.zip"
    for place in range(len(whole)):
        for change in (1, 0x80, 0xFF):
            data = bytearray(whole)
            data[place] ^= change
            path.write_bytes(data)
            try:
                store = open_store(path)
            except WorkbenchError:
                continue
            for key in store.keys():   # noqa: SIM118 - not a dictionary
                try:
                    assert len(store.read(key)) == store.size(key) <= len(whole) * expansion
                except WorkbenchError:
                    continue


@given(st.binary(max_size=400), st.integers(0, 300), st.booleans())
def test_fuzzed_zip_files_only_raise_our_errors(tmp_path_factory, noise, place, replace):
    path = tmp_path_factory.mktemp("fuzz") / "fuzz.zip"
    buffer = io.BytesIO()
    zipped(buffer, {"zarr.json": b"{}", "a/c/0": b"12345"})
    data = buffer.getvalue()
    path.write_bytes(data[:place] + noise + data[place + replace * len(noise) :])
    try:
        store = open_store(path)
        assert sum(map(store.size, store.keys())) <= path.stat().st_size
        for key in store.keys():   # noqa: SIM118 - not a dictionary
            store.read(key)
    except WorkbenchError:
        pass


def test_a_zip_file_with_something_before_it_is_read(tmp_path):
    path = zipped(tmp_path / "some.zip")
    path.write_bytes(b"#! a preamble\n" + path.read_bytes())
    assert read_all(path) == ENTRIES


def test_a_zip_file_that_was_replaced_is_noticed(tmp_path):
    path = zipped(tmp_path / "some.zip")
    store = open_store(path)
    shutil.copy(zipped(tmp_path / "other.zip", {**ENTRIES, "a/c/0/0": b"later on"}), path)
    with pytest.raises(WorkbenchError, match=r"some\.zip changed since it was opened: open it again"):
        store.read("a/c/0/0")


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04" + bytes(100), b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_zip_file_is_refused(tmp_path, content):
    path = tmp_path / "bad.zip"
    path.write_bytes(content)
    with pytest.raises(WorkbenchError, match=r"bad\.zip is not an archive, or an incomplete zip file"):
        open_store(path)


def test_a_zip_file_that_zarr_wrote_is_read(tmp_path):
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(tmp_path / "theirs.zip", mode="w") as theirs:
        group = zarr.create_group(theirs)
        group.create_array("a", shape=(4,), chunks=(2,), dtype="int16", compressors=None)[:] = [1, 2, 3, 4]
    ours = open_store(tmp_path / "theirs.zip")
    assert ours.keys() == ["a/c/0", "a/c/1", "a/zarr.json", "zarr.json"]
    assert ours.read("a/c/1") == b"\x03\0\x04\0"
