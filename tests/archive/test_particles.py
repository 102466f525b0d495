"""Archives of particles as wholes: whatever the codec, the bound holds and particles stay together."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from archive import samples
from archive.samples import CODECS, assert_equal, assert_kept, assert_same_bits, assert_within, parts, registered, reopened
from combinations import in_pairs
from guarantees.some_codecs import (
    ALWAYS_RAISE,
    MISBEHAVING,
    CannotSayWhere,
    EncodesDifferentlyEachTime,
    ForgetsAPoint,
    LosesPoints,
    ReturnsZeros,
    Rounding,
    SaysTheWrongPlaces,
    Sorting,
)
from workbench import backend
from workbench.archive.members import nbytes_in_zip
from workbench.codecs import Codec
from workbench.codecs.sz3 import SZ3
from workbench.data.readers import open_file
from workbench.data.synthetic import adversarial
from workbench.errors import WorkbenchError

BOUNDS = [wb.Absolute(1e-3), wb.Relative(1e-4), wb.PointwiseRelative(1e-3)]
ORDERS = "keep", "free"
OF_4_CHUNKS = {3: 3 * 128, 2: 2 * 128}   # values in a chunk, for 500 particles
BAD_POINTS = [LosesPoints, SaysTheWrongPlaces]


@pytest.mark.few
@pytest.mark.parametrize(
    ("codec", "order", "dtype", "dimensions"), samples.fourth(CODECS, ORDERS, (np.float32, np.float64), (2, 3))
)
def test_every_codec_keeps_the_bound_and_what_belongs_together(codec, order, dtype, dimensions):
    for box in (10.0, None):
        original = samples.particles(500, dtype, dimensions, box)
        for bound in BOUNDS:
            archive = wb.compress(original, bound, codec, order=order, chunk_values=OF_4_CHUNKS[dimensions])
            assert archive.data.layout.chunk_grid == (4, 1)
            places = assert_kept(archive, original, bound)
            assert (places == np.arange(500)).all() == (order == "keep")
            assert archive.verify(original).passed


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "codec", ["lattice", "draco", "sz3", *(pytest.param(name, marks=pytest.mark.long) for name in ("zfp", "pcodec"))]
)
def test_hard_cases_keep_the_bound(codec):
    if codec not in CODECS:
        pytest.skip(f"{codec} is not installed")
    for dimensions, dtype in ((2, np.float32), (3, np.float32), (3, np.float64)):
        for case, length in adversarial.cases(dimensions, dtype).values():
            if len(case) > 5000:
                case = case.select(np.arange(0, len(case), len(case) // 5000))
            for order in ORDERS:
                bound = wb.Absolute(length / 20)
                assert_kept(wb.compress(case, bound, codec, order=order), case, bound)


@st.composite
def anything(draw: st.DrawFn) -> tuple[wb.Particles, wb.Absolute, dict]:
    """Particles of any size anywhere, a bound that may be far too small or too large, and a way to compress them."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    dimensions, count = draw(st.sampled_from([2, 3])), draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = 2.0 ** draw(st.integers(-140, 120))
    positions = random.choice([random.random((count, dimensions)), random.integers(0, 4, (count, dimensions)) / 4])
    bound = draw(st.sampled_from([wb.Absolute, wb.PointwiseRelative]))
    eb = 2.0 ** draw(st.integers(-60, -1)) * (scale if bound is wb.Absolute else 1)
    box = draw(st.sampled_from([None, scale * 1.5, scale * 1000]))
    signs = random.choice([-1, 1], (count, 1)) if box is None else 1
    how = {
        "codec": draw(st.sampled_from(CODECS)),
        "order": draw(st.sampled_from(ORDERS)),
        "chunk_values": draw(st.sampled_from([None, 1, 30])),
    }
    with np.errstate(under="ignore"):
        given_positions = (signs * positions * scale).astype(dtype)
    return wb.Particles(given_positions, box, ids=np.arange(count)), bound(eb), how


