"""Spoiled files of every format are refused in a sentence, or read as something, in bounded time and memory."""

import os
import subprocess
import sys

import numpy as np
import pytest

import workbench as wb
from conftest import ROOT
from fuzz import readers
from workbench.errors import WorkbenchError


def test_a_few_spoiled_files_of_every_format():
    counts, found = readers.run(seed=1, first=0, cases=60)
    assert not found, "\n".join(found)
    assert counts["read"] > 5
    assert counts["refused"] > 20


def test_every_file_opens_before_it_is_spoiled(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "spoiled", lambda random, data: data)
    (tmp_path / "values.raw").write_bytes(bytes(96))
    assert {readers.open_case(0, case, tmp_path) for case in range(60)} == {"read"}


@pytest.mark.parametrize("suffix", ["npz", "zarr.zip", "zip"])
def test_a_zip_file_of_a_later_version_is_refused(tmp_path, suffix):
    data = bytearray(readers.files()["npz"][0][""])
    at = data.index(b"PK\1\2")
    data[at + 6] = 191
    (tmp_path / f"some.{suffix}").write_bytes(data)
    with pytest.raises(WorkbenchError):
        wb.open(tmp_path / f"some.{suffix}")


def test_an_array_whose_name_is_no_text_is_left_out(tmp_path):
    data = readers.files()["hdf5-grid"][0][""]
    (tmp_path / "some.h5").write_bytes(data.replace(b"density", b"densit\xff"))
    with pytest.raises(WorkbenchError, match="holds no array of numbers"):
        wb.open(tmp_path / "some.h5")


def test_an_array_of_objects_is_refused_and_not_unpickled(tmp_path):
    np.save(tmp_path / "some.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(WorkbenchError, match=r"some\.npy"):
        wb.open(tmp_path / "some.npy")


@pytest.mark.long
def test_many_spoiled_files_of_every_format():
    """In a process of its own, since a library may crash."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    command = [sys.executable, "-m", "fuzz.readers", "--seed", "0", "--cases", "5000"]
    done = subprocess.run(command, cwd=ROOT / "tests", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
