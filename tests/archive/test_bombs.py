"""Small files that ask for much: refused by a sentence, after little work."""

import time
import zipfile
import zlib

import pytest

import workbench as wb
from archive import samples
from archive.samples import from_parts, parts, resealed
from workbench.archive import document
from workbench.archive.members import scanned
from workbench.archive.recognition import is_archive
from workbench.errors import WorkbenchError

LISTS = b'{"attributes":{"x":[' + b"[]," * (2**21) + b"[]]}}"


@pytest.fixture(scope="module")
def entries():
    return parts(wb.compress(samples.field(), wb.Absolute(0.1), "prequantised"))


def test_only_the_copy_in_the_folder_of_the_data_is_tried(entries, tmp_path, monkeypatch):
    parsed = []
    monkeypatch.setattr(document, "from_bytes", lambda data, where: parsed.append(where) or {})
    copies = {f"array{number}/root.json.z": zlib.compress(b"{}") for number in range(100)}
    with pytest.raises(WorkbenchError, match="not written by lossbench"):
        from_parts({**entries, **copies})
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as file:
        for key, data in {"zarr.json": b"{}", **copies}.items():
            file.writestr(key, data)
    (tmp_path / "many.zarr" / "array0").mkdir(parents=True)
    (tmp_path / "many.zarr" / "array0" / "root.json.z").write_bytes(zlib.compress(b"{}"))
    assert not is_archive(tmp_path / "many.zip")
    assert not is_archive(tmp_path / "many.zarr")
    assert len(parsed) <= 4


@pytest.mark.parametrize("data", [LISTS, b'{"x":{"y":' + b'"' + b'\\"' * 2**22, b'{"' + b'","' * 2**21 + b'":1}'])
def test_a_document_of_millions_of_values_is_refused_before_it_is_parsed(data):
    before = time.process_time()
    with pytest.raises(WorkbenchError, match=r"at most 1,048,576 values|is not valid JSON"):
        document.from_bytes(data, "zarr.json")
    assert time.process_time() - before < 1


def test_marks_inside_of_text_are_no_values():
    text = {"attributes": {"text": "[{,\\\"" * 2**18}}
    assert document.from_bytes(document.to_bytes(text), "zarr.json") == text
    with pytest.raises(WorkbenchError, match=r"metadata must hold at most 524,288 values"):
        document.require_storable({"counts": [0] * 2**20}, "metadata")


def test_an_archive_of_more_arrays_than_any_has_is_refused(entries):
    def more(root):
        arrays = root["consolidated_metadata"]["metadata"]
        arrays.update({f"values_{number}": arrays["values"] for number in range(100)})

    with pytest.raises(WorkbenchError, match=r"at most 64 arrays; it describes 101"):
        from_parts(resealed(entries, "zarr.json", more))


def test_a_damaged_zip_file_of_nothing_but_signatures_is_searched_at_the_speed_of_a_search(tmp_path):
    path = tmp_path / "signatures.zip"
    path.write_bytes(b"PK\3\4" * 2**19)
    before = time.process_time()
    assert scanned(path).members == []
    assert time.process_time() - before < 0.5
