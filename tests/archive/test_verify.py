"""What verify accepts, what it refuses, and what of a damaged archive can still be had."""

import re
import shutil

import numpy as np
import pytest

import workbench as wb
from archive import samples
from archive.samples import assert_equal, assert_same_bits, from_parts, parts, reopened, resealed
from combinations import in_pairs
from workbench.archive import Damaged
from workbench.archive import chunk as chunks
from workbench.archive.checks import Inspected
from workbench.archive.frame import pack, unpack
from workbench.archive.second_copy import deflated
from workbench.data.readers import open_file
from workbench.errors import GuaranteeBroken, WorkbenchError

CODECS = [name for name in ("lattice", "sz3", "pcodec") if name in samples.CODECS]
ORDERS = ["keep", "free"]
BOUND = wb.Absolute(0.01)


def snapshot(order="free", codec="lattice", **how):
    original = samples.particles(600)
    return original, wb.compress(original, BOUND, codec, order=order, chunk_values=300, store_permutation=True, **how)


def masked_field():
    mask = np.random.default_rng(0).random((20, 30)) < 0.2
    field = wb.Field(samples.field(), mask=mask)
    return field, wb.compress(field, wb.Absolute(0.1), "sz3", chunk_values=100)


# The original.

@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("codec", CODECS)
def test_the_original_passes_and_so_does_the_archive_alone(codec, order):
    original, archive = snapshot(order, codec, velocities=wb.Relative(1e-3))
    report = archive.verify(original)
    assert report.passed
    assert report["chunks"] == 6 * 4 + 1
    assert [check.name for check in report.checks] == [
        "damaged_chunks", "positions_max_error", "velocities_max_error", "ids_differing",
    ]
    decoded, places = archive.decompress(), archive.permutation()
    apart = np.abs(decoded.positions.astype(float) - original.positions[places].astype(float))
    assert report["positions_max_error"] == np.minimum(apart, 10 - apart).max()
    assert archive.verify().passed
    assert [check.name for check in archive.verify().checks] == ["damaged_chunks"]
    assert "checked against its checksums only; the bound itself was not checked" in str(archive.verify())


def test_a_value_that_is_the_last_bit_too_far_away_is_found():
    original, archive = snapshot("keep")
    decoded = archive.decompress().positions
    for i, side in ((7, 1), (311, -1)):
        positions = original.positions.copy()
        edge = np.float32(decoded[i, 1] + side * BOUND.eb)
        while abs(float(edge) - float(decoded[i, 1])) > BOUND.eb:
            edge = np.nextafter(edge, decoded[i, 1])
        positions[i, 1] = edge   # the last float32 that the bound allows
        assert archive.verify(wb.Particles(positions, 10.0, original.velocities, original.ids)).passed
        positions[i, 1] = np.nextafter(edge, np.float32(side * np.inf))
        with pytest.raises(GuaranteeBroken, match=r"1 of 1,800 values of positions break the promise \(.* within 0\.01"):
            archive.verify(wb.Particles(positions, 10.0, original.velocities, original.ids))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("what", ["positions", "velocities", "ids"])
def test_a_changed_original_is_told_from_the_right_one(what, order):
    original, archive = snapshot(order)
    changed = {name: getattr(original, name).copy() for name in ("positions", "velocities", "ids")}
    changed[what][123] = changed[what][124]
    with pytest.raises(GuaranteeBroken, match=what):
        archive.verify(wb.Particles(changed["positions"], 10.0, changed["velocities"], changed["ids"]))


@pytest.mark.parametrize("order", ORDERS)
def test_a_shuffled_original_is_refused(order):
    original, archive = snapshot(order)
    with pytest.raises(GuaranteeBroken, match="of positions break the promise"):
        archive.verify(original.select(np.random.default_rng(0).permutation(600)))


