"""Small archives that have between them every built-in codec, coder, section and kind of document."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import workbench as wb
from archive import samples
from workbench.archive.store import MemoryStore
from workbench.codecs import Codec, Model, get
from workbench.codecs.interpolation_model import Network, shapes
from workbench.codecs.interpolation_stream import ON_LATTICE
from workbench.codecs.lattice_stream import ORDERS

FOLDERS: list[tempfile.TemporaryDirectory[str]] = []   # of series


@dataclass(frozen=True)
class Victim:
    """What was compressed, and the parts of its archive by key; a step of a series knows earlier ones."""

    name: str
    original: wb.Particles | wb.Field | wb.Trajectory
    entries: dict[str, bytes]
    step: Any = None

    def opened(self, parts: dict[str, bytes]) -> wb.Archive:
        """The archive of these parts."""
        return wb.Archive(MemoryStore(parts), step=self.step)


def victims(foreign: bool = False) -> list[Victim]:
    """The archives to forge; with `foreign`, also those whose codecs are other people's libraries."""
    made = {**_particles(), **_fields(), **_shards(), **_in_time(), **(_foreign() if foreign else {})}
    return [Victim(name, original, samples.parts(archive), archive.step) for name, (original, archive) in made.items()]


Made = dict[str, tuple[wb.Particles | wb.Field | wb.Trajectory, wb.Archive]]


def _particles() -> Made:
    swarm, flat = samples.particles(150), samples.particles(150, np.float64, 2, None)
    web = wb.Particles.wrapped(np.random.default_rng(3).normal(5, 1.2, (200, 3)).astype(np.float32), 10.0)
    plain = wb.Particles(samples.particles(200, np.float64, 3, None).positions)
    kept = [wb.KeepClusters(0.3), wb.KeepClusters([0.2, 0.3], min_members=3)]
    made: Made = {
        "free": (swarm, wb.compress(swarm, wb.Absolute(0.01), order="free", chunk_values=150, store_permutation=True)),
        "flat": (flat, wb.compress(flat, wb.PointwiseRelative(0.01), order="free", velocities=wb.Absolute(0))),
        "kept order": (swarm, wb.compress(swarm, wb.Absolute(0.01), chunk_values=150)),
        "low bits": (plain, wb.compress(plain, wb.Absolute(1e-10), order="free", chunk_values=300)),
        "single": (plain, wb.compress(wb.Particles(plain.positions[:1]), wb.Absolute(0.1), order="free")),
        "clusters": (web, wb.compress(web, wb.Absolute(0.2), order="free", keep=kept[:1], chunk_values=300)),
        "clusters in order": (web, wb.compress(web, wb.Absolute(0.2), keep=kept[1:])),
        "2-D clusters": (flat, wb.compress(flat, wb.Absolute(0.05), order="free", keep=kept[:1])),
    }
    made["single"] = (wb.Particles(plain.positions[:1]), made["single"][1])
    coders = {"context": ORDERS, "pcodec": ORDERS, "packed": ORDERS, "counts": ("free",), "molecules": ("keep",)}
    for coder, orders in coders.items():
        for order in orders:
            codec = get("lattice", coder=coder, block=64)
            made[f"{coder}, {order}"] = (plain, wb.compress(plain, wb.Absolute(0.01), codec, order=order))
    return made


def _fields() -> Made:
    values = samples.field((12, 13), np.float64)
    values[2, 3:8], values[5, 5] = 0, np.nan
    field = wb.Field(values, 0.5, "t", values > 80, {"units": "K", "a": [1]})
    plain, wide = wb.Field(samples.field((40,))), wb.Field(samples.field((30, 20)))
    whole = wb.Field(np.rint(1000 * samples.field((9, 11))).astype(np.int16), mask=np.arange(99).reshape(9, 11) % 7 == 0)
    large = wb.Field(np.array([-(2**63), 2**63 - 1, *range(30)]))
    classes = wb.Field(np.array([0.0, 0.3, 70.0, 70.1])[np.random.default_rng(0).integers(0, 4, (20, 30))])
    coast = np.add.outer(np.arange(24) ** 2, np.arange(30) ** 2) < 300
    ocean = wb.Field(samples.field((2, 24, 30)), mask=np.stack([coast, coast]))
    zeros = np.random.default_rng(0).random((50, 40)) < 0.9
    sparse = wb.Field(np.where(zeros, 0, np.random.default_rng(1).normal(0, 2, zeros.shape)).astype(np.float32))
    repeated = wb.Field(np.tile(np.random.default_rng(0).integers(0, 2, 37), 40).astype(np.float32))
    return {
        "field": (field, wb.compress(field, wb.Absolute(0.1), "prequantised", chunk_values=60)),
        "logarithms": (field, wb.compress(field, wb.PointwiseRelative(0.01), "prequantised", chunk_values=60)),
        "interpolation": (field, _interpolated(field, wb.Absolute(0.1), chunk_values=60)),
        "classes": (classes, wb.compress(classes, wb.Absolute(1e-4), "interpolation")),
        "repeats": (repeated, wb.compress(repeated, wb.Absolute(0.1), "interpolation")),
        "model": (wide, _with_model(wide)),
        "interpolated logarithms": (field, _interpolated(field, wb.PointwiseRelative(0.01))),
        "bit rounding": (plain, wb.compress(plain, wb.Relative(0.01), "bitround")),
        "integers": (whole, wb.compress(whole, wb.Absolute(3), chunk_values=50)),
        "zeros": (sparse, wb.compress(sparse, wb.Absolute(0.1), "prequantised")),
        "coasts": (ocean, wb.compress(ocean, wb.Absolute(0.1), "prequantised")),
        "large integers": (large, wb.compress(large, wb.Absolute(0))),
        "exact": (plain, wb.compress(plain, wb.Absolute(0), "pcodec")),
    }


