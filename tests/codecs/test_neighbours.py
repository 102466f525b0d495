"""The codec for columns beside positions: its search, its fit and its scales beside plain NumPy, and its bytes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combinations import in_pairs
from workbench import backend, codecs
from workbench.codecs import CodecFailed, Columns, Tolerance
from workbench.codecs.neighbours import LEAF_TIER, PLAIN, Neighbours, _first_miss, _Tree
from workbench.data import synthetic
from workbench.errors import WorkbenchError

NEAREST = backend.constant("neighbours.cu", "NEAREST")


def shapes_of_space(count: int, axes: int, kind: str, dtype: str) -> np.ndarray:
    """Positions that are hard to divide, or to search."""
    random = np.random.default_rng(count)
    points = random.random((count, axes))
    if kind == "clump":
        points[count // 4 :] = 0.5 + 1e-4 * random.normal(size=points[count // 4 :].shape)
    elif kind == "one place":
        points[:] = points[0]
    elif kind == "line":
        points[:, 1:] = 0.25
    elif kind == "lattice":
        points = np.floor(points * 5)
    elif kind == "far":
        points *= 1e30
    elif kind == "one far away":
        points[0] = 1e9
    return points.astype(dtype)


def known_around(tree: _Tree, spacing: int) -> np.ndarray:
    return np.arange(0, len(tree), 2 * spacing)


def plain_expectation(tree: _Tree, spacing: int, per: float, number: np.ndarray, missed: np.ndarray, i: int) -> tuple:
    """The weighted fit at particle `i` by least squares, and the octave of its scale, in other words than the kernel's."""
    position = tree.position.astype(float)
    known = known_around(tree, spacing)
    square = ((position[known] - position[i]) ** 2).sum(axis=1)
    near = known[np.argsort(square, kind="stable")[:NEAREST]]
    offset = (position[near] - position[i]) * per
    distance = np.sqrt((offset**2).sum(axis=1))
    weight = 1 / (distance + 0.2) ** 2
    weight /= weight.sum()
    damped = 0.3 * (1e-3 + (weight * distance**2).sum())
    values = number[near].astype(float)
    design = np.column_stack([np.ones(len(near)), offset])
    normal = design.T @ (weight[:, None] * design) + np.diag([0.0] + [damped] * offset.shape[1])
    fitted = np.linalg.solve(normal, design.T @ (weight[:, None] * values))[0]
    spread = (weight[:, None] * abs(values - fitted)).sum(axis=0)

    def octave(x: np.ndarray) -> np.ndarray:
        fraction, exponent = np.frexp(x)
        return exponent - 1 + (2 * fraction - 1)

    seen = (weight * missed[near]).sum() + 0.5, (weight * distance).sum() + 0.05, distance[0] + 0.05
    miss, gap, close = octave(np.array(seen))
    scale = [0.56 * miss - 0.072 * gap - 0.083 * close - 0.816 + 0.324 * octave(spread[1:] + 0.5)]
    scale.insert(0, [0.614 * miss - 0.111 * gap - 0.067 * close - 0.823 + 0.351 * octave(spread[0] + 0.5)])
    return fitted, 4 * np.concatenate(scale)


@pytest.mark.parametrize(
    ("count", "axes", "kind", "dtype", "components"),
    in_pairs([20, 100, 1000, 2049], [2, 3], ["even", "clump", "line", "one far away"], ["f4", "f8"], [1, 2, 3]),
)
def test_expectations_are_those_of_a_weighted_fit_to_the_nearest_known_particles(count, axes, kind, dtype, components):
    tree = _Tree.of(shapes_of_space(count, axes, kind, dtype))
    random = np.random.default_rng(1)
    number = random.integers(-1000, 1000, (count, components)).astype(np.int32)
    missed, per = random.random(count).astype(np.float32) * 50, tree.per_spacing
    for spacing in tree.spacings():
        expected, scale = tree.expected(spacing, per, number, missed)
        for row in random.integers(0, len(expected), 20).tolist():
            fitted, quarters = plain_expectation(tree, spacing, per, number, missed, (2 * row + 1) * spacing)
            assert abs(expected[row] - fitted).max() <= 0.5 + 1e-6 * abs(number).max()
            np.testing.assert_allclose(scale[row], quarters, atol=1e-4)


@pytest.mark.few
@pytest.mark.parametrize(
    ("count", "axes", "kind", "dtype", "components"),
    in_pairs(
        [1, 2, 15, 16, 17, 33, 1000, 20_000], [2, 3],
        ["even", "clump", "one place", "line", "lattice", "far", "one far away"], ["f4", "f8"], [0, 1, 2, 3, 4],
    ),
)
def test_any_particles_come_back_within_the_tolerance(count, axes, kind, dtype, components):
    positions = shapes_of_space(count, axes, kind, dtype)
    random = np.random.default_rng(2)
    values = random.normal(size=(count, components) if components else count).cumsum(axis=0).astype(dtype)
    codec = Neighbours().beside(positions)
    data = codec.encode(values, Tolerance(absolute=0.01))
    decoded = codec.decode(data, values.shape, values.dtype)
    assert abs(decoded.astype(float) - values).max() <= 0.01
    plain = codecs.get("prequantised")
    other = (Columns(plain) if components else plain).encode(values, Tolerance(absolute=0.01))
    assert len(data) <= len(other) + 1   # never larger than without positions


