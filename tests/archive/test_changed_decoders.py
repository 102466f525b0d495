"""A codec's library that decodes otherwise than it did when an archive was made: nobody gets its values."""

import importlib

import numpy as np
import pytest

import workbench as wb
from archive import samples
from archive.forging import decoding_with, values_of, with_configuration
from archive.make_golden import FOLDER
from archive.samples import CODECS, from_parts, parts
from workbench import codecs
from workbench.archive import Archive, Damaged, provenance
from workbench.archive.chunk import decode_chunk
from workbench.archive.frame import pack, unpack
from workbench.archive.trust import Trust
from workbench.codecs import registry

zarr = pytest.importorskip("zarr")

CLASSES = {"sz3": "sz3:SZ3", "zfp": "zfp:ZFP", "fpzip": "fpzip:FPZip", "pcodec": "pcodec:PCodec"}
CHANGE = """
import workbench.codecs.{0} as module
real = module.{1}._decode_piece
module.{1}._decode_piece = lambda self, *given: (real(self, *given) * 1.01).astype(given[-1])
"""
CHANGED = "decodes it to other values than when it was written"


def program(codec: str) -> str:
    return CHANGE.format(*CLASSES[codec].split(":"))


def changed(monkeypatch, codec: str) -> None:
    """The codec decodes one percent more in this process."""
    module, name = CLASSES[codec].split(":")
    found = getattr(importlib.import_module(f"workbench.codecs.{module}"), name)
    real = found._decode_piece
    monkeypatch.setattr(found, "_decode_piece", lambda self, *given: (real(self, *given) * 1.01).astype(given[-1]))


def region_of(archive: wb.Archive) -> list[tuple[float, float]]:
    return [(0, 9)] * archive.data.layout.shape[-1] if archive.kind == "particles" else [(2, 9), (0, 20)]


def made(kind: str, codec: str) -> tuple[wb.Particles | wb.Field, wb.Archive]:
    """Archives whose decoded values are used as they are, corrected, or moved to keep clusters."""
    if kind == "field":
        data: wb.Particles | wb.Field = wb.Field(samples.field())
        return data, wb.compress(data, wb.Absolute(0.1), codec, chunk_values=150)
    if kind == "corrected":
        values = samples.field()
        values[3, 4:9] = np.nan
        return wb.Field(values), wb.compress(values, wb.PointwiseRelative(1e-3), codec, chunk_values=150)
    data = samples.particles(400)
    keep = [wb.KeepClusters(0.2, "length")] if kind == "clusters" else []
    return data, wb.compress(data, wb.Absolute(0.1), codec, order="free", chunk_values=300, keep=keep)


@pytest.mark.parametrize("kind", ["field", "corrected", "particles", "clusters"])
@pytest.mark.parametrize("codec", CLASSES)
def test_every_way_to_the_values_is_an_error(kind, codec, monkeypatch):
    if codec not in CODECS:
        pytest.skip(f"{codec} is not installed")
    original, archive = made(kind, codec)
    region, right = region_of(archive), values_of(archive.decompress())
    changed(monkeypatch, codec)
    for use in (archive.decompress, lambda: archive.read(region), archive.verify, lambda: archive.verify(original)):
        with pytest.raises(wb.GuaranteeBroken, match=CHANGED):
            use()
    keys = {archive.data.layout.chunk_key(index) for index in archive.data.layout.chunk_indices()}
    assert {found.where for found in archive.damage()} >= keys
    with pytest.raises(wb.GuaranteeBroken, match=f"nothing can be salvaged.*{CHANGED}"):
        archive.salvage()
    monkeypatch.undo()
    samples.assert_same_bits(values_of(archive.decompress()), right)


@pytest.mark.parametrize("codec", ["sz3", pytest.param("zfp", marks=pytest.mark.long)])
def test_archives_in_files_are_no_exception(codec, monkeypatch, tmp_path):
    if codec not in CODECS:
        pytest.skip(f"{codec} is not installed")
    original, archive = made("field", codec)
    path = archive.save(tmp_path / "some.zarr")
    with decoding_with(monkeypatch, program(codec)):
        opened = wb.open(path)
        for use in (opened.decompress, lambda: opened.read(region_of(archive)), lambda: opened.verify(original)):
            with pytest.raises(wb.GuaranteeBroken, match=f"values/c/.*{codec} {CHANGED}"):
                use()
        with pytest.raises(wb.GuaranteeBroken, match=f"chunk of a Zarr array.*{codec} {CHANGED}"):
            zarr.open_group(path, mode="r")["values"][:5, :5]   # one chunk: others would go on after the error
    samples.assert_same_bits(zarr.open_group(path, mode="r")["values"][...], archive.decompress().values)


