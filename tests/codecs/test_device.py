"""The house codec on the stand-in for CuPy: the same bytes as on a CPU, and positions stay where they are."""

import itertools
from types import ModuleType

import numpy as np
import pytest

import fake_cupy
import workbench as wb
from workbench.archive import encoding
from workbench.archive.encoding import encode_values
from workbench.codecs import Tolerance
from workbench.codecs.entropy import CodedIntegers
from workbench.codecs.lattice import LatticeCodec
from workbench.codecs.lattice_stream import Stream
from workbench.codecs.packing import PcodecIntegers


@pytest.fixture
def cupy(stand_in: ModuleType) -> ModuleType:
    return stand_in


def positions(count: int = 5000) -> np.ndarray:
    return np.random.default_rng(0).random((count, 3)) ** 2


CODERS = pytest.mark.parametrize(
    ("order", "coder"),
    [*itertools.product(["free", "keep"], ["packed", "context", "pcodec", "auto"]), ("free", "counts"), ("free", "small"),
     ("keep", "small")],
)


@CODERS
@pytest.mark.parametrize("tolerance", [1e-3, 1e-11])
def test_both_machines_write_the_same_bytes_and_read_the_same_positions(cupy, order, coder, tolerance):
    given, aim = positions(), Tolerance(absolute=tolerance)
    codec = LatticeCodec(order=order, coder=coder, block=256)
    data = codec.encode(cupy.asarray(given), aim)
    assert data == codec.encode(given, aim)
    decoded = codec.decode(data, given.shape, given.dtype, cupy)
    assert type(decoded) is fake_cupy.ndarray
    assert np.array_equal(decoded.get(), codec.decode(data, given.shape, given.dtype))


@pytest.mark.parametrize("order", ["free", "keep"])
def test_packing_takes_only_packed_bytes_to_the_host(cupy, order):
    moved = cupy.asarray(positions(100_000))
    fake_cupy.copied_to_host.clear()
    data = LatticeCodec(order=order, coder="packed").encode(moved, Tolerance(absolute=1e-3))
    assert sum(fake_cupy.copied_to_host) < 1.01 * len(data)


@pytest.mark.parametrize("order", ["free", "keep"])
def test_archives_from_both_machines_are_the_same(cupy, order):
    here = positions().astype(np.float32)
    there = cupy.asarray(here)
    codec, bound = LatticeCodec(coder="packed"), wb.Absolute(1e-3)
    ids = np.arange(len(here))
    ours = wb.compress(wb.Particles(there, 1.0, there, cupy.asarray(ids)), bound, codec, order=order)
    theirs = wb.compress(wb.Particles(here, 1.0, here, ids), bound, codec, order=order)
    assert ours.store.keys() == theirs.store.keys()
    assert all(ours.store.read(key) == theirs.store.read(key) for key in theirs.store.keys())   # noqa: SIM118


@CODERS
@pytest.mark.parametrize(
    ("rows", "tolerance", "dtype"), [(997, 1e-3, np.float32), (640, 1e-2, np.float64), (900, 1e-11, np.float64)]
)
def test_many_chunks_at_once_have_the_bytes_of_single_ones(cupy, monkeypatch, order, coder, rows, tolerance, dtype):
    here = wb.Particles(positions(3001).astype(dtype), 1.0)
    there = wb.Particles(cupy.asarray(here.positions), 1.0)
    codec, single = LatticeCodec(coder=coder, block=64), []
    monkeypatch.setattr(encoding, "encode_values", lambda *given: single.append(1) or encode_values(*given))
    stores = []
    for data, singly in ((there, False), (here, True)):
        stores.append(wb.compress(data, wb.Absolute(tolerance), codec, order=order, chunk_values=3 * rows).store)
        assert bool(single) == singly
    assert all(stores[0].read(key) == stores[1].read(key) for key in stores[1].keys())   # noqa: SIM118


