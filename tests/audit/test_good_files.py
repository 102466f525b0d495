"""Files that keep their promises pass, whoever wrote them, and what they state is understood."""

from pathlib import Path

import pytest

import workbench as wb

pytest.importorskip("xarray")
pytest.importorskip("netCDF4")
pytest.importorskip("hdf5plugin")
pytest.importorskip("zarr")
from audit.good_files import FILES, original_at

IDENTICAL = {"hdf5 sz", "hdf5 zfp reversible", "hdf5 blosc2", "netcdf 3"}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return original_at(tmp_path_factory.mktemp("original"))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize("name", FILES)
def test_a_good_file_passes(name, original, tmp_path):
    lossy, rules = FILES[name](original, tmp_path)
    only = ["T"] if name == "npy" else []   # the others are not in the file, which is a defect
    found = wb.audit(original, lossy, rules, only=only, quick=True)
    assert found.passed, found
    assert found["T"].outcome == ("identical" if name in IDENTICAL else "holds")
    assert not [one for one in found.findings if one.severity == "failed"]
