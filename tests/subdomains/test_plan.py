"""Plans of searches: the figures against what real exchanges ship, and what is refused."""

import copy
import functools
import pickle
import shutil

import numpy as np
import pytest

import workbench as wb
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.distributed import Rates
from workbench.errors import WorkbenchError
from workbench.subdomains.plan import default_parts

plan = wb.distributed.plan


@functools.cache
def web(n):
    return wb.synthetic.cosmic_web(n=n, seed=4)


def cut(n):
    """A universe at several sizes: the same halos, with every particle, or an eighth of them."""
    whole = web(max(n, 32))
    chosen = np.random.default_rng(n).permutation(len(whole))[: n**3]
    return wb.Particles(whole.positions[np.sort(chosen)], whole.box)


def uniform(n):
    return wb.Particles(np.random.default_rng(n).random((n**3, 3)).astype(np.float32) * 0.999999, 1.0)


@pytest.mark.parametrize("n", [16, 32, pytest.param(64, marks=pytest.mark.long)])
@pytest.mark.parametrize(("make", "tolerance"), [(cut, 0.45), (uniform, 0.35)])
def test_ghosts_and_bytes_are_those_of_the_exchange(tmp_path, n, make, tolerance):
    particles = make(n)
    source = ParticlesInMemory(particles, even_sizes(len(particles), len(particles) // 5))
    with wb.friends_of_friends(source, 0.2, parts=8, scratch=tmp_path) as found:
        share = found.ghosts / len(particles)
        files = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
        runs = [path.stat().st_size for path in tmp_path.rglob("run-*")]
        shipped = 16 * (len(particles) + found.ghosts)
    planned = plan(len(particles), parts=8)
    assert planned.ghosts == pytest.approx(share, rel=tolerance)
    sample = wb.Particles(particles.positions[:: max(1, n**3 // 2**15)], particles.box)
    sampled = plan(len(particles), parts=8, sample=sample)
    assert sampled.ghosts == pytest.approx(share, rel=0.15)
    for expected in (planned, sampled):
        assert expected.moved == pytest.approx(shipped, rel=0.05)
        assert expected.scratch == pytest.approx(sum(files.values()), rel=0.08, abs=20_000)
    assert shipped < sum(runs) < shipped + 300 * len(runs)


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 8, 64])
def test_ghosts_follow_the_number_of_subdomains(parts):
    particles = uniform(32)
    with wb.friends_of_friends(particles, 0.2, parts=parts) as found:
        assert plan(len(particles), parts=parts).ghosts == pytest.approx(found.ghosts / len(particles), rel=0.35)


def test_a_linking_length_beyond_a_subdomain_copies_everything_at_most_everywhere():
    assert plan(1000, 50.0, parts=8).ghosts <= 1.15 * 7
    particles = uniform(10)
    assert plan(1000, 50.0, parts=8, sample=particles).ghosts == 7


def test_copies_are_the_same_plan():
    one = plan(10**6, 0.2)
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one


def test_memory_decides_how_many_subdomains_there_are():
    assert plan(10**9, memory="8GB").parts == default_parts(10**9) == 954
    small = plan(5 * 10**8, memory="400MB", threads=2, chunks=2000)
    assert small.parts > default_parts(5 * 10**8)
    assert small.fits
    assert not plan(5 * 10**8, memory="400MB", threads=2, chunks=200).fits   # a task holds the particles of two chunks
    most = plan(10**10, memory="400MB", threads=2, chunks=20_000)
    assert most.parts == 4096   # as many as a search can have
    assert not most.fits
    assert not plan(10**9, memory="1GB", parts=4).fits
    assert "MORE THAN A WORKER HAS" in str(plan(10**9, memory="1GB", parts=4))


def test_more_workers_and_faster_ones_take_less_time():
    times = [plan(10**9, workers=workers).limits["workers"] for workers in (1, 4, 64)]
    assert times[0] > 3.5 * times[1] > 3.5 * 3.5 * times[2]
    slow = plan(10**9, rates=Rates(2.2e6, 6e5, 7e6, 1e8)).limits["workers"]
    assert slow == pytest.approx(10 * times[0], rel=0.1)
    measured = Rates.measured(wb.synthetic.cosmic_web(n=32, seed=1))
    assert 1e4 < measured.search < 1e10


@pytest.mark.parametrize(("given", "told"), [
    ({"n_particles": 0}, "n_particles must be a whole number"),
    ({"n_particles": 10, "linking_length": -1}, "linking_length must be positive"),
    ({"n_particles": 10, "workers": 0}, "workers must be a whole number"),
    ({"n_particles": 10, "memory": "much"}, 'memory must be a number of bytes or a text such as "8GB"'),
    ({"n_particles": 10, "memory": "100MB"}, r"a worker needs 268\.4 MB before it holds any particles; got memory 100"),
    ({"n_particles": 10, "rates": {"send": 0}}, "send must be positive"),
])
def test_what_cannot_be_planned_is_refused(given, told):
    with pytest.raises(WorkbenchError, match=told):
        plan(**{**given, **({"rates": Rates(**given["rates"])} if "rates" in given else {})})


def test_a_scratch_folder_without_room_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: type("usage", (), {"free": 1e6}))
    with pytest.raises(WorkbenchError, match=r"needs 6\.3 MB of scratch files; .* has room for 1\.0 MB: give scratch="):
        wb.friends_of_friends(uniform(64), scratch=tmp_path)


@pytest.mark.parametrize(("order", "keep"), [("free", ()), ("keep", wb.KeepClusters(0.2)), ("free", wb.KeepClusters(0.2))])
def test_an_archive_without_room_is_refused_before_it_is_begun(monkeypatch, tmp_path, order, keep):
    source = ParticlesInMemory(wb.synthetic.cosmic_web(n=16, seed=1), (2048, 2048))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: type("usage", (), {"free": 1e4}))
    with pytest.raises(WorkbenchError, match=r"an archive of 4,096 particles needs .* has room for 10\.0 kB"):
        wb.compress(source, wb.Absolute(0.01), keep=keep, order=order, parts=4, out=tmp_path / "a.zarr")
    assert not list(tmp_path.rglob("[0-9]*"))   # no chunk is written
    assert not list(tmp_path.iterdir())
