"""Archives that keep clusters: whatever the codec, the groups are those of the original, and whoever reads can tell."""

import contextlib
import dataclasses
import functools
import itertools
import json
import re
import shutil
import zlib
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from archive import documented_edits, samples
from archive.samples import CODECS, assert_equal, assert_kept, assert_same_bits, from_parts, parts, reopened, resealed
from combinations import in_pairs
from oracles import brute_force_labels, scipy_labels
from workbench import backend
from workbench.archive import Damaged, finer
from workbench.archive import chunk as chunks
from workbench.archive import particles as of_particles
from workbench.archive.frame import pack, unpack
from workbench.clusters.keep.attempts import Attempts
from workbench.clusters.keep.partition import fingerprint
from workbench.clusters.keep.words import clusters_in_words
from workbench.data.readers import open_file
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees.guarantee import UNLIMITED
from workbench.guarantees.sections import EDIT, PIN

ORDERS = "keep", "free"
LENGTH = 0.25
BOUND = wb.Absolute(0.3 * LENGTH)
KEEP = wb.KeepClusters(LENGTH, "length")
LOSSLESS = {"pcodec", "numcodecs"}
COARSE = {"lattice", "draco", "sz3", "prequantised"}   # which use all of the bound


def clumps(count=400, dtype=np.float32, dimensions=3, box=10.0, seed=0) -> wb.Particles:
    """Loose clumps, in which most links are nearly as long as they may be; one lies across the faces of the box."""
    random = np.random.default_rng([seed, count, dimensions])
    centres = random.random((count // 25, dimensions)) * 10
    centres[0] = 0
    spread = 0.2 if dimensions == 2 else 0.25
    positions = centres[np.arange(count) % len(centres)] + random.normal(scale=spread, size=(count, dimensions))
    velocities, ids = random.normal(scale=300, size=positions.shape).astype(dtype), random.permutation(count) * 1_000_003
    if box is None:
        return wb.Particles((positions - 3).astype(dtype), None, velocities, ids)
    return wb.Particles.wrapped(positions.astype(dtype), box, velocities, ids)


def counted(labels: np.ndarray, least: int) -> np.ndarray:
    """Labels of groups that count, and -1 for particles of all others."""
    return np.where(np.bincount(labels, minlength=len(labels))[labels] >= least, labels, -1)


def assert_clusters_kept(archive, original, keep, bound, find=brute_force_labels, velocities=None) -> None:
    """Everything that is promised, decided without the library's own finder."""
    given = original.select(assert_kept(archive, original, bound, velocities))
    decoded = wb.Particles(archive.decompress().positions, original.box)
    for length in keep.lengths(original):
        wanted, found = (counted(find(p, length), keep.min_members) for p in (given, decoded))
        np.testing.assert_array_equal(found, wanted)
    assert archive.verify().passed
    assert archive.verify(original).passed


def kept_of(archive) -> dict:
    (kept,) = archive.certificate["positions"].keep
    return dict(kept)


def chunk_keys(archive) -> list[str]:
    return [archive.data.layout.chunk_key(index) for index in archive.data.layout.chunk_indices()]


def chunk_bytes(archive) -> int:
    return sum(len(archive.store.read(key)) for key in chunk_keys(archive))


def sections_of(archive, key) -> dict[str, bytes]:
    return {tag: bytes(part) for tag, part in unpack(archive.store.read(key), key).sections.items()}


def chunks_with(archive, tag) -> list[str]:
    return [key for key in chunk_keys(archive) if tag in sections_of(archive, key)]


# Groups are kept.

@pytest.mark.few
@pytest.mark.parametrize(
    ("codec", "order", "dtype", "dimensions", "box"),
    samples.fourth(CODECS, ORDERS, (np.float32, np.float64), (2, 3), (10.0, None)),
)
def test_every_codec_keeps_clusters(codec, order, dtype, dimensions, box):
    original = clumps(400, dtype, dimensions, box)
    archive = wb.compress(original, BOUND, codec, keep=[KEEP], order=order, chunk_values=dimensions * 150)
    assert_clusters_kept(archive, original, KEEP, BOUND)
    kept = kept_of(archive)
    assert codec not in COARSE or kept["edited"] > 0
    if codec in LOSSLESS:
        assert (kept["edited"], kept["bytes"], kept["attempts"], kept["groups_opened"]) == (0, 0, 0, 0)
        assert not chunks_with(archive, EDIT)


@pytest.mark.few
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bound", [wb.Relative(0.005), wb.PointwiseRelative(0.03)])
@pytest.mark.parametrize("box", [10.0, None])
def test_relative_bounds_hold_with_clusters(bound, order, box):
    original = clumps(box=box, dtype=np.float64)
    archive = wb.compress(original, bound, "prequantised", keep=[KEEP], order=order, chunk_values=400)
    assert_clusters_kept(archive, original, KEEP, bound)
    assert kept_of(archive)["edited"] > 0


@pytest.mark.parametrize(("keep", "order", "solver"), in_pairs([
    {"linking_length": [0.2, 0.25, 0.4]}, {"min_members": 20}, {"linking_length": [0.2, 0.4], "min_members": 5},
    {"linking_length": [0.2, 0.35], "unit": "spacing"},
], ORDERS, ["auto", "pgd", "refine"]))
def test_several_lengths_large_groups_and_every_solver(keep, order, solver):
    original, keep = clumps(500), wb.KeepClusters(**{"linking_length": LENGTH, "unit": "length", "solver": solver, **keep})
    archive = wb.compress(original, BOUND, keep=[keep], order=order)
    assert_clusters_kept(archive, original, keep, BOUND)
    kept = kept_of(archive)
    assert kept["edited"] > 0
    groups = [wb.friends_of_friends(original, length, "length") for length in keep.lengths(original)]
    assert kept["groups"] == [found.count(keep.min_members) for found in groups]
    assert 0 < kept["groups_opened"] <= sum(found.count(1) for found in groups)


@pytest.mark.parametrize(("share", "order"), in_pairs([0.01, 0.1, 0.3], ORDERS))
def test_a_universe_keeps_its_halos(share, order):
    original, keep = wb.synthetic.cosmic_web(n=24), wb.KeepClusters()
    bound = wb.Absolute(share * keep.lengths(original)[0])
    archive = wb.compress(original, bound, keep=[keep], order=order)
    assert_clusters_kept(archive, original, keep, bound, find=scipy_labels)
    plain, kept = wb.compress(original, bound, order=order), kept_of(archive)
    assert kept["bytes"] == chunk_bytes(archive) - chunk_bytes(plain)
    assert archive.bits_per_particle - plain.bits_per_particle == pytest.approx(8 * kept["bytes"] / len(original))
    assert kept["bytes"] < 0.02 * original.positions.nbytes * (share / 0.3) ** 0.5
    assert kept["exact"] <= 0.01 * kept["edited"]


def test_real_galaxies_keep_their_groups(shared_data):
    galaxies = open_file(shared_data / "corrfunc_mr19" / "gals_Mr19.ff", box=420.0)
    chosen = galaxies.select(np.arange(0, len(galaxies), 10))
    keep, bound = wb.KeepClusters(2.0, "length", min_members=3), wb.Absolute(0.2)
    archive = wb.compress(chosen, bound, keep=[keep], order="free")
    assert_clusters_kept(archive, chosen, keep, bound, find=scipy_labels)
    assert kept_of(archive)["edited"] > 0


@pytest.mark.parametrize("order", ORDERS)
def test_groups_may_span_chunks(order):
    original = clumps(600)
    archive = wb.compress(original, BOUND, keep=[KEEP], order=order, chunk_values=3 * 64)
    assert_clusters_kept(archive, original, KEEP, BOUND)
    labels = wb.friends_of_friends(archive.decompress(), LENGTH, "length").labels
    assert len(np.unique(np.stack([labels, np.arange(600) // 60]), axis=1).T) > len(np.unique(labels)) + 10
    assert len(chunks_with(archive, EDIT)) > 5
    assert len(chunk_keys(archive)) == 10


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("codec", [codec for codec in ("lattice", "draco", "sz3") if codec in CODECS])
def test_velocities_ids_and_a_permutation_ride_along(codec, order):
    original = clumps()
    how = {"codec": codec, "order": order, "chunk_values": 400}
    archive = wb.compress(original, BOUND, keep=[KEEP], velocities=wb.Absolute(1), store_permutation=True, **how)
    assert_clusters_kept(archive, original, KEEP, BOUND, velocities=wb.Absolute(1))
    for keep in ([KEEP], []):
        followed = wb.compress(original, BOUND, keep=keep, **how).permutation(original)
        np.testing.assert_array_equal(followed, archive.permutation())


@st.composite
def anything(draw):
    """Particles whose distances are often just the linking length, or nothing, and any way to keep them."""
    random, dimensions = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.sampled_from([2, 3]))
    count, kind = draw(st.integers(1, 120)), draw(st.sampled_from(["clumps", "grid", "anywhere", "line"]))
    if kind == "clumps":
        centres = random.random((5, dimensions)) * 10
        positions = centres[random.integers(0, 5, count)] + random.normal(scale=0.2, size=(count, dimensions))
    elif kind == "grid":
        positions = random.integers(0, 8, (count, dimensions)) * LENGTH + draw(st.sampled_from([0, 3.3, 9.9]))
    elif kind == "anywhere":
        positions = random.random((count, dimensions)) * draw(st.sampled_from([1, 3, 10]))
    else:
        positions = np.zeros((count, dimensions))
        gaps = LENGTH * np.array([1, 1 + 1e-7, 1 - 1e-7, 0.9])
        positions[:, 0] = np.cumsum(random.choice(gaps, count)) % 10
    scale = draw(st.sampled_from([1.0, 1e-6, 1e6]))
    dtype, box = draw(st.sampled_from([np.float32, np.float64])), draw(st.sampled_from([None, 10.0, 13.7]))
    values = (positions * scale).astype(dtype)
    original = wb.Particles(values) if box is None else wb.Particles.wrapped(values, box * scale)
    length, share = LENGTH * scale, draw(st.sampled_from([1e-9, 1e-3, 0.1, 0.3, 0.5, 1.0, 4.0]))
    bounds = [wb.Absolute(share * length), wb.Relative(share * 0.02), wb.PointwiseRelative(share * 0.05)]
    lengths = draw(st.sampled_from([(length,), (length, 1.01 * length), (0.5 * length, length, 2 * length)]))
    solver, members = draw(st.sampled_from(["auto", "pgd", "refine"])), draw(st.sampled_from([1, 1, 2, 3, 10]))
    how = {
        "codec": draw(st.sampled_from(CODECS)), "order": draw(st.sampled_from(ORDERS)),
        "chunk_values": draw(st.sampled_from([None, 30, 100])),
    }
    return original, draw(st.sampled_from(bounds)), wb.KeepClusters(lengths, "length", members, solver), how


@given(anything())
def test_whatever_the_particles_and_the_bound_groups_are_kept(case):
    original, bound, keep, how = case
    archive = wb.compress(original, bound, keep=[keep], **how)
    assert_clusters_kept(archive, original, keep, bound)
    kept = kept_of(archive)
    assert kept["bytes"] == chunk_bytes(archive) - chunk_bytes(wb.compress(original, bound, **how))
    if kept["close_calls"] == 0:   # a finder that errs by less than the margin finds the same groups
        given, decoded = original.select(archive.permutation(original)), archive.decompress()
        for length, margin in itertools.product(kept["lengths"], (-0.99 * kept["margin"], 0.99 * kept["margin"])):
            wanted, found = brute_force_labels(given, length), brute_force_labels(decoded, length + margin)
            np.testing.assert_array_equal(counted(found, keep.min_members), counted(wanted, keep.min_members))


def test_a_finer_bound_that_was_chosen_for_groups_does_not_change_the_order_of_chunks():
    """With a pointwise bound every chunk has a lattice of its own, which follows from the finer bound."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        positions = random.random((5, 2))[random.integers(0, 5, 60)] * 10 + random.normal(scale=0.2, size=(60, 2))
        original, bound = wb.Particles.wrapped(positions, 10.0), wb.PointwiseRelative(0.005)
        keep = wb.KeepClusters(0.25, "length", 1)
        archive = wb.compress(original, bound, "lattice", [keep], "free", chunk_values=30)
        assert_clusters_kept(archive, original, keep, bound)


@pytest.mark.parametrize(("box", "eb", "codec", "order"), in_pairs(
    [10.0, None], [1.0, 7.0, 26.0, 1e6], [codec for codec in ("lattice", "draco", "zfp") if codec in CODECS], ORDERS,
))
def test_bounds_far_beyond_the_linking_length_keep_groups(eb, codec, order, box):
    original = clumps(200, dimensions=2, box=box)
    archive = wb.compress(original, wb.Absolute(eb), codec, keep=[KEEP], order=order)
    assert_clusters_kept(archive, original, KEEP, wb.Absolute(eb))


@pytest.mark.parametrize(("codec", "box"), in_pairs(CODECS, [1.0, None]))
def test_particles_that_a_codec_decodes_to_few_places_keep_their_groups(codec, box):
    """No finer bound is tried, so that the correction starts from what the codec made."""
    positions = (np.random.default_rng(0).integers(0, 6, (120, 3)) / 6).astype(np.float32)
    with mock.patch.object(finer, "MOST_HALVES", 0):
        for share, members in ((2.5, 1), (6.0, 2)):
            original, bound = wb.Particles(positions, box), wb.Absolute(share / 6)
            keep = wb.KeepClusters(1 / 6, "length", min_members=members)
            archive = wb.compress(original, bound, codec, keep=[keep], order=ORDERS[members == 2])
            assert_clusters_kept(archive, original, keep, bound)


def test_small_groups_do_not_grow_through_links_of_just_the_linking_length():
    quartet = np.array([[1.0, 0], [1.2, 0], [1.51, 0], [1.74, 0]])
    original = wb.Particles(np.concatenate([quartet + np.array([0, 2 * row]) for row in range(100)]))
    keep, bound = wb.KeepClusters(0.25, "length", min_members=3), wb.Absolute(0.0625)
    plain = wb.compress(original, bound, "prequantised").decompress()
    np.testing.assert_allclose(plain.positions[:4, 0], [1, 1.25, 1.5, 1.75], rtol=1e-9)
    assert brute_force_labels(plain, LENGTH)[:4].tolist() == [0, 0, 0, 0]   # none of whom counted before
    assert_clusters_kept(wb.compress(original, bound, "prequantised", keep=[keep]), original, keep, bound)


@pytest.mark.parametrize("codec", sorted({"prequantised", "sz3", "bitround"} & set(CODECS)))
@pytest.mark.parametrize("seed", range(3))
def test_a_share_of_each_coordinate_is_no_leave_to_go_through_a_face(codec, seed):
    original = wb.Particles(np.random.default_rng(seed).random((300, 2)) * 10, 10.0)
    keep, bound = wb.KeepClusters(0.4, "length"), wb.PointwiseRelative(0.3)
    assert_clusters_kept(wb.compress(original, bound, codec, keep=[keep]), original, keep, bound)


@pytest.mark.parametrize("codec", [*sorted(LOSSLESS & set(CODECS)), "lattice"])
@pytest.mark.parametrize("order", ORDERS)
def test_what_comes_back_bit_for_bit_needs_no_edits(codec, order):
    original = clumps()
    bound = wb.Absolute(0) if codec == "lattice" else BOUND
    how = {"codec": codec, "order": order, "chunk_values": 300}
    archive, plain = (wb.compress(original, bound, keep=keep, **how) for keep in ([KEEP], []))
    assert [archive.store.read(key) for key in chunk_keys(archive)] == [plain.store.read(key) for key in chunk_keys(plain)]
    assert (kept_of(archive)["edited"], kept_of(archive)["bytes"]) == (0, 0)
    assert_clusters_kept(archive, original, KEEP, bound)


def test_the_same_particles_make_the_same_archive_whatever_the_threads():
    original, made = clumps(800), []
    for threads in (1, 2, 3):
        with backend.using_threads(threads):
            archive = wb.compress(original, BOUND, keep=[KEEP], order="free", chunk_values=384)
            made.append(parts(archive))
            archive.verify(original)
    assert made[0] == made[1] == made[2]


# What is written is what is read.

@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
@pytest.mark.parametrize("order", ORDERS)
def test_what_is_opened_again_is_what_was_saved(tmp_path, suffix, order):
    original = clumps()
    archive = wb.compress(original, BOUND, keep=[KEEP], order=order, chunk_values=300)
    again = reopened(archive, tmp_path / f"some{suffix}")
    assert parts(again) == parts(archive)
    assert (again.certificate, kept_of(again)) == (archive.certificate, kept_of(archive))
    assert_equal(again.decompress(), archive.decompress())
    assert_clusters_kept(again, original, KEEP, BOUND)


@pytest.mark.parametrize(("codec", "order", "suffix"), in_pairs(
    [codec for codec in ("lattice", "sz3", "draco") if codec in CODECS], ORDERS, [".zarr", ".zip"],
))
def test_zarr_reads_the_corrected_positions(tmp_path, codec, order, suffix):
    zarr = pytest.importorskip("zarr")
    archive = wb.compress(clumps(), BOUND, codec, keep=[KEEP], order=order, chunk_values=300)
    path, decoded = archive.save(tmp_path / f"some{suffix}"), archive.decompress().positions
    group = zarr.open_group(zarr.storage.ZipStore(path, mode="r") if suffix == ".zip" else path, mode="r")
    assert_same_bits(group["positions"][:], decoded)
    assert_same_bits(group["positions"][130:271], decoded[130:271])
    assert group.attrs["certificate"]["promises"][0]["keep"] == [kept_of(archive)]
    group.store.close()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("region", [[(0, 5)] * 3, [(-1, 1)] * 3, [(2, 9), (8, 12), (0, 10)]])
def test_a_region_is_what_filtering_everything_gives(order, region):
    archive = wb.compress(clumps(800), BOUND, keep=[KEEP], order=order, chunk_values=300)
    whole = archive.decompress()
    chosen = np.ones(len(whole), bool)
    for axis, (low, high) in enumerate(region):
        chosen &= (whole.positions[:, axis].astype(float) - low) % 10 < high - low if high - low < 10 else True
    assert_equal(archive.read(region), whole.select(np.flatnonzero(chosen)))


@pytest.mark.parametrize("order", ORDERS)
def test_particles_that_were_moved_are_found_where_they_are_now(order):
    archive, plain = (
        wb.compress(clumps(box=None), BOUND, keep=keep, order=order, chunk_values=300) for keep in ([KEEP], [])
    )
    now, before = archive.decompress(), plain.decompress().positions
    moved = np.argwhere(now.positions != before)
    assert len(np.unique(moved[:, 0])) == kept_of(archive)["edited"]
    for particle, axis in moved[:: max(len(moved) // 20, 1)].tolist():
        here, there = (float(positions[particle, axis]) for positions in (now.positions, before))
        edge = (here + there) / 2
        region = [(-100.0, 100.0)] * 3
        region[axis] = (edge, 100.0) if here > there else (-100.0, edge)
        assert now.ids[particle] in archive.read(region).ids
    extents = archive.arrays["extents"].values()
    for index, values in archive.data.chunks():
        np.testing.assert_array_equal(extents[index[0]], [values.min(axis=0), values.max(axis=0)])


@pytest.mark.parametrize("order", ORDERS)
def test_clusters_change_the_chunks_that_have_edits_and_no_others(order):
    original = clumps(600)
    archive, plain = (wb.compress(original, BOUND, keep=k, order=order, chunk_values=3 * 40) for k in ([KEEP], []))
    edited = chunks_with(archive, EDIT) + chunks_with(archive, PIN)
    for key in chunk_keys(archive):
        ours, theirs = sections_of(archive, key), sections_of(plain, key)
        assert (archive.store.read(key) == plain.store.read(key)) is (key not in edited)
        assert {tag: data for tag, data in ours.items() if tag not in (EDIT, PIN, "dcrc")} == {
            tag: data for tag, data in theirs.items() if tag != "dcrc"
        }
    for name in ("velocities", "ids"):
        assert_same_bits(archive.arrays[name].values(), plain.arrays[name].values())


def decoded_as_is(data, layout, key):
    """What a chunk decodes to, whatever its checksum says."""
    return chunks.decode_frame(unpack(data, key), chunks.codec_of(layout.configuration, key), layout.dtype)


@pytest.mark.parametrize(
    ("dtype", "dimensions", "box", "order"), in_pairs([np.float32, np.float64], [2, 3], [10.0, None], ORDERS)
)
def test_the_documented_bytes_are_the_written_ones(dtype, dimensions, box, order):
    original, keep = clumps(300, dtype, dimensions, box), wb.KeepClusters([0.2, 0.25], "length")
    archive = wb.compress(original, wb.Absolute(LENGTH), keep=[keep], order=order, chunk_values=dimensions * 150)
    layout, keys = archive.data.layout, chunks_with(archive, EDIT)
    assert len(keys) == 2
    for key in keys:
        shape, sections = unpack(archive.store.read(key), key).shape, sections_of(archive, key)

        def decoded(*left_out, shape=shape, sections=sections, key=key):
            rest = {tag: data for tag, data in sections.items() if tag not in left_out}
            return decoded_as_is(pack(shape, rest), layout, key)

        moved = documented_edits.moved(decoded(EDIT, PIN), sections[EDIT])
        assert_same_bits(moved, decoded(PIN))
        assert (moved != decoded(EDIT, PIN)).any()


# The certificate.

def test_the_certificate_says_which_groups_how_and_at_what_price():
    original = clumps()
    archive = wb.compress(original, BOUND, keep=[wb.KeepClusters([0.25, 0.2], "length", 5)], chunk_values=300)
    plain, kept = wb.compress(original, BOUND, chunk_values=300), kept_of(archive)
    assert [kept[name] for name in ("kind", "unit", "min_members")] == ["clusters", "length", 5]
    assert kept["linking_length"] == kept["lengths"] == [0.2, 0.25]
    assert (kept["precision"], kept["violations"]) == ("float32", 0)
    assert 0 < kept["margin"] <= 0.2 / 16
    assert kept["bytes"] == chunk_bytes(archive) - chunk_bytes(plain) > 0
    assert kept["edited"] == (archive.decompress().positions != plain.decompress().positions).any(axis=1).sum()
    text = str(archive.certificate)
    assert "the friends-of-friends groups of at least 5 members at linking length 0.2 and 0.25, exactly" in text
    assert kept["partition"][0] in text
    assert kept["predicate"] in text
    assert kept["not_implied"] in archive.certificate._repr_html_()
    stated = dict(clusters_in_words(kept))
    assert stated["groups kept"].startswith(f"{kept['groups'][0]} of at least 5 members at linking length 0.2, ")
    assert stated["not promised"] == kept["not_implied"]
    assert "not implied" not in text
    earlier = {**kept, "holds": f"so {kept['holds']}", "not_implied": f"not implied: {kept['not_implied']}"}
    assert dict(clusters_in_words(earlier)) == stated
    json.dumps(kept, allow_nan=False)


def test_the_largest_error_is_that_of_the_corrected_positions():
    original = clumps(dtype=np.float64, box=None)
    archive = wb.compress(original, BOUND, keep=[KEEP])
    largest = abs(archive.decompress().positions - original.positions).max()
    assert largest <= archive.certificate["positions"].figures["largest_error"] <= largest * (1 + 1e-5)
    assert archive.verify(original)["positions_max_error"] == largest


def test_only_groups_with_a_pair_to_set_right_count_as_opened():
    positions = np.zeros((64, 2))
    positions[:, 0] = np.arange(64) * 0.9          # one group at linking length 1, 64 groups at 0.5
    original, decoded = wb.Particles(positions), positions.copy()
    decoded[32:, 0] += 0.11                        # torn in one place, at the longer length alone
    correction = wb.clusters.correct(original, decoded, 0.2, [0.5, 1.0], "length")
    assert correction.needs == 1
    assert correction.opened == 1


def test_verification_counts_the_groups():
    original = clumps()
    report = wb.compress(original, BOUND, keep=[KEEP]).verify(original)
    assert report["groups_at_0.25"] == len(np.unique(brute_force_labels(original, LENGTH)))


# Someone tampers.

@functools.cache
def made(order: str = "free") -> tuple[wb.Particles, wb.Archive]:
    original = clumps(600)
    return original, wb.compress(original, BOUND, keep=[KEEP], order=order, chunk_values=300, store_permutation=True)


def with_changed_promise(archive, **changes):
    """The archive with another certificate, by someone who knows about checksums."""
    return from_parts(resealed(parts(archive), "zarr.json", functools.partial(_change_promise, changes)))


def _change_promise(changes, root) -> None:
    root["attributes"]["certificate"]["promises"][0]["keep"][0].update(changes)


def with_chunk(archive, key, sections, *, trusted=False):
    """The archive with one chunk rebuilt; `trusted`: with all checksums that are to be had."""
    entries, opened = parts(archive), unpack(archive.store.read(key), key)
    layout = archive.data.layout
    if trusted:
        rest = {tag: data for tag, data in sections.items() if tag != "dcrc"}
        values = decoded_as_is(pack(opened.shape, rest), layout, key)
        sections = {**rest, "dcrc": zlib.crc32(values.data).to_bytes(4, "little")}
    entries[key] = pack(opened.shape, sections)
    if not trusted:
        return from_parts(entries)
    made = [chunks.EncodedChunk(entries[k], bytes(unpack(entries[k], k).sections["dcrc"])) for k in chunk_keys(archive)]
    attributes = chunks.with_checksums(layout, made).attributes
    return from_parts(resealed(entries, "positions/zarr.json", lambda described: described.update(attributes=attributes)))


@pytest.mark.parametrize("order", ORDERS)
def test_another_original_does_not_pass(order):
    with pytest.raises(GuaranteeBroken, match="of positions break the promise"):
        made(order)[1].verify(clumps(600, seed=1))


def test_an_original_within_the_bound_but_with_other_groups_does_not_pass():
    original = clumps(600)
    archive = wb.compress(original, wb.Absolute(0.5), keep=[KEEP])
    positions, labels = archive.decompress().positions.copy(), brute_force_labels(original, LENGTH)
    assert archive.verify(wb.Particles(positions, 10.0, original.velocities, original.ids)).passed
    loner = np.flatnonzero(np.bincount(labels, minlength=600) == 1)[0]
    friend = np.flatnonzero(labels == np.bincount(labels).argmax())[0]
    for particle in (loner, friend):
        for axis in range(3):
            moved = positions.copy()
            moved[particle, axis] = (moved[particle, axis] + np.float32(0.45)) % 10
            other = wb.Particles(moved, 10.0, original.velocities, original.ids)
            if (brute_force_labels(other, LENGTH) == labels).all():
                assert archive.verify(other).passed
                continue
            with pytest.raises(GuaranteeBroken, match="the groups of this original differ from those"):
                archive.verify(other)


def test_a_fingerprint_that_was_changed_is_noticed():
    original, archive = made()
    spoiled = with_changed_promise(archive, partition=["0" * 32])
    for given_original in (None, original):
        with pytest.raises(GuaranteeBroken, match=r"at linking length 0\.25 differ from those in the certificate"):
            spoiled.verify(given_original)
    assert_equal(spoiled.decompress(), archive.decompress())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lengths": [0.3]}, "at linking length 0.3 differ from those"),
        ({"min_members": 20}, "differ from those in the certificate"),
        ({"partition": [None]}, "differ from those"),
        ({"partition": [3]}, "differ from those"),
        ({"lengths": [0.25, 0.3]}, "the certificate cannot be read: it does not say which groups were kept"),
        ({"lengths": []}, "does not say"),
        ({"lengths": "0.25"}, "does not say"),
        ({"lengths": [-0.25]}, "does not say"),
        ({"partition": None}, "does not say"),
        ({"min_members": "many"}, "does not say"),
    ],
)
def test_a_certificate_that_was_made_up_does_not_pass(changes, said):
    original, archive = made()
    spoiled = with_changed_promise(archive, **changes)
    for given_original in (None, original):
        with pytest.raises(WorkbenchError, match=said):
            spoiled.verify(given_original)


@pytest.mark.parametrize(
    "changes",
    [
        {"lengths": ["long"]}, {"lengths": [None]}, {"lengths": [10**400]}, {"lengths": [True]}, {"margin": "wide"},
        {"margin": None}, {"groups": [{}]}, {"kind": 3}, {"min_members": []}, {"min_members": 10**30}, {"min_members": -1},
        {"partition": "x"}, {"edited": [1, 2]}, {"linking_length": [10**400]}, {"linking_length": ["x"]}, {"unit": []},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_whatever_a_certificate_says_it_is_shown_or_refused_in_a_sentence(changes):
    original, archive = made()
    spoiled = with_changed_promise(archive, **changes)
    uses = (
        lambda: str(spoiled.certificate), lambda: spoiled.certificate._repr_html_(), spoiled.verify,
        lambda: json.dumps(spoiled.certificate.to_dict()), lambda: spoiled.verify(original),
    )
    for use in uses:
        with contextlib.suppress(WorkbenchError):
            use()
    assert_equal(spoiled.decompress(), archive.decompress())


def test_linking_lengths_that_are_not_those_of_the_original_are_noticed():
    original, archive = made()
    spoiled = with_changed_promise(archive, linking_length=[0.26])
    assert spoiled.verify().passed
    with pytest.raises(GuaranteeBroken, match=r"the linking lengths are \(0\.26,\).* but \(0\.25,\) in the archive"):
        spoiled.verify(original)


@pytest.mark.parametrize("order", ORDERS)
def test_edits_that_were_taken_out_are_noticed(order):
    original, archive = made(order)
    key = chunks_with(archive, EDIT)[0]
    sections = {tag: data for tag, data in sections_of(archive, key).items() if tag != EDIT}
    bare = with_chunk(archive, key, sections)
    assert [found.where for found in bare.damage()] == [key]
    for use in (bare.verify, bare.decompress):
        with pytest.raises(GuaranteeBroken, match=f"{key}.* decodes it to other values than when it was written"):
            use()
    forged = with_chunk(archive, key, sections, trusted=True)
    assert forged.damage() == []
    for given_original in (None, original):
        with pytest.raises(GuaranteeBroken, match=r"the groups of the decoded particles at linking length .* differ"):
            forged.verify(given_original)


def test_a_forged_fingerprint_does_not_stand_before_the_original():
    original, archive = made("keep")
    key = chunks_with(archive, EDIT)[0]
    sections = {tag: data for tag, data in sections_of(archive, key).items() if tag != EDIT}
    forged = with_chunk(archive, key, sections, trusted=True)
    found = wb.friends_of_friends(forged.decompress(), LENGTH, "length")
    forged = with_changed_promise(forged, partition=[fingerprint(found.labels)])
    assert forged.verify().passed   # nothing contradicts itself
    with pytest.raises(GuaranteeBroken, match="the groups of this original differ from those in the certificate"):
        forged.verify(original)


@pytest.mark.parametrize("order", ORDERS)
def test_chunks_that_changed_places_are_noticed(order):
    archive = made(order)[1]
    entries, (a, b) = parts(archive), chunks_with(archive, EDIT)[:2]
    entries[a], entries[b] = entries[b], entries[a]
    swapped = from_parts(entries)
    assert [found.where for found in swapped.damage()] == [a, b]
    with pytest.raises(GuaranteeBroken, match=f"{a}.* is intact, but not the one that was written here"):
        swapped.verify()


def test_edits_of_another_chunk_are_noticed():
    archive = made()[1]
    a, b = chunks_with(archive, EDIT)[:2]
    mixed = with_chunk(archive, a, {**sections_of(archive, a), EDIT: sections_of(archive, b)[EDIT]})
    assert [found.where for found in mixed.damage()] == [a]


# Damage.

@functools.cache
def with_pins() -> tuple[wb.Particles, wb.Archive]:
    """An archive some of whose particles could only be set right by their original coordinates, or within a finer bound."""
    original = clumps(600, dimensions=2)
    with mock.patch.object(of_particles, "smallest", lambda encode, limit, *_: encode(limit, UNLIMITED)):
        archive = wb.compress(original, wb.Absolute(4 * LENGTH), keep=[KEEP], order="keep", chunk_values=2 * 100)
    assert chunks_with(archive, PIN)
    return original, archive


@pytest.mark.parametrize("tag", [EDIT, PIN])
def test_damage_to_what_keeps_clusters_is_named_and_the_rest_is_salvaged(tmp_path, tag):
    original, archive = with_pins()
    key = chunks_with(archive, tag)[1]
    path = archive.save(tmp_path / "some.zarr")
    data, section = bytearray((path / key).read_bytes()), sections_of(archive, key)[tag]
    data[data.index(section) + len(section) // 2] ^= 16
    spoiled = shutil.copytree(path, tmp_path / "spoiled.zarr")
    (spoiled / key).write_bytes(data)
    found = open_file(spoiled)
    assert [damage.where for damage in found.damage()] == [key]
    assert re.search(tag.strip("_"), str(found.damage()[0]))
    for given_original in (None, original):
        with pytest.raises(GuaranteeBroken, match=f"1 of .* chunks are damaged.*{key}"):
            found.verify(given_original)
    with pytest.raises(Damaged, match=key):
        found.decompress()
    rest, damage = found.salvage()
    assert [lost.where for lost in damage] == [key]
    rows = archive.data.layout.chunk_slices((int(key.split("/")[2]), 0))[0]
    assert_equal(rest, archive.decompress().select(np.r_[0 : rows.start, rows.stop : len(original)]))


@given(st.data())
def test_edits_and_pins_that_were_made_up_are_refused_or_change_nothing_else(data):
    archive = with_pins()[1]
    tag = data.draw(st.sampled_from([EDIT, PIN]))
    key = data.draw(st.sampled_from(chunks_with(archive, tag)))
    sections = sections_of(archive, key)
    spoiled = bytearray(sections[tag])
    for _ in range(data.draw(st.integers(1, 3))):
        kind, at = data.draw(st.sampled_from(["set", "cut", "insert"])), data.draw(st.integers(0, len(spoiled)))
        if kind == "set" and at < len(spoiled):
            spoiled[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del spoiled[at:]
        else:
            spoiled[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    forged = with_chunk(archive, key, {**sections, tag: bytes(spoiled)})
    try:
        positions = forged.decompress().positions
    except WorkbenchError:
        assert [found.where for found in forged.damage()] == [key] or bytes(spoiled) == sections[tag]
        return
    others = np.delete(np.arange(len(positions)), np.arange(len(positions))[archive.data.layout.chunk_slices(
        (int(key.split("/")[2]), 0))[0]])
    assert_same_bits(positions[others], archive.decompress().positions[others])
    same = positions.tobytes() == archive.decompress().positions.tobytes()
    assert same is (forged.damage() == [])


def test_regions_away_from_damaged_edits_can_be_read():
    archive = made()[1]
    key = chunks_with(archive, EDIT)[0]
    sections = sections_of(archive, key)
    entries = parts(archive)
    damaged = bytearray(entries[key])
    damaged[bytes(damaged).index(sections[EDIT])] ^= 1
    spoiled = from_parts({**entries, key: bytes(damaged)})
    extents = archive.arrays["extents"].values()
    number = int(key.split("/")[2])
    whole = archive.decompress()
    far = [i for i in range(len(whole)) if not (extents[:, 0] <= whole.positions[i]).all(axis=1)[number]]
    at = whole.positions[far[0]].astype(float)
    region = [(x, x + 1e-3) for x in at]
    assert_equal(spoiled.read(region), archive.read(region))
    with pytest.raises(Damaged, match=key):
        spoiled.read([(0, 10)] * 3)


# What is refused.

def test_one_promise_about_clusters_is_enough():
    with pytest.raises(WorkbenchError, match=r"keep takes one wb\.KeepClusters, .*; got 2 of them"):
        wb.compress(clumps(), BOUND, keep=[KEEP, wb.KeepClusters(0.3)])


def test_safeguards_are_for_fields_and_clusters_for_particles():
    with pytest.raises(WorkbenchError, match=r"keep of particles takes wb\.KeepClusters\(\.\.\.\); got 'sign'"):
        wb.compress(clumps(), BOUND, keep=["sign"])
    with pytest.raises(WorkbenchError, match=r"keep of a field takes wb\.Safeguard\(\.\.\.\); got KeepClusters"):
        wb.compress(np.zeros((4, 4), np.float32), BOUND, keep=[KEEP])


def test_a_safeguard_is_refused_for_particles():
    pytest.importorskip("compression_safeguards")
    with pytest.raises(WorkbenchError, match=r"keep of particles takes wb\.KeepClusters\(\.\.\.\); got Safeguard"):
        wb.compress(clumps(), BOUND, keep=[wb.Safeguard("sign")])


def test_particles_without_extent_have_no_mean_spacing_to_link_by():
    piled = wb.Particles(np.zeros((5, 3)))
    with pytest.raises(WorkbenchError, match="spacing"):
        wb.compress(piled, BOUND, keep=[wb.KeepClusters(0.2)])
    assert_clusters_kept(wb.compress(piled, BOUND, keep=[KEEP]), piled, KEEP, BOUND)


@pytest.mark.parametrize("order", ORDERS)
def test_one_or_two_particles(order):
    for positions in ([[1, 2, 3]], [[1, 2, 3], [9, 8, 7]], [[1, 2, 3], [1, 2, 3.25]], [[5, 5, 5]] * 50):
        for box in (10.0, None):
            original = wb.Particles(np.array(positions, np.float32), box)
            assert_clusters_kept(wb.compress(original, BOUND, keep=[KEEP], order=order), original, KEEP, BOUND)


def test_a_sweep_measures_archives_that_keep_nothing_but_the_bound():
    original = clumps()
    kept, plain = (wb.compress(original, BOUND, keep=keep) for keep in ([KEEP], []))
    (run,) = wb.sweep(original, ["lattice"], [BOUND]).to_dataframe().to_dict("records")
    assert run["nbytes"] == plain.nbytes < kept.nbytes


# Progress.

def test_progress_tells_of_positions_of_clusters_and_of_what_rides_along():
    told = []
    wb.compress(clumps(), BOUND, keep=[KEEP], chunk_values=600, progress=lambda share, what: told.append((share, what)))
    words = [what for _, what in told]
    assert words[0] == "positions"
    assert words[-1] == "ids"
    assert any(what.startswith("clusters: ") for what in words)
    assert any(re.search(r"[1-9]\d* pairs to repair", what) for what in words)
    during = [share for share, what in told if what not in ("positions", "velocities", "ids")]
    assert during == sorted(during)
    assert all(0 <= share <= 1 for share, _ in told)


def test_a_correction_beyond_the_bound_makes_no_archive(monkeypatch):
    def astray(self):
        self.state.current += np.float32(0.5)

    monkeypatch.setattr(Attempts, "until_kept", astray)
    with pytest.raises(GuaranteeBroken, match="180 coordinates left their bound while keeping clusters: please report"):
        wb.compress(samples.particles(60), wb.Absolute(1e-5), keep=wb.KeepClusters(0.2))


def test_positions_that_the_stored_correction_does_not_give_make_no_archive(monkeypatch):
    real = wb.KeepClusters.attach

    def astray(*given):
        correction = real(*given)
        assert correction.edited
        return dataclasses.replace(correction, positions=correction.positions + np.float32(0.5))

    monkeypatch.setattr(wb.KeepClusters, "attach", astray)
    with pytest.raises(GuaranteeBroken, match="does not decode to the same bits: please report"):
        wb.compress(wb.synthetic.cosmic_web(n=16), wb.Absolute(0.1), keep=wb.KeepClusters(0.2))
