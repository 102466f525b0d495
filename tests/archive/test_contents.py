"""A kind of content that the package does not know: one class, here, and an entry in the registry are all that it needs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.archive.content.consistency import wrong_array
from workbench.archive.content.content import Content
from workbench.archive.content.registry import KINDS, in_words
from workbench.archive.encoding import Task, encode, encode_exactly, layout_for
from workbench.archive.request import archive_of
from workbench.archive.store import MemoryStore
from workbench.cli import main
from workbench.errors import GuaranteeBroken, WorkbenchError

COUNT = 3000


@dataclass(frozen=True, eq=False)
class Table:
    """A measured column, and a number for each of its rows."""

    measured: np.ndarray
    number: np.ndarray
    metadata: Mapping[str, Any] = field(default_factory=dict)


class TableContent(Content):
    kind, words, data, beside, classes = "table", "a table", "measured", ("number",), (Table,)
    told = ("source",)

    def compressed(self, call):
        codec, values = call.request.chosen_codec("pcodec"), call.data.measured
        limit = call.request.bound.limit(values)
        task = Task(layout_for(self.data, values.shape, values.dtype, (1000,), codec), codec, call.request.bound, limit)
        arrays = [encode(task, lambda place: values[place]), encode_exactly("number", call.data.number, (1000,))]
        place = MemoryStore()
        for key, data in (entry for array in arrays for entry in array.entries()):
            place.put(key, data)
        archive = archive_of(arrays, {"kind": "table", "source": "a test"}, codec, call.metadata, place, call.executor)
        return archive if call.out is None else wb.open(archive.save(call.out, call.overwrite))

    def contradiction(self, attributes, layouts, damaged):
        measured = layouts["measured"]
        return wrong_array(measured, measured.shape[:1], "f") or wrong_array(layouts.get("number"), measured.shape, "iu")

    def assembled(self, archive, arrays):
        return Table(arrays["measured"], arrays["number"], archive.attributes["metadata"])

    def arrays(self, data):
        return {"measured": data.measured, "number": data.number}

    def summary(self, data):
        return {"count": len(data.measured)}



@pytest.fixture
def tables(monkeypatch):
    monkeypatch.setitem(KINDS, "table", TableContent())


def sample(seed: int = 1) -> Table:
    random = np.random.default_rng(seed)
    return Table(random.normal(size=COUNT).astype(np.float32), np.arange(COUNT), {"units": "K"})


@pytest.fixture
def path(tables, tmp_path):
    wb.compress(sample(), wb.Absolute(0.01), "prequantised", out=tmp_path / "table.zip")
    return tmp_path / "table.zip"


def rewritten(path, change) -> bytes:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    return bytes(data)


def test_it_is_written_opened_and_decoded(path):
    archive, table = wb.open(path), sample()
    back = archive.decompress()
    assert isinstance(back, Table)
    assert np.abs(back.measured - table.measured).max() <= 0.01
    assert back.number.tobytes() == table.number.tobytes()
    assert back.metadata == {"units": "K"}
    assert (archive.kind, archive.original_nbytes) == ("table", table.measured.nbytes + table.number.nbytes)
    assert repr(archive).startswith("Archive(a table of 3,000 rows, float32, prequantised")
    assert "a table of 3,000 rows" in archive._repr_html_()
    assert archive.damage() == []


def test_it_is_verified(path):
    archive, table = wb.open(path), sample()
    assert archive.verify().passed
    report = archive.verify(table)
    assert report.passed
    assert report["measured_max_error"] == np.abs(archive.decompress().measured - table.measured).max()
    with pytest.raises(GuaranteeBroken, match="values of measured break the promise"):
        archive.verify(sample(seed=2))
    with pytest.raises(GuaranteeBroken, match="number must be bit-identical"):
        archive.verify(Table(table.measured, table.number + 1))
    with pytest.raises(WorkbenchError, match="this archive holds a table; got Field as its original"):
        archive.verify(wb.Field(table.measured))


def test_a_description_of_other_arrays_is_refused(tables):
    table = sample()
    with pytest.raises(WorkbenchError, match="contradicts itself: number must be integers"):
        wb.compress(Table(table.measured, table.measured), wb.Absolute(0.01))


def test_what_only_others_offer_is_refused(path):
    archive = wb.open(path)
    for ask, answer in (
        (archive.preview, "only fields have a preview; this archive holds a table"),
        (archive.permutation, "only particles have a permutation; this archive holds a table"),
        (archive.chunked_field, "the archive must hold a field"),
        (lambda: archive.read([(0, 1)]), "only particles and fields have regions; this archive holds a table"),
        (lambda: archive.bits_per_particle, "bits_per_particle is for particles; this archive holds a table"),
        (lambda: wb.open_chunked(path), "holds a table, and only particles are read in chunks"),
        (lambda: wb.compress(sample(), wb.Absolute(1), order="free"), "are for particles; got a table"),
        (lambda: wb.compress(sample(), wb.Absolute(1), keep=[wb.KeepClusters(1)]), "keep of a table takes nothing"),
    ):
        with pytest.raises(WorkbenchError, match=answer):
            ask()


def test_the_shell_describes_checks_and_exports_it(path, tmp_path, capsys):
    def run(*words):
        status = main([*map(str, words)])
        return status, capsys.readouterr().out

    described = json.loads(run("info", path, "--json")[1])
    assert {name: described[name] for name in ("holds", "shape", "source", "metadata.units")} == {
        "holds": "table", "shape": [COUNT], "source": "a test", "metadata.units": "K",
    }
    assert "array number" in run("info", path)[1]
    assert run("verify", path)[0] == 0
    assert run("decompress", path, tmp_path / "out.npz")[0] == 0
    with np.load(tmp_path / "out.npz") as found:
        assert sorted(found) == ["measured", "number"]


def test_rows_outside_a_damaged_chunk_are_salvaged(path, tmp_path, capsys):
    archive = wb.open(path)
    first = archive.store.read("measured/c/0")

    def flip(data: bytearray) -> None:
        data[data.index(first) + len(first) // 2] ^= 1

    rewritten(path, flip)
    table, damage = wb.open(path).salvage()
    assert [found.where for found in damage] == ["measured/c/0"]
    assert table.number.tolist() == list(range(1000, COUNT))
    assert main(["salvage", str(path), str(tmp_path / "rest.npz"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["lost"] == 1000


def test_its_root_has_a_copy_beside_its_data(path):
    def flip(data: bytearray) -> None:
        data[data.index(b"zarr.json") + 30] ^= 1   # in what it is deflated to

    rewritten(path, flip)
    with pytest.raises(WorkbenchError, match=r"zarr\.json"):
        wb.open(path).verify()
    assert wb.open(path).salvage()[0].number.tolist() == sample().number.tolist()


def test_an_unknown_kind_is_refused_with_those_that_are_known(path, monkeypatch):
    assert in_words() == "particles, a field, a variable, a trajectory or a table"
    monkeypatch.delitem(KINDS, "table")
    with pytest.raises(WorkbenchError, match="with particles, a field, a variable or a trajectory; got format 3, 'table'"):
        wb.open(path)