@given(anything())
def test_particles_of_any_scale_keep_any_bound(case):
    original, bound, how = case
    archive = wb.compress(original, bound, **how)
    assert_kept(archive, original, bound)
    archive.verify(original)


@pytest.mark.parametrize(("codec", "order"), in_pairs(CODECS, ORDERS))
def test_one_or_two_particles_or_many_in_one_place(codec, order):
    for positions in ([[1, 2, 3]], [[1, 2, 3], [9, 8, 7]], [[5, 5, 5]] * 200, [[0, 0, 0], [0, 0, 0]]):
        for box in (10.0, None):
            original = wb.Particles(np.array(positions, np.float32), box, ids=np.arange(len(positions)))
            for bound in (wb.Absolute(0.1), wb.Relative(0.01), wb.PointwiseRelative(0.1)):
                assert_kept(wb.compress(original, bound, codec, order=order), original, bound)


@pytest.mark.parametrize(("codec", "order", "eb"), in_pairs(CODECS, ORDERS, [0.0, 1e-30, 5e-324]))
def test_a_bound_below_the_last_digit_brings_back_every_bit(codec, order, eb):
    positions = samples.particles(300).positions.copy()
    positions[0], positions[1] = -0.0, 0.0
    for bound in (wb.Absolute(eb), wb.Relative(eb), wb.PointwiseRelative(eb)):
        for box in (10.0, None):
            original = wb.Particles(positions, box)
            archive = wb.compress(original, bound, codec, order=order)
            decoded = archive.decompress().positions
            expected = positions[archive.permutation(original)]
            if eb == 0:
                assert_same_bits(decoded, expected)
            np.testing.assert_array_equal(decoded, expected)


@pytest.mark.parametrize(("codec", "order", "eb"), in_pairs(CODECS, ORDERS, [7.0, 1e6, 1e30, 1e300]))
def test_a_bound_larger_than_the_box_leaves_particles_inside(codec, order, eb):
    for dtype in (np.float32, np.float64):
        for box in (10.0, None):
            original = samples.particles(100, dtype, 3, box)
            archive = wb.compress(original, wb.Absolute(eb), codec, order=order)
            assert_kept(archive, original, wb.Absolute(eb))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bound", BOUNDS)
def test_velocities_keep_a_bound_of_their_own(order, bound):
    original = samples.particles(400)
    spoiled = original.velocities.copy()
    spoiled[3, 1], spoiled[77] = np.nan, np.inf
    for velocities in (original.velocities, spoiled):
        given_particles = wb.Particles(original.positions, original.box, velocities, original.ids)
        archive = wb.compress(given_particles, wb.Absolute(0.01), order=order, velocities=bound, chunk_values=300)
        assert_kept(archive, given_particles, wb.Absolute(0.01), velocities=bound)
        assert archive.certificate["velocities"].bound == bound
        assert archive.verify(given_particles).passed


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
def test_velocities_of_their_own_type_are_exact(dtype):
    original = samples.particles(100)
    fast = wb.Particles(original.positions, original.box, original.velocities.astype(dtype))
    assert_kept(wb.compress(fast, wb.Absolute(0.01), order="free"), fast, wb.Absolute(0.01))


@pytest.mark.parametrize("dtype", "i1 i2 i4 i8 u1 u2 u4 u8 >u4".split())
def test_ids_of_every_type_follow_their_particles(dtype):
    positions = samples.particles(120).positions
    ids = np.random.default_rng(0).permutation(120).astype(dtype)
    ids[5] = np.iinfo(dtype).max
    original = wb.Particles(positions, 10.0, ids=ids)
    assert_kept(wb.compress(original, wb.Absolute(0.01), order="free", chunk_values=99), original, wb.Absolute(0.01))


