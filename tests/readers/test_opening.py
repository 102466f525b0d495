"""What is common to all formats: paths, recognition, options, missing libraries, new formats."""

import importlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers import written
from workbench import WorkbenchError
from workbench.data.readers import Format, dcd, formats, open_file, register, xtc


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no/such/file.npy", "there is no file or folder no/such/file.npy: check the path"),
        (None, "cannot open None"),
        ("a\0b", "cannot open"),
    ],
)
def test_paths_that_cannot_be_opened(path, message):
    with pytest.raises(WorkbenchError, match=message):
        open_file(path)


def test_an_empty_file(file):
    with pytest.raises(WorkbenchError, match=r"file.dat is empty \(0 bytes\)"):
        open_file(file(b""))


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"1.0 2.0\n", "It looks like text: .* np.loadtxt"),
        (bytes(4 * 512**2), r"262,144 of float32 may be shape=\(64, 64, 64\) or shape=\(512, 512\)$"),
        (bytes(8 * 10**3), r"1,000 of float64 may be shape=\(10, 10, 10\)$"),
        (bytes(7), r"Raw floats need shape=\(nz, ny, nx\)"),
    ],
)
def test_an_unknown_file_is_described_with_advice(file, content, advice):
    with pytest.raises(WorkbenchError, match=rf"no known format \(docs/formats.md .*{advice}"):
        open_file(file(content))


def test_content_decides_whatever_the_name(tmp_path):
    np.save(tmp_path / "a.npy", written.points(4))
    (tmp_path / "a.npy").rename(tmp_path / "snap.hdf5")
    assert len(open_file(tmp_path / "snap.hdf5")) == 4
    assert len(open_file(str(tmp_path / "snap.hdf5"))) == 4


def test_keys_are_unique_and_options_are_keywords():
    assert len({known.key for known in formats()}) == len(formats())
    assert {known.key: known.options for known in formats()}["gadget"] == ("particle_type", "box", "wrap", "columns")


def test_a_new_format_is_one_line(file, monkeypatch):
    monkeypatch.setattr("workbench.data.readers.registry.FORMATS", list(formats()))
    register(Format("tiny", "a tiny file", lambda source: source.starts_with(b"TINY"), lambda source, *, name="x": name))
    assert open_file(file(b"TINY"), name="y") == "y"
    with pytest.raises(WorkbenchError, match="already a format 'tiny'"):
        register(Format("tiny", "again", lambda source: True, lambda source: None))


SIGNATURES = {   # the first bytes of a format that needs a library
    "h5py": b"\x89HDF\r\n\x1a\n",
    "netCDF4": b"CDF\x01",
    "asdf": b"#ASDF 1.0.0\n",
    "gsd": (0x65DF65DF65DF65DF).to_bytes(8, "little"),
}


@pytest.mark.parametrize("name", [*SIGNATURES, "zarr"])
def test_a_missing_library_is_asked_for(file, tmp_path, monkeypatch, name):
    find = importlib.import_module

    def refuse(module):
        if module.partition(".")[0] == name:
            raise ImportError(module)
        return find(module)

    monkeypatch.setattr(importlib, "import_module", refuse)
    (tmp_path / ".zgroup").write_text("{}")
    path = tmp_path if name == "zarr" else file(SIGNATURES[name] + bytes(100))
    with pytest.raises(WorkbenchError, match=rf"needs {name}: pip install 'lossbench\[io\]'"):
        open_file(path)


@pytest.mark.parametrize("reader", [xtc, dcd])
def test_a_missing_library_is_asked_for_in_another_process(monkeypatch, reader):
    monkeypatch.setitem(sys.modules, "MDAnalysis", None)
    for name in [name for name in sys.modules if name.startswith("MDAnalysis.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(WorkbenchError, match=r"needs MDAnalysis: pip install 'lossbench\[io\]'"):
        reader.frame_at("a file", 0)


@pytest.mark.parametrize("name", [*SIGNATURES])
def test_nothing_but_a_signature(file, name):
    with pytest.raises(WorkbenchError, match="truncated or damaged"):
        open_file(file(SIGNATURES[name] + b"\xff" * 100))


@given(content=st.binary(min_size=1, max_size=300))
def test_any_bytes_are_refused_or_read(survives, content):
    survives(content, {})


@pytest.mark.parametrize("key", [known.key for known in formats()])
@given(content=st.binary(min_size=1, max_size=100))
def test_any_bytes_as_any_format(survives, key, content):
    survives(content, {}, format=key)