def test_an_original_for_which_the_bound_comes_to_another_number_is_refused():
    field = samples.field()
    archive = wb.compress(field, wb.Relative(1e-3))
    assert archive.verify(field).passed
    stretched = field.copy()
    stretched[np.unravel_index(field.argmax(), field.shape)] = np.nextafter(field.max(), np.float32(np.inf))
    with pytest.raises(GuaranteeBroken, match=r"the bound of values is .* for this original: it is another one"):
        archive.verify(stretched)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (samples.particles(599), "the original must be 600 particles in a box of 10 x 10 x 10; got Particles"),
        (samples.particles(600, dimensions=2), "the original must be 600 particles in a box"),
        (samples.particles(600, box=11.0), "the original must be 600 particles in a box"),
        (samples.particles(600, box=None), "the original must be 600 particles in a box"),
        (samples.particles(600, np.float64), "the original positions must be float32 of shape .*got float64"),
        (samples.field(), "this archive holds particles; got ndarray"),
        (3, "this archive holds particles; got int"),
    ],
)
@pytest.mark.parametrize("order", ORDERS)
def test_what_cannot_be_the_original_is_refused_in_a_sentence(other, said, order):
    with pytest.raises(WorkbenchError, match=said):
        snapshot(order)[1].verify(other)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (samples.field((20, 31)), r"the original values must be float32 of shape \(20, 30\).*; got .* shape \(20, 31\)"),
        (samples.field(dtype=np.float64), "got float64"),
        (samples.particles(20), "this archive holds a field; got Particles"),
        (None, "checked against its checksums only"),
    ],
)
def test_what_cannot_be_the_original_field_is_refused_in_a_sentence(other, said):
    archive = masked_field()[1]
    if other is None:
        assert said in str(archive.verify(other))
        return
    with pytest.raises(WorkbenchError, match=said):
        archive.verify(other)


def test_a_field_is_checked_against_the_original_under_its_own_mask():
    field, archive = masked_field()
    assert archive.verify(field).passed
    report = archive.verify(field.values)   # without a mask
    assert report.passed
    assert "mask: checked against checksums only, because the original has none" in report.notes
    filled = np.where(field.mask, np.float32(1e35), field.values)   # of which a relative bound must know nothing
    assert wb.compress(wb.Field(filled, mask=field.mask), wb.Relative(1e-3)).verify(filled).passed
    values, mask = field.values.copy(), field.mask.copy()
    places = np.argwhere(mask)[0], np.argwhere(~mask)[0]
    values[tuple(places[0])] = np.nextafter(values[tuple(places[0])], np.float32(0))
    with pytest.raises(GuaranteeBroken, match="1 of 600 values"):
        archive.verify(wb.Field(values, mask=mask))
    mask[tuple(places[1])] = True
    with pytest.raises(GuaranteeBroken, match="mask must be bit-identical to the original"):
        archive.verify(wb.Field(field.values, mask=mask))


def test_what_the_original_lacks_is_told():
    original, archive = snapshot()
    report = archive.verify(wb.Particles(original.positions, 10.0))
    assert report.passed
    assert [note for note in report.notes if "the original has none" in note] == [
        "velocities: checked against checksums only, because the original has none",
        "ids: checked against checksums only, because the original has none",
    ]


def test_a_nan_that_became_another_nan_is_found():
    values = samples.field(dtype=np.float64)
    values[3, 3] = np.nan
    archive = wb.compress(values, wb.Absolute(0.1))
    values[3, 3] = -values[3, 3]
    with pytest.raises(GuaranteeBroken, match="1 of 600 values"):
        archive.verify(values)


# Damage.