def test_one_chunk_that_decodes_otherwise_leaves_the_others(monkeypatch):
    original, archive = made("field", "pcodec")
    key = archive.data.layout.chunk_key((0, 1))
    entries = parts(archive)
    opened = unpack(entries[key], key)
    other = wb.codecs.get("pcodec").encode(np.ones(opened.shape, np.float32), wb.codecs.Tolerance(absolute=0.0))
    entries[key] = pack(opened.shape, {"code": other, "dcrc": bytes(opened.section("dcrc"))})
    forged = from_parts(entries)
    with pytest.raises(Damaged, match=CHANGED) as found:
        forged.decompress()
    assert found.value.where == key
    salvaged, damage = forged.salvage()
    assert [lost.where for lost in damage] == [key]
    samples.assert_same_bits(salvaged.values[~salvaged.mask], original.values[~salvaged.mask])


# The versions.

def test_the_versions_that_wrote_it_are_named(monkeypatch):
    _, archive = made("field", "pcodec")
    old = {**provenance.versions(archive.codec), "pcodec": "0.1.2"}
    remedy = r"read it where that version is \(pip install 'pcodec==0.1.2'\)"   # only for what is a plain version
    cases = [
        ({"versions": old}, rf"\(it was written with pcodec 0.1.2; pcodec \S+ is installed: {remedy}\)"),
        ({"versions": {**old, "pcodec": "1'; id #"}}, r"\(it was written with pcodec 1'; id #; pcodec \S+ is installed\)"),
        ({"versions": None}, r"\(it was written with unknown versions; lossbench .* are installed\)"),
        ({"versions": {"pcodec": "\x1b" + "x" * 999}}, r"\(it .* with lossbench unknown, numpy unknown, pcodec \?x{39}; "),
        ({}, r"\(it was written with lossbench .*, which are installed\)"),
    ]
    changed(monkeypatch, "pcodec")
    for changes, said in cases:
        with pytest.raises(Damaged, match=f"pcodec {CHANGED} {said}"):
            from_parts(with_configuration(archive, "values", **changes)).decompress()


def test_a_codec_that_refuses_names_the_versions_that_wrote_it(monkeypatch):
    _, archive = made("field", "pcodec")
    old = {**provenance.versions(archive.codec), "lossbench": "9.1"}
    forged = from_parts(with_configuration(archive, "values", versions=old))
    monkeypatch.setattr(type(archive.codec), "_decode_piece", lambda *given: 1 / 0)
    said = r"pcodec could not decode.*ZeroDivisionError.*\(it was written with lossbench 9.1; .* 'lossbench==9.1'"
    for use in (forged.decompress, lambda: forged.read([(2, 9), (0, 20)])):
        with pytest.raises(Damaged, match=said):
            use()
    key = archive.data.layout.chunk_key((0, 0))
    layout = forged.data.layout
    with pytest.raises(Damaged, match=said):
        decode_chunk(forged.store.read(key), layout.configuration, layout.dtype, key)


def test_a_codec_of_a_later_version_is_named_with_it():
    _, archive = made("field", "pcodec")
    later = {**provenance.versions(archive.codec), "lossbench": "9.1"}
    said = r"values cannot be decoded here: codec must be one of .*; got 'new' \(lossbench 9.1 wrote it, .* pip install"
    with pytest.raises(wb.WorkbenchError, match=said):
        from_parts(with_configuration(archive, "values", versions=later, codec={"id": "new"}))
    hostile = {"lossbench": "$(id)"}
    with pytest.raises(wb.WorkbenchError, match=r"got 'new'$"):
        from_parts(with_configuration(archive, "values", versions=hostile, codec={"id": "new"}))


