from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench import backend
from workbench.codecs import CodecFailed, Tolerance, from_dict, get
from workbench.codecs.lattice import CODERS, LatticeCodec
from workbench.codecs.lattice_stream import COUNTS, Stream, Stretches
from workbench.codecs.packing import PackedIntegers
from workbench.errors import WorkbenchError

BOTH_ORDERS = pytest.mark.parametrize("order", ["free", "keep"])
EVERY_CODER = pytest.mark.parametrize("coder", list(CODERS))
EVERY_PAIR = pytest.mark.parametrize(
    ("order", "coder"), [*((order, coder) for order in ("free", "keep") for coder in CODERS), ("free", COUNTS)]
)


def clustered(count: int = 20_000, dimensions: int = 3, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = random.random((50, dimensions))
    offsets = random.normal(size=(count, dimensions)) * random.exponential(0.02, (count, 1))
    return (centres[random.integers(0, 50, count)] + offsets).astype(dtype)


def round_trip(codec: LatticeCodec, positions: np.ndarray, tolerance: float) -> tuple[bytes, np.ndarray, np.ndarray]:
    aim = Tolerance(absolute=tolerance)
    data = codec.encode(positions, aim)
    order = codec.permutation(positions, data)
    return data, codec.decode(data, positions.shape, positions.dtype), positions if order is None else positions[order]


def places_of(stretches: Stretches) -> np.ndarray:
    return np.concatenate([np.arange(a, a + n) for a, n in zip(stretches.starts, stretches.sizes, strict=True)])


@EVERY_PAIR
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tolerance", [0.1, 1e-3, 1e-5])
def test_positions_come_back_within_the_tolerance(order, coder, dimensions, dtype, tolerance):
    positions = clustered(3001, dimensions, dtype)
    _, decoded, expected = round_trip(LatticeCodec(order=order, coder=coder), positions, tolerance)
    assert np.abs(decoded.astype(float) - expected).max() <= tolerance


@pytest.mark.parametrize("coder", [*CODERS, COUNTS])
def test_lattices_too_fine_for_keys_come_back_in_free_order(coder):
    positions = clustered(3000, 3, np.float64)
    codec = LatticeCodec(order="free", coder=coder, block=256)
    data, decoded, expected = round_trip(codec, positions, 1e-10)
    assert np.abs(decoded - expected).max() <= 1e-10
    assert np.abs(decoded - expected).max() > 1e-12   # it does use the room it has
    found = Stream.of(data, positions.shape).stretches([((0.2, 0.2, 0.2), (0.4, 0.4, 0.4))])
    places = places_of(found)
    assert 0 < len(places) < len(positions)
    assert np.array_equal(found.lattice.positions(found.keys, found.low, np.float64), decoded[places])


@BOTH_ORDERS
def test_duplicates_and_a_single_particle_come_back(order):
    codec = LatticeCodec(order=order)
    for positions in (np.full((1000, 3), 0.25, np.float32), np.array([[1.0, 2.0, 3.0]], np.float32)):
        _, decoded, expected = round_trip(codec, positions, 1e-3)
        assert np.abs(decoded - expected).max() <= 1e-3


def test_sorted_positions_stay_in_place_and_others_are_sorted_stably():
    positions = clustered()
    codec, aim = LatticeCodec(), Tolerance(absolute=1e-3)
    order = codec.permutation(positions, codec.encode(positions, aim))
    keys = codec.lattice(positions, aim).keys(positions)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    ordered = positions[order]
    assert codec.permutation(ordered, codec.encode(ordered, aim)) is None


def test_the_house_coder_beats_pcodec_and_free_order_saves_what_order_costs():
    positions = clustered(200_000)
    aim = Tolerance(absolute=1e-3)
    sizes = {
        (order, coder): len(LatticeCodec(order=order, coder=coder).encode(positions, aim)) * 8 / 200_000
        for order in ("free", "keep")
        for coder in CODERS
    }
    counts = len(LatticeCodec(coder=COUNTS).encode(positions, aim)) * 8 / 200_000
    assert 1.02 * counts < sizes["free", "context"] < sizes["free", "pcodec"] < sizes["free", "packed"]
    assert sizes["keep", "context"] - sizes["free", "context"] > 0.9 * (np.log2(200_000) - 1.44)


@pytest.mark.parametrize("coder", ["auto", COUNTS])
def test_a_region_is_decoded_from_its_blocks_alone(coder):
    positions = clustered(50_000)
    codec = LatticeCodec(block=512, coder=coder)
    data, decoded, _ = round_trip(codec, positions, 1e-3)
    lower, upper = (0.3, 0.3, 0.3), (0.5, 0.5, 0.5)
    found = Stream.of(data, positions.shape).stretches([(lower, upper)])
    places = places_of(found)
    assert np.array_equal(found.lattice.positions(found.keys, found.low, positions.dtype), decoded[places])
    assert len(places) < 0.5 * len(positions)
    inside = np.flatnonzero(((decoded >= lower) & (decoded < upper)).all(axis=1))
    assert np.isin(inside, places).all()


@EVERY_PAIR
def test_the_bytes_do_not_depend_on_the_number_of_threads(order, coder):
    positions, codec, aim = clustered(10_000), LatticeCodec(order=order, coder=coder), Tolerance(absolute=1e-3)
    with backend.using_threads(1):
        alone = codec.encode(positions, aim)
    with backend.using_threads(3):
        assert codec.encode(positions, aim) == alone


def test_one_lattice_serves_all_parts_of_a_set():
    positions = clustered(5000)
    aim = Tolerance(absolute=1e-3)
    codec = LatticeCodec().prepared(wb.Particles.wrapped(positions, 2.0))
    assert codec.lattice(positions[:10], aim) == codec.lattice(positions[-10:], aim)
    assert from_dict(codec.to_dict()) == codec


@BOTH_ORDERS
def test_a_tolerance_below_the_spacing_of_the_numbers_is_refused(order):
    with pytest.raises(CodecFailed, match="well above the spacing"):
        LatticeCodec(order=order).encode(clustered(100), Tolerance(absolute=1e-9))
    with pytest.raises(CodecFailed, match="well above the spacing"):
        LatticeCodec(order=order).encode(clustered(100), Tolerance(absolute=0.0))


def test_what_is_not_positions_is_refused():
    with pytest.raises(WorkbenchError, match=r"positions of shape \(N, 2\) or \(N, 3\)"):
        LatticeCodec().encode(np.zeros((10, 4)), Tolerance(absolute=0.1))
    with pytest.raises(WorkbenchError, match="finite values only"):
        LatticeCodec().encode(np.full((10, 3), np.nan), Tolerance(absolute=0.1))
    with pytest.raises(WorkbenchError, match="order must be one of 'free', 'keep'"):
        get("lattice", order="sorted")


@EVERY_PAIR
def test_damaged_streams_are_refused(order, coder):
    positions = clustered(2000)
    codec = LatticeCodec(order=order, coder=coder, block=256)
    data = codec.encode(positions, Tolerance(absolute=1e-3))
    random = np.random.default_rng(1)
    for place in random.integers(0, len(data), 200):
        damaged = bytearray(data)
        damaged[place] ^= 1 << random.integers(8)
        with pytest.raises(WorkbenchError):
            codec.decode(bytes(damaged), positions.shape, positions.dtype)
    for size in range(0, len(data), 53):
        with pytest.raises(WorkbenchError):
            codec.decode(data[:size], positions.shape, positions.dtype)


@EVERY_CODER
@pytest.mark.parametrize("components", [1, 2])
def test_a_stream_whose_numbers_have_too_few_components_is_refused(coder, components):
    """In kept order the kernel writes three coordinates a particle: with fewer it would write behind the array."""
    positions = clustered(3000)
    stream = Stream.of(LatticeCodec(order="keep", coder=coder).encode(positions, Tolerance(absolute=1e-3)), positions.shape)
    numbers = np.ascontiguousarray(stream.coded.decode()[:, :components])
    short = CODERS[coder].of(numbers.reshape(-1) if components == 1 else numbers, stream.block, signs=True)
    forged = replace(stream, coded=short).to_bytes()
    with pytest.raises(CodecFailed, match=r"must be 3,000 items of 3 in blocks of 1,024; their header says 3,000"):
        Stream.of(forged, positions.shape)
    with pytest.raises(TypeError, match="steps must have 9000 elements"):   # the kernel's own declaration
        stream.lattice.walk(numbers, stream.first, 3000, stream.block, positions.dtype)


@EVERY_CODER
def test_gaps_with_several_components_are_refused(coder):
    positions = clustered(3000)
    stream = Stream.of(LatticeCodec(coder=coder).encode(positions, Tolerance(absolute=1e-3)), positions.shape)
    wide = CODERS[coder].of(np.zeros((3000, 3), np.uint64), stream.block)
    with pytest.raises(CodecFailed, match="must be 3,000 items of 1"):
        Stream.of(replace(stream, coded=wide).to_bytes(), positions.shape)


@pytest.mark.parametrize("layout", [(9000, 1024, 1), (3000, 1024, 3), (9000, 64, 1)])
def test_low_bits_of_another_layout_are_refused(layout):
    positions = clustered(3000, 3, np.float64)
    stream = Stream.of(LatticeCodec().encode(positions, Tolerance(absolute=1e-10)), positions.shape)
    count, block, components = layout
    numbers = np.zeros(count if components == 1 else (count, components), np.uint64)
    forged = replace(stream, low=PackedIntegers.of(numbers, block)).to_bytes()
    if layout == (9000, 1024, 1):
        assert Stream.of(forged, positions.shape).low.count == 9000
        return
    with pytest.raises(CodecFailed, match="must be 9,000 items of 1 in blocks of 1,024"):
        Stream.of(forged, positions.shape)


def test_a_stream_in_its_own_order_has_no_stretches():
    positions = clustered(3000)
    stream = Stream.of(LatticeCodec(order="keep").encode(positions, Tolerance(absolute=1e-3)), positions.shape)
    with pytest.raises(CodecFailed, match="cannot be read by region"):
        stream.stretches([((0.2, 0.2, 0.2), (0.4, 0.4, 0.4))])


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 200),
    dimensions=st.integers(2, 3),
    dtype=st.sampled_from([np.float32, np.float64]),
    scale=st.floats(-30, 30),
    fineness=st.floats(-5, 0.3),
    order=st.sampled_from(["free", "keep"]),
    offset=st.sampled_from([0.0, 1.0, -3.0]),
)
def test_any_positions_keep_the_tolerance_or_are_refused(seed, count, dimensions, dtype, scale, fineness, order, offset):
    random = np.random.default_rng(seed)
    positions = ((random.random((count, dimensions)) + offset) * 10.0**scale).astype(dtype)
    tolerance = 10.0 ** (scale + fineness)
    try:
        _, decoded, expected = round_trip(LatticeCodec(order=order, block=64), positions, tolerance)
    except CodecFailed:
        assert tolerance < 4 * np.spacing(np.abs(positions).max())
        return
    assert np.abs(decoded.astype(np.longdouble) - expected).max() <= tolerance


@BOTH_ORDERS
def test_real_halos_are_smaller_than_with_sz3(order, shared_data):
    galaxies = wb.open(shared_data / "corrfunc_mr19" / "gals_Mr19.ff")
    aim = Tolerance(absolute=0.01)
    ours = replace(LatticeCodec(order=order), box=galaxies.box)
    theirs = len(get("columns", codec={"id": "sz3"}).encode(galaxies.positions, aim))
    assert len(ours.encode(galaxies.positions, aim)) < 0.95 * theirs
