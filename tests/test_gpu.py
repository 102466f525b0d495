"""The same bits on both machines: every family of kernels, on a real GPU. Without one these tests are skipped.

The bits are the claim, so nothing here is compared with a tolerance.
"""

from types import ModuleType

import numpy as np
import pytest

import oracles
import workbench as wb
from archive.test_operators import assert_same_stencils
from workbench import backend
from workbench.archive.statistics.stencils import Operation
from workbench.codecs import Codec, Tolerance
from workbench.codecs.earlier import Earlier
from workbench.codecs.lattice import LatticeCodec
from workbench.codecs.motion import IN_TIME, Motion
from workbench.guarantees import Limit, check
from workbench.ordering import run_starts, sort_by_key

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cupy() -> ModuleType:
    return backend.gpu()


def assert_same(ours: object, theirs: np.ndarray) -> None:
    assert backend.on_device(ours)
    copied = backend.to_host(ours)
    assert copied.dtype == theirs.dtype
    assert copied.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("bits", [3, 11, 12, 33, 64])
@pytest.mark.parametrize("count", [1, 31, 100_003])
def test_sorting_and_runs(cupy, bits, count):
    key = np.random.default_rng(bits).integers(0, 2**bits - 1, size=count, dtype=np.uint64, endpoint=True)
    on_host, on_device = [key.copy()], [cupy.asarray(key)]   # the keys, which are sorted in place, and the order
    for keys in (on_host, on_device):
        keys.append(sort_by_key(keys[0], bits))
    for ours, theirs in zip(on_device, on_host, strict=True):
        assert_same(ours, theirs)
    for shift in (0, bits // 2):
        assert_same(run_starts(on_device[0], shift), run_starts(on_host[0], shift))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_extent(cupy, dtype, dimensions):
    positions = np.random.default_rng(0).normal(size=(50_001, dimensions)).astype(dtype)
    here, there = wb.Particles(positions), wb.Particles(cupy.asarray(positions))
    assert here.lower.tobytes() == there.lower.tobytes()
    assert here.upper.tobytes() == there.upper.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("operation", Operation)
def test_stencils(cupy, operation, dtype):
    assert_same_stencils(cupy, operation, dtype)


def scattered(random: np.random.Generator, dimensions: int) -> np.ndarray:
    return random.random((200_000, dimensions))


def clustered(random: np.random.Generator, dimensions: int) -> np.ndarray:
    centres = random.random((300, 1, dimensions))
    sizes = random.exponential(0.01, (300, 1, 1))
    return np.concatenate([(centres + sizes * random.normal(size=(300, 500, dimensions))).reshape(-1, dimensions)])


def on_a_lattice(random: np.random.Generator, dimensions: int) -> np.ndarray:
    """Distances that tie with the linking length: one wrong rounding shows."""
    return np.floor(random.random((100_000, dimensions)) * 128) / 128


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("box", [None, 1.0])
@pytest.mark.parametrize("make", [scattered, clustered, on_a_lattice])
def test_groups(cupy, make, dtype, dimensions, box):
    positions = make(np.random.default_rng(5), dimensions).astype(dtype)
    positions = np.where(positions % 1 < 1, positions % 1, 0).astype(dtype)
    for length in (1 / 128, 0.003, 0.02):
        here = wb.friends_of_friends(wb.Particles(positions, box=box), length, unit="length")
        there = wb.friends_of_friends(wb.Particles(cupy.asarray(positions), box=box), length, unit="length")
        assert_same(there.labels, here.labels)


HARD = oracles.hard_cases()


@pytest.mark.parametrize("name", HARD)
def test_groups_of_hard_cases(cupy, name):
    particles, length = HARD[name]
    moved = wb.Particles(cupy.asarray(particles.positions), box=particles.box)
    here = wb.friends_of_friends(particles, length, unit="length")
    assert_same(wb.friends_of_friends(moved, length, unit="length").labels, here.labels)


def test_repeated_runs_agree(cupy):
    """Thousands of threads unite cells in another order every time; the labels stay."""
    particles = wb.Particles(cupy.asarray(clustered(np.random.default_rng(1), 3)))
    first = wb.friends_of_friends(particles).labels
    for _ in range(10):
        assert bool((wb.friends_of_friends(particles).labels == first).all())


@pytest.mark.parametrize("bound", [0.1, 0.3])
@pytest.mark.parametrize(("dtype", "dimensions"), [(np.float32, 3), (np.float64, 2)])
def test_kept_clusters(cupy, dtype, dimensions, bound):
    """The corrected positions: constraints, candidates and moves are chosen by kernels alone."""
    random = np.random.default_rng(2)
    positions = random.random((30, 1, dimensions)) + random.normal(scale=0.02, size=(30, 50, dimensions))
    original = wb.Particles.wrapped(positions.reshape(-1, dimensions).astype(dtype), 1.0)
    error = random.uniform(-bound, bound, original.positions.shape) * 0.02
    decoded = wb.Particles.wrapped((original.positions + error).astype(dtype), 1.0).positions
    limit = wb.Absolute(1.01 * bound * 0.02)
    here = wb.clusters.correct(original, decoded, limit, 0.02, "length")
    moved = wb.Particles(cupy.asarray(original.positions), original.box)
    there = wb.clusters.correct(moved, cupy.asarray(decoded), limit, 0.02, "length")
    assert_same(there.positions, here.positions)
    assert_same(there.groups[-1].labels, here.groups[-1].labels)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_mass_on_a_mesh(cupy, dtype, dimensions):
    """Many particles add to the same cells at once."""
    cells, count = 16, 100_000
    positions = (np.random.default_rng(2).random((count, dimensions)) * cells).astype(dtype)
    positions = np.where(positions < cells, positions, 0).astype(dtype)
    mass, moved = np.zeros((cells,) * dimensions, np.int64), cupy.zeros((cells,) * dimensions, np.int64)
    deposit = backend.kernel("mesh", "deposit", dtype, dimensions)
    deposit(count, cells, positions, mass)
    deposit(count, cells, cupy.asarray(positions), moved)
    assert_same(moved, mass)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_moves_in_a_potential(cupy, dtype, dimensions):
    cells, count = 16, 100_000
    random = np.random.default_rng(3)
    potential = random.normal(size=(cells,) * dimensions).astype(dtype)
    positions = np.minimum(random.random((count, dimensions)) * cells, cells - 0.01).astype(dtype)
    momenta = random.normal(size=(count, dimensions)).astype(dtype)
    there = [cupy.asarray(array) for array in (potential, positions, momenta)]
    move = backend.kernel("mesh", "kick_and_drift", dtype, dimensions)
    move(count, cells, potential, 0.3, 1.7, positions, momenta)
    move(count, cells, there[0], 0.3, 1.7, *there[1:])
    assert_same(there[1], positions)
    assert_same(there[2], momenta)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize(
    ("order", "coder"),
    [(order, coder) for order in ("free", "keep") for coder in ("packed", "context", "pcodec")] +
    [("free", "counts"), ("keep", "molecules")],
)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_the_house_codec(cupy, dtype, dimensions, order, coder, tolerance):
    if coder == "molecules" and dimensions == 2:
        pytest.skip("molecules have three dimensions")
    positions = clustered(np.random.default_rng(6), dimensions).astype(dtype)
    codec, aim = LatticeCodec(order=order, coder=coder), Tolerance(absolute=tolerance)
    data = codec.encode(cupy.asarray(positions), aim)
    assert data == codec.encode(positions, aim)
    assert_same(codec.decode(data, positions.shape, dtype, cupy), codec.decode(data, positions.shape, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("limit", [Limit("absolute", 1e-3), Limit("relative", 1e-3), Limit("absolute", 0.0)])
@pytest.mark.parametrize("period", [None, (1.0, 1.0, 1.0)])
def test_the_check(cupy, dtype, limit, period):
    random = np.random.default_rng(7)
    original = random.random((100_000, 3)).astype(dtype)
    decoded = (original + random.normal(size=original.shape) * 4e-4).astype(dtype)
    here = check(original, decoded, limit, period)
    there = check(cupy.asarray(original), cupy.asarray(decoded), limit, period)
    assert_same(there.broken, here.broken)
    assert there.largest_error == here.largest_error


def repeated_on_card(cupy: ModuleType, monkeypatch: pytest.MonkeyPatch, source: str) -> list[str]:
    """The kernels of this source that are launched from now on; the card must make the same of the arrays as the host."""
    names, launch = [], backend.Kernel.__call__

    def on_both(kernel: backend.Kernel, items: int, *arguments: object, **named: object) -> None:
        bundled = bool(named) or any(isinstance(each, dict) for each in arguments)
        here = kernel._in_order((*arguments, named)) if bundled else list(arguments)
        there = [cupy.asarray(each) if isinstance(each, np.ndarray) else each for each in here]
        launch(kernel, items, *here)
        if kernel.source != source:
            return
        launch(kernel, items, *there)
        for ours, theirs in zip(there, here, strict=True):
            if isinstance(theirs, np.ndarray):
                assert_same(ours, theirs)
        names.append(kernel.name)

    monkeypatch.setattr(backend.Kernel, "__call__", on_both)
    return names


def in_time(codec: Codec, values: np.ndarray) -> bytes:
    """The last step after those before, decoded within its bound."""
    known = Earlier(tuple(values[-2:-4:-1]), (2.0, 1.0, 0.0), values[-2] - values[-3])
    data = codec.following(known).encode(values[-1], Tolerance(absolute=1e-3))
    decoded = codec.following(known).decode(data, values[-1].shape, values.dtype)
    assert abs(decoded - values[-1]).max() <= 1e-3
    return data


@pytest.mark.parametrize(("components", "dtype"), [(3, np.float32), (1, np.float64)])
def test_motion(cupy, monkeypatch, dtype, components):
    launched = repeated_on_card(cupy, monkeypatch, "motion")
    random, box = np.random.default_rng(8), (1.0,) * components
    speed = 0.01 * np.cumsum(random.normal(size=(1500, components)), axis=0) / np.sqrt(np.arange(1, 1501))[:, None]
    values = ((random.random((1500, components)) + np.arange(4)[:, None, None] * speed) % 0.999).astype(dtype)
    assert in_time(Motion(box), values)[0] == in_time(Motion(), values)[0] == IN_TIME
    data = Motion().encode(values, Tolerance(absolute=1e-3))
    assert abs(Motion().decode(data, values.shape, dtype) - values).max() <= 1e-3
    assert {"survey_motion", "encode_motion", "decode_motion"} <= set(launched)
