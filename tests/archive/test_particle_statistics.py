"""Counts, densities, centres and halo masses of archived particles: those of the original are between the stated ends."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from archive.samples import CODECS
from workbench.archive import Archive
from workbench.archive.statistics.particle_counts import RANGES, SOME, Cubes
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit

PARTICLE_CODECS = [codec for codec in ("lattice", "draco", "sz3", "pcodec") if codec in CODECS]


def clustered(rng: np.random.Generator, count: int, dimensions: int, box: float | None, dtype: type) -> wb.Particles:
    """Clumps, some across faces, and a background; masses on half of them."""
    size = box or 10.0 ** rng.uniform(-3, 3)
    centres = rng.random((5, dimensions)) * size
    clumps = centres[rng.integers(5, size=count)] + rng.normal(size=(count, dimensions)) * size * 0.02
    positions = np.where(rng.random((count, 1)) < 0.7, clumps, rng.random((count, dimensions)) * size)
    if box is not None:
        positions = np.mod(positions, box).astype(dtype)
        positions = np.where(positions >= box, 0, positions)
    masses = rng.uniform(0.1, 3, count) if rng.random() < 0.5 else None
    return wb.Particles(positions.astype(dtype), box=box, masses=masses)


def archived(seed: int) -> tuple[np.random.Generator, wb.Particles, Archive]:
    """Random particles and bounds; the archive has several chunks and small blocks."""
    rng = np.random.default_rng(seed)
    box = float(10.0 ** rng.uniform(-3, 3)) if rng.random() < 0.5 else None
    dtype = (np.float32, np.float64)[int(rng.integers(2))]
    particles = clustered(rng, int(rng.integers(1, 900)), int(rng.integers(2, 4)), box, dtype)
    size = box or float(np.ptp(particles.positions, axis=0).max()) or 1.0
    bound = wb.Absolute(size * 10.0 ** rng.uniform(-5, -1.5))
    kind = rng.random()
    if kind < 0.1:
        bound = wb.PointwiseRelative(10.0 ** rng.uniform(-5, -2))
    elif kind < 0.2:
        bound = wb.Exact()
    codec = "lattice" if rng.random() < 0.7 else PARTICLE_CODECS[int(rng.integers(len(PARTICLE_CODECS)))]
    if codec == "lattice":
        codec = wb.codecs.get("lattice", block=64)
    order = "free" if rng.random() < 0.6 else "keep"
    archive = wb.compress(particles, bound, codec, order=order, chunk_values=int(rng.choice([300, 10**6])))
    return rng, particles, archive


def inside(positions: np.ndarray, region: list[tuple[float, float]], box: float | None) -> int:
    """How many are in a region, in exact arithmetic."""
    ends = [(Fraction(a), Fraction(b)) for a, b in region]

    def within(x: Fraction, low: Fraction, high: Fraction) -> bool:
        if box is None:
            return low <= x < high
        return high - low >= Fraction(box) or (x - low) % Fraction(box) < high - low

    rows = ([Fraction(x) for x in row] for row in positions.tolist())
    return sum(all(within(x, *pair) for x, pair in zip(row, ends, strict=True)) for row in rows)


def test_the_count_of_the_original_is_between_the_ends():
    tight = 0
    for seed in range(40):
        rng, particles, archive = archived(seed)
        box = None if particles.box is None else particles.box[0]
        for _ in range(4):
            middle = particles.positions[int(rng.integers(len(particles)))].astype(float)
            half = float(np.max(particles.lengths)) * 10.0 ** rng.uniform(-3, 0.2) or 1.0
            region = [(x - half * rng.uniform(0.1, 1), x + half * rng.uniform(0.1, 1)) for x in middle.tolist()]
            true, counted = inside(particles.positions, region, box), archive.count_particles(region)
            assert counted.low <= true <= counted.high, (seed, region, counted, true)
            assert counted.low <= counted.value <= counted.high
            tight += counted.low == true == counted.high
    assert tight > 20


def test_the_count_in_a_sphere_is_between_the_ends():
    for seed in range(100, 130):
        rng, particles, archive = archived(seed)
        centre = particles.positions[int(rng.integers(len(particles)))].astype(float)
        radius = float(np.max(particles.lengths)) * 10.0 ** rng.uniform(-3, 0) or 1.0
        away = np.abs(particles.positions.astype(np.longdouble) - centre)
        if particles.box is not None:
            away = np.minimum(away, np.longdouble(particles.box[0]) - away)
        true = int((np.sqrt((away**2).sum(axis=1)) <= radius).sum())
        counted = archive.count_particles(sphere=(centre, radius))
        assert counted.low <= true <= counted.high, (seed, counted, true)


def test_a_count_decodes_only_blocks_at_the_faces_of_a_region():
    snapshot = wb.synthetic.cosmic_web(n=32, seed=3)
    archive = wb.compress(snapshot, wb.Absolute(0.01), wb.codecs.get("lattice", block=64), order="free")
    region = [(4.0, 28.0)] * 3
    counted = archive.count_particles(region)
    assert (counted.stage, 0 < counted.positions_read < len(snapshot) / 2) == (SOME, True)
    whole = archive.count_particles([(-1.0, 40.0)] * 3)
    assert (whole.low, whole.high) == (len(snapshot),) * 2
    assert wb.compress(wb.Particles(snapshot.positions), wb.Absolute(0.01)).count_particles([(-9, 50)] * 3).stage == RANGES


def test_density_contains_that_of_the_original():
    for seed in range(200, 225):
        rng, particles, archive = archived(seed)
        cells = tuple(int(n) for n in rng.integers(1, 9, particles.dimensions))
        mesh = archive.density(cells)
        given = particles.positions.astype(np.float64).T
        places = [np.searchsorted(along, x, side="right") - 1 for along, x in zip(mesh.edges, given, strict=True)]
        true = np.zeros(cells, np.int64)
        np.add.at(true, tuple(places), 1)
        assert ((mesh.low <= true) & (true <= mesh.high)).all(), seed
        assert mesh.values.sum() == len(particles)


def test_the_centre_of_mass_is_within_its_bound():
    for seed in range(300, 340):
        _, particles, archive = archived(seed)
        weights = np.ones(len(particles)) if particles.masses is None else np.broadcast_to(particles.masses, len(particles))
        weights = weights.astype(np.longdouble)
        centre = archive.centre_of_mass()
        if particles.box is None:
            true = (weights[:, None] * particles.positions).sum(axis=0) / weights.sum()
            away = np.abs(true - centre.value)
        else:
            angle = particles.positions.astype(np.longdouble) * (2 * np.pi / particles.box[0])
            sums = [(weights[:, None] * wave).sum(axis=0) for wave in (np.cos(angle), np.sin(angle))]
            turn = np.abs(np.arctan2(sums[1], sums[0]) / (2 * np.pi) * particles.box[0] - centre.value) % particles.box[0]
            away = np.minimum(turn, particles.box[0] - turn)
        assert (away <= centre.bound).all(), seed


def test_halo_masses_contain_those_of_the_original():
    for seed in range(3):
        snapshot = wb.synthetic.cosmic_web(n=16, seed=seed)
        archive = wb.compress(snapshot, wb.Absolute(0.02), order="free")
        halos = archive.halo_masses(min_members=5)
        true = wb.friends_of_friends(snapshot, 0.2)
        sizes = true.sizes_of(true.labels[archive.permutation(snapshot)[halos.particles]])
        assert len(halos) > 5
        assert ((halos.low <= sizes) & (sizes <= halos.high)).all()
        assert ((halos.low <= halos.values) & (halos.values <= halos.high)).all()


def test_kept_groups_are_known_exactly():
    snapshot = wb.synthetic.cosmic_web(n=16, seed=5)
    halos = wb.compress(snapshot, wb.Absolute(0.05), keep=wb.KeepClusters(0.2)).halo_masses(0.2)
    true = wb.friends_of_friends(snapshot, 0.2)
    assert (halos.kept, (halos.low == halos.high).all()) == (True, True)
    assert sorted(halos.values.tolist()) == sorted(true.sizes[true.sizes >= 20].tolist())


def test_a_cube_of_a_relative_bound_grows_with_the_coordinate():
    cubes = Cubes.around(np.array([[0.0, 8.0]]), Limit("relative", 0.5), None)
    assert (cubes.reach[0, 0] < 1e-300, 8 <= cubes.reach[0, 1] < 8.001) == (True, True)


def test_wrong_requests_are_refused_with_what_is_available():
    archive = wb.compress(wb.synthetic.cosmic_web(n=8, seed=0), wb.Absolute(0.1))
    field = wb.compress(np.zeros((8, 8)), wb.Absolute(0.1))
    for call, words in (
        (lambda: field.count_particles([(0, 1), (0, 1)]), "is of particles"), (lambda: field.density(4), "is of particles"),
        (lambda: archive.count_particles(), "a region, or a sphere"), (lambda: archive.mean(), "count_particles"),
        (lambda: archive.count_particles([(0, 1)]), "3 pairs"),
        (lambda: archive.count_particles(sphere=([0, 0], 1)), "3 coordinates"),
        (lambda: archive.density(100), "take fewer"), (lambda: archive.density((2, 2)), "3 axes"),
        (lambda: archive.density(0), "cells"), (lambda: archive.density(None), "cells"),
        (lambda: archive.density(10**5), "more memory than there is"), (lambda: archive.halo_masses(1e-3), "smaller bound"),
    ):
        with pytest.raises(WorkbenchError, match=words):
            call()
