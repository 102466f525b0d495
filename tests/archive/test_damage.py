"""Damaged documents, cut files and missing parts: what is whole can be read, and what is lost has a name."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from archive import samples
from archive.samples import assert_equal, assert_same_bits, from_parts, parts
from workbench.archive import Archive, Damaged, encoding
from workbench.archive.documents import Outline, documents_nbytes
from workbench.archive.key import is_document
from workbench.archive.layout import ROLE
from workbench.archive.members import nbytes_in_zip, scanned
from workbench.archive.recognition import is_archive
from workbench.archive.root import documents_of
from workbench.archive.second_copy import DICTIONARY, FIRST_DICTIONARY, inflated
from workbench.errors import GuaranteeBroken, WorkbenchError

BOUND = wb.Absolute(0.01)


@pytest.fixture(scope="module")
def archive():
    original = samples.particles(600)
    return wb.compress(original, BOUND, order="free", chunk_values=300, store_permutation=True)


def documents(archive):
    return [key for key in parts(archive) if is_document(key)]


def flipped(data, place=None):
    data = bytearray(data)
    data[len(data) // 2 if place is None else place] ^= 4
    return bytes(data)


def test_the_root_is_there_twice_and_nothing_else_describes_the_archive(archive):
    entries = parts(archive)
    assert inflated(entries["positions/root.json.z"], "the copy") == entries["zarr.json"]
    assert sorted(documents(archive)) == ["positions/root.json.z", "zarr.json"]


@pytest.mark.parametrize("codec", ["prequantised", "interpolation", "staged", "auto"])
def test_the_documents_of_a_small_field_take_little_room(codec):
    made = wb.compress(wb.synthetic.gaussian_field((64, 64), seed=1), BOUND, codec)
    assert nbytes_in_zip(made.documents) <= 760


@pytest.mark.parametrize("codec", ["prequantised", "interpolation", "staged"])
@pytest.mark.parametrize("metadata", [{}, {"units": "K", "levels": list(range(100))}])
def test_the_room_that_documents_take_is_known_before_anything_is_encoded(codec, metadata):
    field = wb.Field(samples.field((64, 64)), name="t", metadata=metadata)
    size = nbytes_in_zip(wb.compress(field, BOUND, codec).documents)
    assert documents_nbytes(Outline.of(field), wb.codecs.get(codec)) == pytest.approx(size, abs=40)   # options are tuned


@pytest.mark.parametrize("order", ["keep", "free"])
def test_the_room_that_documents_of_particles_take_is_known_roughly(order):
    swarm = samples.particles(600)
    size = nbytes_in_zip(wb.compress(swarm, BOUND, order=order).documents)
    assert documents_nbytes(swarm, wb.codecs.get("lattice"), order) == pytest.approx(size, rel=0.15)


def test_the_dictionary_of_the_copy_is_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs/archive-format.md").read_text(encoding="utf-8")
    for mark, expected in {"dictionary": DICTIONARY, "first dictionary": FIRST_DICTIONARY}.items():
        block = page.split(f"<!-- {mark} -->")[1].split("```")[1].strip("\n")
        assert block.replace("\n", "").encode() == expected


@pytest.mark.parametrize("how", [flipped, lambda data: data[:-3], lambda data: b"", lambda data: b"\0" * len(data)])
@pytest.mark.parametrize("key", ["zarr.json", "positions/root.json.z"])
def test_a_damaged_document_costs_nothing_and_is_named(archive, key, how):
    entries = parts(archive)
    spoiled = from_parts({**entries, key: how(entries[key])})
    assert [found.where for found in spoiled.damage()] == [key]
    assert f"document {key} is damaged" in str(spoiled.damage()[0])
    assert_equal(spoiled.decompress(), archive.decompress())
    assert len(spoiled.read([(0, 5)] * 3)) == len(archive.read([(0, 5)] * 3))
    with pytest.raises(GuaranteeBroken, match=f"^1 documents are damaged, and the others can still be read: {key}: "):
        spoiled.verify()
    assert [found.where for found in spoiled.salvage()[1]] == [key]


@given(st.data())
def test_any_changed_byte_of_any_document_is_survived(data):
    whole = wb.compress(samples.field((6, 7)), wb.Absolute(0.1), "prequantised")
    entries = parts(whole)
    key = data.draw(st.sampled_from(sorted(filter(is_document, entries))))
    place = data.draw(st.integers(0, len(entries[key]) - 1))
    changed = bytearray(entries[key])
    changed[place] ^= data.draw(st.integers(1, 255))
    spoiled = from_parts({**entries, key: bytes(changed)})
    assert {found.where for found in spoiled.damage()} <= {key}
    assert_equal(spoiled.decompress(), whole.decompress())


def test_saving_mends_damaged_documents(archive, tmp_path):
    entries = parts(archive)
    spoiled = from_parts({**entries, "zarr.json": flipped(entries["zarr.json"])})
    mended = wb.open(spoiled.save(tmp_path / "mended.zip"))
    assert mended.damage() == []
    assert parts(mended) == entries


def test_when_both_roots_are_damaged_it_is_said(archive):
    entries = parts(archive)
    for damaged in (False, True):
        with pytest.raises(WorkbenchError, match=r"zarr\.json "):
            Archive(type(archive.store)({**entries, "zarr.json": b"{", "positions/root.json.z": b"{"}), damaged)


# Zip files.

def cut(archive, tmp_path, share):
    data = archive.save(tmp_path / "whole.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: int(len(data) * share)])
    return tmp_path / "cut.zip"


@pytest.mark.parametrize("share", [0.6, 0.8, 0.95, 0.999])
def test_a_zip_file_that_was_cut_off_is_salvaged(tmp_path, share):
    original = samples.particles(600)
    archive = wb.compress(wb.Particles(original.positions, original.box), BOUND, order="free", chunk_values=300)
    path = cut(archive, tmp_path, share)
    assert is_archive(path)
    with pytest.raises(WorkbenchError, match="open it with damaged=True, or run `workbench salvage`"):
        wb.open(path)
    spoiled = wb.open(path, damaged=True)
    lost = {found.where for found in spoiled.damage()}
    assert lost <= set(parts(archive))
    assert "zarr.json" in lost or share > 0.9
    rest, damage = spoiled.salvage()
    assert {found.where for found in damage} == lost
    whole = archive.decompress().positions
    kept = [archive.data.layout.chunk_slices(i)[0] for i in archive.data.layout.chunk_indices()
            if archive.data.layout.chunk_key(i) not in lost]
    assert_same_bits(rest.positions, np.concatenate([whole[rows] for rows in kept]))
    if not lost:
        assert spoiled.verify().passed
        return
    with pytest.raises(GuaranteeBroken, match="the others can still be read"):
        spoiled.verify()


def test_a_zip_file_whose_directory_is_damaged_is_whole_by_its_headers(archive, tmp_path):
    path = archive.save(tmp_path / "some.zip")
    data = path.read_bytes()
    for place in (len(data) - 10, data.index(b"PK\x01\x02") + 42, data.rindex(b"PK\x01\x02") + 20):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        spoiled = Archive.open(path, damaged=True)
        assert spoiled.damage() == []
        assert_equal(spoiled.decompress(), archive.decompress())


def test_a_damaged_header_costs_one_part(archive, tmp_path):
    path = archive.save(tmp_path / "some.zip")
    data = bytearray(path.read_bytes())
    at = data.index(b"positions/c/2/0")
    data[at - 30 : at] = bytes(30)
    path.write_bytes(bytes(data[: data.index(b"PK\x01\x02")]))
    spoiled = Archive.open(path, damaged=True)
    assert [found.where for found in spoiled.damage()] == ["positions/c/2/0"]


@given(st.binary(max_size=300))
def test_headers_in_arbitrary_bytes_never_reach_beyond_the_file(tmp_path_factory, noise):
    path = tmp_path_factory.mktemp("noise") / "some.zip"
    path.write_bytes(noise + b"PK\x03\x04" + noise)
    for member in scanned(path).members:
        assert 0 <= member.offset + member.size <= path.stat().st_size


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x03\x04" * 50_000, b"text"])
def test_what_holds_no_archive_is_refused_when_damaged_ones_are_taken(tmp_path, content):
    (tmp_path / "some.zip").write_bytes(content)
    with pytest.raises(WorkbenchError, match=r"has no zarr\.json"):
        Archive.open(tmp_path / "some.zip", damaged=True)


# Roles.

def test_a_model_is_no_data(archive):
    """An array of the role `model`: it takes room, and is checked, and is neither a value nor lost with them."""
    model = encoding.encode_exactly("weights", np.arange(5000, dtype=np.uint8), (5000,))
    attributes = {**model.layout.attributes, "lossbench:role": "model"}
    layout = archive.content.named(dataclasses.replace(model.layout, attributes=attributes), {})
    layouts = [*(stored.layout for stored in archive.arrays.values()), layout]
    entries = {**parts(archive), **documents_of(archive.attributes, layouts), **dict(model.entries())}
    with_model = from_parts(entries)
    assert with_model.original_nbytes == archive.original_nbytes
    assert with_model.nbytes > archive.nbytes
    assert with_model.bits_per_particle == archive.bits_per_particle
    assert with_model.verify().passed
    spoiled = from_parts({**entries, "weights/c/0": b""})
    rest, damage = spoiled.salvage()
    assert [found.where for found in damage] == ["weights/c/0"]
    assert_equal(rest, archive.decompress())


def test_an_array_that_is_no_column_has_no_part_in_what_is_salvaged(archive):
    other = encoding.encode_exactly("charges", np.arange(5000.0), (5000,))
    index = dataclasses.replace(other.layout, attributes={**other.layout.attributes, ROLE: "index"})
    layouts = [*(stored.layout for stored in archive.arrays.values()), index]
    entries = {**parts(archive), **documents_of(archive.attributes, layouts), **dict(other.entries())}
    for spoiled in (entries, {**entries, "charges/c/0": b""}):
        rest, damage = from_parts(spoiled).salvage()
        assert_equal(rest, archive.decompress())
        assert [found.where for found in damage] == [key for key in spoiled if spoiled[key] == b""]


# Folders.

def test_a_folder_that_lacks_files_is_opened_when_damaged_ones_are_taken(archive, tmp_path):
    path = archive.save(tmp_path / "some.zarr")
    gone = ["zarr.json", "positions/c/1/0"]
    for key in gone:
        (path / key).unlink()
    assert is_archive(path)
    with pytest.raises(WorkbenchError, match="a copy of it exists: open it with damaged=True, or run"):
        wb.open(path)
    spoiled = wb.open(path, damaged=True)
    assert sorted(found.where for found in spoiled.damage()) == sorted(gone)
    assert len(spoiled.salvage()[0]) == 500
    with pytest.raises(Damaged, match="positions/c/1/0"):
        spoiled.decompress()


def test_links_in_a_damaged_folder_are_missing_parts(archive, tmp_path):
    path = archive.save(tmp_path / "some.zarr")
    (path / "positions/c/1/0").unlink()
    os.symlink("/etc/hostname", path / "positions/c/1/0")
    for damaged in (False, True):
        assert [found.where for found in Archive.open(path, damaged=damaged).damage()] == ["positions/c/1/0"]


def test_most_chunks_of_a_large_array_may_be_missing(tmp_path):
    values = np.zeros(200_000, np.float32)
    path = wb.compress(values, BOUND, "pcodec", chunk_values=1000).save(tmp_path / "some.zarr")
    for number in range(1, 256):
        (path / f"values/c/{number}").unlink()
    with pytest.raises(WorkbenchError, match=r"claims 256 chunks; only 1 are present: .*damaged=True"):
        wb.open(path)
    rest, damage = wb.open(path, damaged=True).salvage()
    assert len(damage) == 255
    assert int((~rest.mask).sum()) == 782


def test_stray_files_do_not_count_and_are_not_saved(archive, tmp_path):
    path = archive.save(tmp_path / "some.zarr")
    for name in ("notes", "positions/notes.txt", "positions/c/notes", "positions/c/0/7"):
        (path / name).write_bytes(bytes(10_000))
    again = wb.open(path)
    assert (again.nbytes, again.ratio) == (archive.nbytes, archive.ratio)
    again.save(tmp_path / "clean.zarr")
    assert not (tmp_path / "clean.zarr/notes").exists()
    assert parts(wb.open(tmp_path / "clean.zarr")) == parts(archive)


def test_a_zip_file_packed_on_a_mac_opens(archive, tmp_path):
    folder = archive.save(tmp_path / "some.zarr")
    (folder / "__MACOSX").mkdir()
    (folder / "__MACOSX/._zarr.json").write_bytes(b"\0\5\x16\7")
    subprocess.run([sys.executable, "-c", (
        "import sys, zipfile, pathlib\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "with zipfile.ZipFile(sys.argv[2], 'w') as out:\n"
        "    for path in sorted(root.rglob('*')): out.write(path, path.relative_to(root))\n"
    ), folder, tmp_path / "mac.zip"], check=True)
    again = wb.open(tmp_path / "mac.zip")
    assert again.nbytes == archive.nbytes
    assert again.verify().passed
    shutil.rmtree(folder)
