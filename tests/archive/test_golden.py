"""Archives written once, by the version that first wrote this format, decode to the same bits for ever.

`make_golden.py` says how they were made. When a test here fails, the reader is wrong and not the file.
"""

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from archive.make_golden import FOLDER, MADE, arrays, make
from archive.samples import assert_same_bits
from workbench.archive import Archive
from workbench.errors import WorkbenchError

FILES = sorted(FOLDER.glob("*.zip"))
MOST_BYTES = 30_000


def opened(path: Path) -> Archive:
    archive = Archive.open(path)
    for stored in archive.arrays.values():
        try:
            stored.codec.require()
        except WorkbenchError as missing:
            pytest.skip(str(missing))
    return archive


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_written_once_decodes_to_the_same_bits(path):
    archive = opened(path)
    found = arrays(archive)
    with np.load(FOLDER / f"{path.stem}.npz") as expected:
        assert set(found) == set(expected)
        for name, values in found.items():
            assert_same_bits(values, expected[name])
    assert archive.verify().figures["chunks"] >= len(found)
    assert archive.decompress() is not None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_promised_once_is_still_read(path):
    promises = opened(path).certificate.promises
    assert all(promise.bound is None or isinstance(promise.bound, wb.Absolute | wb.Relative | wb.PointwiseRelative)
               for promise in promises)
    assert "promised, and checked" in str(opened(path).certificate)


def test_regions_and_permutations_of_old_archives_are_read():
    archive = Archive.open(FOLDER / "lattice-free.zip")
    part, whole = archive.read([(0, 5)] * 3), archive.decompress()
    assert_same_bits(part.ids, whole.ids[(whole.positions < 5).all(axis=1)])
    np.testing.assert_array_equal(np.sort(archive.permutation()), np.arange(len(whole)))


def test_every_recipe_has_its_file_and_every_file_its_recipe():
    assert sorted(path.stem for path in FILES) == sorted(MADE)
    assert all((FOLDER / f"{path.stem}.npz").exists() and path.stat().st_size <= MOST_BYTES for path in FILES)


def test_a_file_that_exists_is_not_written_again():
    before = {path: path.read_bytes() for path in FOLDER.iterdir() if path.is_file()}
    with pytest.raises(WorkbenchError, match="exists"):
        make("exact")
    assert {path: path.read_bytes() for path in FOLDER.iterdir() if path.is_file()} == before
