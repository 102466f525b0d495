"""A part of an archive is that part of the whole, and costs the chunks and blocks it lies in."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from archive import samples
from archive.samples import assert_equal, assert_same_bits, reopened, resealed
from combinations import in_pairs
from workbench.archive import chunk as chunks
from workbench.archive import frame
from workbench.archive import region as regions
from workbench.codecs.curve import Lattice
from workbench.codecs.lattice import LatticeCodec
from workbench.errors import WorkbenchError

CODECS = [name for name in ("lattice", "draco", "sz3", "pcodec") if name in samples.CODECS]
ORDERS = ["keep", "free"]


def inside(positions: np.ndarray, region, box) -> np.ndarray:
    """Which positions lie in a region, by trying every image that could."""
    found = np.zeros(len(positions), bool)
    low, high = np.array(region, np.float64).T
    shifts = [(0.0,)] * len(low) if box is None else [np.arange(-3, 4) * length for length in box]
    for shift in np.stack(np.meshgrid(*shifts), -1).reshape(-1, len(low)):
        found |= ((positions >= low - shift) & (positions < high - shift)).all(axis=1)
    return found


def assert_is_filter(archive, region) -> int:
    """A region is what a filter of everything leaves, in its order."""
    whole = archive.decompress()
    wanted = inside(whole.positions.astype(np.float64), region, archive.box)
    if not wanted.any():
        with pytest.raises(WorkbenchError, match="no particle lies in the region"):
            archive.read(region)
        return 0
    assert_equal(archive.read(region), whole.select(wanted))
    return int(wanted.sum())


def made(codec, order, box=8.0, dimensions=3, count=3000, dtype=np.float32, **how):
    original = samples.particles(count, dtype, dimensions, box)
    if codec == "lattice":
        codec = LatticeCodec(block=64)
    return wb.compress(original, wb.Absolute(0.01), codec, order=order, chunk_values=dimensions * 500, **how)


@pytest.fixture(scope="module", params=[
    pytest.param(each.values, marks=each.marks, id=str(each.values))
    for each in in_pairs(CODECS, ORDERS, (8.0, None), (2, 3))
])
def archive(request):
    codec, order, box, dimensions = request.param
    return made(codec, order, box, dimensions)


@pytest.mark.few(4)
def test_a_region_is_what_a_filter_leaves(archive):
    random = np.random.default_rng(1)
    dimensions, found = archive.data.layout.shape[1], 0
    for _ in range(12):
        low = random.uniform(-1, 8, dimensions)
        region = list(zip(low, low + random.choice([0.05, 0.5, 2, 7], dimensions), strict=True))
        found += assert_is_filter(archive, region)
    assert found > 10


def test_special_regions_are_what_a_filter_leaves(archive):
    dimensions, box = archive.data.layout.shape[1], archive.box
    position = archive.decompress().positions[17].astype(float)
    above = np.nextafter(position, np.inf)
    assert assert_is_filter(archive, np.stack([position, above], axis=1)) >= 1
    assert_is_filter(archive, np.stack([np.nextafter(position, -np.inf), position], axis=1))
    last = archive.decompress().positions[archive.decompress().positions[:, 0].argmax()].astype(float)   # alone at the edge
    assert assert_is_filter(archive, np.stack([last, np.nextafter(last, np.inf)], axis=1)) >= 1
    assert_is_filter(archive, [(0, 8)] * dimensions)
    assert_is_filter(archive, [(-0.5, 0.5)] * dimensions)
    assert_is_filter(archive, [(7.5, 8.5)] * dimensions)
    if box is None:
        assert assert_is_filter(archive, [(-1e308, 1e308)] * dimensions) == 3000
        assert assert_is_filter(archive, [(1e300, 1e308)] * dimensions) == 0
    else:
        for everything in ([(0, 8)], [(-3, 5)], [(-1e300, 1e300)]):
            assert len(archive.read(everything * dimensions)) == 3000


side = st.tuples(st.floats(-20, 20), st.floats(0.001, 20))


@given(side, side, st.sampled_from([1.0, 7.3, 1e-3]))
def test_regions_side_by_side_hold_every_particle_once(across, up, length):
    random = np.random.default_rng(0)
    points = np.concatenate([random.random((200, 2)) * length, np.zeros((1, 2))])
    (low, width), (bottom, height) = across, up
    width, height = min(width * length, length), min(height * length, length)
    points[:4] = np.mod([[low + width / 2, bottom]] * 4, length)
    points[points >= length] = 0
    middle, right, top = low + width / 2, low + width, bottom + height

    def count(a, b):
        parts = regions.cuboids([(a, b), (bottom, top)], 2, (length, length))
        assert all((lower >= 0).all() and (upper <= length).all() for lower, upper in parts)
        return sum(((points >= lower) & (points < upper)).all(axis=1).astype(int) for lower, upper in parts)

    if low < middle < right and bottom < top and width < length and height < length:
        whole, halves = count(low, right), count(low, middle) + count(middle, right)
        assert whole.max() <= 1
        np.testing.assert_array_equal(whole, halves)


def test_a_region_so_far_away_that_its_ends_meet_is_nearly_everything():
    far = -292157760049258.44   # where numbers are 1/16 apart
    parts = regions.cuboids([(far, far + 3.69), (0, 1)], 2, (3.7, 3.7))
    assert sum(upper[0] - lower[0] for lower, upper in parts) == 3.7
    points = np.random.default_rng(0).random((100, 2)) * [3.7, 1]
    assert np.any([((points >= lower) & (points < upper)).all(axis=1) for lower, upper in parts], axis=0).all()


@pytest.mark.parametrize("order", ORDERS)
def test_velocities_and_ids_come_with_their_particles(order, tmp_path):
    original = samples.particles(3000, box=8.0)
    archive = reopened(wb.compress(original, wb.Absolute(0.01), order=order, chunk_values=900), tmp_path / "some.zip")
    part = archive.read([(7, 9), (-1, 1), (0, 8)])
    by_id = {number: i for i, number in enumerate(original.ids.tolist())}
    rows = [by_id[number] for number in part.ids.tolist()]
    assert_same_bits(part.velocities, original.velocities[rows])
    assert (part.box, len(part) > 10) == (original.box, True)


# What it costs.

@pytest.fixture
def decoded(monkeypatch):
    """Which chunks are taken apart, and how many particles of blocks are decoded."""
    seen = defaultdict(list)
    unpack, positions = frame.unpack, Lattice.positions

    def counted(data, where, lazy=()):
        seen["chunks"].append(where)
        return unpack(data, where, lazy)

    def counted_positions(self, keys, low, dtype):
        seen["items"].append(len(keys))
        return positions(self, keys, low, dtype)

    monkeypatch.setattr(frame, "unpack", counted)
    monkeypatch.setattr(Lattice, "positions", counted_positions)
    return seen


def chunks_of(name: str, decoded) -> set[str]:
    return {key for key in decoded["chunks"] if key.startswith(f"{name}/")}


def test_of_sorted_particles_few_chunks_and_blocks_are_decoded(decoded):
    archive = made("lattice", "free", count=20_000)
    assert archive.data.layout.chunk_count == 40
    decoded.clear()
    found = archive.read([(1, 2), (1, 2), (5, 6)])
    assert len(found) > 5
    assert len(chunks_of("positions", decoded)) <= 8   # of 40
    assert len(chunks_of("velocities", decoded)) <= 4
    assert sum(decoded["items"]) <= 15 * 64   # of 20,000


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("order", ORDERS)
def test_of_particles_that_were_sorted_before_few_chunks_are_decoded(codec, order, decoded):
    random = np.random.default_rng(0)
    positions = np.sort(random.random((5000, 1)), axis=0) * [10, 1, 1] + random.random((5000, 3)) * [0, 9, 9]
    archive = wb.compress(wb.Particles(positions, 10.0), wb.Absolute(0.01), codec, order=order, chunk_values=3 * 250)
    decoded.clear()
    archive.read([(3.0, 3.1), (0, 10), (0, 10)] if order == "keep" else [(3, 3.5), (3, 3.5), (3, 3.5)])
    assert len(chunks_of("positions", decoded)) <= 4   # of 20


def test_a_place_without_particles_costs_no_chunk(decoded):
    archive = wb.compress(wb.Particles(np.random.default_rng(0).random((1000, 3))), wb.Absolute(0.01), chunk_values=300)
    decoded.clear()
    with pytest.raises(WorkbenchError, match="no particle lies in the region"):
        archive.read([(5, 6), (0, 1), (0, 1)])
    assert chunks_of("positions", decoded) == set()


# Fields.

@settings(max_examples=40)
@given(st.data())
def test_a_part_of_a_field_is_the_slice(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4), label="shape"))
    values = samples.field(shape)
    mask = np.random.default_rng(0).random(shape) < 0.3
    archive = wb.compress(wb.Field(values, 0.5, "t", mask), wb.Absolute(0.1), "prequantised", chunk_values=20)
    whole = archive.decompress()
    slices = []
    for size in shape:
        start = data.draw(st.integers(0, size - 1))
        slices.append(slice(start, data.draw(st.integers(start + 1, size))))
    forms = [s if i % 3 == 0 else (s.start, s.stop) if i % 3 == 1 else [s.start, s.stop] for i, s in enumerate(slices)]
    part = archive.read(forms)
    assert_same_bits(part.values, np.ascontiguousarray(whole.values[tuple(slices)]))
    assert_same_bits(part.mask, np.ascontiguousarray(mask[tuple(slices)]))
    assert (part.name, part.spacing) == ("t", (0.5,) * len(shape))


def test_slices_count_from_the_end_and_none_is_all():
    values = samples.field((12, 9))
    archive = wb.compress(values, wb.Absolute(0.1), chunk_values=20)
    whole = archive.decompress().values
    assert_same_bits(archive.read((slice(-3, None), None)).values, whole[-3:])
    assert_same_bits(archive.read([slice(None, 100), (2, -1)]).values, np.ascontiguousarray(whole[:, 2:-1]))
    line = wb.compress(values[0], wb.Absolute(0.1))
    assert_same_bits(line.read(slice(2, 4)).values, line.decompress().values[2:4])


def test_only_the_blocks_of_a_part_are_decoded(decoded):
    archive = wb.compress(samples.field((64, 64)), wb.Absolute(0.1), chunk_values=64)
    assert archive.data.layout.chunk_count == 64
    decoded.clear()
    archive.read([(8, 16), (8, 17)])
    assert decoded["chunks"] == ["values/c/1/1", "values/c/1/2"]


# What is refused.

@pytest.mark.parametrize(
    "region",
    [None, 3, "abc", [(0, 1)] * 2, [(0, 1)] * 4, [(0, 1), (0, 1), (1, 1)], [(0, 1), (0, 1), (1, 0)], [(0, np.inf)] * 3,
     [(np.nan, 1)] * 3, [(0, 1, 2)] * 3, [("a", "b")] * 3],
)
@pytest.mark.parametrize("box", [8.0, None])
def test_regions_of_space_that_are_none_are_refused(region, box):
    with pytest.raises(WorkbenchError, match="region must be 3 pairs"):
        made("sz3", "keep", box, count=50).read(region)


@pytest.mark.parametrize(
    "region",
    [None, 3, "abc", [(0, 1)], [(0, 1)] * 3, [(3, 3), None], [(4, 2), None], [(100, 200), None], [slice(0, 4, 2), None],
     [5, None], [("a", "b"), None], [(0.5, 2), None]],
)
def test_regions_of_a_grid_that_are_none_are_refused(region):
    with pytest.raises(WorkbenchError, match="region"):
        wb.compress(samples.field((9, 9)), wb.Absolute(0.1)).read(region)


def test_extents_that_cannot_be_do_not_end_in_arithmetic():
    archive = made("lattice", "free", None, count=200)
    entries = samples.parts(archive)
    extents = np.array([[[-np.inf] * 3, [np.inf] * 3]], np.float32)
    data = chunks.exact_chunk(extents)
    layout = chunks.with_checksums(archive.arrays["extents"].layout, [data])
    entries["extents/c/0/0/0"] = data.data
    entries = resealed(entries, "extents/zarr.json", lambda d: d["attributes"].update(layout.attributes))
    made_up = samples.from_parts(entries)
    assert len(made_up.decompress()) == 200
    with pytest.raises(WorkbenchError):
        made_up.read([(-1e308, 1e308)] * 3)
