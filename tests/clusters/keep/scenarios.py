"""Originals, what a codec could have made of them, and a judge who says what a correction got wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import oracles
import workbench as wb
from workbench.clusters.keep import Correction
from workbench.clusters.keep.edits import apply_edits
from workbench.guarantees import Bound, Limit, check
from workbench.guarantees.correction import apply_correction
from workbench.guarantees.sections import EDIT, PIN

SOLVERS = ("auto", "pgd", "refine")


@dataclass(frozen=True, eq=False)
class Scenario:
    """Original particles, a bound, positions that keep it, and the linking lengths of the groups to be kept."""

    original: wb.Particles
    decoded: np.ndarray
    bound: Bound
    lengths: tuple[float, ...]
    min_members: int = 1

    @property
    def limit(self) -> Limit:
        return self.bound.limit(self.original.positions)

    def correct(self, solver: str = "auto") -> Correction:
        lengths, members = self.lengths, self.min_members
        return wb.clusters.correct(self.original, self.decoded, self.bound, lengths, "length", members, solver)


def decoded_with(original: wb.Particles, noise: np.ndarray, bound: Bound | float) -> np.ndarray:
    """Positions off by so many bounds, as far as their type, the bound and the box allow."""
    positions, dtype = original.positions, original.positions.dtype
    limit = (bound if isinstance(bound, Bound) else wb.Absolute(bound)).limit(positions)
    most = limit.value * (np.abs(positions.astype(np.float64)) if limit.relative else 1.0)
    moved = (positions.astype(np.float64) + noise * most).astype(dtype)
    if original.box is not None:
        moved = wb.Particles.wrapped(moved, original.box).positions
    found = np.ascontiguousarray(moved).copy()
    for nearer in (np.nextafter(moved, positions).ravel(), positions.ravel()):   # rounding can lead out of the bound
        broken = check(positions, found, limit, original.box).broken
        found.ravel()[broken] = nearer[broken]
    return found


def keep(
    original: wb.Particles, share: float, length: float, seed: int = 0, solver: str = "auto", min_members: int = 1,
    corners: bool = False,
) -> tuple[Scenario, Correction]:
    """Noise of up to this share of the linking length, or of just this, on every coordinate; and its correction."""
    random = np.random.default_rng(seed)
    noise = random.uniform(-1, 1, original.positions.shape)
    noise = np.sign(noise) if corners else noise
    bound = wb.Absolute(share * length)
    scenario = Scenario(original, decoded_with(original, noise, bound), bound, (length,), min_members)
    return scenario, scenario.correct(solver)


def large_groups(labels: np.ndarray, least: int) -> set[frozenset[int]]:
    """The groups of at least so many members, each as the set of its members."""
    groups: dict[int, list[int]] = {}
    for index, label in enumerate(labels.tolist()):
        groups.setdefault(label, []).append(index)
    return {frozenset(members) for members in groups.values() if len(members) >= least}


def labels_by_definition(particles: wb.Particles, length: float) -> np.ndarray:
    """Groups from the definition where that is affordable; otherwise by SciPy, which an unusual set can be too much for."""
    if len(particles) <= 1500:
        return oracles.brute_force_labels(particles, length)
    return oracles.scipy_labels(particles, length)


def require_kept(scenario: Scenario, correction: Correction) -> None:
    """The promise, from definitions: in the bound, in the box, and in the groups of the original."""
    original = scenario.original
    assert correction.positions.dtype == original.positions.dtype
    assert check(original.positions, correction.positions, scenario.limit, original.box).holds
    corrected = wb.Particles(correction.positions, original.box)   # refuses positions outside the box
    for length, groups in zip(correction.lengths, correction.groups, strict=True):
        wanted, found = (labels_by_definition(particles, length) for particles in (original, corrected))
        assert large_groups(wanted, scenario.min_members) == large_groups(found, scenario.min_members)
        np.testing.assert_array_equal(groups.labels, wanted)


def require_stored(scenario: Scenario, correction: Correction, chunk: int | None = None) -> None:
    """The sections of each chunk lead from its decoded positions to the corrected ones, bit for bit."""
    count = len(scenario.original)
    for begin in range(0, count, chunk or count):
        rows = slice(begin, min(begin + (chunk or count), count))
        sections = correction.sections(rows)
        assert all(sections.values())
        found = apply_edits(scenario.decoded[rows], sections.pop(EDIT, b""))
        found = apply_correction(found, sections.pop(PIN, b""))
        assert not sections
        assert found.tobytes() == correction.positions[rows].tobytes()


def thrown_together(
    seed: int, share: float, kind: str, boxed: bool, dimensions: int, min_members: int = 1, dtype: type = np.float64
) -> Scenario:
    """Particles whose decoded positions coincide, nearly coincide, or go as far to one place as the bound allows."""
    random, length = np.random.default_rng(seed), 0.2
    bound, count = share * length, int(random.integers(12, 80))
    side = length * random.uniform(2, 2.5 + count ** (1 / dimensions))
    points = random.random((count, dimensions)) * side
    if random.random() < 0.3:   # ties
        points = np.round(points / length) * length
    original = wb.Particles.wrapped(points.astype(dtype), side) if boxed else wb.Particles(points.astype(dtype))
    places = original.positions.astype(np.float64)
    targets = (np.floor(places / (2 * bound)) + 0.5) * 2 * bound
    if kind == "collapsed":
        targets[...] = side / 2
    if kind == "near":
        targets += 1e-3 * length * random.normal(size=places.shape)
    decoded = decoded_with(original, np.clip((targets - places) / bound, -0.999, 0.999), wb.Absolute(bound))
    return Scenario(original, decoded, wb.Absolute(bound), (length,), min_members)


TOGETHER = ("coincident", "near", "collapsed")

SHARES = (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.45, 0.5, 0.6, 0.9, 1.2, 3.0)


@st.composite
def originals(draw: st.DrawFn, most: int = 90) -> tuple[wb.Particles, float]:
    """Small sets of all kinds and a linking length; many of their pairs are about that far apart, some exactly."""
    dimensions = draw(st.sampled_from([2, 3]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(1, most))
    kind = draw(st.sampled_from(["uniform", "clustered", "lattice", "walk", "repeated"]))
    length = draw(st.sampled_from([0.03, 0.125, 0.17, 0.25]))
    points = random.random((count, dimensions))
    if kind == "clustered":
        points = points[random.integers(0, max(count // 12, 1), count)] + length * random.normal(size=points.shape)
    elif kind == "lattice":
        points = np.floor(points / length) * length
    elif kind == "walk":
        points = 0.5 + length * np.cumsum(np.eye(dimensions)[random.integers(0, dimensions, count)], axis=0)
    elif kind == "repeated":
        points = points[random.integers(0, count, count)]
    scale = draw(st.sampled_from([1.0, 1.0, 1e-6, 300.0]))
    box = draw(st.sampled_from([None, 1.0, (1.0, 2.0, 1.3), "small"]))
    if box is None:
        return wb.Particles((points * scale).astype(dtype)), length * scale
    periods = length * draw(st.sampled_from([1.5, 2.0, 3.5, 7.0])) if box == "small" else box
    along = np.broadcast_to(periods, 3)[:dimensions] * scale
    return wb.Particles.wrapped((points * scale).astype(dtype), tuple(along.tolist())), length * scale


@st.composite
def scenarios(draw: st.DrawFn, most: int = 90) -> Scenario:
    """Everything at once: every set, any bound, uniform or worst errors, one linking length or several."""
    original, length = draw(originals(most))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.sampled_from(SHARES)) * length
    bound: Bound = wb.Absolute(size)
    if draw(st.integers(0, 5)) == 0:
        scale = float(np.abs(original.positions).max())
        bound = wb.PointwiseRelative(min(size / scale, 0.3)) if scale > 0 else bound
    noise = random.uniform(-1, 1, original.positions.shape)
    noise = np.sign(noise) if draw(st.booleans()) else noise
    several = draw(st.sampled_from([(1.0,), (1.0,), (0.5, 1.0), (1.0, 1.0001, 1.7), (0.9, 1.0, 4.0)]))
    members = draw(st.sampled_from([1, 1, 1, 2, 3, 5, 20]))
    return Scenario(original, decoded_with(original, noise, bound), bound, tuple(length * s for s in several), members)
