"""What plans say about steps, against the steps themselves: tasks, files, results and readings are counted."""

import functools
import math
import sys
import tracemalloc
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from combinations import in_pairs
from conftest import ROOT
from subdomains.counting import Counting, ParticlesInFile
from workbench import backend
from workbench.archive import sharding
from workbench.errors import WorkbenchError
from workbench.run.executors import InProcess
from workbench.subdomains import plan as planning
from workbench.subdomains import planned_steps
from workbench.subdomains.groups import search
from workbench.subdomains.planned_steps import RunSize, Step, steps_of_archive, steps_of_search

plan = wb.distributed.plan


@functools.cache
def shuffled(n):
    web = wb.synthetic.cosmic_web(n=n, seed=1)
    return wb.Particles(web.positions[np.random.default_rng(0).permutation(len(web))], web.box)


def few():
    return shuffled(24)


def by_name(steps):
    """Steps with one name as one."""
    found = {}
    for step in steps:
        before = found.get(step.name, Step(step.name, 0, 0, 0))
        found[step.name] = replace(
            step, tasks=before.tasks + step.tasks, files=before.files + step.files,
            results=before.results + step.results, readings=before.readings + step.readings,
        )
    return found


def assert_as_planned(executor, steps, particles, near=()):
    """Each step takes what is planned; those `near` it open a different number of files, as neighbours and borders vary."""
    assert set(executor.steps) == set(steps)
    for name, step in steps.items():
        counts = executor.steps[name]
        exact = 1 <= counts.opened - step.files <= 2   # what all items share: a file, which a worker reads once
        assert counts.tasks == step.tasks, name
        assert 0.8 * step.results <= counts.results <= step.results, name
        assert exact or (name in near and step.files / 1.4 <= counts.opened <= 1.1 * step.files), name
        assert counts.source <= step.readings * particles.positions.nbytes <= 1.5 * counts.source or not counts.source


@pytest.mark.long_with("cut11-True")
@pytest.mark.parametrize(
    ("cut", "along"), in_pairs([(12, 4), (24, 8), (36, 16), (12, 17), (36, 70), (144, 100)], [False, True])
)
def test_the_steps_of_a_search_take_what_is_planned(tmp_path, cut, along):
    """Also where a chunk has particles of a few subdomains alone."""
    chunks, parts = cut
    particles = few()
    if along:
        particles = wb.Particles(particles.positions[np.argsort(particles.positions[:, 0])], particles.box)
    executor, source = Counting(), ParticlesInFile.written(tmp_path / "positions", particles, chunks)
    with backend.using_threads(1), search(executor, source, 0.2, parts=parts, scratch=tmp_path) as groups:
        steps = by_name(steps_of_search(RunSize(len(particles), 3, chunks, parts, groups.ghosts, 1)))
    assert ("gather-particles" in steps) == (parts > 16)
    assert_as_planned(executor, steps, few(), near=["compare-labels"])


