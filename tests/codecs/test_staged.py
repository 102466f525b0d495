"""The codec of blocks with exact statistics: against a slow decoder, exact arithmetic, and damaged bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fake_cupy
import workbench as wb
from combinations import in_pairs
from slow_staged import Reader
from workbench import backend
from workbench.codecs import CodecFailed, Tolerance, get
from workbench.codecs.crc import crc32_of_blocks
from workbench.codecs.staged import Staged
from workbench.codecs.staged_blocks import VALUES, CodedBlocks, Fact, Grid, Lattice, encode_blocks
from workbench.codecs.staged_groups import Groups
from workbench.codecs.staged_statistics import (
    Totals,
    exact_sum,
    first_wrong,
    means,
    totals,
)
from workbench.codecs.staged_stream import Stream
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.guarantees.enforce import encode_guarded

GOLDEN = Path(__file__).parent / "golden" / "staged.npz"
SMALL, LARGE = (8, 8, 8), (16, 16, 16)   # sides of blocks; other shapes of as many numbers where these do not fit
both_sizes = pytest.mark.parametrize("sides", [SMALL, LARGE], ids=["512", "4096"])
SHAPES = [
    (1,), (511,), (512,), (513,), (1031,), (13, 17), (16, 32), (33, 31), (700, 2), (2, 700), (7, 11, 13), (8, 8, 8),
    (9, 9, 9), (1, 5, 1), (3, 2, 3, 2), (3, 9, 10, 11), (40, 2, 3, 2), (1, 1, 1, 600), (2, 1, 40, 3),
]


def smooth(shape: tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
    values = np.sin(sum((a + 1) * each for a, each in enumerate(np.indices(shape))) / 9.0)
    return np.ascontiguousarray((values + 0.01 * np.random.default_rng(1).normal(size=shape)).astype(dtype))


def encoded(values: np.ndarray, size: float, sides: tuple[int, ...] | None = SMALL) -> bytes:
    return Staged(sides).encode(values, Tolerance(absolute=size))


def stream_of(values: np.ndarray, size: float, sides: tuple[int, ...] | None = SMALL) -> Stream:
    return Stream.from_bytes(encoded(values, size, sides), values.shape, values.dtype)


@pytest.mark.few
@pytest.mark.parametrize("size", [0.3, 1e-3, 1e-7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "sides"), [
    *((shape, SMALL) for shape in SHAPES),
    *((shape, LARGE) for shape in [(1,), (4097,), (33, 31), (17, 18, 9), (3, 9, 10, 11)]),
], ids=str)
def test_a_slow_plain_decoder_finds_the_same_bits(shape, sides, dtype, size):
    values = smooth(shape, dtype)
    data = encoded(values, size, sides)
    decoded = Staged().decode(data, shape, dtype)
    assert decoded.tobytes() == Reader(data, shape).values(shape, np.dtype(dtype)).tobytes()
    assert np.abs(decoded.astype(np.float64) - values).max() <= size


@settings(max_examples=60)
@given(data=st.data())
def test_any_integers_are_decoded_from_their_planes(data):
    bits = data.draw(st.sampled_from([1, 3, 8, 9, 20, 40, 51]))
    shape = data.draw(st.sampled_from([(40,), (600,), (5, 40), (9, 3, 8), (2, 8, 8, 8)]))
    numbers = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-(2**bits), 2**bits, shape)
    few = data.draw(st.sampled_from([0.0, 0.02, 0.5, 1.0]))
    numbers[np.random.default_rng(0).random(shape) > few] = data.draw(st.integers(-3, 3))
    values = numbers.astype(np.float64)
    found = encoded(values, 0.5)
    assert (np.rint(Staged().decode(found, shape, np.float64)) == numbers).all()
    assert (Reader(found, shape).values(shape, np.dtype("f8")) == Staged().decode(found, shape, np.float64)).all()


@pytest.mark.parametrize("predictor", [1, 2, 3, 4, 5, 6, 7])
def test_each_set_of_axes_is_differenced_where_it_pays(predictor):
    rng = np.random.default_rng(predictor)
    numbers = rng.integers(-1, 2, (8, 8, 8))
    for axis in range(3):
        if predictor >> 2 - axis & 1:
            numbers = numbers.cumsum(axis=axis)
    scale = 2.0 ** 12
    rough = rng.integers(-1, 2, (8, 8, 8))
    values = (numbers * scale + rough).astype(np.float64)
    stream = stream_of(values, 0.5 * scale)
    _, chosen = stream.blocks(np.arange(1)).differences(np.arange(1))
    assert chosen.tolist() == [predictor]


def test_lines_are_differenced_twice_where_they_are_smooth():
    values = (np.arange(512.0) ** 2).reshape(-1)
    blocks = stream_of(values, 0.5).blocks(np.arange(1))
    numbers, chosen = blocks.differences(np.arange(1))
    assert chosen.tolist() == [8]
    assert len(encoded(values, 0.5)) < 400
    assert np.abs(numbers).max() <= 4


@pytest.mark.parametrize("shape", [(20, 21, 22), (40, 50), (1400,), (3, 9, 9, 9)], ids=str)
def test_every_stage_is_what_the_stage_before_it_implies(shape):
    values, size = smooth(shape), 1e-3
    stream = stream_of(values, size)
    grid, lattice = stream.grid, stream.lattice
    every = np.arange(grid.blocks)
    blocks = stream.blocks(every)
    numbers = blocks.numbers(grid.whole)
    assert (numbers.reshape(shape) == Reader(encoded(values, size), shape).numbers().reshape(shape)).all()
    decoded = blocks.values(grid.whole, values.dtype)
    assert decoded.tobytes() == (numbers.astype(np.float64) * lattice.step).astype(values.dtype).tobytes()
    differences, predictor = blocks.differences(every)
    assert differences.shape == (grid.blocks, VALUES)
    assert (predictor < 9).all()
    assert (differences[:, 0] == 0).all()
    assert (stream.facts[Fact.BASE] + lattice.offset == first_numbers(grid, numbers)).all()


def first_numbers(grid: Grid, numbers: np.ndarray) -> np.ndarray:
    return numbers[tuple(slice(None, None, side) for side in (1, *grid.sides))].reshape(-1)


def with_gaps(
    shape: tuple[int, ...], gaps: bool, wide: bool, sides: tuple[int, ...] = SMALL, dtype: type = np.float64
) -> tuple[Stream, np.ndarray, bytes]:
    """A stream, which cells are valid, and its bytes."""
    rng = np.random.default_rng(3)
    most = 2**49 if sides == SMALL else 2**46
    values = rng.integers(-most, most, shape).astype(dtype) if wide else smooth(shape, dtype) * 500
    valid = rng.random(shape) < 0.7 if gaps else np.ones(shape, bool)
    if gaps and shape[0] > 16:
        valid[:16] = False   # some block has no valid cell
    tolerance = Tolerance(absolute=0.5)
    codec = Staged(sides)
    data = codec.encode_with_gaps(values, valid, tolerance) if gaps else codec.encode(values, tolerance)
    stream = Stream.from_bytes(data, shape, values.dtype)
    assert (stream.lattice.wide, stream.gaps, stream.grid.large) == (wide, gaps, sides == LARGE)
    return stream, valid, data


def stated(stream: Stream, block: int) -> list[int]:
    """The count, the sum, the squares and, of some cells, the extremes that the metadata state."""
    facts = stream.facts[:, block]
    squares = int(facts[Fact.SQUARES].view(np.uint64)) + (int(facts[Fact.SQUARES_ABOVE]) << 64)
    own = [int(facts[Fact.COUNT]), int(facts[Fact.SUM]), squares, int(facts[Fact.LOW]), int(facts[Fact.HIGH])]
    return own if own[0] else own[:3]


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("shape", "gaps", "wide", "sides"),
    in_pairs([(20, 21, 22), (33, 40), (1300,), (3, 9, 9, 9)], [False, True], [False, True], [SMALL, LARGE]),
)
def test_the_facts_of_blocks_are_exact(shape, gaps, wide, sides):
    stream, valid, data = with_gaps(shape, gaps, wide, sides)
    reader = Reader(data, shape)
    assert [stated(stream, block) for block in range(stream.grid.blocks)] == reader.facts(valid)
    whole = [int(n) for n in reader.numbers()[valid.reshape(reader.size)]]
    found = totals(stream)
    assert found == Totals(len(whole), sum(whole), sum(n * n for n in whole), min(whole), max(whole))
    halves = np.arange(stream.grid.blocks // 2), np.arange(stream.grid.blocks // 2, stream.grid.blocks)
    parts = [totals(stream, half) for half in halves]
    assert [sum(getattr(part, name) for part in parts) for name in ("count", "sum", "squares")] == [
        found.count, found.sum, found.squares
    ]


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("shape", "gaps", "wide", "given", "sides"),
    in_pairs([(20, 21, 22), (33, 40), (1300,), (40, 9, 9, 9)], [False, True], [False, True], [False, True], [SMALL, LARGE]),
)
def test_the_comparison_of_sums_agrees_with_exact_arithmetic(shape, gaps, wide, given, sides):
    stream, valid, data = with_gaps(shape, gaps, wide, sides)
    decoded, sound = Staged().decode(data, shape, np.float64), np.ones(shape, bool)
    if given:   # numbers are decoded where a value was corrected
        place = tuple(np.argwhere(valid)[-1])
        decoded[place], sound[place] = np.nextafter(decoded[place], np.inf), False
    true, rng = Reader(data, shape).facts(valid), np.random.default_rng(5)
    assert first_wrong(stream, decoded, valid, sound) is None
    for _ in range(60):
        block, fact = int(rng.integers(stream.grid.blocks)), Fact(int(rng.integers(Fact.LOW, Fact.SIZE)))
        before = stream.facts[fact, block]
        stream.facts[fact, block] = before ^ (1 << int(rng.integers(63))) if rng.random() < 0.5 else before + 1
        wrong = stated(stream, block) != true[block] and (true[block][0] > 0 or fact is Fact.COUNT)
        assert first_wrong(stream, decoded, valid, sound) == (block if wrong else None)
        stream.facts[fact, block] = before
    changed = decoded.copy()
    for place in map(tuple, rng.permutation(np.argwhere(sound))[:20]):
        changed[place] = np.nextafter(changed[place], np.inf)
        assert (first_wrong(stream, changed, valid, sound) is None) == (not valid[place])
        changed[place] = decoded[place]


@pytest.mark.parametrize("share", [2.0**-22, 2.0**-23, 2.0**-24])
def test_sums_are_compared_where_the_lattice_is_finer_than_the_values(share):
    values = smooth((20, 21, 22))
    data = encoded(values, float(np.abs(values).max()) * share)
    stream, decoded = Stream.from_bytes(data, values.shape, values.dtype), Staged().decode(data, values.shape, values.dtype)
    every = np.ones(values.shape, bool)
    assert first_wrong(stream, decoded, every, every) is None
    stream.facts[Fact.SUM, 7] += 1
    assert first_wrong(stream, decoded, every, every) == 7


def test_nothing_has_no_sums_and_sums_are_exact():
    values = smooth((40, 40))
    stream = Stream.from_bytes(
        Staged().encode_with_gaps(values, np.zeros(values.shape, bool), Tolerance(absolute=0.1)), values.shape, values.dtype
    )
    assert totals(stream).count == 0
    assert np.isnan(means(stream)).all()
    assert exact_sum(np.array([2**63 - 1, 2**63 - 1, -1])) == 2**64 - 3


def test_means_of_blocks_are_a_coarse_picture():
    values = smooth((24, 32, 40))
    found = means(stream_of(values, 1e-4))[0]
    expected = values.astype(np.float64).reshape(3, 8, 4, 8, 5, 8).mean(axis=(1, 3, 5))
    assert np.abs(found - expected).max() <= 1e-4


@pytest.mark.parametrize(
    "shape", [(50, 60, 70), (100, 90), (5000,), (4, 20, 30, 40), (300, 2, 2, 2), (1, 70, 1, 80)], ids=str
)
@both_sizes
def test_a_part_is_decoded_from_its_blocks_alone(shape, sides):
    values = smooth(shape)
    data = encoded(values, 1e-3, sides)
    whole, rng = Staged().decode(data, shape, values.dtype), np.random.default_rng(0)
    for _ in range(12):
        ends = [sorted(rng.choice(n + 1, 2, replace=False).tolist()) for n in shape]
        part = tuple(slice(*each) for each in ends)
        found = Staged().part(memoryview(data), shape, values.dtype, part)
        assert found.tobytes() == np.ascontiguousarray(whole[part]).tobytes()
        assert found.shape == whole[part].shape


def test_a_part_is_read_where_the_rest_is_damaged_and_refused_where_it_is_damaged():
    values = smooth((64, 64, 64))
    data = bytearray(encoded(values, 1e-3))
    data[-5] ^= 4   # in the last block
    with pytest.raises(CodecFailed, match=r"blocks 448 to 511 .* fail their checksum"):
        Staged().decode(data, values.shape, values.dtype)
    first = Staged().part(bytes(data), values.shape, values.dtype, (slice(0, 9), slice(0, 64), slice(3, 7)))
    assert np.abs(first - values[:9, :, 3:7]).max() <= 1e-3
    with pytest.raises(CodecFailed, match="fail their checksum"):
        Staged().part(bytes(data), values.shape, values.dtype, (slice(60, 64),) * 3)


@pytest.mark.parametrize("values", [
    np.zeros((20, 20)), np.full((9, 9, 9), 3.25), np.full((600,), -1e30), np.full((8, 8), 5e-324), np.array([7.0]),
    np.where(np.arange(4000) % 2, 1e15, -1e15), np.where(np.arange(4000) == 1234, 1e9, 0.0), np.arange(4000.0) * 1e-310,
    np.array([-0.0, 0.0] * 300), np.array([np.finfo(float).max / 20, -np.finfo(float).max / 20] * 99),
], ids=lambda values: f"{values.reshape(-1)[0]:.3g} {values.shape}")
@pytest.mark.parametrize("share", [1e-9, 1e-3, 10.0])
@both_sizes
def test_hard_values_come_back_within_the_tolerance(values, share, sides):
    size = float(np.abs(values).max()) * share or 1e-3
    if size < 1e-300:
        size = 1e-300
    decoded = Staged().decode(encoded(values, size, sides), values.shape, values.dtype)
    assert (np.abs(decoded - values) <= size).all()


def test_constants_take_the_metadata_alone():
    values = np.full((64, 64, 64), 2.5, np.float32)
    stream = stream_of(values, 0.01)
    assert len(stream.groups.stored) == 0
    assert len(encoded(values, 0.01)) < 600


def test_one_large_value_costs_its_block_little():
    values = smooth((64, 64, 64), np.float64)
    plain = len(encoded(values, 1e-2))
    values[20, 20, 20] = 1e4
    assert len(encoded(values, 1e-2)) - plain < 500


def test_a_tolerance_too_small_for_a_lattice_is_stored_exactly_by_archives():
    values = smooth((12, 13, 14), np.float64)
    with pytest.raises(WorkbenchError, match=r"tolerance above 2\^-52"):
        encoded(values, 1e-17)
    guarded = encode_guarded(Staged(), values, Limit("absolute", 1e-17))
    assert guarded.figures.stored_exactly
    assert (guarded.decoded == values).all()


@pytest.mark.parametrize("span", [2**23 - 6, 2**23 - 5, 2**23 - 4, 2**23, 2**31, 2**51])
def test_numbers_at_the_limits_of_32_bits(span):
    given = np.array([0.0, span, 0, span, span, 0, span // 2, 1] * 200)
    for offset in (0.0, 2.0**30, -(2.0**50)):
        values = given + offset
        grid, lattice = Grid.of(values.shape), Lattice.between(1.0, float(values.min()), float(values.max()))
        assert lattice.wide == (span >= 2**23 - 4)
        facts, first, coded = encode_blocks(values, None, grid, lattice)
        blocks = CodedBlocks(grid, lattice, facts[Fact.BASE].copy(), first, coded)
        assert (blocks.numbers(grid.whole).reshape(-1) == values).all()


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("step", [0.02, 1e-9])
def test_numbers_are_counted_in_chosen_blocks_where_cells_are_valid(step, gaps):
    values = smooth((13, 18, 21)).astype(np.float64)
    grid, lattice = Grid((1, 13, 18, 21), (0, 4, 5)), Lattice.between(step, float(values.min()), float(values.max()))
    facts, first, coded = encode_blocks(values, None, grid, lattice)
    blocks = CodedBlocks(grid, lattice, facts[Fact.BASE].copy(), first, coded)
    valid = np.random.default_rng(3).random(values.shape) < 0.7
    numbers, counted = np.zeros((13, 32, 32), np.int64), np.zeros((13, 32, 32), bool)
    numbers[:, :18, :21], counted[:, :18, :21] = blocks.numbers(grid.whole)[0], valid if gaps else True
    chosen = np.arange(0, grid.blocks, 3)
    of_blocks, flags = (each.reshape(grid.blocks, -1)[chosen] for each in (numbers, counted))
    wanted = of_blocks[flags] - lattice.offset
    lowest = int(np.quantile(wanted, 0.5, method="nearest"))
    with pytest.raises(CodecFailed, match="damaged"):   # not all numbers are there
        blocks.counted(chosen, valid if gaps else None, lowest, 40)
    if lattice.wide:
        return
    lowest = int(wanted.min())
    count = blocks.counted(chosen, valid if gaps else None, lowest, int(wanted.max()) - lowest + 1)
    assert (count == np.bincount(wanted - lowest)).all()


@pytest.mark.few
@both_sizes
@pytest.mark.parametrize("seed", range(6))
def test_forged_blocks_with_correct_checksums_are_refused_or_decoded_without_harm(seed, sides):
    rng = np.random.default_rng(seed)
    shape = (24, 24, 24)
    values = smooth(shape)
    stream = stream_of(values, 1e-3, sides)
    for _ in range(200):
        coded = stream.groups.stored.copy()
        for _ in range(int(rng.integers(1, 6))):
            block = int(rng.integers(stream.grid.blocks))
            at = stream.first[block] + int(rng.integers(4)) if rng.random() < 0.5 else int(rng.integers(len(coded)))
            coded[min(at, len(coded) - 1)] = rng.integers(256)
        facts = stream.facts.copy()
        facts[Fact.BASE, rng.integers(stream.grid.blocks)] = rng.integers(-(2**63), 2**63 - 1)
        first = stream.first.copy()
        if rng.random() < 0.3:
            first[1:-1] = np.sort(rng.integers(0, len(coded) + 1, stream.grid.blocks - 1))
        lattice = Lattice(stream.lattice.step, stream.lattice.offset, bool(rng.integers(2)), bool(rng.integers(2)))
        blocks = CodedBlocks(stream.grid, lattice, facts[Fact.BASE].copy(), first, coded)
        for decode in (
            lambda b=blocks: b.values(b.grid.whole, values.dtype), lambda b=blocks: b.numbers(b.grid.whole)
            if b.grid.large else b.differences(np.arange(b.grid.blocks)),
        ):
            with suppress(CodecFailed):
                decode()


@pytest.mark.parametrize("change", ["sides", "step", "sizes", "count", "groups"])
def test_forged_descriptions_are_refused(change):
    values = smooth((24, 24, 24))
    valid = np.ones(values.shape, bool)
    data = Staged(SMALL).encode_with_gaps(values, valid, Tolerance(absolute=1e-3))
    stream = Stream.from_bytes(data, values.shape, values.dtype)
    grid, lattice, facts = stream.grid, stream.lattice, stream.facts.copy()
    if change == "sides":
        grid = Grid(grid.size, (3, 3, 4))
    if change == "step":
        lattice = Lattice(-1.0, 0, False)
    if change == "sizes":
        facts[Fact.SIZE, 0] = 1 << 40
    if change == "count":
        facts[Fact.COUNT, 0] = 513
    groups = stream.groups
    if change == "groups":
        groups = Groups(groups.stored, np.append(0, groups.ends[1:] + 1), groups.checksums)
    forged = Stream(grid, lattice, True, facts, groups).to_bytes(values.shape, values.dtype)
    with pytest.raises(CodecFailed, match="damaged"):
        Stream.from_bytes(forged, values.shape, values.dtype)


@pytest.mark.parametrize("logs", [(3, 3, 3), (4, 4, 4)])
def test_bytes_do_not_depend_on_threads_or_runs(logs):
    values = smooth((60, 50, 40))
    grid, lattice = Grid.of(values.shape, logs), Lattice.between(2e-3, float(values.min()), float(values.max()))
    expected = None
    for threads in (1, 2, 3):
        with backend.using_threads(threads):
            found = [part.tobytes() for part in encode_blocks(values, None, grid, lattice)]
        expected = expected or found
        assert found == expected


def test_bytes_of_an_earlier_version_are_written_and_read_the_same():
    stored = np.load(GOLDEN)
    for name in ("line", "plane", "cube", "series", "fine"):
        values, data = stored[f"{name}_values"], stored[f"{name}_bytes"].tobytes()
        decoded = Staged().decode(data, values.shape, values.dtype)
        assert decoded.tobytes() == stored[f"{name}_decoded"].tobytes()


@pytest.mark.parametrize(
    "shape", [(100, 100, 100), (1000, 1000), (10**6,), (10, 100, 100, 10), (97, 101, 103), (1000, 3), (3, 1000)]
)
def test_blocks_reach_little_beyond_the_grid(shape):
    grid = Grid.of(shape)
    assert math.prod(grid.sides) == VALUES
    assert math.prod(Grid.of(shape, (4, 4, 4)).sides) == 4096
    assert grid.cells().sum() == math.prod(shape)
    assert grid.blocks * VALUES <= 1.4 * math.prod(shape) + VALUES


def test_an_archive_of_a_field_with_gaps_is_read_saved_and_verified(tmp_path):
    values = smooth((40, 41, 42))
    values[3, 4, 5:9], values[0, 0, 0] = np.nan, np.inf
    mask = np.zeros(values.shape, bool)
    mask[30:, 20:, :] = True
    field = wb.Field(values, mask=mask)
    archive = wb.compress(field, wb.Absolute(1e-3), "staged", chunk_values=2**14)
    opened = wb.open(archive.save(tmp_path / "x.zip"))
    decoded = opened.decompress()
    part = opened.read([(2, 5), (3, 30), (1, 9)])
    assert part.values.tobytes() == np.ascontiguousarray(decoded.values[2:5, 3:30, 1:9]).tobytes()
    there = np.isfinite(values) & ~mask
    assert np.abs(decoded.values[there] - values[there]).max() <= 1e-3
    assert decoded.values[~there].tobytes() == values[~there].tobytes()
    assert opened.verify(field).passed


def test_regions_and_previews_of_an_archive_are_those_of_the_whole(tmp_path):
    values = smooth((70, 64, 80))
    archive = wb.compress(values, wb.Absolute(1e-3), "staged", chunk_values=2**16)
    opened = wb.open(archive.save(tmp_path / "x.zip"))
    whole = opened.decompress().values
    for region in ([(0, 3), (5, 9), (70, 80)], [(0, 70), (10, 11), None], [None, None, None]):
        part = opened.read(region)
        expected = whole[tuple(slice(None) if each is None else slice(*each) for each in region)]
        assert np.asarray(part.values).tobytes() == np.ascontiguousarray(expected).tobytes()
    for level in (1, 3, 4):
        step = 2**level
        assert opened.preview(level).values.tobytes() == np.ascontiguousarray(whole[::step, ::step, ::step]).tobytes()


def test_blocks_are_large_in_smooth_fields_and_small_in_rough_ones():
    z, y, x = np.indices((64, 64, 64)) / 40.0
    gentle = (np.sin(3 * z + y) + np.cos(2 * x + y)).astype(np.float32)
    noise = np.random.default_rng(0).normal(size=(64, 64, 64))
    rough = noise.cumsum(axis=0).cumsum(axis=1).cumsum(axis=2).astype(np.float32)
    assert Staged().tuned(gentle, Tolerance(absolute=2e-3)).sides == LARGE
    assert Staged().tuned(rough, Tolerance(absolute=0.1)).sides == SMALL
    assert Staged().tuned(gentle[0], Tolerance(absolute=2e-3)).sides == (1, 64, 64)
    for values, size in ((gentle, 2e-3), (rough, 0.1)):
        sizes = [len(encoded(values, size, sides)) for sides in (SMALL, (1, 16, 32), LARGE)]
        assert len(encoded(values, size, None)) <= min(sizes)
    assert len(encoded(gentle, 2e-3, LARGE)) < 0.5 * len(encoded(gentle, 2e-3, SMALL))


def test_numbers_too_large_for_their_sums_are_coded_in_small_blocks():
    values = np.random.default_rng(0).integers(-(2**50), 2**50, (20, 20, 20)).astype(np.float64)
    assert not stream_of(values, 0.5, LARGE).grid.large
    assert stream_of(values, 64.0, LARGE).grid.large


def test_archives_state_the_sides_of_blocks_and_take_others_for_thin_chunks():
    values = smooth((3, 100, 100))
    archive = wb.compress(values, wb.Absolute(1e-3), "staged")
    assert math.prod(archive.codec.sides) in (VALUES, 4096)
    stream = Stream.from_bytes(
        get("staged", sides=(64, 8, 1)).encode(values, Tolerance(absolute=1e-3)), values.shape, values.dtype
    )
    assert stream.grid.blocks * VALUES < 1.6 * values.size


@pytest.mark.parametrize("sides", [(8, 8), (8, 8, 4), (512, 1, -1), (3, 8, 8), "512", (8.0, 8, 8)])
def test_sides_that_are_none_are_refused(sides):
    with pytest.raises(WorkbenchError, match=r"sides must be three numbers with product 512 or 4096"):
        get("staged", sides=sides)


@pytest.mark.long_with("(70, 64, 80)")
@pytest.mark.parametrize("shape", [(70, 64, 80), (300, 200), (40,)], ids=str)
def test_deflated_blocks_are_smaller_and_decode_to_the_same(shape):
    values, codec = smooth(shape), get("staged", sides=SMALL, deflate=True)
    plain, data = encoded(values, 1e-2), codec.encode(values, Tolerance(absolute=1e-2))
    assert len(data) < len(plain) or values.size < 100
    decoded = Staged().decode(plain, shape, values.dtype)
    assert Staged().decode(data, shape, values.dtype).tobytes() == decoded.tobytes()
    assert Reader(data, shape).values(shape, values.dtype).tobytes() == decoded.tobytes()
    part = tuple(slice(n // 3, n // 2) for n in shape)
    assert (codec.part(data, shape, values.dtype, part) == decoded[part]).all()
    with backend.using_threads(1):
        assert codec.encode(values, Tolerance(absolute=1e-2)) == data


def test_groups_that_inflate_to_other_sizes_are_refused():
    values, codec = smooth((64, 64, 64)), get("staged", sides=SMALL, deflate=True)
    stream = Stream.from_bytes(codec.encode(values, Tolerance(absolute=1e-2)), values.shape, values.dtype)
    groups, facts = stream.groups, stream.facts.copy()
    for change in (1, -1):
        facts[Fact.SIZE, 5] = stream.facts[Fact.SIZE, 5] + change
        forged = Stream(stream.grid, stream.lattice, False, facts, groups).to_bytes(values.shape, values.dtype)
        with pytest.raises(CodecFailed, match=r"must inflate to .* damaged"):
            codec.decode(forged, values.shape, values.dtype)
    stored = groups.stored.copy()
    stored[5] ^= 255
    forged_groups = Groups(stored, groups.ends, crc32_of_blocks([(stored, groups.ends)], np.arange(len(groups.ends) - 1)))
    with pytest.raises(CodecFailed, match="damaged"):
        Stream(stream.grid, stream.lattice, False, stream.facts, forged_groups).blocks(np.arange(8)).values(
            stream.grid.whole, values.dtype
        )


@pytest.mark.parametrize(("shape", "size"), [((40, 41, 42), 1e-3), ((90, 100), 1e-9), ((3000,), 1e-2)], ids=str)
@both_sizes
def test_both_machines_write_the_same_bytes_and_read_the_same_values(stand_in, shape, size, sides):
    values, tolerance, codec = smooth(shape, np.float64), Tolerance(absolute=size), Staged(sides)
    valid = np.random.default_rng(0).random(shape) < 0.9
    data = codec.encode(stand_in.asarray(values), tolerance)
    assert data == codec.encode(values, tolerance)
    decoded = Staged().decode(data, shape, values.dtype, stand_in)
    assert type(decoded) is fake_cupy.ndarray
    assert decoded.get().tobytes() == Staged().decode(data, shape, values.dtype).tobytes()
    gaps = codec.encode_with_gaps(stand_in.asarray(values), stand_in.asarray(valid), tolerance)
    assert gaps == codec.encode_with_gaps(values, valid, tolerance)


@both_sizes
def test_each_direction_is_one_pass_over_the_values_on_a_gpu(stand_in, sides):
    values, codec, tolerance = smooth((40, 41, 42)), get("staged", sides=sides), Tolerance(absolute=1e-3)
    given, every = stand_in.asarray(values), stand_in.ones(values.shape, bool)

    def launches(run: Callable[[], Any]) -> tuple[Any, int]:
        fake_cupy.counted.clear()
        return run(), fake_cupy.counted["launches"]

    data, encoding = launches(lambda: codec.encode(given, tolerance))
    decoded, decoding = launches(lambda: codec.decode(data, values.shape, values.dtype, stand_in))
    wrong, comparing = launches(lambda: codec.contradiction(data, decoded, every, every))
    assert wrong is None
    assert (encoding, decoding, comparing) == (2, 1, 1)   # encoded blocks are moved together once their places are known


def test_archives_of_fields_on_both_machines_are_the_same(stand_in):
    values = smooth((40, 41, 42))
    archives = [wb.compress(given, wb.Absolute(1e-3), "staged") for given in (values, wb.Field(stand_in.asarray(values)))]
    contents = [{key: archive.store.read(key) for key in archive.store.keys()} for archive in archives]   # noqa: SIM118
    assert contents[0].keys() == contents[1].keys()
    assert [key for key in contents[0] if "/c/" in key and contents[0][key] != contents[1][key]] == []


def test_sweeps_and_searches_take_it():
    values = smooth((40, 41, 42))
    rows = wb.sweep(values, "staged", [wb.Absolute(1e-2), wb.Absolute(1e-3)], workers=1, cache=False).rows
    assert rows[0]["ratio"] > rows[1]["ratio"] > 1
    assert wb.find_bound(values, wb.Ratio(6), "staged").met
    assert get("staged") == Staged()
