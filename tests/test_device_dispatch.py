"""The way to the GPU, walked without one: a stand-in for CuPy checks every launch (see fake_cupy.py).

What it cannot show, that a GPU computes the same bits, is shown by test_gpu.py where there is one.
"""

from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import fake_cupy
import workbench as wb
from conftest import forget_compiled
from workbench import backend
from workbench.clusters import sorted_cells
from workbench.device_code import CACHE, code_on_disk
from workbench.ordering import run_starts, sort_by_key


@pytest.fixture
def cupy(stand_in: ModuleType) -> ModuleType:
    return stand_in


# The stand-in itself keeps CuPy's rules.

def test_the_stand_in_does_not_become_numpy_by_itself(cupy):
    array = cupy.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(array)
    for mixed in (lambda: array + np.ones(2), lambda: np.ones(2) + array, lambda: cupy.concatenate([array, np.ones(2)])):
        with pytest.raises(TypeError, match="Unsupported type"):
            mixed()
    with pytest.raises(TypeError, match="Unsupported type"):
        array[:] = np.ones(2)


def test_the_stand_in_answers_with_its_own_type(cupy):
    array = cupy.asarray([3.0, 1.0])
    results = array + 1, 2 * array, array[0], array.max(), np.cumsum(array), np.sqrt(array), cupy.sort(array), array.T
    for result in results:
        assert type(result) is fake_cupy.ndarray
    array += 1
    assert array.get().tolist() == [4.0, 2.0]
    assert float(array.max()) == 4.0


def test_the_stand_in_has_no_options_that_cupy_lacks(cupy):
    array, count = cupy.asarray([3.0, 1.0]), cupy.asarray([2, 0])
    for call in (
        lambda: array.max(initial=0.0), lambda: array.sum(where=array > 1), lambda: np.add(array, 1, where=array > 1),
        lambda: cupy.cumsum(array, initial=0), lambda: np.maximum.reduce(array), lambda: array < (1.0, 2.0),
        lambda: cupy.searchsorted(array, count),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="must be a number before"):
        cupy.repeat(array, count)
    with pytest.raises(ValueError, match="zero-size"):
        cupy.bincount(count[:0], minlength=3)
    with pytest.raises(NotImplementedError, match="non-contiguous"):
        cupy.zeros(6)[::2].sort()


def test_the_stand_in_leaves_open_what_a_gpu_leaves_open(cupy):
    assert cupy.empty(2, np.uint8).get().tolist() == [0xA5, 0xA5]
    assert float((cupy.asarray([3.0]) ** 2)[0]) > 9.0
    array = cupy.zeros(3)
    array[cupy.asarray([1, 1])] = 5.0
    with pytest.raises(AssertionError, match="several values for one place"):
        array[cupy.asarray([1, 1])] = cupy.asarray([5.0, 6.0])


def test_the_stand_in_waits_where_cupy_waits(cupy):
    array, mask = cupy.zeros(3), cupy.asarray([True, False, True])
    for waits, call in [
        (1, lambda: array.__setitem__(mask, 1.0)), (0, lambda: array.__setitem__(cupy.asarray([1]), 1.0)),
        (1, lambda: array[mask]), (2, lambda: cupy.bincount(cupy.asarray([1]))), (1, lambda: cupy.flatnonzero(array)),
        (0, lambda: cupy.array_equal(array, array)),
    ]:
        fake_cupy.counted.clear()
        call()
        assert fake_cupy.counted["synchronisations"] == waits


def launch(cupy: ModuleType, args: tuple[object, ...], grid: object = (1,), block: object = (256,)) -> None:
    backend._device_module("ordering", "f32", 3, 70).get_function("count_runs_f32_3d")(grid, block, args)


