"""Other people's reconstructions, whose errors are known: what holds holds, and what does not is counted."""

from pathlib import Path

import numpy as np
import pytest

from guarantees.checks import broken, holds, largest_error
from guarantees.some_codecs import Rounding
from workbench.codecs import get
from workbench.guarantees import Absolute, PointwiseRelative, Relative, encode_guarded


def variable(folder: Path, file: str, name: str) -> np.ndarray:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(folder / "cesm" / file) as dataset:
        dataset.set_auto_maskandscale(False)
        return dataset[name][:]


@pytest.fixture(scope="module")
def sz_pair(shared_data):
    original = variable(shared_data, "ihesp14.TS.12mon.nc", "TS")
    return original[:11].copy(), variable(shared_data, "d.sz1e-1.ihesp14.TS.12mon.nc", "TS")


@pytest.fixture(scope="module")
def fpzip_pair(shared_data):
    return variable(shared_data, "cam-fv.T.3months.nc", "T"), variable(shared_data, "c.fpzip.cam-fv.T.3months.nc", "T")


def test_sz_kept_its_bound_and_no_smaller_one(sz_pair):
    original, decoded = sz_pair
    assert holds(original, decoded, Absolute(0.1).limit(original))
    assert broken(original, decoded, Absolute(0.0999).limit(original)).size == 494
    assert largest_error(original, decoded) == 0.0999908447265625


def test_a_shift_of_a_month_is_seen(sz_pair):
    original, decoded = sz_pair
    assert largest_error(np.roll(original, 1, axis=0), decoded) > 20


def test_the_range_decides_a_relative_bound(sz_pair):
    original, decoded = sz_pair
    assert holds(original, decoded, Relative(8.6295e-4).limit(original))
    assert not holds(original, decoded, Relative(8.6293e-4).limit(original))


def test_fpzip_cut_off_twelve_bits(fpzip_pair):
    original, decoded = fpzip_pair
    assert largest_error(original, decoded) == 0.124969482421875
    assert holds(original, decoded, Absolute(0.125).limit(original))
    assert not holds(original, decoded, Absolute(0.1249).limit(original))
    assert holds(original, decoded, PointwiseRelative(2**-11).limit(original))
    assert not holds(original, decoded, PointwiseRelative(0.998 * 2**-11).limit(original))
    assert largest_error(original, decoded, relative=True) == pytest.approx(4.87567e-4, rel=1e-5)


@pytest.mark.parametrize("bound", [Absolute(0.05), PointwiseRelative(1e-3), Relative(1e-4)], ids=str)
def test_a_real_field_is_kept_within_its_bound(fpzip_pair, bound):
    original = fpzip_pair[0][0]
    limit = bound.limit(original)
    for codec in (Rounding(), get("sz3")):
        guarded = encode_guarded(codec, original, limit)
        assert holds(original, guarded.decoded, limit)
        assert guarded.figures.stored_exactly is None
        assert guarded.figures.corrected < 0.01 * original.size


def test_exact_zeros_of_a_density_stay_zeros(shared_data):
    h5py = pytest.importorskip("h5py")
    with h5py.File(shared_data / "hacc_nyx_toy" / "z255_32.h5") as file:
        density = file["native_fields/dark_matter_density"][()]
    limit = PointwiseRelative(1e-2).limit(density)
    guarded = encode_guarded(get("sz3"), density, limit)
    assert ((guarded.decoded == 0) == (density == 0)).all()
    assert (density == 0).sum() == 3335
    assert holds(density, guarded.decoded, limit)
    assert guarded.figures.corrected == 0
