"""What plans say about steps, against the steps themselves: tasks and files are counted, and results weighed."""

import pickle
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from conftest import ROOT
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError
from workbench.run.executors import InProcess
from workbench.subdomains import plan as planning
from workbench.subdomains.planned_steps import Extent, steps_of_archive, steps_of_search

plan = wb.distributed.plan
WEB = wb.synthetic.cosmic_web(n=24, seed=1)
SHUFFLED = wb.Particles(WEB.positions[np.random.default_rng(0).permutation(len(WEB))], WEB.box)


@dataclass
class Counts:
    """Of one kind of step."""

    tasks: int = 0
    files: int = 0
    results: int = 0


class Read(ParticlesInMemory):
    """Particles of which each chunk that is read counts as a file."""

    def read(self, number):
        Path("/dev/null").open("rb").close()
        return super().read(number)


@pytest.fixture
def counts(monkeypatch):
    """What each step takes that runs in this process, by its name."""
    found, stack, run, opened = defaultdict(Counts), [], InProcess.map, Path.open

    def mapped(self, name, step, items, *args, **options):
        stack.append(found[name])
        results = run(self, name, step, items, *args, **options)
        stack.pop()
        found[name].tasks += len(items)
        found[name].results += sum(len(pickle.dumps(result)) for result in results)
        return results

    def counted(path, *args, **options):
        if stack:
            stack[-1].files += 1
        return opened(path, *args, **options)

    monkeypatch.setattr(InProcess, "map", mapped)
    monkeypatch.setattr(Path, "open", counted)
    return found


def source(chunks):
    return Read(SHUFFLED, even_sizes(len(SHUFFLED), -(-len(SHUFFLED) // chunks)))


@pytest.mark.parametrize(("chunks", "parts"), [(12, 4), (24, 4), (24, 8), (48, 16)])
def test_the_steps_of_a_search_take_what_is_planned(counts, chunks, parts):
    with wb.distributed.friends_of_friends(source(chunks), 0.2, parts=parts) as groups:
        extent = Extent(len(SHUFFLED), 3, chunks, parts, groups.ghosts, 1)
    steps = {step.name: step for step in steps_of_search(extent)}
    assert list(counts) == list(steps)
    for name, step in steps.items():
        assert counts[name].tasks == step.tasks, name
        assert step.files / 1.25 <= counts[name].files <= 1.1 * step.files, name
        assert counts[name].results <= step.results, name
    assert sum(one.results for one in counts.values()) > 0.3 * sum(step.results for step in steps.values())


@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("chunks", "parts", "archive"), [(12, 4, 8), (24, 4, 8), (12, 4, 16), (12, 8, 8)])
def test_the_steps_of_an_archive_take_what_is_planned(counts, tmp_path, order, keep, chunks, parts, archive):
    promise = wb.KeepClusters(0.2) if keep else ()
    wb.distributed.compress(
        source(chunks), wb.Absolute(0.005), "lattice", promise, order, out=tmp_path / "a.zarr", parts=parts,
        chunk_values=3 * len(SHUFFLED) // archive,
    )
    ghosts = plan(len(SHUFFLED), parts=parts).ghosts * len(SHUFFLED)
    steps = list(steps_of_archive(Extent(len(SHUFFLED), 3, chunks, parts, ghosts, archive), order, keep))
    assert (len(steps) > 3) == keep
    assert sum(one.tasks for one in counts.values()) == pytest.approx(sum(step.tasks for step in steps), rel=0.15)
    assert sum(one.files for one in counts.values()) == pytest.approx(sum(step.files for step in steps), rel=0.4)
    results = sum(step.results for step in steps)
    assert results / 4 < sum(one.results for one in counts.values()) < results


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
    assert many.tasks - few.tasks == 3000
    assert 3.9 < many.files / few.files < 4
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


def test_the_projections_of_the_documentation_are_what_the_command_prints(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    import projections

    assert projections.table() in (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
