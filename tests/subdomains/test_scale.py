"""A thousand chunks and a thousand subdomains of a hundred particles: what steps take must not grow with their product.

What it takes is counted, in three orders of the source: at random, along a curve, and halo by halo.
"""

import functools
import math
import sys

import numpy as np
import pytest

import workbench as wb
from subdomains.counting import Counting, ParticlesInFile
from workbench import backend
from workbench.archive import verify
from workbench.codecs.curve import Lattice
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.subdomains.groups import search

LENGTH = 0.2

pytestmark = pytest.mark.slow


@functools.cache
def web():
    return wb.synthetic.cosmic_web(n=46, seed=1)


def random(particles):
    return np.random.default_rng(0).permutation(len(particles))


def along_the_curve(particles):
    low, high = particles.lower, particles.upper
    curve = Lattice.fitted(low, high, 1e-3 * float(np.max(high - low)), np.float32, particles.box)
    return np.argsort(curve.keys(np.ascontiguousarray(particles.positions)), kind="stable")


def halo_by_halo(particles):
    return np.argsort(wb.friends_of_friends(particles, LENGTH).labels, kind="stable")


def ordered(order, box, count=None):
    """The universe, or its first particles, in some order."""
    particles = wb.Particles(np.asarray(web().positions)[:count], web().box if box else None)
    return wb.Particles(np.asarray(particles.positions)[order(particles)], particles.box)


def counted(particles, chunks, parts, folder):
    """What a search takes, and the reading of all labels; these must be right."""
    executor, source = Counting(), ParticlesInFile.written(folder / "positions", particles, chunks)
    with backend.using_threads(1), search(executor, source, LENGTH, parts=parts, scratch=folder) as groups:
        labels = groups._labels
        reading = executor.within(labels.folder)
        found = reading.map("read-labels", type(labels).of_chunk, range(len(source.sizes)), shared=labels)
        np.testing.assert_array_equal(np.concatenate(found), wb.friends_of_friends(particles, LENGTH).labels)
        owned = np.array([len(labels.joint.index(part)) for part in range(parts)])
    return executor, owned


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_within_limits(executor, owned, particles):
    assert owned.sum() == len(particles)
    assert owned.max() <= 1.5 * owned.mean()
    assert executor.total("source") <= 3 * particles.positions.nbytes
    for name, counts in executor.steps.items():
        if name != "read-labels":   # of which the results are what was asked for
            assert counts.largest <= 2000, name


@pytest.mark.long
@pytest.mark.parametrize(("order", "box", "chunks", "count"), [
    (halo_by_halo, False, 100, 10_000), pytest.param(random, True, 100, 10_000, marks=pytest.mark.long),
    *(pytest.param(order, box, 1000, None, marks=pytest.mark.long) for order, box in [
        (random, True), (random, False), (along_the_curve, True), (along_the_curve, False), (halo_by_halo, True),
        (halo_by_halo, False),
    ]),
])
def test_as_many_chunks_as_subdomains(tmp_path, order, box, chunks, count):
    particles = ordered(order, box, count)
    executor, owned = counted(particles, chunks, chunks, tmp_path)
    assert_within_limits(executor, owned, particles)
    assert executor.total("opened") <= 3 * chunks * math.sqrt(chunks) + 32 * chunks


@pytest.mark.long
@pytest.mark.parametrize("few", [64, 128])
def test_what_it_takes_when_both_double(tmp_path, few):
    """Files opened grow as chunks times the root of the number of subdomains; those of neighbours come on top."""
    particles, steps = ordered(along_the_curve, True, 12_800), []
    for chunks in (few, 2 * few):
        folder = tmp_path / str(chunks)
        folder.mkdir()
        executor, owned = counted(particles, chunks, chunks, folder)
        assert_within_limits(executor, owned, particles)
        assert executor.total("opened") <= 3 * chunks * math.sqrt(chunks) + 32 * chunks
        steps.append(executor.steps)
    before, after = steps
    for name in ("gather-particles", "find-groups", "read-labels"):
        assert after[name].opened <= 2.2 * math.sqrt(2) * before[name].opened, name
    for name in ("sample-particles", "send-particles", "compare-labels"):   # neighbours are as many as before
        assert after[name].opened <= 2.5 * before[name].opened, name
    assert {name: counts.sent / counts.tasks <= 600 for name, counts in after.items()} == dict.fromkeys(after, True)


