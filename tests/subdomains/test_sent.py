"""What verbs send to workers can be pickled and is small; masks, integers, velocities, ids and masses travel along."""

import importlib
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass, field

import cloudpickle
import numpy as np
import pytest

import workbench as wb
from subdomains.counting import Counting
from workbench.data.readers.numpy_files import NpyTable
from workbench.data.readers.snapshots import Snapshot
from workbench.run.chunked_field import ChunkedField
from workbench.run.executors import InProcess

WEB = wb.synthetic.cosmic_web(n=12, seed=4)
MASSES = np.random.default_rng(2).lognormal(size=len(WEB)).astype(np.float32)
PARTICLES = wb.Particles(WEB.positions, WEB.box, WEB.velocities, WEB.ids, masses=MASSES)
VALUES = np.random.default_rng(1).standard_normal((24, 40)).cumsum(1)
MASK = np.abs(VALUES) > 6
FIELDS = {"floats": VALUES, "integers": np.round(100 * VALUES).astype(np.int16)}
MODULES = ("archive.compress", "archive.verify", "subdomains.groups", "metrics.field_sums", "bounds.sources")
LARGEST = 2**15   # bytes that all tasks of a step share, of a source in one file,
EACH = 2**10      # and of a task beside what they share


@dataclass(frozen=True)
class Pickling(Counting):
    """Counts the bytes of what items share, too. Each step and its items are pickled as `map` gets them."""

    shared: dict = field(default_factory=lambda: defaultdict(int))

    def map(self, name, step, items, each="item", on_gpu=False, shared=None, together=False):
        cloudpickle.dumps((step, list(items)))
        self.shared[name] = max(self.shared[name], len(cloudpickle.dumps(shared)))
        return super().map(name, step, items, each, on_gpu, shared, together)


@pytest.fixture(params=["pickled here", "workers"])
def client(request, monkeypatch):
    """A client, or a word for an executor of this process that pickles all that is sent, whose counts must be small."""
    if request.param == "workers":
        yield request.getfixturevalue("cluster").client()
        return
    made = []

    def executor_of(client, progress=None, *sources):
        if client is None:
            return InProcess(progress)
        made.append(Pickling(progress))
        return made[-1]

    for name in MODULES:
        monkeypatch.setattr(importlib.import_module(f"workbench.{name}"), "executor_of", executor_of)
    yield "a client"
    assert made
    for executor in made:
        for name, counts in executor.steps.items():
            assert max(counts.sent, counts.items) <= EACH * counts.tasks, (name, counts)
            assert executor.shared[name] <= LARGEST, (name, executor.shared[name])


@pytest.fixture(params=FIELDS)
def grid(request, tmp_path):
    """A masked field in memory, and the same in files."""
    values = FIELDS[request.param]
    np.save(tmp_path / "values.npy", values)
    np.save(tmp_path / "mask.npy", MASK)
    return wb.Field(values, mask=MASK), ChunkedField(tmp_path / "values.npy", mask=tmp_path / "mask.npy")


@pytest.fixture
def source(tmp_path):
    """Particles with velocities, ids and masses, in a file."""
    columns = {"velocities": PARTICLES.velocities, "ids": PARTICLES.ids, "masses": MASSES}
    paths = {name: tmp_path / f"{name}.npy" for name in ("positions", *columns)}
    for name, path in paths.items():
        np.save(path, getattr(PARTICLES, name))
    found = Snapshot.of("particles in files", [NpyTable.of(paths, None)], None, {}).in_chunks(WEB.box, chunk=500)
    assert set(found.columns) == set(columns)
    return found


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.few(2)
def test_fields(grid, client, tmp_path):
    whole, parts = grid
    bound, how = wb.Absolute(2), {"client": client, "scratch": tmp_path}
    options = {"codec": "prequantised", "chunk_values": 160}
    expected = wb.compress(whole, bound, **options, out=tmp_path / "one.zarr")
    archive = wb.compress(parts, bound, **options, **how, out=tmp_path / "many.zarr")
    assert files(tmp_path / "many.zarr") == files(tmp_path / "one.zarr")
    assert repr(archive.verify(parts, **how)) == repr(expected.verify(whole))
    decoded, back = archive.chunked_field(), expected.decompress()
    for quick in (True, False):
        report, alone = wb.compare(parts, decoded, quick=quick, **how), wb.compare(whole, back, quick=quick)
        assert report.figures.keys() == alone.figures.keys()
        assert report.max_error == alone.max_error
        assert report.psnr == pytest.approx(alone.psnr)
    swept = wb.sweep(parts, "prequantised", [bound], chunk_values=160, cache=False, **how).rows[0]
    assert (swept.error, swept["max_error"]) == (None, alone.max_error)
    if whole.values.dtype.kind == "f":   # it refuses integers
        target = wb.PSNR(40), "prequantised"
        found = wb.find_bound(parts, *target, chunk_values=160, **how)
        assert found.bound == wb.find_bound(whole, *target, chunk_values=160).bound


@pytest.mark.few(1)
@pytest.mark.parametrize(("client", "order"), [
    ("pickled here", "keep"), ("pickled here", "free"), ("workers", "free"),
    pytest.param("workers", "keep", marks=pytest.mark.long),
], indirect=["client"])
def test_particles(source, client, tmp_path, order):
    bound, how = wb.Absolute(0.05), {"client": client, "scratch": tmp_path, "parts": 3}
    options = {
        "velocities": wb.Absolute(0.5), "chunk_values": 1800, "order": order, "store_permutation": order == "free",
        "keep": wb.KeepClusters(0.2),
    }
    expected = wb.compress(PARTICLES, bound, **options, out=tmp_path / "one.zarr")
    archive = wb.compress(source, bound, **options, **how, out=tmp_path / "many.zarr")
    assert files(tmp_path / "many.zarr").keys() == files(tmp_path / "one.zarr").keys()
    back, alone = archive.decompress(), expected.decompress()
    for name in ("velocities", "ids", "masses"):
        np.testing.assert_array_equal(getattr(back, name), getattr(alone, name))
    assert archive.verify(source, **how).passed
    groups = [wb.friends_of_friends(one, 0.2, **how) for one in (source, tmp_path / "many.zarr")]
    with groups[0], groups[1] if order == "keep" else nullcontext():
        whole = wb.friends_of_friends(PARTICLES, 0.2)
        assert groups[0].gathered().equals(whole)
        mine, theirs = groups[0].catalogue(5), wb.clusters.catalogue(PARTICLES, whole, 5, velocities=PARTICLES.velocities)
        np.testing.assert_allclose(mine.masses, theirs.masses, rtol=1e-6)
        np.testing.assert_allclose(mine.velocities, theirs.velocities, rtol=1e-4, atol=1e-5)
        if order == "keep":
            assert wb.compare_groups(*groups, min_members=5).counts["identical"] == len(mine.members)
