import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workbench import backend
from workbench.codecs import CodecFailed
from workbench.codecs.curve import Lattice
from workbench.codecs.together import Pieces


def plain_key(cells: list[int]) -> int:
    """Bit by bit: bit b of axis a goes to place b * D + a."""
    return sum((cell >> bit & 1) << (bit * len(cells) + axis) for axis, cell in enumerate(cells) for bit in range(40))


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keys_interleave_the_bits_of_cell_numbers(dimensions, dtype):
    positions = np.random.default_rng(1).random((500, dimensions)).astype(dtype)
    lattice = Lattice.fitted((0.0,) * dimensions, (1.0,) * dimensions, 1e-3, dtype)
    cells = np.floor(positions.astype(float) / lattice.step).astype(int)
    assert lattice.shift == 0
    assert lattice.keys(positions).tolist() == [plain_key(list(cell)) for cell in cells.tolist()]


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("tolerance", [0.3, 1e-3, 1e-7, 1e-12])
def test_decoding_stays_within_the_tolerance_also_where_keys_have_no_room(dimensions, tolerance):
    positions = np.random.default_rng(2).random((2000, dimensions)) * 5 - 2
    lattice = Lattice.fitted(positions.min(axis=0), positions.max(axis=0), tolerance, np.float64)
    decoded = lattice.positions(lattice.keys(positions), lattice.low_bits(positions), np.float64)
    assert (lattice.shift > 0) == (tolerance == 1e-12 or (tolerance == 1e-7 and dimensions == 3))
    assert np.abs(decoded - positions).max() <= tolerance
    steps, first = lattice.steps(positions, Pieces.of(len(positions), len(positions)), 300)
    walked = lattice.walk(steps, first, len(positions), 300, np.float64)
    assert np.array_equal(walked, decoded)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decoded_positions_lie_in_a_periodic_box(dtype):
    box = (1.1, 1.1, 0.3)
    random = np.random.default_rng(3)
    positions = (random.random((5000, 3)) * box).astype(dtype)
    positions = np.minimum(positions, np.nextafter(np.array(box, dtype), dtype(0)))
    positions[:3] = 0
    positions[3:6] = np.nextafter(np.array(box, dtype), dtype(0))
    lattice = Lattice.fitted((0.0,) * 3, (0.0,) * 3, 0.07, dtype, box)
    decoded = lattice.positions(lattice.keys(positions), np.zeros(0, np.uint64), dtype)
    assert (decoded >= 0).all()
    assert (decoded.astype(float) < box).all()
    assert np.abs(decoded.astype(float) - positions).max() <= 0.07


def test_steps_go_the_short_way_round_a_periodic_box():
    lattice = Lattice.fitted((0.0, 0.0), (0.0, 0.0), 0.05, np.float64, (1.0, 1.0))
    steps, _ = lattice.steps(np.array([[0.98, 0.5], [0.02, 0.5], [0.98, 0.5]]), Pieces.of(3, 3), 10)
    assert steps[1:, 0].max() <= 4   # folded: one or two cells either way, not nine


def test_a_tolerance_near_the_spacing_of_the_numbers_is_refused():
    with pytest.raises(CodecFailed, match="well above the spacing of float32 numbers at 1000"):
        Lattice.fitted((0.0,) * 3, (1000.0,) * 3, 1e-5, np.float32)
    with pytest.raises(CodecFailed, match="well above the spacing of float64 numbers"):
        Lattice.fitted((0.0,) * 3, (1.0,) * 3, 1e-16, np.float64)


@given(st.integers(2, 3), st.data())
def test_a_stretch_reaches_a_box_when_a_key_of_the_box_is_in_it(dimensions, data):
    size = 8
    edges = st.integers(0, size - 1)
    low = [data.draw(edges) for _ in range(dimensions)]
    high = [data.draw(st.integers(a, size - 1)) for a in low]
    cubes = (list(c) for c in np.ndindex(*(size,) * dimensions))
    inside = {plain_key(c) for c in cubes if all(a <= x <= b for a, x, b in zip(low, c, high, strict=True))}
    ends = np.sort(data.draw(hnp.arrays(np.uint64, (20, 2), elements=st.integers(0, size**dimensions - 1))), axis=1)
    first, final = np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])
    corners = np.array([plain_key(low), plain_key(high)], np.uint64)
    reaches = np.empty(len(ends), np.uint8)
    kernel = backend.kernel("lattice", "reaches_box", np.float64, dimensions)
    kernel(len(ends), first, final, corners, 3 * dimensions, reaches)
    expected = [bool(inside & set(range(a, b + 1))) for a, b in ends.tolist()]
    assert reaches.astype(bool).tolist() == expected


@pytest.mark.parametrize("dimensions", [2, 3])
def test_no_particle_of_a_region_is_in_a_stretch_that_is_left_out(dimensions):
    random = np.random.default_rng(4)
    positions = random.random((20_000, dimensions)) ** 2
    lattice = Lattice.fitted(positions.min(axis=0), positions.max(axis=0), 1e-3, np.float64)
    keys = np.sort(lattice.keys(positions))
    decoded = lattice.positions(keys, np.zeros(0, np.uint64), np.float64)
    first, final = np.ascontiguousarray(keys[::100]), np.ascontiguousarray(keys[99::100])
    fewest = 1.0
    for _ in range(50):
        lower = random.random(dimensions) ** 2
        upper = lower + random.random(dimensions) * 0.3
        chosen = lattice.stretches_in(first, final, lower, upper)
        inside = ((decoded >= lower) & (decoded < upper)).all(axis=1).reshape(-1, 100).any(axis=1)
        assert not (inside & ~chosen).any()
        fewest = min(fewest, chosen.mean())
    assert fewest < 0.1   # and it does leave some out