@pytest.mark.parametrize(("codec", "order"), in_pairs(CODECS, ORDERS))
def test_a_stored_permutation_is_the_recomputed_one(codec, order, tmp_path):
    original = samples.particles(500)
    how = {"codec": codec, "order": order, "chunk_values": 384}
    archive = wb.compress(original, wb.Absolute(0.01), **how, store_permutation=True)
    stored = reopened(archive, tmp_path / "some.zarr").permutation()
    np.testing.assert_array_equal(stored, wb.compress(original, wb.Absolute(0.01), **how).permutation(original))
    assert_same_bits(archive.decompress().ids, original.ids[stored])
    assert archive.verify(original).passed


def test_without_the_original_only_a_stored_or_kept_order_is_known():
    original = samples.particles()
    with pytest.raises(WorkbenchError, match="pass the original"):
        wb.compress(original, wb.Absolute(0.01), order="free").permutation()
    np.testing.assert_array_equal(wb.compress(original, wb.Absolute(0.01)).permutation(), np.arange(500))
    with pytest.raises(WorkbenchError, match="the original must be 500 particles in a box of 10 x 10 x 10"):
        wb.compress(original, wb.Absolute(0.01), order="free").permutation(samples.particles(499))


@pytest.mark.parametrize(("codec", "order"), in_pairs(CODECS, ORDERS))
def test_the_same_particles_make_the_same_archive_whatever_the_threads(codec, order):
    original, velocities, made = samples.particles(800), wb.Relative(0.01), []
    for threads in (1, 2, 3):
        with backend.using_threads(threads):
            archive = wb.compress(
                original, wb.Absolute(0.01), codec, order=order, chunk_values=384, velocities=velocities
            )
            made.append((parts(archive), archive.permutation(original).tobytes()))
            archive.verify(original)
    assert made[0] == made[1] == made[2]


def test_any_number_of_threads_may_read_at_once(tmp_path):
    original = samples.particles(2000)
    archives = [wb.compress(original, wb.Absolute(0.01), codec, chunk_values=384) for codec in ("lattice", "sz3", "pcodec")]
    archives += [reopened(archives[0], tmp_path / "some.zarr"), reopened(archives[1], tmp_path / "some.zip")]
    alone = [archive.decompress() for archive in archives]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda archive: archive.decompress(), archives * 4))
    for expected, found in zip(alone * 4, together, strict=True):
        assert_equal(expected, found)


@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
@pytest.mark.parametrize("order", ORDERS)
def test_what_is_opened_again_is_what_was_saved(tmp_path, suffix, order):
    random = np.random.default_rng(0)
    metadata = {"redshift": np.float32(0.5), "history": ["a", {"b": None}], "strange": 1j, "nan": np.nan, 3: np.arange(3)}
    original = samples.particles(300, np.float64, 2, 7.5)
    original = wb.Particles(original.positions, (7.5, 8), random.normal(size=(300, 2)), original.ids, metadata)
    archive = wb.compress(original, wb.Absolute(0.01), order=order, chunk_values=256)
    again = reopened(archive, tmp_path / f"some{suffix}")
    assert_equal(again.decompress(), archive.decompress())
    assert again.decompress().metadata == {
        "redshift": 0.5, "history": ["a", {"b": None}], "strange": "1j", "nan": "nan", "3": [0, 1, 2]
    }
    for name in "kind box reordered nbytes ratio bits_per_value bits_per_particle certificate codec".split():
        assert getattr(again, name) == getattr(archive, name)
    assert (repr(again), again._repr_html_(), len(again)) == (repr(archive), archive._repr_html_(), 300)
    assert parts(again) == parts(archive)
    assert_same_bits(again.permutation(original), archive.permutation(original))
    assert again.save(tmp_path / "copy.zarr").is_dir()
    assert_equal(open_file(tmp_path / "copy.zarr").decompress(), archive.decompress())


def test_the_size_says_what_it_counts():
    original = samples.particles(3000)
    archive = wb.compress(original, wb.Absolute(0.01), order="free")
    assert archive.nbytes == nbytes_in_zip(parts(archive))
    assert archive.original_nbytes == original.positions.nbytes + original.velocities.nbytes + original.ids.nbytes
    assert archive.ratio == archive.original_nbytes / archive.nbytes
    assert archive.bits_per_value == 8 * archive.nbytes / (7 * 3000)
    assert archive.bits_per_particle == 8 * sum(len(v) for k, v in parts(archive).items() if "positions/c" in k) / 3000


