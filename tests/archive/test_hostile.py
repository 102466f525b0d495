"""Archives that were damaged or made up: a sentence, or the right values; never anything else, and nothing is executed."""

import copy
import functools
import json
import os
import pickle
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from archive import samples
from archive.samples import from_parts, parts, resealed
from workbench.archive import Archive, Damaged, document
from workbench.archive import chunk as chunks
from workbench.archive.chunk import decode_chunk
from workbench.archive.content.registry import KINDS
from workbench.archive.frame import pack, unpack
from workbench.archive.recognition import is_archive
from workbench.archive.store import MemoryStore
from workbench.clusters.keep.edits import apply_edits
from workbench.errors import GuaranteeBroken, WorkbenchError


@functools.cache
def victims() -> dict[str, tuple[wb.Particles | wb.Field | wb.Variable, Archive]]:
    """Small archives that have between them every array, codec, section and attribute."""
    swarm, flat = samples.particles(150), samples.particles(150, np.float64, 2, None)
    values = samples.field((12, 13), np.float64)
    values[2, 3:8], values[5, 5] = 0, np.nan
    field = wb.Field(values, 0.5, "t", values > 80, {"units": "K", "a": [1]})
    made = {
        "free": (swarm, wb.compress(swarm, wb.Absolute(0.01), order="free", chunk_values=150, store_permutation=True)),
        "open": (flat, wb.compress(flat, wb.PointwiseRelative(0.01), order="free", velocities=wb.Relative(1e-3))),
        "kept": (swarm, wb.compress(swarm, wb.Absolute(0.01), chunk_values=150, velocities=wb.Absolute(1))),
        "field": (field, wb.compress(field, wb.Absolute(0.1), "prequantised", chunk_values=60)),
        "logs": (field, wb.compress(field, wb.PointwiseRelative(0.01), "sz3", chunk_values=60)),
    }
    dates = wb.Variable(np.arange(156).astype("M8[s]").reshape(12, 13), "t")
    waves = wb.Variable(np.exp(1j * np.arange(156.0)).reshape(12, 13))
    made["dates"] = dates, wb.compress(dates, wb.Exact(), chunk_values=60)
    made["complex"] = waves, wb.compress(waves, wb.Absolute(0.1))
    walk = wb.Trajectory(
        np.round(samples.field((6, 12, 3)), 2), cells=np.full((6, 3), 9.0), times=np.arange(6) / 2,
        atoms={"name": ["C", "CA"] * 6},
    )
    made["walk"] = walk, wb.compress(walk, wb.Exact(), wb.codecs.get("rounded", precision=100.0), chunks=4)
    for name in ("draco", "zfp", "numcodecs", "bitround", "fpzip", "sperr"):
        if name in samples.CODECS:
            made[name] = (swarm, wb.compress(swarm, wb.Absolute(0.05), name, order="free"))
    return made


def used(archive: Archive, original: wb.Particles | wb.Field | wb.Variable) -> wb.Particles | wb.Field | wb.Variable:
    """What it decodes to, after everything was asked of it that reads; each may refuse."""
    space = [(0, 5)] * 3 if archive.kind == "particles" else [(2, 9)] * 2
    part = {"region": space[: archive.data.layout.shape[-1]]}
    if archive.kind == "trajectory":
        part = {"frames": 1, "atoms": [0]}
    uses = [
        archive.salvage, archive.damage, lambda: archive.read(**part),
        lambda: archive.permutation(original), archive.permutation, lambda: str(archive.certificate),
        archive._repr_html_, lambda: repr(archive), lambda: archive.verify(original),
    ]
    for use in uses:
        try:
            use()
        except WorkbenchError:
            continue
    return archive.decompress()


def refused_or_right(entries: dict[str, bytes], name: str) -> None:
    original, archive = victims()[name]
    try:
        found = used(from_parts(entries), original)
    except WorkbenchError:
        return
    samples.assert_equal(found, archive.decompress())


