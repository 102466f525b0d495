"""Archives written once, by the version that first wrote this format, decode to the same bits for ever.

`make_golden.py` says how they were made. When a test here fails, the reader is wrong and not the file.
"""

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from archive.make_golden import FOLDER, IN_PACKAGE, MADE, make, path_of
from archive.samples import assert_same_bits
from workbench.archive import Archive, Collection, golden
from workbench.codecs import registry
from workbench.errors import WorkbenchError

FILES = sorted([*FOLDER.glob("*.zip"), *golden.FOLDER.glob("*.zip")], key=lambda path: path.stem)
MOST_BYTES = 30_000
MOST_IN_PACKAGE = 100_000


def opened(path: Path) -> Archive | Collection:
    archive = wb.open(path)
    for one in archive.values() if isinstance(archive, Collection) else [archive]:
        for stored in one.arrays.values():
            try:
                stored.codec.require()
            except WorkbenchError as missing:
                pytest.skip(str(missing))
    return archive


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_written_once_decodes_to_the_same_bits(path):
    archive = opened(path)
    found = golden.arrays(archive)
    with np.load(FOLDER / f"{path.stem}.npz") as expected:
        assert set(found) == set(expected)
        for name, values in found.items():
            assert_same_bits(values, expected[name])
    checked = archive.verify()
    assert checked.passed
    assert isinstance(archive, Collection) or checked.figures["chunks"] >= len(found)
    assert archive.decompress() is not None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_promised_once_is_still_read(path):
    archive = opened(path)
    if isinstance(archive, Collection):
        archive = archive["T"]
    promises = archive.certificate.promises
    assert all(promise.bound is None or isinstance(promise.bound, wb.Absolute | wb.Relative | wb.PointwiseRelative)
               for promise in promises)
    assert "promised, and checked" in str(archive.certificate)


def test_regions_and_permutations_of_old_archives_are_read():
    archive = Archive.open(FOLDER / "lattice-free.zip")
    part, whole = archive.read([(0, 5)] * 3), archive.decompress()
    assert_same_bits(part.ids, whole.ids[(whole.positions < 5).all(axis=1)])
    np.testing.assert_array_equal(np.sort(archive.permutation()), np.arange(len(whole)))


def test_every_recipe_has_its_file_and_every_file_its_recipe():
    assert sorted(path.stem for path in FILES) == sorted(MADE)
    assert all((FOLDER / f"{path.stem}.npz").exists() and path.stat().st_size <= MOST_BYTES for path in FILES)
    assert all(path_of(path.stem) == path for path in FILES)


@pytest.mark.parametrize("name", ["exact", "sz3"])
def test_a_file_that_exists_is_not_written_again(name):
    def files():
        return {path: path.read_bytes() for folder in (FOLDER, golden.FOLDER) for path in folder.glob("*.*")}

    before = files()
    with pytest.raises(WorkbenchError, match="exists"):
        make(name)
    assert files() == before


# Those in the package, which `workbench doctor` decodes.

def test_the_package_has_an_archive_of_every_codec():
    assert set(golden.expected_arrays()) == set(IN_PACKAGE) == {path.stem for path in golden.FOLDER.glob("*.zip")}
    assert sum(path.stat().st_size for path in golden.FOLDER.glob("*.zip")) < MOST_IN_PACKAGE
    text = b"".join(path.read_bytes() for path in golden.FOLDER.glob("*.zip")).decode("latin1")
    assert [name for name in registry.own() if f'"id":"{name}"' not in text] == []


def test_their_checksums_are_those_of_what_they_must_decode_to():
    for name, expected in golden.expected_arrays().items():
        with np.load(FOLDER / f"{name}.npz") as arrays:
            assert {array: golden.checksum(arrays[array]) for array in arrays} == expected


def test_all_decode_here():
    found = list(golden.outcomes())
    assert [one.name for one in found] == list(golden.expected_arrays())
    assert [str(one) for one in found if one.fault] == []
    (pcodec,) = [str(one) for one in found if one.name == "pcodec"]
    assert pcodec == "decodes as when it was written (lossbench 0.1.0, numpy 2.4.6, pcodec 1.1.0)"