def archived(monkeypatch, folder, executor, chunks, bound, promise, order, parts, archive_chunks):
    source = ParticlesInFile.written(folder / "positions", few(), chunks)
    monkeypatch.setattr(sys.modules["workbench.archive.compress"], "executor_of", lambda *given: executor)
    wb.compress(
        source, bound, "lattice", promise, order, out=folder / "a.zarr", parts=parts,
        chunk_values=3 * -(-len(few()) // archive_chunks), scratch=folder,
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(("cut", "order"), in_pairs([(12, 8), (24, 8), (12, 16), (18, 24), (48, 36)], ["keep", "free"]))
def test_the_steps_of_an_archive_take_what_is_planned(monkeypatch, tmp_path, cut, order):
    (chunks, archive_chunks), executor = cut, Counting()
    archived(monkeypatch, tmp_path, executor, chunks, wb.Absolute(0.005), (), order, None, archive_chunks)
    steps = by_name(steps_of_archive(RunSize(len(few()), 3, chunks, 1, 0.0, archive_chunks), order, keep=False))
    assert ("gather-particles" in steps) == (order == "free" and archive_chunks > 16)
    assert_as_planned(executor, steps, few(), near=["encode-chunks"])


def test_shards_take_what_is_planned(monkeypatch, tmp_path):
    assert planned_steps.MOST_SHARDS == sharding.MOST_FILES
    for module, name in ((planned_steps, "MOST_SHARDS"), (sharding, "MOST_FILES")):
        monkeypatch.setattr(module, name, 8)
    executor = Counting()
    archived(monkeypatch, tmp_path, executor, 12, wb.Absolute(0.005), (), "keep", None, 27)
    steps = by_name(steps_of_archive(RunSize(len(few()), 3, 12, 1, 0.0, 27), "keep", keep=False))
    assert steps["assemble-positions"].tasks == 6
    assert_as_planned(executor, steps, few(), near=["encode-chunks"])
    assert len(list((tmp_path / "a.zarr/positions/c").iterdir())) == 6


@pytest.mark.long_with("keep-12-20-24")
@pytest.mark.parametrize(("order", "chunks", "parts", "archive_chunks"), [("free", 12, 4, 8), ("keep", 12, 20, 24)])
def test_what_keeps_clusters_takes_about_what_is_planned(monkeypatch, tmp_path, order, chunks, parts, archive_chunks):
    executor = Counting()
    archived(
        monkeypatch, tmp_path, executor, chunks, wb.Absolute(0.001), wb.KeepClusters(0.2), order, parts, archive_chunks
    )
    ghosts = plan(len(few()), parts=parts).ghosts * len(few())
    steps = list(steps_of_archive(RunSize(len(few()), 3, chunks, parts, ghosts, archive_chunks), order, keep=True))
    assert executor.total("tasks") == pytest.approx(sum(step.tasks for step in steps), rel=0.2)
    assert executor.total("opened") == pytest.approx(sum(step.files for step in steps), rel=0.4)
    results = sum(step.results for step in steps)
    assert results / 4 < executor.total("results") < results


@dataclass
class Held:
    """The most that there was, in bytes."""

    files: int = 0
    client: int = 0


@dataclass(frozen=True)
class Watching(InProcess):
    """Runs steps here, and looks at the scratch files after each, and at what the client holds between two."""

    held: Held = field(default_factory=Held)
    folder: Path | None = None

    def within(self, folder):
        return replace(self, folder=folder)

    def map(self, *given, **options):
        self.look_at_client()
        results = super().map(*given, **options)
        files = (path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        self.held.files = max(self.held.files, sum(files))
        tracemalloc.reset_peak()
        return results

    def look_at_client(self):
        self.held.client = max(self.held.client, tracemalloc.get_traced_memory()[1])


@pytest.mark.parametrize(("chunks", "parts"), [
    (40, 8), *(pytest.param(*given, marks=pytest.mark.long) for given in [(40, 100), (800, 100)]),
])
def test_scratch_files_and_the_client_take_what_is_planned(tmp_path, chunks, parts):
    executor, many = Watching(), shuffled(40)
    source = ParticlesInFile.written(tmp_path / "positions", many, chunks)
    tracemalloc.start()
    with backend.using_threads(1), search(executor, source, 0.2, parts=parts, scratch=tmp_path):
        executor.look_at_client()
    tracemalloc.stop()
    planned = plan(len(many), parts=parts, chunks=len(source.sizes), sample=many)
    tables = 8 * len(source.sizes) * (parts + 20)   # and places of pieces, which count in so small a set
    assert planned.scratch == pytest.approx(executor.held.files, rel=0.15, abs=tables)
    most = planned.client_memory - planning.CLIENT_BYTES
    assert most / 10 < executor.held.client <= most


@functools.cache
def on_64_workers(count, **run):
    return plan(count, workers=64, memory="64GB", **run)


def files_and_readings(count, **run):
    """What the files opened are over 4 · chunks · √subdomains, and how often positions of the source are read."""
    planned = on_64_workers(count, **run)
    return planned.files / (4 * planned.chunks * math.sqrt(planned.parts)), planned.read / (12 * count)


@pytest.mark.long
def test_the_limits_of_searches_and_archives_are_what_the_documentation_says():
    search, kept, free = {}, {"order": "keep"}, {"order": "free"}
    for run, count, files, readings in [
        (search, 10**9, 0.64, 2), (search, 10**10, 0.51, 2), (search, 10**12, 2.4, 2),
        (kept, 10**9, 0.089, 2), (kept, 10**10, 0.082, 2), (kept, 10**12, 7.3, 2),
        (free, 10**9, 1.16, 2), (free, 10**10, 1.6, 2), (free, 10**12, 944, 2),
    ]:
        assert files_and_readings(count, **run) == pytest.approx((files, readings), rel=0.05)
    many = {"chunks": 10**6}
    assert files_and_readings(10**12, **many) == pytest.approx((0.38, 2), rel=0.05)


@pytest.mark.parametrize("count", [10**9, 10**10, 10**12])
def test_bytes_of_scheduler_and_client_grow_with_tasks(count):
    for run in ({}, {"order": "keep"}, {"order": "free"}):
        planned = on_64_workers(count, **run)
        most = {10**10: 1700, 10**12: 5800}.get(count, 800) if run == {"order": "free"} else 800
        assert max(step.results / step.tasks for step in planned.steps) < most
        constant = planning.CLIENT_BYTES + planning.CLIENT_SAMPLED * 3 * planning.SAMPLED * planned.parts
        assert planned.client_memory - constant <= (4500 if count < 10**12 else 10_000) * planned.tasks


def test_the_slowest_of_workers_tasks_traffic_and_files_decides():
    usual = plan(10**9, workers=64)
    assert usual.seconds == max(usual.limits.values())
    slow = {"workers": {"search": 1e3}, "tasks": {"tasks": 1e-2}, "traffic": {"traffic": 1e3}, "files": {"files": 1e-1}}
    for name, rates in slow.items():
        planned = plan(10**9, workers=64, rates=planning.Rates(**rates))
        assert planned.seconds == planned.limits[name] > 100 * usual.seconds
        assert str(planned).endswith(planning.SLOWEST[name])


def test_more_chunks_take_more_tasks_files_and_memory_of_the_client():
    few, many = (plan(10**9, chunks=chunks) for chunks in (1000, 4000))
    assert many.tasks - few.tasks == 2 * 3000 + (65 - 17) * 31   # to sample, send and gather
    assert 2 < many.files / few.files < 4
    assert many.client_memory > few.client_memory
    assert plan(10**12).chunks == 4096


def test_plans_of_archives_without_clusters_do_not_speak_of_subdomains():
    lines = {order: str(plan(10**9, order=order)) for order in ("keep", "free")}
    assert not any("subdomains" in text or "ghosts" in text for text in lines.values())
    assert "subdomains" in str(plan(10**9, order="free", keep=True))
    for given, told in (({"order": "up"}, "order must be one of keep, free"), ({"keep": True}, "keep=True is for archives"),
                        ({"chunks": 0}, "chunks must be a whole number")):
        with pytest.raises(WorkbenchError, match=told):
            plan(10**9, **given)


@pytest.mark.long
def test_the_projections_of_the_documentation_are_what_the_command_prints(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    import projections

    assert projections.table() in (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