def test_each_array_names_the_packages_that_its_values_depend_on():
    archive = wb.compress(samples.particles(50), wb.Absolute(0.1), "zfp", velocities=wb.Absolute(1))
    recorded = {name: set(stored.layout.configuration["versions"]) for name, stored in archive.arrays.items()}
    base = {"lossbench", "numpy", "pcodec"}
    assert recorded["positions"] == base | {"zfpy"}
    assert recorded["ids"] == recorded["extents"] == base
    assert recorded["velocities"] == base | {"zfpy"}


SAME = {"lossbench": "0.0.1", "numpy": "1.0", "pcodec": provenance.versions(codecs.get("pcodec"))["pcodec"]}
OTHERS = [{"stream": 2}, {"stream": None}, {"stream": "1"}, {"versions": {**SAME, "pcodec": "0.1"}}, {"versions": None}]


@pytest.mark.parametrize("kind", ["particles", "field"])
@pytest.mark.parametrize("change", [{}, *OTHERS], ids=repr)
def test_parts_of_chunks_are_decoded_if_stream_and_library_have_the_versions_that_wrote_them(kind, change, monkeypatch):
    """What is decoded of a part of a chunk cannot be compared with the checksum of the chunk's values."""
    if kind == "particles":
        archive = wb.compress(samples.particles(3000), wb.Absolute(0.01), order="free")
    else:
        archive = wb.compress(samples.field(), wb.Absolute(0.01), "interpolation")
    name = archive.data.layout.name
    other = from_parts(with_configuration(archive, name, **{"versions": SAME, **change}))
    whole = []
    monkeypatch.setattr(type(archive.data), "chunk", _noted(type(archive.data).chunk, whole))
    read = (lambda one: one.read([(0, 2)] * 3)) if kind == "particles" else (lambda one: one.preview(1))
    samples.assert_equal(read(archive), read(other))
    assert [layout for layout in whole if layout.name == name] == ([other.data.layout] if change else [])


def test_archives_that_state_no_stream_are_read_by_whole_chunks(monkeypatch):
    archive = Archive.open(FOLDER / "lattice-free.zip")
    whole = []
    monkeypatch.setattr(type(archive.data), "chunk", _noted(type(archive.data).chunk, whole))
    archive.read([(0, 5)] * 3)
    assert archive.data.layout in whole


@pytest.mark.parametrize("name", registry.own())
def test_values_depend_on_the_stream_of_the_codec_and_on_its_library(name, monkeypatch):
    made = registry.own()[name]
    if made.missing():
        pytest.skip(made.missing())
    codec = codecs.get(name)
    configuration = {"versions": provenance.versions(codec), "stream": provenance.stream(codec)}
    assert provenance.decodes_alike(configuration, codec)
    assert provenance.decodes_alike(configuration, codecs.Columns(codec))
    monkeypatch.setattr(made, "stream_version", made.stream_version + 1)
    assert not provenance.decodes_alike(configuration, codec)
    monkeypatch.undo()
    library = {made.module: provenance.version_of(made.module)}
    monkeypatch.setattr(provenance, "version_of", lambda package: library.get(package, "99"))
    assert provenance.decodes_alike(configuration, codec)
    monkeypatch.setattr(provenance, "version_of", lambda package: "99")
    assert not provenance.decodes_alike(configuration, codec)


def _noted(real, whole):
    def chunk(self, index):
        whole.append(self.layout)
        return real(self, index)

    return chunk


def test_a_chunk_without_the_checksum_of_its_values_is_damaged():
    _, archive = made("field", "pcodec")
    layout = archive.data.layout
    key = layout.chunk_key((0, 0))
    opened = unpack(archive.store.read(key), key)
    bare = pack(opened.shape, {"code": bytes(opened.section("code"))})
    with pytest.raises(Damaged, match="it has no dcrc section"):
        decode_chunk(bare, layout.configuration, layout.dtype, key)


def test_the_option_to_trust_a_file_does_not_turn_the_comparison_off(monkeypatch, tmp_path):
    _, archive = made("field", "pcodec")
    opened = wb.open(archive.save(tmp_path / "some.zip"), isolate=False)
    assert opened.data.trust == Trust(isolate=False)
    changed(monkeypatch, "pcodec")
    with pytest.raises(Damaged, match=CHANGED):
        opened.decompress()