def test_particles_whose_squared_distances_overflow_are_not_predicted_from():
    random = np.random.default_rng(0)
    positions = random.random((5000, 3))
    for sides, finite in (([1e36] * 3, True), ([1e155] * 3, False), ([1e300] * 3, False), ([1e5, 1e-300, 1e-300], False)):
        assert _Tree.of(positions * sides).has_finite_squares == finite
    codec, values = Neighbours().beside(positions * 1e300), random.normal(size=(5000, 3))
    data = codec.encode(values, Tolerance(absolute=0.01))
    assert data[0] == PLAIN   # a scale would be read off the bits of NaN, whose sign differs between machines
    assert abs(codec.decode(data, values.shape, values.dtype) - values).max() <= 0.01


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_columns(data):
    count, axes = data.draw(st.integers(1, 400)), data.draw(st.sampled_from([2, 3]))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    positions = random.normal(size=(count, axes)) ** data.draw(st.integers(1, 5))
    values = random.normal(size=(count, 3)) * 10.0 ** data.draw(st.integers(-30, 30))
    tolerance = float(abs(values).max()) * 10.0 ** -data.draw(st.integers(0, 12))
    codec = Neighbours().beside(positions)
    decoded = codec.decode(codec.encode(values, Tolerance(absolute=tolerance)), values.shape, values.dtype)
    assert abs(decoded - values).max() <= tolerance


def test_velocities_take_fewer_bits_beside_their_positions():
    particles = synthetic.cosmic_web(n=32, seed=1)
    along = _Tree.of(particles.positions).order
    positions, velocities = particles.positions[along], particles.velocities[along]
    tolerance = Tolerance(absolute=0.01 * float(np.std(velocities)))
    data = Neighbours().beside(positions).encode(velocities, tolerance)
    others = [Columns(codecs.get(name)).encode(velocities, tolerance) for name in ("prequantised", "interpolation")]
    assert len(data) < 0.95 * min(map(len, others))


def test_the_order_of_the_particles_is_kept_and_does_not_matter_for_the_size():
    particles = synthetic.cosmic_web(n=16, seed=2)
    shuffled = np.random.default_rng(0).permutation(len(particles))
    sizes = []
    for positions, velocities in ((particles.positions, particles.velocities),
                                  (particles.positions[shuffled], particles.velocities[shuffled])):
        codec = Neighbours().beside(positions)
        data = codec.encode(velocities, Tolerance(absolute=1.0))
        assert abs(codec.decode(data, velocities.shape, velocities.dtype) - velocities).max() <= 1
        sizes.append(len(data))
    assert abs(sizes[0] - sizes[1]) < 0.01 * sizes[0]


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_curve_goes_from_each_cell_to_one_beside_it(axes, dtype):
    cells = np.stack(np.meshgrid(*[np.arange(16)] * axes), axis=-1).reshape(-1, axes).astype(dtype)
    along = _Tree.of(np.random.default_rng(0).permutation(cells)).position
    assert len(np.unique(along, axis=0)) == 16**axes
    assert (abs(np.diff(along, axis=0)).sum(axis=1) == 1).all()


def test_boxes_hold_their_particles_in_every_tier():
    tree = _Tree.of(shapes_of_space(1003, 3, "clump", "f4"))
    boxes = tree.box.reshape(-1, 2, 3)
    for number, (begin, end) in enumerate(itertools.pairwise(tree.tier.tolist())):
        length = 1 << (LEAF_TIER + number)
        assert end - begin == -(-len(tree) // length)
        for k, (lower, upper) in enumerate(boxes[begin:end]):
            own = tree.position[k * length : (k + 1) * length]
            assert (lower == own.min(axis=0)).all()
            assert (upper == own.max(axis=0)).all()


def test_damaged_bytes_are_refused_or_decode_to_other_numbers():
    positions = shapes_of_space(3000, 3, "clump", "f4")
    values = np.sin(3 * positions)
    codec = Neighbours().beside(positions)
    data = codec.encode(values, Tolerance(absolute=1e-3))
    assert data[0] == 1
    random, refused = np.random.default_rng(3), 0
    for place in random.integers(0, len(data), 300):
        forged = bytearray(data)
        forged[place] ^= 1 << random.integers(8)
        try:
            decoded = codec.decode(bytes(forged), values.shape, values.dtype)
        except WorkbenchError:
            refused += 1
        else:
            assert decoded.shape == values.shape
    assert refused > 100
    for length in range(0, len(data) - 1, 97):
        with pytest.raises(WorkbenchError):
            codec.decode(data[:length], values.shape, values.dtype)
    with pytest.raises(CodecFailed, match=r"does not end where it should|not what their blocks take"):
        codec.beside(positions[::-1] + np.float32(1)).decode(data, values.shape, values.dtype)


def test_without_positions_there_is_a_sentence():
    with pytest.raises(CodecFailed, match=r"wb\.open"):
        Neighbours().encode(np.zeros((5, 3), "f4"), Tolerance(absolute=1.0))
    with pytest.raises(CodecFailed, match="5 particles cannot have positions"):
        Neighbours().beside(np.zeros((4, 3), "f4")).encode(np.zeros((5, 3), "f4"), Tolerance(absolute=1.0))


def test_the_first_miss_is_the_mean_distance_from_the_first_number():
    number = np.array([[0], [9], [4], [9], [8]], np.int32)
    assert _first_miss(number, 2).tolist() == [4, 0, 4, 0, 4]