@pytest.mark.parametrize(("order", "kept"), [
    ("free", False),
    *(pytest.param(*each, marks=pytest.mark.long) for each in [("keep", True), ("keep", False), ("free", True)]),
])
def test_archives_of_many_chunks_and_subdomains(tmp_path, order, kept):
    """More than 16 subdomains, and more than 128 ranges of a free order: all is sent in groups."""
    snapshot = wb.synthetic.cosmic_web(n=12, seed=4)
    particles = wb.Particles(snapshot.positions, snapshot.box, snapshot.velocities, snapshot.ids)
    source, bound = ParticlesInMemory(particles, even_sizes(len(particles), 50)), wb.Absolute(0.01)
    keep, path = [wb.KeepClusters(LENGTH)] if kept else [], tmp_path / "many.zarr"
    one = wb.compress(particles, bound, keep=keep, order=order, chunk_values=240)
    many = wb.compress(source, bound, keep=keep, order=order, chunk_values=240, parts=20, out=path)
    assert many.data.layout.chunk_count > 20
    if kept:
        stated, expected = (archive.certificate["positions"].keep[0]["partition"] for archive in (many, one))
        assert stated == expected
    else:
        one.save(tmp_path / "one.zarr")
        assert contents(path) == contents(tmp_path / "one.zarr")
    assert wb.open(path).verify(source, parts=20).passed


def archived(monkeypatch, particles, chunks, parts, order, keep, folder):
    """What an archive takes, and its verification; it must be that of one process."""
    making, verifying = Counting(), Counting()
    source = ParticlesInFile.written(folder / "positions", particles, chunks)
    bound, values, path = wb.Absolute(0.005), 3 * -(-len(particles) // chunks), folder / "many.zarr"
    keep = [wb.KeepClusters(LENGTH)] if keep else []
    with monkeypatch.context() as patched, backend.using_threads(1):
        patched.setattr(sys.modules["workbench.archive.compress"], "executor_of", lambda *given: making)
        patched.setattr(verify, "executor_of", lambda *given: verifying)
        options = {"parts": parts, "scratch": folder}
        many = wb.compress(source, bound, "lattice", keep, order, out=path, chunk_values=values, **options)
        assert many.verify(source, **options).passed
    one = wb.compress(particles, bound, "lattice", keep, order, chunk_values=values)
    if keep:
        stated, expected = (archive.certificate["positions"].keep[0] for archive in (many, one))
        assert all(stated[name] == expected[name] for name in ("partition", "groups", "largest"))
    else:
        one.save(folder / "one.zarr")
        assert contents(path) == contents(folder / "one.zarr")
    return making.steps, verifying.steps


def assert_archive_within_limits(steps, keep):
    for name, counts in steps.items():
        assert counts.largest <= 2000, name
        assert (counts.sent + counts.results) / max(counts.tasks, 1) <= 2000, name
    if not keep:
        return
    assert sum(steps[name].results for name in steps if name.startswith(("compare-", "merge-", "rename-"))) <= 4 * sum(
        steps[name].tasks for name in steps if name.startswith(("compare-", "merge-", "rename-"))
    )


OPENED_TO_KEEP = 800   # files, by a subdomain of a hundred particles in an attempt: it has many neighbours


@pytest.mark.parametrize(("order", "kind", "keep", "chunks", "count"), [
    (halo_by_halo, "keep", False, 100, 10_000), pytest.param(random, "keep", True, 24, 2400, marks=pytest.mark.long),
    pytest.param(random, "free", False, 100, 10_000, marks=pytest.mark.long),
    *(pytest.param(*case, 1000, None, marks=pytest.mark.long) for case in (
        (random, "free", False), (along_the_curve, "keep", False), (halo_by_halo, "free", False), (random, "keep", True),
    )),
])
def test_archives_of_a_thousand_chunks(monkeypatch, tmp_path, order, kind, keep, chunks, count):
    """At most 4 · chunks · √subdomains files are opened; to keep clusters, each subdomain opens some of its neighbours'."""
    particles = ordered(order, True, count)
    making, verifying = archived(monkeypatch, particles, chunks, chunks, kind, keep, tmp_path)
    attempts = round(making["encode-chunks"].tasks / chunks)   # chunks are at most so many
    for steps in (making, verifying):
        assert_archive_within_limits(steps, keep)
        opened = sum(counts.opened for counts in steps.values())
        assert opened <= 4 * chunks * math.sqrt(chunks) + (OPENED_TO_KEEP * attempts * chunks if keep else 0)
    assert making["finish-chunks"].opened <= attempts * chunks * (5 + 2 * (1 + math.isqrt(chunks))) if keep else True
    size = particles.positions.nbytes
    if not keep:
        assert sum(counts.source for counts in making.values()) <= 2 * size
        assert verifying["survey-particles"].source + verifying["send-particles"].source <= 2 * size


@pytest.mark.long
@pytest.mark.parametrize("few", [32, 64])
def test_what_archives_take_when_both_double(monkeypatch, tmp_path, few):
    particles, taken = ordered(random, True, 10_000), []
    for chunks in (few, 2 * few):
        folder = tmp_path / str(chunks)
        folder.mkdir()
        taken.append(archived(monkeypatch, particles, chunks, chunks, "free", False, folder)[0])
    before, after = taken
    assert sum(one.opened for one in after.values()) <= 2.2 * math.sqrt(2) * sum(one.opened for one in before.values())
    for name in ("survey-particles", "send-particles", "encode-chunks"):
        assert after[name].results / after[name].tasks <= 1.1 * before[name].results / before[name].tasks, name
