"""Files of several arrays that xarray does not open."""

import json

import numpy as np
import pandas as pd
import pytest

import workbench as wb


def safetensors(path, tensors, header=None, **metadata):
    """A file of these tensors, (type, array) by name."""
    described, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (kind, array) in tensors.items():
        described[name] = {
            "dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]
        }
        data += array.tobytes()
    text = json.dumps(described if header is None else header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_tensors_keep_names_types_and_bits(tmp_path):
    random = np.random.default_rng(0)
    weight = random.normal(size=(64, 32)).astype("f4")
    tensors = {
        "layers.0.weight": ("F32", weight), "layers.0.bias": ("F16", random.normal(size=64).astype("f2")),
        "step": ("I64", np.array(7)), "mask": ("BOOL", np.array([True, False])), "empty": ("F32", np.zeros((0, 3), "f4")),
    }
    if ml_dtypes := pytest.importorskip("ml_dtypes"):
        tensors["scale"] = ("BF16", random.normal(size=9).astype(ml_dtypes.bfloat16))
    path = safetensors(tmp_path / "model.safetensors", tensors, format="pt")
    archive = wb.compress(path, {"layers.0.weight": wb.Absolute(0.01), "*": wb.Exact()}, out=tmp_path / "x.zip")
    assert archive.attributes == {"format": "pt"}
    assert abs(archive["layers.0.weight"].decompress().values - weight).max() <= 0.01
    for name, (_, array) in tensors.items():
        values = archive[name].decompress().values
        assert (values.dtype, values.shape) == (array.dtype, array.shape)
        assert name == "layers.0.weight" or values.tobytes() == array.tobytes()


@pytest.mark.parametrize("header", [
    [1], {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 800]}},
    {"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 8]}},
    {"x": {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}},
    {"x": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, {"x": 3},
], ids=str)
def test_headers_that_lead_out_of_the_file_are_refused(tmp_path, header):
    path = safetensors(tmp_path / "x.safetensors", {"x": ("F32", np.zeros(2, "f4"))}, header)
    with pytest.raises(wb.WorkbenchError, match=r"x\.safetensors"):
        wb.compress(path, {"*": wb.Exact()})


def test_an_npz_file_is_its_arrays(tmp_path):
    np.savez_compressed(tmp_path / "run.npz", T=np.linspace(0, 1, 60).reshape(6, 10), name=np.array("A"), n=np.arange(4))
    archive = wb.compress(tmp_path / "run.npz", {"T": wb.Absolute(1e-3)})
    assert list(archive) == ["T", "name", "n"]
    assert archive.verify(tmp_path / "run.npz").passed
    np.savez(tmp_path / "pickles.npz", a=np.array([{}], dtype=object))
    with pytest.raises(wb.WorkbenchError, match=r"NumPy cannot read pickles\.npz \(ValueError: Object arrays"):
        wb.compress(tmp_path / "pickles.npz", {"*": wb.Exact()})


def test_a_parquet_file_is_a_table(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"mass": [1.5, 2.5], "name": ["a", None], "id": [1, 2]})
    frame.to_parquet(tmp_path / "halos.parquet")
    archive = wb.compress(tmp_path / "halos.parquet", {"mass": wb.Relative(1e-3)})
    pd.testing.assert_frame_equal(archive.decompress().to_dataframe()[["name", "id"]], frame[["name", "id"]])
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" + bytes(40))
    with pytest.raises(wb.WorkbenchError, match=r"bad\.parquet must be a Parquet file"):
        wb.compress(tmp_path / "bad.parquet", {"*": wb.Exact()})


def test_images_and_tables_of_fits(tmp_path):
    fits = pytest.importorskip("astropy.io.fits")
    image = np.random.default_rng(0).normal(size=(30, 40)).astype("f4")
    table = fits.BinTableHDU.from_columns(
        [fits.Column("flux", "E", array=[1.5, 2.5]), fits.Column("name", "3A", array=["abc", "d"])], name="STARS"
    )
    primary = fits.PrimaryHDU(image)
    primary.header["TELESCOP"] = "a telescope"
    fits.HDUList([primary, fits.ImageHDU(np.arange(6, dtype=np.uint16), name="COUNTS"), table]).writeto(tmp_path / "x.fits")
    archive = wb.compress(tmp_path / "x.fits", {"PRIMARY": wb.Absolute(0.01), "*": wb.Exact()})
    assert abs(archive["PRIMARY"].decompress().values - image).max() <= 0.01
    assert archive["COUNTS"].decompress().values.tolist() == list(range(6))
    assert archive["STARS/flux"].decompress().values.tolist() == [1.5, 2.5]
    assert archive.attributes["TELESCOP"] == "a telescope"
    (tmp_path / "bad.fits").write_bytes((tmp_path / "x.fits").read_bytes()[:3000])
    with pytest.raises(wb.WorkbenchError):
        wb.compress(tmp_path / "bad.fits", {"*": wb.Exact()})