def test_the_stand_in_sees_a_wrong_launch(cupy):
    key, counts = cupy.asarray([1, 1, 2]).astype(np.uint64), cupy.zeros(1, np.int64)
    right = (np.int64(1), np.int64(3), key, np.int32(0), counts)
    launch(cupy, right)
    assert int(counts[0]) == 2
    strided = cupy.zeros(6, np.uint64)[::2]
    for place, wrong in [(0, 1), (0, np.int32(1)), (2, key.get()), (2, key.astype(np.int64)), (2, strided)]:
        with pytest.raises((AssertionError, TypeError)):
            launch(cupy, (*right[:place], wrong, *right[place + 1 :]))
    with pytest.raises(AssertionError):
        launch(cupy, right[:-1])
    for grid, block in [((0,), (256,)), ((1,), (2048,)), ((1.0,), (256,)), ((np.int64(1),), (256,))]:
        with pytest.raises(AssertionError):
            launch(cupy, right, grid, block)


# The backend on it.

def test_arrays_of_the_gpu_go_to_its_kernels(cupy):
    assert backend.namespace(cupy.zeros(3)) is cupy
    assert backend.gpu() is cupy
    positions = cupy.asarray(np.random.default_rng(0).random((1000, 2)))
    lower, upper = cupy.empty((31, 2)), cupy.empty((31, 2))
    backend.kernel("extent", "extent", np.float64, 2)(31, 31, 1000, 1000, positions, lower, upper)
    assert fake_cupy.Function.launches == ["extent_f64_2d"]
    np.testing.assert_array_equal(lower.get().min(axis=0), positions.get().min(axis=0))


def test_each_variant_is_compiled_once(cupy, monkeypatch):
    compiled = []
    original = cupy.RawModule
    monkeypatch.setattr(cupy, "RawModule", lambda path: compiled.append(path) or original(path=path))
    for _ in range(3):
        for dtype in (np.float32, np.float64):
            wb.Particles(cupy.asarray(np.ones((5, 3), dtype)))
    assert len(compiled) == 2


def test_code_is_compiled_once_for_all_processes(cupy, monkeypatch, tmp_path):
    compiled, made = [], fake_cupy.Program.compile
    monkeypatch.setattr(cupy.cuda.nvrtc, "compileProgram", lambda *given: compiled.append(given) or made(*given))
    monkeypatch.setenv(CACHE, str(tmp_path))
    for _ in range(2):
        forget_compiled()
        wb.Particles(cupy.asarray(np.ones((5, 3))))
    assert len(compiled) == len(list(tmp_path.iterdir())) == 1


def test_code_finds_a_place_where_the_cache_cannot_be_written_to(cupy, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE, str(tmp_path / "file" / "folder"))
    assert wb.Particles(cupy.asarray(np.ones((5, 3)))).upper.tolist() == [1.0] * 3


def test_an_error_of_the_compiler_is_shown(cupy, monkeypatch):
    def fails(program: fake_cupy.Program, options: tuple[str, ...]) -> None:
        raise fake_cupy.NVRTCError("NVRTC_ERROR_COMPILATION (6)")

    monkeypatch.setattr(cupy.cuda.nvrtc, "compileProgram", fails)
    monkeypatch.setattr(cupy.cuda.nvrtc, "getProgramLog", lambda _: 'kernels.cu(7): error: identifier "x" is undefined')
    with pytest.raises(RuntimeError, match=r"kernel file with -arch=sm_70: kernels.cu\(7\): error: identifier"):
        wb.Particles(cupy.asarray(np.ones((5, 3))))


def test_a_card_that_is_newer_than_the_compiler_gets_ptx(cupy, monkeypatch):
    given = []
    monkeypatch.setattr(cupy.cuda.nvrtc, "compileProgram", lambda program, options: given.append(options[-1]))
    monkeypatch.setattr(cupy.cuda.nvrtc, "getPTX", lambda _: b"text", raising=False)
    assert code_on_disk(cupy, "", (), 121).read_bytes() == b"text"
    assert given == ["-arch=compute_90"]