def test_progress_tells_the_share_of_each_array():
    told = []
    wb.compress(
        samples.particles(500), wb.Absolute(0.01), chunk_values=384, progress=lambda share, what: told.append((what, share))
    )
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    assert told == [(name, share) for name in ("positions", "velocities", "ids") for share in shares][1:]


def test_real_galaxies_keep_the_bound(shared_data):
    galaxies = open_file(shared_data / "corrfunc_mr19" / "gals_Mr19.ff", box=420.0)
    chosen = galaxies.select(np.arange(0, len(galaxies), 10))
    for order, codec in (("keep", "sz3"), ("free", "lattice")):
        archive = wb.compress(chosen, wb.Absolute(0.05), codec, order=order)
        assert_kept(archive, chosen, wb.Absolute(0.05))
        assert archive.ratio > 2


# Codecs that do what they like.

@pytest.mark.parametrize(("bad", "order"), in_pairs([bad for bad in MISBEHAVING if bad not in ALWAYS_RAISE], ORDERS))
def test_whatever_a_codec_does_the_bound_holds(bad, order, tmp_path):
    original = samples.particles(200)
    with registered(bad), warnings.catch_warnings():
        for bound in BOUNDS:
            archive = wb.compress(original, bound, bad(), order=order, chunk_values=150)
            assert_kept(archive, original, bound)
            archive.verify(original)
        again = reopened(archive, tmp_path / "some.zarr")
        assert_kept(again, original, bound)


@pytest.mark.parametrize("codec", [Sorting, *BAD_POINTS])
def test_whatever_a_codec_says_about_where_points_went_the_bound_holds(codec):
    original = samples.particles(200)
    with registered(codec):
        archive = wb.compress(original, wb.Absolute(0.01), codec(), order="free", chunk_values=150)
        assert_kept(archive, original, wb.Absolute(0.01))
        archive.verify(original)


@pytest.mark.parametrize(("codec", "what"), [(ForgetsAPoint, "decode"), (CannotSayWhere, "give the order of the points")])
def test_a_codec_that_raises_for_any_points_is_an_error(codec, what):
    with registered(codec), pytest.raises(WorkbenchError, match=f"sorting could not {what}.*all 2 chunks of positions"):
        wb.compress(samples.particles(200), wb.Absolute(0.01), codec(), order="free", chunk_values=300)


def test_a_codec_that_moves_points_is_refused_when_the_order_must_stay():
    with registered(Sorting), pytest.raises(WorkbenchError, match="sorting returns particles in another order"):
        wb.compress(samples.particles(20), wb.Absolute(0.01), Sorting())


@dataclass(frozen=True)
class Impostor(SZ3):
    """Has the name of another codec."""


@dataclass(frozen=True)
class Forgetful(Rounding):
    """Does not say all that it must know to decode."""

    id: ClassVar[str] = "forgetful"
    step: float = 1.0

    def to_dict(self):
        return {"id": self.id}


@dataclass(frozen=True)
class Unspeakable(Rounding):
    """Is configured by what JSON cannot hold."""

    id: ClassVar[str] = "unspeakable"
    what: object = field(default_factory=object)


@pytest.mark.parametrize(
    ("codec", "said"),
    [
        (Rounding(), "codec must be one of .* got 'rounding'"),
        (Impostor(), "cannot be rebuilt from its description, which gives SZ3"),
        (Forgetful(2.0), r"cannot be rebuilt from its description, which gives Forgetful\(step=1.0\)"),
        (Unspeakable(), "must be plain values that JSON can hold"),
    ],
    ids=["unknown", "impostor", "forgetful", "unspeakable"],
)
@pytest.mark.parametrize("data", [samples.particles(20), samples.field((20,))], ids=["particles", "field"])
def test_an_archive_that_nobody_could_decode_is_not_made(codec, said, data):
    with registered(Forgetful, Unspeakable), pytest.raises(WorkbenchError, match=said):
        wb.compress(data, wb.Absolute(0.01), codec)


