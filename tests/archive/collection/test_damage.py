"""Damaged, forged and unfinished collections: what is lost is named, and the rest is read."""

import json
import zipfile

import numpy as np
import pytest

import workbench as wb
from workbench.archive import document
from workbench.archive.collection.description import OURS
from workbench.archive.key import COPY_OF_COLLECTION, ROOT
from workbench.archive.store import MemoryStore
from workbench.archive.writing import Draft

DATA = {
    "T": np.linspace(0, 1, 5000).reshape(50, 100), "name": ["a", "b"], "ocean": {"S": np.ma.masked_less(np.arange(9.0), 3)},
}
RULES = {"name": wb.Exact(), "*": wb.Relative(1e-3)}


@pytest.fixture(scope="module")
def in_memory():
    return wb.compress(DATA, RULES, chunk_values=1250)


@pytest.fixture
def folder(in_memory, tmp_path):
    return in_memory.save(tmp_path / "x.zarr")


def spoil(file, at=-1):
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(bytes(data))


def test_a_damaged_chunk_costs_that_chunk_and_is_named(folder):
    spoil(folder / "T/c/1/0")
    archive = wb.open(folder)
    assert [one.where for one in archive.damage()] == ["T/c/1/0"]
    with pytest.raises(wb.GuaranteeBroken, match="1 of 3 members do not hold: 'T'"):
        archive.verify()
    assert archive["ocean/S"].verify(DATA["ocean"]["S"]).passed
    data, damage = archive.salvage()
    assert [one.where for one in damage] == ["T/c/1/0"]
    assert int(data["T"].mask.sum()) == 1250
    assert data["name"].values.tolist() == ["a", "b"]


def test_a_member_of_which_nothing_is_left_is_listed_and_the_others_come_back(folder):
    (folder / "name/c/0/0").unlink()
    data, damage = wb.open(folder, damaged=True).salvage()
    assert list(data) == ["T", "ocean/S"]
    assert [one.where for one in damage] == ["name/c/0/0"]


def test_a_damaged_root_is_replaced_by_its_copy(folder):
    spoil(folder / ROOT, 40)
    archive = wb.open(folder)
    assert [one.where for one in archive.damage()] == [ROOT]
    assert archive["T"].verify(DATA["T"]).passed
    with pytest.raises(wb.GuaranteeBroken, match=r"document zarr\.json is damaged"):
        archive.verify(DATA)
    assert wb.open(archive.save(folder.with_name("mended.zarr"))).verify(DATA).passed
    spoil(folder / COPY_OF_COLLECTION, 40)
    with pytest.raises(wb.WorkbenchError):
        wb.open(folder)


def test_a_truncated_zip_is_salvaged(in_memory, tmp_path):
    path = in_memory.save(tmp_path / "x.zip")
    data = path.read_bytes()
    with zipfile.ZipFile(path) as opened:
        cut = opened.getinfo("name/c/0/0").header_offset
    path.write_bytes(data[:cut])
    with pytest.raises(wb.WorkbenchError):
        wb.open(path)
    found, damage = wb.open(path, damaged=True).salvage()
    assert np.abs(found["T"].values - DATA["T"]).max() <= 1e-3
    assert {one.where.split("/")[0] for one in damage} >= {"name", "ocean"}


def forged(folder, change):
    root = document.unsealed(json.loads((folder / ROOT).read_text()), ROOT)
    change(root["attributes"][OURS], root["consolidated_metadata"]["metadata"])
    (folder / ROOT).write_bytes(document.to_bytes(document.sealed(root)))
    (folder / COPY_OF_COLLECTION).unlink()


FORGERIES = {
    "two members of one array": lambda ours, arrays: ours["members"]["name"]["arrays"].update(values="T"),
    "an array that is not there": lambda ours, arrays: ours["members"]["name"]["arrays"].update(values="other"),
    "a path out of the archive": lambda ours, arrays: ours["members"]["name"]["arrays"].update(values="../T"),
    "no arrays": lambda ours, arrays: ours["members"]["name"].update(arrays={}),
    "arrays that are none": lambda ours, arrays: ours["members"]["name"].update(arrays=[1]),
    "another format": lambda ours, arrays: ours.update(format=99),
    "no members": lambda ours, arrays: ours.update(members={}),
    "a name that is none": lambda ours, arrays: ours["members"].update({"a//b": ours["members"].pop("name")}),
    "a group that is a member": lambda ours, arrays: ours["members"].update({"T/a": ours["members"].pop("name")}),
    "groups that are none": lambda ours, arrays: ours.update(groups={"ocean": 3}),
    "another kind": lambda ours, arrays: ours["members"]["name"].update(kind="particles"),
    "another type": lambda ours, arrays: ours["members"]["name"].update(dtype="<M8[s]"),
    "another shape": lambda ours, arrays: ours["members"]["T"].update(kind="variable", dtype="float64", shape=[2**40]),
    "a large array": lambda ours, arrays: arrays["T"].update(shape=[2**40, 2**20]),
    "text that is none": lambda ours, arrays: ours["members"]["name"].update(shape=[2**30]),
    "a type that is code": lambda ours, arrays: ours["members"]["name"].update(dtype="O"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_roots_are_refused_in_a_sentence(folder, forgery):
    forged(folder, FORGERIES[forgery])
    with pytest.raises(wb.WorkbenchError):
        wb.open(folder).decompress()


def test_a_run_that_failed_goes_on_and_makes_the_same_bytes(tmp_path):
    encoded = []

    class Stopped(Exception):
        pass

    def stop(share, text):
        encoded.append(text)
        if text.startswith("ocean/S"):   # the last member
            raise Stopped

    once = wb.compress(DATA, RULES, out=tmp_path / "once.zarr", chunk_values=1250)
    with pytest.raises(Stopped):
        wb.compress(DATA, RULES, out=tmp_path / "x.zarr", chunk_values=1250, progress=stop)
    assert not (tmp_path / "x.zarr").exists()
    again = wb.compress(DATA, RULES, out=tmp_path / "x.zarr", chunk_values=1250)
    assert again.store.keys() == once.store.keys()
    assert all(again.store.read(key) == once.store.read(key) for key in once.store.keys())   # noqa: SIM118
    assert sorted(place.name for place in tmp_path.iterdir()) == ["once.zarr", "x.zarr"]


def test_chunks_that_are_done_are_not_encoded_again(tmp_path, monkeypatch):
    put, keys = Draft.put, []
    monkeypatch.setattr(Draft, "put", lambda self, key, data: (keys.append(key), put(self, key, data))[1])

    def stop(share, text):
        if text.startswith("name"):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        wb.compress(DATA, RULES, out=tmp_path / "x.zarr", chunk_values=1250, progress=stop)
    first, keys[:] = list(keys), []
    assert [key for key in first if key.startswith("T/c/")]
    wb.compress(DATA, RULES, out=tmp_path / "x.zarr", chunk_values=1250)
    assert not [key for key in keys if key.startswith("T/c/")]


def test_the_bytes_do_not_depend_on_where_the_archive_is_made(tmp_path):
    memory = wb.compress(DATA, RULES)
    written = wb.compress(DATA, RULES, out=tmp_path / "x.zip")
    assert isinstance(memory.store, MemoryStore)
    assert {key: memory.store.read(key) for key in memory.store.keys()} == {   # noqa: SIM118
        key: written.store.read(key) for key in written.store.keys()   # noqa: SIM118
    }
    with zipfile.ZipFile(tmp_path / "x.zip") as opened:
        assert memory.nbytes == written.nbytes == sum(member.compress_size for member in opened.infolist())
