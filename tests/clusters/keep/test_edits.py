"""Moves as bytes: what went in comes out, the decoder foresees what the encoder did, and damage is named or harmless."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from clusters.keep.scenarios import decoded_with, originals
from workbench.clusters.keep.edits import COMMON, CONTEXTS, Edits, Surmise, apply_edits
from workbench.clusters.keep.moves import alphabet

KINDS = pytest.mark.parametrize(
    ("dimensions", "dtype"), [(2, np.float32), (3, np.float32), (2, np.float64), (3, np.float64)]
)
LENGTHS = (0.1, 0.15)


def positions_of(dimensions: int, dtype: type, count: int = 500) -> np.ndarray:
    """In the order of a curve, more or less, so that some have someone beside them."""
    walk = np.random.default_rng(dimensions).normal(size=(count, dimensions)).cumsum(axis=0) * 0.03
    return wb.Particles.wrapped(walk.astype(dtype), 1.0).positions.copy()


def edits_of(index: np.ndarray, rank: np.ndarray, dimensions: int, step: float = 1e-3, boxed: bool = True) -> Edits:
    box = (1.0,) * dimensions if boxed else None
    return Edits(np.asarray(index, np.int32), np.asarray(rank, np.uint16), step, LENGTHS, box)


def require_round_trip(edits: Edits, decoded: np.ndarray) -> bytes:
    data = edits.to_bytes(decoded)
    found, surmise = Edits.from_bytes(data, decoded)
    assert found.index.tolist() == edits.index.tolist()
    assert found.rank.tolist() == edits.rank.tolist()
    assert (found.step, found.lengths, found.box) == (edits.step, edits.lengths, edits.box)
    np.testing.assert_array_equal(surmise.context, edits.surmise(decoded).context)
    return data


@KINDS
@given(st.floats(0, 1), st.integers(0, 2**32), st.sampled_from([1, COMMON, COMMON + 1, 300, 2**16]), st.booleans())
@settings(max_examples=60)
def test_any_moves_come_back(dimensions, dtype, share, seed, most, boxed) -> None:
    random = np.random.default_rng(seed)
    decoded = positions_of(dimensions, dtype)
    index = np.flatnonzero(random.random(len(decoded)) < share)
    if not len(index):
        return
    rank = random.integers(1, min(most, len(alphabet(dimensions).moves) - 1), len(index), endpoint=True)
    require_round_trip(edits_of(index, rank, dimensions, float(random.uniform(1e-9, 1)), boxed), decoded)


@KINDS
def test_extreme_ranks_and_places_come_back(dimensions, dtype) -> None:
    decoded, last = positions_of(dimensions, dtype), len(alphabet(dimensions).moves) - 1
    ranks = [1, COMMON - 1, COMMON, COMMON + 1, COMMON + 2, COMMON + 3, COMMON + 2**9, COMMON + 2**9 - 1, last - 1, last]
    for rank in ranks:
        for index in ([0], [len(decoded) - 1], np.arange(len(decoded))):
            require_round_trip(edits_of(np.array(index), np.full(len(index), rank), dimensions), decoded)
    require_round_trip(edits_of(np.arange(len(ranks)), np.array(ranks), dimensions), decoded)


def test_a_single_particle_can_move() -> None:
    decoded = np.array([[0.5, 0.5]])
    data = require_round_trip(edits_of(np.array([0]), np.array([1]), 2, boxed=False), decoded)
    assert apply_edits(decoded, data).tolist() == [[0.5 + 8e-3, 0.5]]


def test_no_moves_are_no_bytes_and_no_copy() -> None:
    decoded = positions_of(2, np.float32)
    assert edits_of(np.empty(0), np.empty(0), 2).to_bytes(decoded) == b""
    assert apply_edits(decoded, b"") is decoded


@KINDS
def test_moves_are_whole_steps_in_the_box_and_the_input_stays(dimensions, dtype) -> None:
    decoded, step = positions_of(dimensions, dtype), 1 / 64
    decoded.flags.writeable = False
    index = np.arange(0, len(decoded), 2)
    rank = np.random.default_rng(1).integers(1, len(alphabet(dimensions).moves), len(index))
    moved = apply_edits(decoded, edits_of(index, rank, dimensions, step).to_bytes(decoded))
    assert moved.dtype == dtype
    np.testing.assert_array_equal(moved[1::2], decoded[1::2])
    assert bool(((moved >= 0) & (moved < 1)).all())
    steps = (moved[::2].astype(np.float64) - decoded[::2]) / step
    steps -= 64 * np.round(steps / 64)
    length = np.sort(np.abs(alphabet(dimensions).moves[rank]), axis=1)
    np.testing.assert_allclose(np.sort(np.abs(steps), axis=1), length, atol=1e-4)   # named from its own frame: turned


def test_common_moves_of_likely_particles_take_few_bits() -> None:
    """One in fifty moves where that was to be expected: naming each would take 5.6 bits, and its move more."""
    original, length = wb.synthetic.cosmic_web(n=32, seed=1), 0.2
    spacing = original.spacing
    noise = np.random.default_rng(0).uniform(-1, 1, original.positions.shape)
    correction = wb.clusters.correct(original, decoded_with(original, noise, 0.02 * spacing), 0.02 * spacing, length)
    assert correction.edited > 500
    assert 8 * correction.nbytes < 14 * correction.edited


@given(originals(), st.integers(1, 30), st.floats(1e-4, 0.5))
@settings(max_examples=150)
def test_what_is_foreseen_of_chunks_is_foreseen_of_the_whole(case, chunk, share) -> None:
    particles, length = case
    lengths, bound = (length, 1.5 * length), share * length
    whole = Surmise.of(particles.positions, bound, lengths, particles.box, chunk)
    for begin in range(0, len(particles), chunk):
        rows = slice(begin, begin + chunk)
        alone = Surmise.of(particles.positions[rows], bound, lengths, particles.box)
        np.testing.assert_array_equal(alone.context, whole.part(rows).context)
        np.testing.assert_array_equal(alone.forward, whole.part(rows).forward)
    assert int(whole.context.max()) < CONTEXTS
    assert int(whole.forward.max()) <= 2 * particles.dimensions


def test_a_partner_about_a_linking_length_away_says_where_to_go() -> None:
    """Forward: nearer to one that is too far, farther from one that is too near; along the axis that matters most."""
    def forward(*places: list[float]) -> list[int]:
        return Surmise.of(np.array(places), 0.01, (0.1,), None).forward.tolist()

    assert forward([0.0, 0.0], [0.101, 0.02]) == [1, 2]
    assert forward([0.0, 0.0], [0.099, 0.0]) == [2, 1]
    assert forward([0.0, 0.0], [0.01, -0.101]) == [4, 3]
    assert forward([0.0, 0.0], [0.3, 0.0]) == [0, 0]


def some_bytes() -> tuple[np.ndarray, bytes]:
    decoded = positions_of(3, np.float32, 300)
    random = np.random.default_rng(0)
    index = np.flatnonzero(random.random(300) < 0.2)
    return decoded, edits_of(index, random.integers(1, 400, len(index)), 3).to_bytes(decoded)


def require_error_or_positions(decoded: np.ndarray, data: bytes) -> bool:
    """Whether the damage was seen; if not, what comes out must be positions all the same."""
    try:
        moved = apply_edits(decoded, data)
    except wb.WorkbenchError:
        return True
    assert (moved.shape, moved.dtype) == (decoded.shape, decoded.dtype)
    return False


def test_bytes_that_are_cut_anywhere_are_refused() -> None:
    decoded, data = some_bytes()
    for end in range(1, len(data)):
        assert require_error_or_positions(decoded, data[:end])
    assert require_error_or_positions(decoded, data + b"\0")


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_damaged_bytes_never_crash_nor_take_much_memory(flip: int) -> None:
    decoded, data = some_bytes()
    tracemalloc.start()
    seen = 0
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= flip
        seen += require_error_or_positions(decoded, bytes(damaged))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
    assert seen > 20   # what is left to chance is the checksum's to find


@given(st.binary(max_size=400))
@settings(max_examples=300)
def test_noise_never_crashes(noise: bytes) -> None:
    decoded, data = some_bytes()
    for damaged in (noise, data[:16] + noise, data[:56] + noise, data[:80] + noise):
        if damaged:
            require_error_or_positions(decoded, damaged)


@pytest.mark.parametrize("step", [0.0, -1.0, np.nan, np.inf])
def test_impossible_steps_are_refused(step: float) -> None:
    decoded = positions_of(2, np.float32)
    data = edits_of(np.array([3]), np.array([1]), 2).to_bytes(decoded)
    damaged = data[:4] + np.array([step]).tobytes() + data[12:]
    with pytest.raises(wb.WorkbenchError, match="invalid step"):
        apply_edits(decoded, damaged)


def test_edits_of_other_dimensions_and_versions_are_refused() -> None:
    decoded, data = some_bytes()
    for place, value in ((0, b"\x02"), (1, b"\x02"), (2, b"\x00"), (2, b"\xff"), (3, b"\x02")):
        damaged = data[:place] + value + data[place + 1 :]
        with pytest.raises(wb.WorkbenchError, match="damaged"):
            apply_edits(decoded, damaged)
    with pytest.raises(wb.WorkbenchError, match="number of dimensions"):
        apply_edits(decoded[:, :2], data)


def test_a_particle_alone_has_no_partner_however_long_a_step_is() -> None:
    # The rows behind the chunk are in memory, and must not be read.
    rows = np.array([[0.5, 0.5], [0.6, 0.5], [0.5, 0.9]])
    for step in (1e-3, 1e290, 1e299):
        surmise = Surmise.of(rows[:1], 8 * step, LENGTHS, None)
        assert surmise.forward.tolist() == [0], step
    data = edits_of(np.array([0]), np.array([1]), 2, boxed=False).to_bytes(rows[:1])
    for step in (1e300, 1.7e308):
        with pytest.raises(wb.WorkbenchError, match="invalid step"):
            apply_edits(rows[:1], data[:4] + np.array([step]).tobytes() + data[12:])


@pytest.mark.parametrize("columns", [1, 4, 5])
def test_edits_beside_columns_that_are_no_positions_are_refused(columns: int) -> None:
    values = np.zeros((20, columns))
    data = edits_of(np.array([3]), np.array([1]), 2, boxed=False).to_bytes(np.zeros((20, 2)))
    with pytest.raises(wb.WorkbenchError, match=r"rows of 2 or 3 coordinates; this chunk has the shape \(20, "):
        apply_edits(values, data[:1] + bytes([columns]) + data[2:])
    with pytest.raises(wb.WorkbenchError, match="rows of 2 or 3 coordinates"):
        apply_edits(np.zeros(20), data)
