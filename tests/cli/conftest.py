"""A snapshot, a field, archives of both, and the command as a function."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main


class Outcome(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out, parse_constant=refuse)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture) -> Run:
    """The command in this process; wrong usage, too, gives a status."""

    def command(*arguments: object) -> Outcome:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            status = int(ended.code or 0)
        return Outcome(status, *capsys.readouterr())

    return command


@functools.cache
def particles() -> wb.Particles:
    return wb.synthetic.cosmic_web(n=16, seed=1)


@functools.cache
def wave() -> wb.Field:
    return wb.synthetic.gaussian_field((20, 24, 28), seed=3)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Particles with all that can ride along."""
    path, known = tmp_path / "snapshot.npz", particles()
    np.savez(path, positions=known.positions, box=known.box, velocities=known.velocities, ids=known.ids)
    return path


@pytest.fixture
def field(tmp_path: Path) -> Path:
    path = tmp_path / "field.npy"
    np.save(path, wave().values)
    return path


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Of the snapshot, in a folder, cut into more chunks than one sentence could name."""
    made = wb.compress(particles(), wb.Absolute(0.01), order="free", chunk_values=3 * 400)
    return made.save(tmp_path / "snapshot.zarr")


@pytest.fixture
def clusters_archive(tmp_path: Path) -> Path:
    """Of the snapshot, with clusters kept at two linking lengths."""
    made = wb.compress(particles(), wb.Absolute(0.05), order="free", keep=[wb.KeepClusters([0.2, 0.3], min_members=5)])
    return made.save(tmp_path / "clusters.zarr")


@pytest.fixture
def field_archive(tmp_path: Path) -> Path:
    made = wb.compress(wave(), wb.Absolute(0.01), codec="prequantised", chunk_values=1000)
    return made.save(tmp_path / "field.zip")


def damage(path: Path) -> None:
    """Turn one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
