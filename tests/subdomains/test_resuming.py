"""A run that is killed leaves no archive, and the same call goes on from the chunks that are done."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from conftest import ROOT
from workbench.archive import encoded, finer
from workbench.errors import WorkbenchError
from workbench.run.executors import InProcess

DONE = 4   # chunks, when the run is killed
RUN = """
import os, sys
import numpy as np
import workbench as wb
from workbench.archive import encoded

encode, calls = encoded.encode_values, []
def deadly(task, rows, mask):
    if len(calls) == {done}:
        os._exit(9)
    calls.append(len(rows))
    return encode(task, rows, mask)

encoded.encode_values = deadly
particles = wb.Particles(np.load(sys.argv[1]), 12.0)
keep = wb.KeepClusters(0.2) if sys.argv[3] == "kept" else ()
out, order = sys.argv[2], sys.argv[4]
wb.compress(particles, wb.Absolute(0.05), keep=keep, order=order, chunk_values=600, parts=2, out=out)
"""
PARTICLES = wb.Particles(wb.synthetic.cosmic_web(n=12, seed=2).positions, 12.0)
CHUNKS = -(-len(PARTICLES) // 200)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compress(out: Path, kept: bool, order: str, particles: wb.Particles = PARTICLES) -> None:
    keep = wb.KeepClusters(0.2) if kept else ()
    wb.compress(particles, wb.Absolute(0.05), keep=keep, order=order, chunk_values=600, parts=2, out=out)


def killed(folder: Path, kept: bool, order: str) -> Path:
    """The hidden folder of a run that was killed after some chunks; nothing else is there."""
    np.save(folder / "positions.npy", PARTICLES.positions)
    arguments = [folder / "positions.npy", folder / "web.zarr", "kept" if kept else "plain", order]
    found = subprocess.run([sys.executable, "-c", RUN.format(done=DONE), *map(str, arguments)], cwd=ROOT, check=False)
    assert found.returncode == 9
    (hidden,) = (path for path in folder.iterdir() if path.suffix == ".partial")
    assert sorted(path.name for path in folder.iterdir()) == sorted([hidden.name, "positions.npy"])
    with pytest.raises(WorkbenchError):
        wb.open(hidden)
    return hidden


@pytest.fixture
def again(monkeypatch):
    """The sizes of the chunks that are encoded from now on, within the requested bound; finer ones may be tried, too."""
    encode, seen = encoded.encode_values, []

    def counted(task, rows, mask):
        if task.limit.value == 0.05:
            seen.append(len(rows))
        return encode(task, rows, mask)

    monkeypatch.setattr(encoded, "encode_values", counted)
    return seen


@pytest.mark.parametrize(("kept", "order"), [(False, "keep"), (True, "free")])
def test_a_killed_run_goes_on_from_the_chunks_that_are_done(tmp_path, again, kept, order):
    hidden = killed(tmp_path, kept, order)
    compress(tmp_path / "web.zarr", kept, order)
    assert len(again) == CHUNKS - DONE
    assert not hidden.exists()
    assert not [path.name for path in tmp_path.rglob(".*")]
    compress(tmp_path / "whole.zarr", kept, order)
    assert files(tmp_path / "web.zarr") == files(tmp_path / "whole.zarr")


def test_what_is_damaged_or_was_made_from_other_rows_is_encoded_again(tmp_path, again):
    hidden = killed(tmp_path, True, "keep")
    (within,) = hidden.glob(".within-*")
    chunk, record = within / "positions" / "c" / "1" / "0", within / ".records" / "2"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(bytes(data))
    record.write_bytes(record.read_bytes()[:-9])
    changed = PARTICLES.positions.copy()
    middle = np.flatnonzero((changed > 1).all(axis=1) & (changed < 11).all(axis=1))   # the extent stays the same
    changed[middle[0]] += np.float32(0.25)
    assert middle[0] < 200
    compress(tmp_path / "web.zarr", True, "keep", wb.Particles(changed, 12.0))
    assert len(again) == 3 + CHUNKS - DONE
    assert wb.open(tmp_path / "web.zarr").verify(wb.Particles(changed, 12.0)).passed


KEEPING = """
import os, sys
import numpy as np
import workbench as wb
from workbench.archive import finer
from workbench.run.executors import InProcess

real, calls = InProcess.map, []
def deadly(self, name, step, items, *others, **shared):
    calls.append(name)
    def until(*given):
        if (name, calls.count(name), given[-1]) == (sys.argv[3], int(sys.argv[4]), int(sys.argv[5])):
            os._exit(9)
        return step(*given)
    return real(self, name, until, items, *others, **shared)

