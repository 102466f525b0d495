"""Notes on files that have lost more than a bound asks for: attributes of SWIFT and NetCDF, read from real files."""

import numpy as np
import pytest

import workbench as wb
from workbench.archive.earlier_loss import earlier_loss
from workbench.guarantees import Limit


@pytest.mark.parametrize(
    ("attributes", "limit"),
    [
        ({"least_significant_digit": np.int32(2)}, Limit("absolute", 0.005)),
        ({"least_significant_digit": [0]}, Limit("absolute", 0.5)),
        ({"_QuantizeBitGroomNumberOfSignificantDigits": 3}, Limit("relative", 0.005)),
        ({"_QuantizeGranularBitRoundNumberOfSignificantDigits": 1}, Limit("relative", 0.5)),
        ({"_QuantizeBitRoundNumberOfSignificantBits": 9}, Limit("relative", 2.0**-10)),
        ({"quantization": "quantization_info", "quantization_nsb": np.int32(9)}, Limit("relative", 2.0**-10)),
        ({"quantization_nsd": 3}, Limit("relative", 0.005)),
        ({"lossy_compression_kind": "absolute", "lossy_compression_maximum_error": np.float64(1)}, Limit("absolute", 1)),
        ({"Lossy compression filter": "DScale5"}, Limit("absolute", 1e-5)),
        ({"Lossy compression filter": "FMantissa9"}, Limit("relative", 2.0**-10)),
        ({"Lossy compression filter": "DMantissa13"}, Limit("relative", 2.0**-14)),
        ({"Lossy compression filter": "BFloat16"}, Limit("relative", 2.0**-8)),
        ({"Lossy compression filter": "HalfFloat"}, Limit("relative", 2.0**-11)),
    ],
)
def test_attributes_are_understood(attributes, limit):
    assert earlier_loss(attributes)[1] == limit


@pytest.mark.parametrize(
    "attributes",
    [
        {}, {"least_significant_digit": "two"}, {"least_significant_digit": 1.5}, {"least_significant_digit": None},
        {"lossy_compression_kind": np.array([1, 2]), "lossy_compression_maximum_error": 0.1},
        {"lossy_compression_kind": "absolute"}, {"lossy_compression_kind": "rms", "lossy_compression_maximum_error": 0.1},
        {"lossy_compression_kind": "absolute", "lossy_compression_maximum_error": "much"}, {"quantization_nsb": "many"},
        {"least_significant_digit": [1, 2]}, {"Lossy compression filter": "None"}, {"Lossy compression filter": 3},
    ],
)
def test_nothing_is_guessed(attributes):
    assert earlier_loss(attributes) is None


def test_a_rounded_netcdf_file_is_noted_in_the_certificate(tmp_path):
    netcdf4 = pytest.importorskip("netCDF4")
    path = tmp_path / "rounded.nc"
    with netcdf4.Dataset(path, "w") as dataset:
        dataset.createDimension("x", 500)
        made = dataset.createVariable("t", "f4", ("x",), zlib=True, least_significant_digit=1)
        made[:] = 280 + np.random.default_rng(0).random(500)
    field = wb.open(path)
    notes = wb.compress(field, wb.Absolute(0.001), "prequantised").certificate.notes
    assert any("least_significant_digit 1 rounds by up to 0.05; the bound is 0.001" in note for note in notes)
    assert not wb.compress(field, wb.Absolute(0.1), "prequantised").certificate.notes
    assert wb.compress(field, wb.Relative(0.001), "prequantised").certificate.notes
    assert wb.compress(field, wb.PointwiseRelative(1e-6), "prequantised").certificate.notes
    assert not wb.compress(field, wb.Absolute(0), "prequantised").certificate.notes


def test_positions_of_swift_are_noted():
    positions = np.random.default_rng(0).random((100, 3))
    rounded = wb.Particles(positions, 1.0, metadata={"positions": {"Lossy compression filter": "DScale3"}})
    assert "DScale3" in wb.compress(rounded, wb.Absolute(1e-4)).certificate.notes[0]
    assert not wb.compress(rounded, wb.Absolute(1e-3)).certificate.notes