def test_chunks_of_both_coders_are_encoded_at_once(cupy):
    """A chunk of a grid, a chunk of a web and a short one of few particles: each has the coder that suits it."""
    web = wb.synthetic.cosmic_web(n=24)
    points = np.concatenate([grid().positions, web.positions * (24 / web.box[0]), grid().positions[:7]]).astype(np.float32)
    codec = LatticeCodec(order="keep", lower=(0.0,) * 3, upper=(24.0,) * 3)
    aim, rows = Tolerance(absolute=0.01), 24**3
    together = codec.encode_together(cupy.asarray(points), rows, aim)
    assert together == [codec.encode(points[i : i + rows], aim) for i in range(0, len(points), rows)]
    shapes = [points[i : i + rows].shape for i in range(0, len(points), rows)]
    coders = [type(Stream.of(data, shape).coded) for data, shape in zip(together, shapes, strict=True)]
    assert coders[:2] == [PcodecIntegers, CodedIntegers]
    decoded = codec.decode_together(together, rows, points.shape, points.dtype, cupy)
    assert np.abs(decoded.get() - points).max() <= 0.01


def test_the_number_of_launches_does_not_grow_with_the_number_of_chunks(cupy):
    data = wb.synthetic.cosmic_web(n=16)
    there = wb.Particles(cupy.asarray(data.positions), data.box)
    for order, coder in itertools.product(("free", "keep"), ("packed", "context")):
        launches = []
        for rows in (4096, 100):
            fake_cupy.counted.clear()
            wb.compress(there, wb.Absolute(1e-2), LatticeCodec(coder=coder), order=order, chunk_values=3 * rows)
            launches.append((fake_cupy.counted["launches"], fake_cupy.counted["synchronisations"]))
        assert launches[0] == launches[1]


def test_chunks_that_the_codec_cannot_take_are_kept_exactly_one_by_one(cupy):
    here = wb.Particles(positions(3001), 1.0)
    there = wb.Particles(cupy.asarray(here.positions), 1.0)
    for bound in (wb.Absolute(1e-17), wb.Relative(1e-3)):
        stores = [wb.compress(data, bound, LatticeCodec(), chunk_values=3000).store for data in (there, here)]
        assert all(stores[0].read(key) == stores[1].read(key) for key in stores[1].keys())   # noqa: SIM118


def grid() -> wb.Particles:
    axes = np.meshgrid(*[np.arange(24.0)] * 3, indexing="ij")
    return wb.Particles(np.stack(axes, axis=-1).reshape(-1, 3).astype(np.float32), 24.0)


@pytest.mark.few
@pytest.mark.parametrize("order", ["free", "keep"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: wb.synthetic.molecular_lattice(noise=0.03), lambda: wb.synthetic.molecular_lattice(noise=0.0), grid,
        lambda: wb.synthetic.cosmic_web(n=16), lambda: wb.Particles(positions(100_000)),
    ],
    ids=["noisy lattice", "lattice", "grid", "web", "many"],
)
def test_the_coder_that_is_chosen_does_not_depend_on_the_machine(cupy, make, order):
    made = make()
    here = wb.Particles(made.positions, made.box)
    there = wb.Particles(cupy.asarray(here.positions), here.box)
    ours, theirs = (wb.compress(data, wb.Absolute(1e-2), order=order) for data in (there, here))
    assert all(ours.store.read(key) == theirs.store.read(key) for key in theirs.store.keys())   # noqa: SIM118


def test_a_grid_is_coded_by_pcodec_and_a_web_by_contexts(cupy):
    found = []
    for data in (grid(), wb.synthetic.cosmic_web(n=16)):
        stored = cupy.asarray(data.positions)
        stream = Stream.of(LatticeCodec(order="keep").encode(stored, Tolerance(absolute=0.01)), stored.shape)
        found.append(type(stream.coded))
    assert found == [PcodecIntegers, CodedIntegers]


def test_codecs_of_the_host_refuse_arrays_of_a_gpu(cupy):
    with pytest.raises(wb.WorkbenchError, match="works on NumPy arrays; got a CuPy array"):
        wb.compress(wb.Particles(cupy.asarray(positions())), wb.Absolute(1e-3), codec="prequantised")