def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with some of them flipped, deleted, inserted, or repeated from elsewhere."""
    spoiled = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(spoiled) - 1, 0)))
        kind = draw(st.sampled_from(["flip", "set", "delete", "insert", "cut", "repeat"]))
        if kind == "flip" and spoiled:
            spoiled[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "set" and spoiled:
            spoiled[at : at + 8] = draw(st.sampled_from([bytes(8), b"\xff" * 8, b"\x7f" * 4, b"\x00\x00\x80\x7f"]))
        elif kind == "delete":
            del spoiled[at : at + draw(st.integers(1, 9))]
        elif kind == "insert":
            spoiled[at:at] = draw(st.binary(min_size=1, max_size=9))
        elif kind == "cut":
            del spoiled[at:]
        else:
            spoiled[at:at] = spoiled[: draw(st.integers(1, 40))]
    return bytes(spoiled)


names = st.sampled_from(sorted(victims()))


@given(st.data(), names)
def test_damage_to_any_part_is_a_sentence_or_harmless(data, name):
    entries = parts(victims()[name][1])
    key = data.draw(st.sampled_from(sorted(entries)))
    refused_or_right({**entries, key: mutated(data.draw, entries[key])}, name)


@given(st.data(), names)
def test_missing_and_exchanged_parts_are_a_sentence_or_harmless(data, name):
    entries = parts(victims()[name][1])
    key, other = data.draw(st.sampled_from(sorted(entries))), data.draw(st.sampled_from(sorted(entries)))
    exchanged = {**entries, key: entries[other], other: entries[key]}
    refused_or_right({k: v for k, v in entries.items() if k != key}, name)
    refused_or_right(exchanged, name)
    stranger = parts(victims()[data.draw(names)][1])
    refused_or_right({**entries, key: stranger.get(key, b"")}, name)
    refused_or_right({**entries, **{k: v for k, v in stranger.items() if k.split("/")[0] == key.split("/")[0]}}, name)


@given(st.data(), names)
def test_chunks_made_up_by_someone_who_knows_the_checksums_are_a_sentence(data, name):
    original, archive = victims()[name]
    entries = parts(archive)
    key = data.draw(st.sampled_from(sorted(k for k in entries if "/c/" in k)))
    opened = unpack(entries[key], key)
    sections = {tag: bytes(part) for tag, part in opened.sections.items()}
    tag = data.draw(st.sampled_from(sorted(sections)))
    kind = data.draw(st.sampled_from(["spoil", "drop", "rename"]))
    if kind == "spoil":
        sections[tag] = mutated(data.draw, sections[tag])
    elif kind == "drop" and len(sections) > 1:
        del sections[tag]
    else:
        sections[data.draw(st.sampled_from(["code", "same", "byte", "logs", "fix_"]))] = sections.pop(tag)
    forged = from_parts({**entries, key: pack(opened.shape, sections)})
    try:
        found = used(forged, original)
        forged.verify()
    except WorkbenchError:
        return
    samples.assert_equal(found, archive.decompress())


STRANGE = [
    None, True, 0, -1, 1, 2, 3, 0.5, -0.5, 1e308, 5e-324, 2**31, 2**63, 2**64, 10**400, "", "a", "free", "keep", "nan",
    "relative", "float32", "float64", "int16", "bool", [], [0], [1, 1], [3, 3, 3], [0, 0, 0], [[]], {},
    {"kind": "absolute", "eb": 1e-3}, {"id": "columns"}, {"id": "lattice"}, {"id": []},
    {"id": "columns", "codec": {"id": "columns", "codec": {"id": "sz3"}}},
    [1e300, 1e300, 1e300], [2**52, 2**52, 2**52], "x" * 5000,
]


def places(node, path=()):
    """The path to every value in a document."""
    yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def replaced(root, path, value, how):
    """A document with one value replaced, removed, or added to."""
    node = root
    for key in path[:-1]:
        node = node[key]
    if how == "remove":
        del node[path[-1]]
    elif how == "repeat" and isinstance(node[path[-1]], list):
        node[path[-1]] = node[path[-1]] * 2
    else:
        node[path[-1]] = value


@given(st.data(), names)
def test_documents_made_up_by_someone_who_knows_the_checksums_are_a_sentence(data, name):
    original, archive = victims()[name]
    entries = parts(archive)
    for _ in range(data.draw(st.integers(1, 2))):
        key = data.draw(st.sampled_from(["zarr.json", *archive.arrays]))
        root = document.unsealed(document.from_bytes(entries["zarr.json"], key), key)
        try:
            changed = root if key == "zarr.json" else samples.described(entries, key)
        except (KeyError, TypeError):   # the first change has removed it
            return
        found = [p for p in places(changed) if p and p != ("attributes",) and "codec" not in p[-2:-1]]
        path = data.draw(st.sampled_from(found))
        value, how = data.draw(st.sampled_from(STRANGE)), data.draw(st.sampled_from(["set", "set", "remove", "repeat"]))
        try:
            entries = resealed(entries, key, lambda d, p=path, v=value, h=how: replaced(d, p, copy.deepcopy(v), h))
        except (AttributeError, KeyError, TypeError):   # no document any more in which a checksum could stand
            return
    try:
        used(from_parts(entries), original)
    except WorkbenchError:
        return


@pytest.mark.parametrize(
    ("name", "key", "change", "said"),
    [
        ("free", "box", [1.0, 2.0], "box must be null or 3 positive lengths"),
        ("free", "box", [1.0, 2.0, -3.0], "box must be null or 3 positive lengths"),
        ("free", "box", "10", "box must be"),
        ("free", "order", "sorted", "order must be 'keep' or 'free'; got 'sorted'"),
        ("free", "kind", "field", "has no values, though it says that it holds field"),
        ("free", "kind", ["particles"], "must be an archive of format 3"),
        ("free", "format", 1, "got format 1, 'particles': another version of lossbench may read it"),
        ("free", "format", True, "got format True, 'particles': another version of lossbench may read it"),
        ("free", "format", 4, "got format 4, 'particles': a later version of lossbench reads it"),
        ("free", "metadata", [1], "metadata must map names to values"),
        ("free", "mass", -1.0, "mass must be a number, finite and not negative; got -1.0"),
        ("free", "mass", "heavy", "mass must be a number, finite and not negative; got 'heavy'"),
        ("free", "mass", 10**400, "mass must be a number, finite and not negative; got 1000"),
        ("field", "spacing", [1.0], "spacing must be 2 positive numbers"),
        ("field", "spacing", [1.0, 10**400], "spacing must be 2 positive numbers"),
        ("field", "name", 3, "the name of a field must be text"),
    ],
)
def test_attributes_that_contradict_the_arrays_are_refused(name, key, change, said):
    entries = resealed(parts(victims()[name][1]), "zarr.json", lambda root: root["attributes"].__setitem__(key, change))
    with pytest.raises(WorkbenchError, match=said):
        from_parts(entries)


@pytest.mark.parametrize(
    ("name", "described", "change", "said"),
    [
        ("free", "ids", {"data_type": "float32"}, r"ids must be integers of shape \(150,\); got float32"),
        ("free", "ids", {"shape": [149]}, r"ids must be integers of shape \(150,\)"),
        ("free", "positions", {"data_type": "int32"}, "positions are floating-point numbers"),
        ("free", "positions", {"shape": [450]}, "positions are floating-point numbers"),
        ("free", "extents", {"shape": [3, 2, 2]}, r"extents must be floating-point numbers of shape \(3, 2, 3\)"),
        ("free", "velocities", {"shape": [150, 2]}, r"velocities must be numbers of shape \(150, 3\)"),
        ("field", "mask", {"data_type": "uint8"}, "mask must be boolean"),
        ("field", "values", {"data_type": "bool"}, "the values of a field are numbers of"),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(name, described, change, said):
    def make_up(content):
        content.update(change)
        shape = content["shape"]
        if len(shape) != len(content["chunk_grid"]["configuration"]["chunk_shape"]):
            content["chunk_grid"]["configuration"]["chunk_shape"] = shape
            content["dimension_names"] = content["dimension_names"][: len(shape)]
        content["fill_value"] = {"f": 0.0, "b": False}.get(content["data_type"][0], 0)

    entries = resealed(parts(victims()[name][1]), f"{described}/zarr.json", make_up)
    with pytest.raises(WorkbenchError, match=said):
        from_parts(entries)


def test_a_curve_of_other_dimensions_is_refused_before_any_kernel_sees_it():
    original, archive = victims()["kept"]
    archive = wb.compress(original, wb.Absolute(0.01), order="free")
    changes = [{"origin": [0.0, 0.0]}, {"last": [1, 1]}, {"last": [2**60] * 3}, {"top": ["1", "2", "3"]}, {"step": 0}]
    for change in changes:
        entries = resealed(parts(archive), "zarr.json", lambda root, c=change: root["attributes"]["curve"].update(c))
        with pytest.raises(WorkbenchError, match="the curve along which"):
            from_parts(entries).permutation(original)


@pytest.mark.parametrize("dtype", ["int16", "uint8", "int64", "bool"])
def test_integers_that_claim_to_be_compressed_with_a_loss_are_refused(dtype):
    logs = np.zeros(21, np.uint8).tobytes()
    for sections in ({"code": b"", "logs": logs}, {"code": b""}, {"fix_": b"", "same": b""}, {"dcrc": bytes(4)}):
        with pytest.raises(Damaged, match="values must be kept exactly"):
            decode_chunk(pack((2,), sections), {"codec": {"id": "sz3"}}, np.dtype(dtype), "ids/c/0")


def test_checksums_of_chunks_must_be_there_for_each():
    entries = parts(victims()["free"][1])
    for stated in (None, "", "00" * 11, "zz" * 12, "00" * 13, 3):
        changed = resealed(entries, "ids/zarr.json", lambda d, s=stated: d["attributes"].__setitem__("lossbench:chunks", s))
        with pytest.raises(WorkbenchError, match="ids must state lossbench:chunks, a checksum for each of its 3 chunks"):
            from_parts(changed)


@pytest.mark.parametrize("stolen", ["pickle", "msgpack2", "json2", "vlen-utf8", "categorize", "n5_wrapper", "os.system"])
def test_a_codec_that_executes_what_it_reads_is_refused(stolen, tmp_path):
    """The payload, were it unpickled, would leave a file."""
    pytest.importorskip("numcodecs")
    witness = tmp_path / "witness"

    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(witness),)

    original = samples.particles(20)
    archive = wb.compress(original, wb.Absolute(0.01), "numcodecs")
    codec = {"id": "columns", "codec": {"id": "numcodecs", "codec": stolen, "options": {}}}
    entries = resealed(
        parts(archive), "positions/zarr.json", lambda d: d["codecs"][0]["configuration"].update(codec=codec)
    )
    entries["positions/c/0/0"] = pack((20, 3), {"code": pickle.dumps(Payload()), "dcrc": bytes(4)})
    with pytest.raises(WorkbenchError, match=f"positions cannot be decoded here: .*got '{stolen}'"):
        from_parts(entries).decompress()
    assert not witness.exists()


def test_a_small_archive_cannot_make_anyone_allocate_much():
    huge = [2**40, 3]

    def claims(content):
        content["shape"] = huge
        content["chunk_grid"]["configuration"]["chunk_shape"] = [2**29, 3]

    for name, key in (("kept", "positions"), ("kept", "velocities"), ("free", "positions")):
        entries = resealed(parts(victims()[name][1]), f"{key}/zarr.json", claims)
        tracemalloc.start()
        with pytest.raises(WorkbenchError):
            from_parts(entries).decompress()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**24


def test_a_chunk_that_claims_much_allocates_nothing_before_it_is_found_out():
    archive = victims()["kept"][1]
    entries = parts(archive)
    layout = archive.data.layout

    def one_large_chunk(content):
        content["shape"] = content["chunk_grid"]["configuration"]["chunk_shape"] = [2**24, 3]

    entries = {k: v for k, v in entries.items() if not k.startswith(("velocities", "ids"))}
    sections = {tag: bytes(part) for tag, part in unpack(entries[layout.chunk_key((0, 0))], "").sections.items()}
    entries[layout.chunk_key((0, 0))] = pack((2**24, 3), sections)
    entries = {k: v for k, v in entries.items() if k not in ("positions/c/1/0", "positions/c/2/0")}
    stated = archive.data.layout.attributes["lossbench:chunks"][:8]
    entries = resealed(
        entries, "positions/zarr.json", lambda d: (one_large_chunk(d), d["attributes"].update({"lossbench:chunks": stated}))
    )
    entries = resealed(
        entries, "extents/zarr.json",
        lambda d: (d.update(shape=[1, 2, 3]), d["attributes"].update({"lossbench:chunks": "00" * 4})),
    )
    entries = resealed(entries, "zarr.json", lambda d: [arrays_of(d).pop(name) for name in ("velocities", "ids")])
    archive = from_parts(entries)
    tracemalloc.start()
    for use in (archive.decompress, archive.verify, archive.salvage, lambda: archive.read([(0, 1)] * 3)):
        with pytest.raises(WorkbenchError):
            use()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


def arrays_of(root):
    return root["consolidated_metadata"]["metadata"]


def test_foreign_files_and_folders_are_no_archives(tmp_path):
    (tmp_path / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
    assert not is_archive(tmp_path)
    with pytest.raises(WorkbenchError):
        Archive.open(tmp_path)
    for bytes_ in (b"", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n"):
        (tmp_path / "some.zip").write_bytes(bytes_)
        with pytest.raises(WorkbenchError):
            Archive.open(tmp_path / "some.zip")
    with pytest.raises(WorkbenchError, match="there is no archive"):
        Archive.open(tmp_path / "none.zarr")
    with pytest.raises(WorkbenchError):
        Archive(MemoryStore({}))


@given(data=st.data(), name=names)
def test_a_zip_file_with_any_bytes_changed_is_a_sentence_or_harmless(tmp_path_factory, data, name):
    path = tmp_path_factory.mktemp("some") / "some.zip"
    victims()[name][1].save(path)
    path.write_bytes(mutated(data.draw, path.read_bytes()))
    try:
        found = Archive.open(path).decompress()
    except WorkbenchError:
        return
    samples.assert_equal(found, victims()[name][1].decompress())


def test_every_kind_of_data_is_among_the_victims():
    kinds = {archive.kind for _, archive in victims().values()}
    arrays = {name for _, archive in victims().values() for name in archive.arrays}
    assert kinds == set(KINDS)
    assert arrays == {
        "positions", "velocities", "ids", "extents", "permutation", "values", "mask", "cells", "times", "atom_name",
    }
    stored = [array for _, archive in victims().values() for array in archive.arrays.values()]
    tags = {tag for array in stored for index in array.layout.chunk_indices() for tag in array.frame(index).sections}
    assert tags >= {"code", "same", "mask", "logs", "fix_", "dcrc"}


def test_numbers_beyond_floats_in_a_certificate_are_a_sentence():
    archive = victims()["free"][1]
    for change in (
        lambda promise: promise["figures"].__setitem__("largest_error", 10**400),
        lambda promise: promise.__setitem__("limit", {"kind": "absolute", "value": 10**400}),
        lambda promise: promise["bound"].__setitem__("eb", 10**400),
    ):
        forged = from_parts(resealed(parts(archive), "zarr.json", lambda root, c=change: c(promises_of(root)[0])))
        assert forged.damage() == []
        for use in (lambda f=forged: str(f.certificate), forged.verify):
            with pytest.raises(WorkbenchError, match="the certificate of the archive cannot be read"):
                use()


def promises_of(root):
    return root["attributes"]["certificate"]["promises"]


def test_the_order_of_particles_does_not_depend_on_what_the_certificate_states():
    original, archive = victims()["open"]
    forged = resealed(parts(archive), "zarr.json", lambda root: promises_of(root)[0].update(bound=None, limit=None))
    assert (from_parts(forged).permutation(original) == archive.permutation(original)).all()


def test_a_stream_in_its_own_order_under_a_codec_in_free_order_is_read_whole():
    archive = victims()["free"][1]
    kept = victims()["kept"][1]
    key = "positions/c/0/0"
    for stated in ("free", "keep"):
        source = kept if stated == "free" else archive

        def configured(described, stated=stated):
            described["codecs"][0]["configuration"]["codec"]["order"] = stated

        forged = from_parts(resealed(parts(source), "positions/zarr.json", configured))
        values = forged.data.chunk((0, 0))
        samples.assert_same_bits(values, source.data.chunk((0, 0)))
        found = forged.read([(0, 10)] * 3)
        samples.assert_same_bits(found.positions, source.decompress().positions)
        assert forged.damage() == []
        assert key in parts(forged)


@pytest.mark.parametrize("columns", [1, 5])
def test_moves_in_a_field_of_any_columns_are_refused(columns):
    header = struct.pack("<BBBBd", 1, columns, 1, 0, 0.1) + struct.pack("<d", 0.2) + bytes(40)
    with pytest.raises(WorkbenchError, match="edits"):
        apply_edits(np.zeros((4, columns)), header)


def test_another_set_of_particles_of_equal_size_has_no_permutation_here():
    original, _ = victims()["free"]
    archive = wb.compress(original, wb.Absolute(0.01), order="free", chunk_values=150)
    np.testing.assert_array_equal(np.sort(archive.permutation(original)), np.arange(len(original)))
    shuffled = original.select(np.random.default_rng(0).permutation(len(original)))
    for other in (samples.particles(150, seed=1), shuffled):
        with pytest.raises(GuaranteeBroken, match=r"have another order along the curve .*: pass the original"):
            archive.permutation(other)
        with pytest.raises(GuaranteeBroken):
            archive.verify(other)


def test_verifying_decodes_each_chunk_once(monkeypatch):
    original = samples.particles(300)
    archive = wb.compress(original, wb.Absolute(0.01), order="free", chunk_values=300, keep=wb.KeepClusters(0.2))
    seen = []
    real = chunks.decode_frame
    monkeypatch.setattr(chunks, "decode_frame", lambda opened, *given: seen.append(opened.where) or real(opened, *given))
    assert archive.verify(original).passed
    assert sorted(seen) == sorted(key for key in parts(archive) if "/c/" in key)