def test_cards_of_two_kinds_get_code_of_their_own(cupy, monkeypatch):
    targets = []

    def compiles(program: fake_cupy.Program, options: tuple[str, ...]) -> None:
        targets.append(options[-1])
        program.made = repr((program.code, options)).encode()

    monkeypatch.setattr(cupy.cuda.nvrtc, "compileProgram", compiles)
    key = cupy.asarray([1, 1, 2]).astype(np.uint64)
    for capability in ("70", "90", "70"):
        card = SimpleNamespace(id=0, compute_capability=capability)
        monkeypatch.setattr(cupy.cuda, "Device", lambda card=card: card)
        assert run_starts(key).get().tolist() == [0, 2, 3]
    assert targets == ["-arch=sm_70", "-arch=sm_90"]


def test_arrays_on_another_card_are_refused(cupy, monkeypatch):
    key = cupy.zeros(3, np.uint64)
    monkeypatch.setattr(cupy.cuda, "Device", lambda: SimpleNamespace(id=1, compute_capability="70"))
    with pytest.raises(wb.WorkbenchError, match=r"current GPU, number 1; got one on number 0: with cupy.cuda.Device\(0\)"):
        run_starts(key)


@pytest.mark.parametrize("count", [1, 255, 256, 257, 10**6])
def test_the_launch_covers_the_work_and_stays_legal(cupy, monkeypatch, count):
    shapes = []
    monkeypatch.setattr(fake_cupy.Function, "__call__", lambda self, grid, block, args: shapes.append((grid, block)))
    key = cupy.zeros(count, np.uint64)
    backend.kernel("ordering", "count_runs")(count, count, key, 0, cupy.zeros(count, np.int64))
    ((blocks,), (threads,)), = shapes
    assert blocks * threads >= count > (blocks - 1) * threads


def test_more_work_than_a_grid_may_hold_is_looped_over(cupy, monkeypatch):
    shapes = []
    monkeypatch.setattr(fake_cupy.Function, "__call__", lambda self, grid, block, args: shapes.append(grid))
    groups = 2**28 + 1   # one more than 2^20 blocks of 256; memory that nobody touches costs nothing
    backend.kernel("packing", "group_widths")(groups, 1, 1, cupy.zeros(1, np.uint64), cupy.zeros(groups, np.uint8))
    assert shapes == [(2**20,)]


def test_room_to_sort_in_is_made_on_a_cpu_alone(cupy, monkeypatch):
    """CuPy's sort allocates its own: room that it ignores would add to the peak."""
    given = []
    monkeypatch.setattr(sorted_cells, "sort_by_key", lambda *a, scratch, **k: given.append(scratch) or sort_by_key(*a, **k))
    here = wb.synthetic.cosmic_web(n=8)
    for positions in (here.positions, cupy.asarray(here.positions)):
        sorted_cells.SortedCells.of(wb.Particles(positions, here.box), 0.2)
    assert given[0] is not None
    assert given[1] is None


def test_a_host_array_does_not_leak_into_a_launch(cupy):
    with pytest.raises(wb.WorkbenchError, match="must be on one machine"):
        backend.kernel("ordering", "count_runs")(1, 3, cupy.zeros(3, np.uint64), 0, np.zeros(1, np.int64))
    assert fake_cupy.Function.launches == []


def test_a_strided_gpu_array_is_refused(cupy):
    with pytest.raises(TypeError, match="key must be C-contiguous"):
        backend.kernel("ordering", "count_runs")(1, 3, cupy.zeros(6, np.uint64)[::2], 0, cupy.zeros(1, np.int64))


# What is built on it.

