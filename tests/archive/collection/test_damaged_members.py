"""Damage of one member: an error has its key in the collection, and the others are salvaged."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import workbench as wb


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A collection in a folder, in which the only chunk of one member has a wrong bit."""
    line = wb.Field(np.linspace(0, 1, 50), metadata={"dimensions": ["x"]})
    path = wb.compress({"ocean": {"T": line}, "P": line}, wb.Absolute(1e-3)).save(tmp_path / "a.zarr")
    (chunk,) = [file for file in (path / "ocean" / "T" / "c").rglob("*") if file.is_file()]
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    return path


def test_a_member_of_which_nothing_is_left_is_not_salvaged(damaged: Path) -> None:
    dataset, damage = wb.open(damaged).salvage()
    assert list(dataset) == ["P"]
    assert [found.where for found in damage] == ["ocean/T/c/0"]


def test_an_error_names_the_chunk_in_the_collection(damaged: Path) -> None:
    for decode in (lambda archive: archive.decompress(), lambda archive: archive.read({"x": (0, 3)})):
        with pytest.raises(wb.GuaranteeBroken, match=r"^chunk ocean/T/c/0 is damaged"):
            decode(wb.open(damaged))


def test_damage_has_one_key_in_the_collection_and_one_in_the_member(damaged: Path) -> None:
    archive = wb.open(damaged)
    (found,) = archive.damage()
    assert archive.damage_of("P") == []
    assert archive.within("ocean/T", found).where == "values/c/0"


def test_a_part_that_the_zip_file_does_not_have_is_damage_of_its_member(tmp_path: Path) -> None:
    path = wb.compress({"T": np.linspace(0, 1, 900), "P": np.ones(3)}, {"*": wb.Absolute(1e-3)}).save(tmp_path / "a.zip")
    with zipfile.ZipFile(path) as file:
        place = file.getinfo("T/c/0").header_offset
    data = bytearray(path.read_bytes())
    data[place : place + 4] = bytes(4)
    path.write_bytes(data)
    with pytest.raises(wb.GuaranteeBroken, match="'T': 1 of 1 chunks are damaged"):
        wb.open(path).verify()
    assert [found.where for found in wb.open(path).damage()] == ["T/c/0"]
