"""Writes the small archives which every later version must decode to the same bits.

Those of `IN_PACKAGE` are in `workbench/archive/golden`, where `workbench doctor` decodes them, the others in `golden/`.
What each decodes to is in `golden/`, and its checksum in the package.

    python tests/archive/make_golden.py [NAME ...]

Without names, all that are not there yet. One that exists is never written again: it stands for the files that people have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import workbench as wb
from archive import samples
from workbench.archive import Archive, Collection, golden

FOLDER = Path(__file__).with_name("golden")
IN_PACKAGE = (   # one for each codec, and one for each further part of the format: moved particles, datasets
    "lattice-keep", "neighbours", "clusters-free", "interpolation", "staged", "prequantised", "pcodec", "dataset",
    "sz3", "zfp", "sperr", "draco-keep", "fpzip", "bitround", "numcodecs", "portable", "trajectory", "motion",
)
FINE, COARSE = wb.Absolute(0.01), wb.Absolute(0.5)


def _masked(dtype: type) -> wb.Field:
    values = samples.field((18, 25), dtype)
    values[3, 4:9], values[5, 5] = 0, np.nan
    mask = values > 60
    values[mask] = 1e35
    return wb.Field(values, (0.5, 2.0), "temperature", mask, {"units": "K"})


def _pruned() -> wb.Field:
    """Weights, nearly all of them zeros, in rows of their own densities."""
    random = np.random.default_rng(12)
    kept = random.random((60, 50)) < 0.3 * random.random((60, 1))
    return wb.Field((random.normal(0, 8, kept.shape) * kept).astype(np.float32))


def _coast() -> wb.Field:
    """A sea with a coast, whose land is NaN in numbers and not in a mask."""
    values = samples.field((60, 70), np.float32)
    rows, columns = np.indices(values.shape)
    values[(rows - 30) ** 2 + (columns - 20) ** 2 < 300] = np.nan
    return wb.Field(values)


def _swarm(count: int = 300) -> wb.Particles:
    return samples.particles(count)


def _chains(count: int = 300) -> wb.Particles:
    """Random walks of 30 equal steps each."""
    steps = np.random.default_rng(count).normal(size=(count, 3))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    steps[::30] *= 40
    return wb.Particles.wrapped(np.cumsum(steps, axis=0).astype(np.float32), 50.0)


def _walk(count: int = 20) -> wb.Trajectory:
    """Frames with all that they may have."""
    random, shape = np.random.default_rng(count), (6, count, 3)
    return wb.Trajectory(
        np.round(random.random(shape) * 9, 2), cells=np.full((6, 3), 9.0), times=np.arange(6) / 2, steps=np.arange(6),
        velocities=random.normal(size=shape).astype(np.float32), images=random.integers(-1, 2, shape).astype(np.int32),
        origins=random.random((6, 3)), atoms={"name": ["C", "CA"] * (count // 2), "charge": np.arange(count) / 2},
    )


def _wrapped() -> wb.Trajectory:
    """Atoms that leave oblique cells, which change, through faces."""
    walk = np.random.default_rng(5).normal(scale=0.02, size=(8, 60, 3)).cumsum(axis=0) + samples.field((60, 3))
    cells = np.array([[4, 0, 0], [0.5, 5, 0], [0, 0.25, 6]]) * (1 + np.arange(8) / 64)[:, None, None]
    inside = np.einsum("tac,tck->tak", walk, np.linalg.inv(cells)) % 1
    return wb.Trajectory(np.einsum("tac,tck->tak", inside, cells).astype(np.float32), cells=cells)


def _orbits(count: int = 40) -> wb.Trajectory:
    """Atoms on circles, which are predicted from where they were; and one that leaps."""
    random, turn = np.random.default_rng(count), np.arange(8)[:, None] * 0.1
    centre, radius, phase = random.random((count, 3)) * 9, 1 + random.random(count), random.random(count) * 6
    circle = np.stack([np.cos(turn + phase), np.sin(turn + phase), 0 * turn + phase], axis=2)
    positions = (centre + radius[:, None] * circle).astype(np.float32)
    positions[5, 7] += 100
    return wb.Trajectory(positions, times=np.arange(8) / 2)


def _with_columns(count: int = 300) -> wb.Particles:
    """Particles with columns of many types."""
    random, swarm = np.random.default_rng(count), _swarm(count)
    columns = {
        "Potential": random.normal(size=count).astype(np.float32), "Field.B": random.normal(size=(count, 3)),
        "type": random.integers(0, 6, count).astype(np.uint8), "is-gas": random.random(count) < 0.3,
        "flags": random.random((count, 2)) < 0.3, "cell_2": random.integers(-9, 9, (count, 2)),
    }
    return wb.Particles(swarm.positions, swarm.box, columns=columns)


def _loose(count: int, dtype: type, dimensions: int) -> wb.Particles:
    """Clumps in which most links are nearly as long as they may be."""
    random = np.random.default_rng([count, dimensions])
    centres = random.random((count // 25, dimensions)) * 10
    positions = centres[np.arange(count) % len(centres)] + random.normal(scale=0.25, size=(count, dimensions))
    return wb.Particles.wrapped(positions.astype(dtype), 10.0, ids=np.arange(count))


def _dataset() -> dict[str, object]:
    """A field with missing values, dates, text and truth values."""
    return {
        "T": samples.field((18, 25), np.float32), "time": np.arange("2026-01-01", "2026-01-19", dtype="M8[h]")[::24],
        "station": np.array(["A", "Bé", ""]), "valid": np.arange(40).reshape(5, 8) % 3 > 0,
    }


MADE: dict[str, Callable[[], Archive | Collection]] = {
    "deflated-documents": lambda: wb.compress(_dataset(), {"T": COARSE, "*": wb.Exact()}),   # and another dictionary
    "dataset": lambda: wb.compress(_dataset(), {"T": COARSE, "*": wb.Exact()}),
    "neighbours": lambda: wb.compress(
        _swarm(), FINE, order="free", velocities=wb.Absolute(1), column_codec="neighbours", chunk_values=450
    ),
    "further-columns": lambda: wb.compress(
        _with_columns(), FINE, order="free", chunk_values=450,
        columns={"Potential": wb.Relative(1e-3), "Field*": wb.PointwiseRelative(1e-2), "cell_2": wb.Absolute(2)},
    ),
    "lattice-free": lambda: wb.compress(_swarm(), FINE, order="free", chunk_values=450, store_permutation=True),
    "lattice-free-fine": lambda: wb.compress(
        samples.particles(300, np.float64, 3, None), wb.Absolute(1e-9), order="free", velocities=wb.Relative(1e-3)
    ),
    "lattice-free-flat": lambda: wb.compress(samples.particles(300, np.float64, 2), FINE, order="free"),
    "lattice-keep": lambda: wb.compress(_swarm(), FINE, chunk_values=450, velocities=wb.Absolute(1)),
    "lattice-pcodec": lambda: wb.compress(_swarm(), FINE, wb.codecs.get("lattice", coder="pcodec"), order="free"),
    "lattice-packed": lambda: wb.compress(_swarm(), FINE, wb.codecs.get("lattice", coder="packed"), order="free"),
    "lattice-counts": lambda: wb.compress(
        _swarm(), FINE, wb.codecs.get("lattice", coder="counts", block=64), order="free", chunk_values=450
    ),
    "lattice-molecules": lambda: wb.compress(
        _chains(), FINE, wb.codecs.get("lattice", coder="molecules"), chunk_values=450
    ),
    "clusters-free": lambda: wb.compress(
        _loose(500, np.float32, 3), wb.Absolute(0.1), order="free", chunk_values=600, keep=[wb.KeepClusters(0.25, "length")]
    ),
    "clusters-keep": lambda: wb.compress(   # some particles have their original coordinates, and space is flat and open
        wb.Particles(_loose(500, np.float64, 2).positions), wb.Absolute(0.3), "prequantised", chunk_values=400,
        keep=[wb.KeepClusters([0.2, 0.3], "length", min_members=2)],
    ),
    "draco-free": lambda: wb.compress(_swarm(), FINE, "draco", order="free"),
    "draco-keep": lambda: wb.compress(_swarm(), FINE, "draco"),
    "columns-sz3": lambda: wb.compress(_swarm(), FINE, "sz3", order="free"),
    "exact": lambda: wb.compress(_swarm(), wb.Absolute(0)),
    "interpolation": lambda: wb.compress(_masked(np.float32), COARSE, "interpolation"),
    "interpolation-coast": lambda: wb.compress(_coast(), COARSE, "interpolation"),
    "prequantised": lambda: wb.compress(_masked(np.float32), COARSE, "prequantised", chunk_values=200),
    "prequantised-sparse": lambda: wb.compress(_pruned(), COARSE, "prequantised"),
    "staged": lambda: wb.compress(_masked(np.float32), COARSE, "staged", chunk_values=200),
    "sz3": lambda: wb.compress(_masked(np.float64), COARSE, "sz3", chunk_values=200),
    "sz3-relative": lambda: wb.compress(_masked(np.float64), wb.PointwiseRelative(0.01), "sz3"),
    "zfp": lambda: wb.compress(_masked(np.float32), COARSE, "zfp"),
    "sperr": lambda: wb.compress(_masked(np.float32), COARSE, "sperr"),
    "fpzip": lambda: wb.compress(_masked(np.float32), COARSE, "fpzip"),
    "pcodec": lambda: wb.compress(_masked(np.float64), COARSE, "pcodec"),
    "bitround": lambda: wb.compress(_masked(np.float32), wb.PointwiseRelative(0.01), "bitround"),
    "portable": lambda: wb.compress(_masked(np.float32), COARSE, profile="portable", chunk_values=200),
    "portable-lattice": lambda: wb.compress(samples.field((18, 25), np.float32), FINE, profile="portable"),
    "numcodecs": lambda: wb.compress(_masked(np.float32), COARSE, wb.codecs.get("numcodecs", codec="zlib")),
    "trajectory": lambda: wb.compress(
        _walk(), wb.Exact(), wb.codecs.get("rounded", precision=100.0, numbers="interpolation"), chunks=4
    ),
    "motion": lambda: wb.compress(_orbits(), FINE, "motion"),
    "motion-cells": lambda: wb.compress(_wrapped(), FINE, "motion"),
}


def path_of(name: str) -> Path:
    """Where an archive is, or would be."""
    return (golden.FOLDER if name in IN_PACKAGE else FOLDER) / f"{name}.zip"


def make(name: str) -> Path:
    """One archive, and what it decodes to, unless they are there."""
    archive = MADE[name]()
    path = archive.save(path_of(name))
    np.savez_compressed(FOLDER / f"{name}.npz", **golden.arrays(archive))
    if name in IN_PACKAGE:
        known = golden.expected_arrays() | {name: golden.checksums(archive)}
        in_order = {one: known[one] for one in IN_PACKAGE if one in known}
        golden.EXPECTED.write_text(json.dumps(in_order, indent=1) + "\n")
    return path


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [name for name in MADE if not path_of(name).exists()]:
        print(f"{wanted}: {make(wanted).stat().st_size:,} bytes")