@pytest.mark.parametrize("bits", [5, 12, 40, 64])
def test_sorting_and_runs(cupy, bits):
    key = np.random.default_rng(bits).integers(0, 2**bits - 1, size=3000, dtype=np.uint64) & ~np.uint64(3)
    on_host, on_device = [key.copy()], [cupy.asarray(key)]   # the keys, which are sorted in place, and the order
    for keys in (on_host, on_device):
        keys.append(sort_by_key(keys[0], bits))
    for ours, theirs in zip(on_device, on_host, strict=True):
        assert type(ours) is fake_cupy.ndarray
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours.get(), theirs)
    starts = run_starts(on_device[0], shift=3)
    assert type(starts) is fake_cupy.ndarray
    np.testing.assert_array_equal(starts.get(), run_starts(on_host[0], shift=3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("box", [None, 1.0])
@pytest.mark.parametrize("kind", ["scattered", "clustered"])
def test_friends_of_friends_stay_on_the_gpu(cupy, dtype, dimensions, box, kind):
    positions = particle_set(kind, dimensions).astype(dtype) % dtype(1)
    expected = wb.friends_of_friends(wb.Particles(positions, box=box))
    assert fake_cupy.Function.launches == []

    particles = wb.Particles(cupy.asarray(positions), box=box)
    groups = wb.friends_of_friends(particles)
    assert type(particles.positions) is type(groups.labels) is fake_cupy.ndarray
    ran = {symbol.rsplit("_", 2)[0]: symbol for symbol in fake_cupy.Function.launches}
    assert ran["link"] == f"link_f{8 * dtype().itemsize}_{dimensions}d"
    assert "count_runs" in ran
    most = 2 * dimensions + 2   # the extent, and the numbers of cells and blocks
    assert sum(fake_cupy.copied_to_host) <= most, "positions or labels went to the host and back"
    np.testing.assert_array_equal(groups.labels.get(), expected.labels)
    assert groups.linking_length == expected.linking_length


def particle_set(kind: str, dimensions: int) -> np.ndarray:
    """Particles all over the box, and with a clump so dense that one cell holds thousands."""
    random = np.random.default_rng(dimensions)
    scattered = random.random((3000, dimensions))
    if kind == "scattered":
        return scattered
    clump = 0.5 + 1e-3 * random.normal(size=(4000, dimensions))
    return random.permutation(np.concatenate([scattered, clump]))


def test_groups_answer_on_the_gpu(cupy):
    positions = particle_set("clustered", 3)
    here = wb.friends_of_friends(wb.Particles(positions, box=1.0))
    there = wb.friends_of_friends(wb.Particles(cupy.asarray(positions), box=1.0))
    assert there.count(min_members=20) == here.count(min_members=20)
    assert there.equals(there)
    np.testing.assert_array_equal(backend.to_host(there.sizes), here.sizes)


def test_bad_positions_on_the_gpu_are_refused(cupy):
    positions = cupy.asarray(np.ones((5, 3)))
    positions[2, 1] = float("nan")
    with pytest.raises(wb.WorkbenchError, match="positions must be finite; got nan or infinity on axis 1"):
        wb.Particles(positions)
    with pytest.raises(wb.WorkbenchError, match=r"must lie in \[0, 1\) on axis 0"):
        wb.Particles(cupy.asarray(np.ones((5, 3))), box=1.0)
    with pytest.raises(wb.WorkbenchError, match="must be on one machine"):
        wb.Particles(cupy.asarray(np.ones((5, 3))), velocities=np.ones((5, 3)))


def test_the_rest_of_particles_on_the_gpu(cupy):
    positions = np.random.default_rng(3).normal(size=(100, 3))
    wrapped = wb.Particles.wrapped(cupy.asarray(positions), box=1.0)
    np.testing.assert_array_equal(wrapped.positions.get(), wb.Particles.wrapped(positions, box=1.0).positions)
    assert type(wrapped.select([3, 4]).positions) is fake_cupy.ndarray
    assert wrapped.spacing == pytest.approx(100 ** (-1 / 3))


def test_fields_on_the_gpu(cupy):
    field = wb.Field(cupy.asarray(np.ones((8, 4), np.float32)), mask=cupy.zeros((8, 4), bool))
    assert type(field.values) is type(field.valid) is fake_cupy.ndarray
    with pytest.raises(wb.WorkbenchError, match="must be on one machine"):
        wb.Field(cupy.asarray(np.ones(3)), mask=np.zeros(3, bool))
