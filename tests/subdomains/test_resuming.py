"""A run that is killed leaves no archive, and the same call goes on from the chunks that are done."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from conftest import ROOT
from workbench.archive import encoded
from workbench.errors import WorkbenchError

DONE = 4   # chunks, when the run is killed
RUN = """
import os, sys
import numpy as np
import workbench as wb
from workbench.archive import encoded

encode, calls = encoded.encode_values, []
def deadly(task, rows):
    if len(calls) == {done}:
        os._exit(9)
    calls.append(len(rows))
    return encode(task, rows)

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

    def counted(task, rows):
        if task.limit.value == 0.05:
            seen.append(len(rows))
        return encode(task, rows)

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
    chunk, decoded = within / "positions" / "c" / "1" / "0", within / ".decoded" / "2"
    for damaged in (chunk, decoded):
        data = bytearray(damaged.read_bytes())
        data[len(data) // 2] ^= 1
        damaged.write_bytes(bytes(data))
    changed = PARTICLES.positions.copy()
    middle = np.flatnonzero((changed > 1).all(axis=1) & (changed < 11).all(axis=1))   # the extent stays the same
    changed[middle[0]] += np.float32(0.25)
    assert middle[0] < 200
    compress(tmp_path / "web.zarr", True, "keep", wb.Particles(changed, 12.0))
    assert len(again) == 3 + CHUNKS - DONE
    assert wb.open(tmp_path / "web.zarr").verify(wb.Particles(changed, 12.0)).passed


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