InProcess.map, finer.MOST_HALVES = deadly, 0   # no finer bound is tried
particles = wb.Particles(np.load(sys.argv[1]), 12.0)
wb.compress(particles, wb.Absolute(0.14), keep=wb.KeepClusters(0.2), chunk_values=600, parts=3, out=sys.argv[2])
"""


def kept(out: Path) -> list[str]:
    """Compress so that clusters are kept; returns the steps."""
    steps, real = [], InProcess.map

    def counted(self, name, *others, **shared):
        steps.append(name)
        return real(self, name, *others, **shared)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(InProcess, "map", counted)
        patched.setattr(finer, "MOST_HALVES", 0)
        wb.compress(PARTICLES, wb.Absolute(0.14), keep=wb.KeepClusters(0.2), chunk_values=600, parts=3, out=out)
    return steps


def killed_while_keeping(folder: Path, step: str, call: int, item: int) -> Path:
    """The hidden folder of a run that was killed in this call of a step, at this item."""
    np.save(folder / "positions.npy", PARTICLES.positions)
    arguments = map(str, (folder / "positions.npy", folder / "web.zarr", step, call, item))
    assert subprocess.run([sys.executable, "-c", KEEPING, *arguments], cwd=ROOT, check=False).returncode == 9
    (hidden,) = folder.glob(".web.zarr.*.partial")
    return hidden


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a run that was not killed, and how often it has repaired."""
    out = tmp_path_factory.mktemp("whole") / "web.zarr"
    repairs = kept(out).count("repair-inside")
    assert repairs >= 3
    return files(out), repairs


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("step", "call", "item", "rounds"),
    [
        ("repair-inside", 2, 1, 1), ("write-chunks", 1, 2, None),
        *(pytest.param(*given, marks=pytest.mark.long) for given in [
            ("find-parts", 1, 1, 0), ("hand-back-moves", 1, 1, None), ("apply-moves", 1, 2, 0), ("find-parts", 2, 0, 1),
            ("apply-moves", 2, 1, 1), ("repair-across", 3, 0, 2), ("finish-chunks", 1, 3, None),
        ]),
    ],
)
def test_a_run_killed_while_keeping_clusters_goes_on_from_the_last_round(tmp_path, whole, step, call, item, rounds):
    expected, repairs = whole
    hidden = killed_while_keeping(tmp_path, step, call, item)
    steps = kept(tmp_path / "web.zarr")
    assert steps.count("repair-inside") == (0 if rounds is None else repairs - rounds)
    assert files(tmp_path / "web.zarr") == expected
    assert not hidden.exists()


@pytest.mark.long
@pytest.mark.parametrize("damage", [
    "moves", *(pytest.param(damage, marks=pytest.mark.long) for damage in ("record", "other particles")),
])
def test_rounds_that_are_damaged_or_of_other_particles_are_not_gone_on_from(tmp_path, whole, damage):
    expected, repairs = whole
    hidden = killed_while_keeping(tmp_path, "repair-inside", 3, 0)
    (rounds,) = hidden.glob(".kept-*")
    assert {path.name for path in rounds.iterdir()} == {"moves-2-0.npz", "moves-2-1.npz", "moves-2-2.npz", "rounds.json"}
    if damage == "moves":
        data = bytearray((rounds / "moves-2-1.npz").read_bytes())
        data[len(data) // 2] ^= 1
        (rounds / "moves-2-1.npz").write_bytes(bytes(data))
    else:
        record = rounds / "rounds.json"
        stated = json.loads(record.read_text())
        record.write_text(json.dumps(stated)[:-9] if damage == "record" else json.dumps({**stated, "source": "0" * 32}))
    assert kept(tmp_path / "web.zarr").count("repair-inside") == repairs
    assert files(tmp_path / "web.zarr") == expected


def test_another_request_starts_from_the_beginning(tmp_path, again):
    hidden = killed(tmp_path, False, "keep")
    compress(tmp_path / "web.zarr", False, "free")
    assert len(again) == CHUNKS
    assert hidden.exists()   # it belongs to the other call


def test_a_target_that_exists_is_refused_before_any_work(tmp_path, again):
    compress(tmp_path / "web.zarr", False, "keep")
    again.clear()
    with pytest.raises(WorkbenchError, match="exists: choose another name"):
        compress(tmp_path / "web.zarr", False, "keep")
    assert not again