def damaged(path, key, how):
    """One part of an archive on disk, spoiled."""
    place = path / key
    data = bytearray(place.read_bytes())
    if how == "flipped":
        data[len(data) // 2] ^= 4
    elif how == "truncated":
        del data[-3:]
    elif how == "longer":
        data += b"\0"
    elif how == "empty":
        data.clear()
    if how == "missing":
        place.unlink()
    else:
        place.write_bytes(data)


HOW = ["flipped", "truncated", "longer", "empty", "missing"]


@pytest.fixture(scope="module", params=ORDERS)
def on_disk(request, tmp_path_factory):
    original, archive = snapshot(request.param)
    return original, archive.save(tmp_path_factory.mktemp("some") / "some.zarr")


@pytest.mark.parametrize(
    ("array", "how"), in_pairs(["positions", "velocities", "ids", "permutation", "extents"], list(HOW))
)
def test_a_damaged_chunk_is_named_and_the_others_can_be_read(on_disk, tmp_path, array, how):
    original, path = on_disk
    spoiled = shutil.copytree(path, tmp_path / "spoiled.zarr")
    whole = open_file(path).decompress()
    keys = sorted(key for key in parts(open_file(path)) if key.startswith(f"{array}/c/"))
    key = keys[2 % len(keys)]
    damaged(spoiled, key, how)
    archive = open_file(spoiled)
    assert [found.where for found in archive.damage()] == [key]
    for given in (None, original):
        with pytest.raises(GuaranteeBroken, match=f"1 of 25 chunks are damaged, and the others can still be read: {key}: "):
            archive.verify(given)
    if array in ("positions", "velocities", "ids"):
        with pytest.raises(Damaged, match=key):
            archive.decompress()
    rest, damage = archive.salvage()
    assert [found.where for found in damage] == [key]
    if array in ("extents", "permutation"):
        assert_equal(rest, whole)
    else:
        assert_equal(rest, whole.select(np.r_[0:200, 300:600]))
        for name in {"positions", "velocities", "ids"} - {array}:
            assert_same_bits(archive.arrays[name].values(), getattr(whole, name))


@pytest.mark.parametrize("opened", [wb.open, str])
def test_a_damaged_original_is_not_reported_as_damage_of_the_archive(on_disk, tmp_path, opened):
    original, path = on_disk
    broken, field = shutil.copytree(path, tmp_path / "first.zarr"), tmp_path / "field.zarr"
    damaged(broken, "positions/c/0/0", "flipped")
    masked_field()[1].save(field)
    archives = {broken: wb.compress(original, wb.Absolute(0.1)), field: wb.compress(opened(field), wb.Absolute(0.2))}
    damaged(field, "values/c/1/0", "flipped")
    for place, archive in archives.items():
        with pytest.raises(WorkbenchError, match=rf"{place.name}: chunk .*/c/[01]/0 is damaged") as raised:
            archive.verify(opened(place))
        assert not isinstance(raised.value, GuaranteeBroken)


def test_regions_away_from_the_damage_can_be_read():
    random = np.random.default_rng(0)
    positions = np.sort(random.random((900, 1)), axis=0) * [10, 1, 1] + random.random((900, 3)) * [0, 9, 9]
    archive = wb.compress(wb.Particles(positions, 10.0), BOUND, chunk_values=300)
    entries = parts(archive)
    entries["positions/c/5/0"] = entries["positions/c/5/0"][:-1]
    spoiled, everywhere = from_parts(entries), (0, 10)
    assert_equal(spoiled.read([(0, 4), everywhere, everywhere]), archive.read([(0, 4), everywhere, everywhere]))
    with pytest.raises(Damaged, match="positions/c/5/0"):
        spoiled.read([(4, 8), everywhere, everywhere])


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("array", ["values", "mask"])
def test_a_damaged_block_of_a_field_is_named_and_the_rest_is_salvaged(tmp_path, array, how):
    field, archive = masked_field()
    path = archive.save(tmp_path / "some.zarr")
    key = f"{array}/c/1/2"
    damaged(path, key, how)
    spoiled = open_file(path)
    with pytest.raises(GuaranteeBroken, match=f"1 of 16 chunks are damaged.*: {key}: "):
        spoiled.verify(field)
    assert_same_bits(spoiled.read([(10, 20), (0, 16)]).values, archive.read([(10, 20), (0, 16)]).values)
    rest, damage = spoiled.salvage()
    lost, whole = np.zeros((20, 30), bool), archive.decompress()
    lost[archive.data.layout.chunk_slices((1, 2))] = True
    assert [found.where for found in damage] == [key]
    assert_same_bits(rest.mask, whole.mask | lost)
    np.testing.assert_array_equal(rest.values, np.where(lost & (array == "values"), np.nan, whole.values))


def test_salvage_of_what_is_whole_is_everything():
    for archive in (snapshot()[1], masked_field()[1], wb.compress(samples.field(), wb.Absolute(0.1))):
        rest, damage = archive.salvage()
        assert damage == []
        assert_equal(rest, archive.decompress())


def test_a_field_without_a_mask_gets_one_where_it_is_lost():
    archive = wb.compress(samples.field(), wb.Absolute(0.1), chunk_values=300)
    entries = parts(archive)
    del entries["values/c/0/1"]
    rest, _ = from_parts(entries).salvage()
    assert_same_bits(rest.mask, np.isnan(rest.values))
    assert rest.mask.sum() == 300


def test_when_nothing_can_be_salvaged_it_is_said():
    archive = wb.compress(wb.Particles(samples.particles(50).positions, 10.0), BOUND)
    entries = {key: data for key, data in parts(archive).items() if not key.startswith("positions/c/")}
    with pytest.raises(GuaranteeBroken, match=r"nothing can be salvaged; .* chunk positions/c/0/0 is damaged"):
        from_parts(entries).salvage()
    entries = parts(snapshot("keep")[1])
    for key in ("ids/c/0", "positions/c/1/0", "ids/c/2", "velocities/c/3/0", "ids/c/4", "ids/c/5"):
        del entries[key]
    with pytest.raises(GuaranteeBroken, match="nothing"):   # something is lost of every particle
        from_parts(entries).salvage()


def test_many_damaged_chunks_are_counted_and_some_named():
    entries = {key: data for key, data in parts(snapshot("keep")[1]).items() if not re.match("(positions|ids)/c/", key)}
    entries["positions/c/0/0"] = b""
    with pytest.raises(GuaranteeBroken, match=r"12 of 25 chunks are damaged.*; and 4 more"):
        from_parts(entries).verify()


# Parts that are whole, in the wrong place.

def test_findings_in_pieces_are_joined_in_order():
    pieces = [
        Inspected([("a", "torn")], [], 2, 0.5, True), Inspected(), Inspected([("b", "cut"), ("c", "cut")], ["d"], 1, 0.25),
    ]
    expected = Inspected([("a", "torn"), ("b", "cut"), ("c", "cut")], ["d"], 3, 0.5, True)
    assert Inspected.joined(pieces) == pieces[0] + pieces[1] + pieces[2] == expected
    assert Inspected.joined([]) == Inspected()


def test_chunks_that_changed_places_are_noticed_when_they_are_read():
    for archive, a, b in (
        (snapshot("keep")[1], "positions/c/1/0", "positions/c/2/0"),
        (snapshot("free")[1], "velocities/c/1/0", "velocities/c/2/0"),
        (snapshot("free")[1], "ids/c/1", "ids/c/2"),
        (masked_field()[1], "values/c/0/1", "values/c/1/1"),
        (masked_field()[1], "mask/c/0/1", "mask/c/1/1"),
    ):
        entries = parts(archive)
        entries[a], entries[b] = entries[b], entries[a]
        swapped = from_parts(entries)
        assert [found.where for found in swapped.damage()] == [a, b]
        for use in (swapped.decompress, swapped.verify):
            with pytest.raises(GuaranteeBroken, match=f"{a}.* is intact, but not the one that was written here"):
                use()
        assert len(swapped.salvage()[1]) == 2


def test_a_chunk_of_a_region_that_is_another_is_noticed():
    archive = snapshot("free")[1]
    entries = parts(archive)
    entries["positions/c/0/0"] = entries["positions/c/1/0"]
    with pytest.raises(Damaged, match="not the one that was written here"):
        from_parts(entries).read([(0, 10)] * 3)


def test_a_chunk_of_another_archive_is_noticed():
    other = wb.compress(samples.particles(600, seed=1), BOUND, chunk_values=300)
    entries = {**parts(snapshot("keep")[1]), "positions/c/3/0": other.store.read("positions/c/3/0")}
    assert [found.where for found in from_parts(entries).damage()] == ["positions/c/3/0"]


def test_an_array_of_another_archive_is_noticed():
    other = wb.compress(samples.particles(600, seed=1), BOUND, chunk_values=300)
    entries = parts(snapshot("keep")[1])
    theirs = {key: data for key, data in parts(other).items() if key.startswith("velocities/")}
    mixed = from_parts({**entries, **theirs})
    assert sorted(found.where for found in mixed.damage()) == sorted(theirs)
    with pytest.raises(GuaranteeBroken, match="6 of 25 chunks are damaged, and the others"):
        mixed.verify()
    assert_same_bits(mixed.data.values(), from_parts(entries).data.values())


def test_an_array_that_was_added_is_no_part_of_the_archive():
    archive = snapshot("keep")[1]
    added = {"extra/zarr.json": b"{}", "extra/c/0": b"LBC1"}
    again = from_parts({**parts(archive), **added})
    assert again.nbytes == archive.nbytes
    assert "extra" not in again.arrays
    assert again.verify().passed


def test_a_missing_array_is_noticed():
    whole = snapshot()[1]
    entries = {key: data for key, data in parts(whole).items() if not key.startswith("velocities/")}
    archive = from_parts(entries)
    assert len(archive.damage()) == 6
    with pytest.raises(GuaranteeBroken, match=r"velocities/c/0/0: "):
        archive.verify()
    rest, _ = archive.salvage()
    assert rest.velocities is None
    assert_same_bits(rest.positions, whole.decompress().positions)


def test_two_archives_copied_over_each_other_are_noticed(tmp_path):
    other = wb.compress(samples.particles(600, seed=1), BOUND, order="free", chunk_values=300)
    paths = snapshot()[1].save(tmp_path / "a.zarr"), other.save(tmp_path / "b.zarr")
    shutil.copytree(paths[1] / "positions", paths[0] / "positions", dirs_exist_ok=True)
    mixed = open_file(paths[0])
    assert {found.where.split("/")[0] for found in mixed.damage()} == {"positions"}
    assert len(mixed.damage()) == 7
    with pytest.raises(Damaged, match="not the one that was written here"):
        mixed.decompress()


def test_values_that_were_made_to_fit_the_frame_are_found_by_their_checksum():
    original, archive = snapshot("keep", "sz3")
    entries = parts(archive)
    opened = unpack(entries["ids/c/1"], "")
    forged = unpack(chunks.exact_chunk(original.ids[200:300]).data, "")
    sections = {tag: bytes(part) for tag, part in forged.sections.items()} | {"dcrc": bytes(opened.sections["dcrc"])}
    entries["ids/c/1"] = pack(opened.shape, sections)
    for use in (from_parts(entries).verify, from_parts(entries).decompress):
        with pytest.raises(GuaranteeBroken, match=r"ids/c/1.* pcodec decodes it to other values than when it was written"):
            use()


def test_a_permutation_that_is_none_is_refused():
    for spoil in (lambda p: p.__setitem__(0, p[1]), lambda p: p.__setitem__(0, 600), lambda p: p.__setitem__(0, -1)):
        original, archive = snapshot("free")
        entries, layout = parts(archive), archive.arrays["permutation"].layout
        changed = archive.permutation().copy()
        spoil(changed)
        made = [chunks.exact_chunk(changed[i : i + 100]) for i in range(0, 600, 100)]
        entries |= {f"permutation/c/{i}": chunk.data for i, chunk in enumerate(made)}
        attributes = chunks.with_checksums(layout, made).attributes
        spoiled = from_parts(resealed(entries, "permutation/zarr.json", lambda d, a=attributes: d.update(attributes=a)))
        for use in (spoiled.permutation, lambda s=spoiled, o=original: s.verify(o)):
            with pytest.raises(GuaranteeBroken, match="must contain each of 600 particles once"):
                use()


# The certificate.

def test_a_certificate_that_was_edited_is_refused(tmp_path):
    path = snapshot()[1].save(tmp_path / "some.zarr")
    text = (path / "zarr.json").read_text()
    assert '"eb":0.01' in text
    edited = text.replace('"eb":0.01', '"eb":0.001').encode()
    for name, data in (("zarr.json", edited), ("positions/root.json.z", deflated(edited))):
        (path / name).write_bytes(data)
        archive = open_file(path) if name == "zarr.json" else None
        assert archive is None or archive.certificate["positions"].bound == BOUND   # by the copy
    with pytest.raises(GuaranteeBroken, match=r"zarr\.json fails its checksum: it was damaged, or changed"):
        open_file(path)


def test_a_certificate_that_promises_more_than_is_kept_does_not_pass():
    original, archive = snapshot("keep")

    def promise(more):
        entry = more["attributes"]["certificate"]["promises"][0]
        entry["bound"]["eb"] = 0.001

    with pytest.raises(GuaranteeBroken, match="of positions break the promise"):
        from_parts(resealed(parts(archive), "zarr.json", promise)).verify(original)

    def only_the_bound(more):
        more["attributes"]["certificate"]["promises"][0]["bound"]["eb"] = 0.1
        more["attributes"]["certificate"]["promises"][0]["limit"] = {"kind": "absolute", "value": 0.01}

    with pytest.raises(GuaranteeBroken, match="the bound of positions is"):
        from_parts(resealed(parts(archive), "zarr.json", only_the_bound)).verify(original)


def test_the_certificate_says_what_was_promised_and_what_came_of_it(tmp_path):
    original, archive = snapshot(velocities=wb.Relative(1e-3))
    certificate = reopened(archive, tmp_path / "some.zip").certificate
    assert certificate == archive.certificate
    assert str(certificate).startswith("promised, and checked:\n  positions: every value within 0.01 of the original\n")
    assert "velocities: every value within 0.001 of the range of the values" in str(certificate)
    assert "ids: every value exactly as it was, bit for bit" in str(certificate)
    assert "<li>" in certificate._repr_html_()
    figures = certificate["positions"].figures
    assert (figures["values"], figures["chunks"]) == (1800, 6)
    largest = archive.verify(original)["positions_max_error"]
    assert largest <= figures["largest_error"] <= min(largest * (1 + 1e-5), archive.certificate["positions"].limit.value)
    with pytest.raises(WorkbenchError, match="array must be one of positions, velocities, ids, permutation; got 'mass'"):
        certificate["mass"]


def test_figures_count_what_had_to_be_corrected_or_stored_exactly():
    values = samples.field()
    values[0, 0] = np.nan
    certificate = wb.compress(values, wb.Absolute(0), "sz3", chunk_values=300).certificate
    figures = certificate["values"].figures
    assert figures["chunks_stored_exactly"] == {"the bound is zero": 2}
    assert (figures["invalid"], figures["corrected"], figures["largest_error"]) == (1, 0, 0.0)
    assert "2 of 2 chunks are stored exactly, because the bound is zero" in str(certificate)