def test_a_codec_of_another_package_is_missed_by_name(tmp_path):
    with registered(ReturnsZeros):
        path = wb.compress(samples.particles(20), wb.Absolute(0.01), ReturnsZeros()).save(tmp_path / "some.zarr")
    with pytest.raises(WorkbenchError, match=r"positions cannot be decoded here: codec must be .*; got 'misbehaving'"):
        open_file(path)


def test_a_codec_whose_library_is_missing_is_named(monkeypatch):
    archive = wb.compress(samples.particles(20), wb.Absolute(0.01), "sz3")
    monkeypatch.setattr(SZ3, "missing", classmethod(lambda cls: "sz3 needs pysz, which is not installed"))
    with pytest.raises(WorkbenchError, match="sz3 needs pysz"):
        archive.decompress()


@dataclass(frozen=True)
class Fickle(Rounding):
    """Decodes to what it should once, and to something else ever after."""

    id: ClassVar[str] = "fickle"
    calls: ClassVar[list[int]] = []

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        self.calls.append(len(self.calls))
        return super()._decode(data, shape, dtype) + dtype.type(self.calls[-1] // 3)   # once for each coordinate


def test_a_codec_that_decodes_differently_later_is_found_out():
    with registered(Fickle):
        archive = wb.compress(samples.particles(200), wb.Absolute(0.1), Fickle())
        for use in (archive.verify, archive.decompress):
            with pytest.raises(wb.GuaranteeBroken, match=r"positions/c/0/0.* fickle decodes it to other values than when"):
                use()


def test_a_codec_whose_bytes_differ_from_time_to_time_is_still_right():
    with registered(EncodesDifferentlyEachTime):
        archive = wb.compress(samples.particles(60), wb.Absolute(0.01), EncodesDifferentlyEachTime(), chunk_values=60)
        assert archive.verify(samples.particles(60)).passed


# What is refused.

@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bound": 0.01}, "bound must be wb.Absolute"),
        ({"order": "any"}, "order must be 'keep' or 'free'; got 'any'"),
        ({"chunk_values": 0}, "chunk_values must be a whole number, at least 1; got 0"),
        ({"codec": "sz33"}, "codec must be one of"),
        ({"keep": [1]}, r"keep of particles takes wb\.KeepClusters\(\.\.\.\); got 1"),
    ],
)
def test_options_that_cannot_be_are_refused(change, said):
    how = {"bound": wb.Absolute(0.1), **change}
    with pytest.raises(WorkbenchError, match=said):
        wb.compress(samples.particles(10), **how)


def test_velocities_that_are_not_there_cannot_have_a_bound():
    bare = wb.Particles(samples.particles(10).positions)
    with pytest.raises(WorkbenchError, match="these have none"):
        wb.compress(bare, wb.Absolute(0.1), velocities=wb.Absolute(1))


@pytest.mark.parametrize("dtype", ["f2", "i4", "c8", "?"])
def test_velocities_of_strange_types_are_refused(dtype):
    original = samples.particles(10)
    strange = wb.Particles(original.positions, original.box, original.velocities.astype(dtype))
    with pytest.raises(WorkbenchError, match="velocities must be float32 or float64"):
        wb.compress(strange, wb.Absolute(0.1))


def test_codecs_are_values_too():
    original = samples.particles(100)
    by_name = wb.compress(original, wb.Absolute(0.1), "sz3")
    by_value: Codec = wb.codecs.get("sz3")
    assert parts(wb.compress(original, wb.Absolute(0.1), by_value)) == parts(by_name)
    assert_within(original.positions, by_name.decompress().positions, wb.Absolute(0.1), original.box)