def _shards() -> Made:
    """Archives whose arrays have several chunks in a file, and not the same number in each."""
    swarm, values = samples.particles(150), samples.field((12, 13))
    field = wb.Field(values, mask=values > 80)
    with samples.in_shards():
        return {
            "shards": (swarm, wb.compress(swarm, wb.Absolute(0.01), order="free", chunk_values=60, store_permutation=True)),
            "shards of a field": (field, wb.compress(field, wb.Absolute(0.1), "prequantised", chunk_values=12)),
        }


def _in_time() -> Made:
    """Frames that atoms leave through faces, and steps of series, predicted from those before."""
    random = np.random.default_rng(4)
    walk = (random.random((80, 3)) + 0.02 * random.normal(size=(80, 3)) * np.arange(12)[:, None, None]).astype(np.float32)
    cells = np.tile(np.diag([1.0, 1.0, 1.0]), (12, 1, 1)) * (1 + 0.01 * random.random((12, 1, 1)))
    atoms = {"name": ["C", "CA"] * 40, "charge": np.ones(80)}
    frames = wb.Trajectory(walk % np.float32(1), cells=cells, times=np.arange(12.0), velocities=walk, atoms=atoms)
    plain = wb.Trajectory(walk, times=np.arange(12.0))
    whole = wb.Trajectory(np.round(walk, 2) % 1, cells=cells)
    rounded, bound, ids = get("rounded", precision=100.0), wb.Absolute(1e-3), np.arange(80)
    swarms = [wb.Particles(walk[k][k:], velocities=(walk[1] - walk[0])[k:], ids=ids[k:]) for k in range(3)]
    fields = [wb.Field(samples.field((12, 13)) + 0.1 * k) for k in range(3)]
    return {
        "frames": (frames, wb.compress(frames, bound, "motion", chunks=6, velocities=wb.Absolute(0.01))),
        "frames without cells": (plain, wb.compress(plain, bound, "motion", chunks=(12, 50, 3))),
        "rounded frames": (whole, wb.compress(whole, wb.Exact(), rounded)),
        "step of particles": (swarms[2], _last_step(swarms, bound)),
        "step of a field": (fields[2], _last_step(fields, wb.Absolute(0.1), "interpolation")),
        "step that is as the one before": (fields[0], _last_step([fields[0], fields[0]], wb.Exact())),
    }


def _last_step(steps: list[Any], bound: wb.Bound, codec: str = "auto") -> wb.Archive:
    """The archive of the last step of a series, whose folder stays until the end of the process."""
    FOLDERS.append(tempfile.TemporaryDirectory())
    series = wb.Series(FOLDERS[-1].name, bound, codec)
    for time, step in enumerate(steps):
        series.append(step, time)
    return series[-1]


def _with_model(field: wb.Field) -> wb.Archive:
    """An archive with a model that is used although it was not trained."""
    rng = np.random.default_rng(0)
    networks = {odd: [rng.integers(-40, 41, shape).astype(np.int16) for shape in shapes(odd)] for odd in (1, 2)}
    model = Model(2, (), {odd: Network(*parts) for odd, parts in networks.items()})
    with patch("workbench.codecs.interpolation.COPIES", -1):
        return _interpolated(field, wb.Absolute(0.1), get("interpolation", model=model))


def _interpolated(field: wb.Field, bound: wb.Bound, codec: Codec | str = "interpolation", **options: int) -> wb.Archive:
    """An archive without a lattice, and with the model if there is one, whatever is smaller."""
    kept = "workbench.codecs.interpolation._smaller"
    with patch(kept, lambda one, other: one if other[0] == ON_LATTICE else other):
        return wb.compress(field, bound, codec, **options)


def _foreign() -> Made:
    swarm, field = samples.particles(150), wb.Field(samples.field((12, 13)))
    found = [name for name in ("sz3", "zfp", "sperr", "draco", "fpzip", "numcodecs") if name in samples.CODECS]
    made: Made = {name: (swarm, wb.compress(swarm, wb.Absolute(0.05), name, order="free")) for name in found}
    for name in found:
        if name != "draco":
            made[f"{name}, field"] = (field, wb.compress(field, wb.Absolute(0.1), name))
    return made
