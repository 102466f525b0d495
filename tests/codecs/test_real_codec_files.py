"""Codecs on real files of other people."""

import numpy as np
import pytest

import workbench as wb
from combinations import in_pairs
from workbench.codecs import Tolerance, get

FIELDS = ["turbulence", "vorticity", "slice", "temperature", "unstructured"]
LOSSY = ["sz3", "zfp", "sperr", "fpzip", "bitround", "prequantised", "interpolation"]

# At 1e-4 of the range; rounded down, so that a codec that stops predicting is noticed.
SMALLEST_RATIO = {"sz3": 2.5, "zfp": 1.8, "sperr": 2.5, "fpzip": 1.9, "bitround": 1.6, "prequantised": 2.5,
                  "interpolation": 2.5}


def there_and_back(codec, values, tolerance):
    data = codec.encode(values, tolerance)
    return codec.decode(data, values.shape, values.dtype), values.nbytes / len(data)


@pytest.fixture(scope="module")
def field(request, shared_data):
    raw = {
        "turbulence": ("sperr_fields/wmag91.float", (91, 91, 91)),
        "vorticity": ("sperr_fields/vorticity.128_128_41", (41, 128, 128)),
        "slice": ("sperr_fields/vorticity.512_512", (512, 512)),
    }
    if request.param in raw:
        name, shape = raw[request.param]
        return np.fromfile(shared_data / name, np.float32).reshape(shape)
    netcdf = pytest.importorskip("netCDF4")
    in_netcdf = {"temperature": ("cam-fv.T.3months.nc", "T"), "unstructured": ("ihesp14.TS.12mon.nc", "TS")}
    name, variable = in_netcdf[request.param]
    with netcdf.Dataset(shared_data / "cesm" / name) as file:
        return np.ascontiguousarray(file[variable][:1].filled())


@pytest.mark.parametrize(("name", "field"), in_pairs(LOSSY, FIELDS), indirect=["field"])
def test_real_fields_come_within_the_tolerance_and_shrink(name, field):
    size = 1e-4 * float(np.ptp(field))
    decoded, ratio = there_and_back(get(name), field, Tolerance(absolute=size))
    assert np.abs(decoded.astype(np.float64) - field).max() <= size
    assert ratio > SMALLEST_RATIO[name]


@pytest.mark.parametrize(
    ("name", "field"), in_pairs(["pcodec", "bitround", "fpzip", "zfp", "sz3"], FIELDS), indirect=["field"]
)
def test_real_fields_come_back_exactly(name, field):
    decoded, ratio = there_and_back(get(name), field, Tolerance(absolute=0.0))
    assert decoded.tobytes() == field.tobytes()
    assert ratio > 0.9


@pytest.mark.parametrize("order", ["keep", "free"])
def test_real_particles_come_back_within_the_tolerance(order, shared_data):
    particles = wb.open(shared_data / "hacc_nyx_toy" / "m000.full.mpicosmo.50")
    codec, tolerance = get("draco", order=order), Tolerance(absolute=0.01)
    data = codec.encode(particles.positions, tolerance)
    decoded = codec.decode(data, particles.positions.shape, particles.positions.dtype)
    found = codec.permutation(particles.positions, data)
    found = np.arange(len(particles)) if found is None else found
    assert len(np.unique(found)) == len(particles)
    assert np.abs(decoded.astype(np.float64) - particles.positions[found]).max() <= 0.01
    assert len(data) * 8 / len(particles) < (31 if codec.reorders else 43)


def test_real_ids_and_columns_are_kept_exactly(shared_data):
    particles = wb.open(shared_data / "hacc_nyx_toy" / "m000.full.mpicosmo.50")
    for values in (particles.ids, particles.velocities):
        decoded, ratio = there_and_back(get("pcodec"), np.ascontiguousarray(values), Tolerance(absolute=0.0))
        assert decoded.tobytes() == np.ascontiguousarray(values).tobytes()
        assert ratio > 1.1
