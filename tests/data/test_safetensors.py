"""Safetensors files: there and back, and files that contradict themselves."""

import json

import numpy as np
import pytest

import workbench as wb
from workbench.propagation.weights import read_safetensors, write_safetensors


def test_tensors_come_back_as_they_were(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    draws = np.random.default_rng(0)
    given = {
        "layer.0.weight": draws.normal(size=(5, 7)).astype(np.float32), "half": draws.normal(size=9).astype(np.float16),
        "brain": draws.normal(size=(2, 3)).astype(ml_dtypes.bfloat16), "one": np.array(3.5), "ids": np.arange(4),
        "none": np.zeros((0, 4), np.float32), "mask": np.array([True, False]), "turned": np.arange(6.0).reshape(2, 3).T,
    }
    path = write_safetensors(tmp_path / "model.safetensors", given)
    found = read_safetensors(path)
    assert list(found) == list(given)
    for name, each in given.items():
        assert (found[name].dtype, found[name].shape) == (each.dtype, each.shape)
        assert np.array_equal(found[name], each)
    archive = wb.compress_model(path, lambda t: float(((t["layer.0.weight"] - given["layer.0.weight"]) ** 2).mean()), 1e-3)
    again = read_safetensors(write_safetensors(tmp_path / "decoded.safetensors", archive.tensors()))
    assert abs(again["layer.0.weight"] - given["layer.0.weight"]).max() <= archive.bounds["layer.0.weight"].eb
    assert list(tmp_path.glob(".*")) == []


def test_a_file_by_definition(tmp_path):
    head = json.dumps({"__metadata__": {"format": "pt"}, "w": {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]}})
    path = tmp_path / "by-hand.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head.encode() + b"\x01\x00\x02\x01")
    assert read_safetensors(path)["w"].tolist() == [1, 258]


@pytest.mark.parametrize(("header", "data", "message"), [
    (b"{", b"", "or cut short: its header would have 1 of 9 bytes: check the path"),
    (b"{]", b"", "its header is no JSON"),
    (b"[1]", b"", "its header must be a mapping"),
    ({"w": {"dtype": "F32", "shape": [2]}}, b"", "'w' needs a dtype, a shape and data_offsets"),
    ({"w": {"dtype": "Q4", "shape": [2], "data_offsets": [0, 8]}}, b"12345678", "'w' must be of a type out of F64"),
    ({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, b"12345678", "cannot be the bytes 0 to 8 of 8"),
    ({"w": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, b"12345678", "cannot be the bytes"),
    ({"w": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}, b"12345678", "cannot be the bytes 8 to 16 of 8"),
    ({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, b"12345678", "must hold 4 bytes of tensors; got 8"),
    (b"[" * 10**5, b"", "its header is no JSON"),
    ({"w": {"dtype": "F32", "shape": [1] * 70, "data_offsets": [0, 4]}}, b"1234", "cannot be the bytes 0 to 4 of 4"),
    ({"w": {"dtype": "F32", "shape": [2**62, 2**62, 0], "data_offsets": [0, 0]}}, b"", "cannot be the bytes 0 to 0 of 0"),
    ({name: {"dtype": "F32", "shape": [2], "data_offsets": [at, at + 8]} for name, at in [("a", 0), ("b", 4)]},
     b"1" * 16, "'b' and the one before overlap"),
    ({name: {"dtype": "F32", "shape": [2], "data_offsets": [at, at + 8]} for name, at in [("a", 0), ("b", 12)]},
     b"1" * 20, "'b' and the one before leave bytes out"),
])
def test_files_that_contradict_themselves_are_refused(tmp_path, header, data, message):
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = tmp_path / "bad.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)
    with pytest.raises(wb.WorkbenchError, match=message):
        read_safetensors(path)


def test_what_cannot_be_written_is_a_sentence(tmp_path):
    with pytest.raises(wb.WorkbenchError, match="a safetensors file holds tensors of float64"):
        write_safetensors(tmp_path / "x", {"text": np.array(["a"])})
    with pytest.raises(wb.WorkbenchError, match="must be written into a folder that exists"):
        write_safetensors(tmp_path / "none" / "x", {"w": np.ones(2)})
    with pytest.raises(wb.WorkbenchError, match="there is no file"):
        read_safetensors(tmp_path / "none")
