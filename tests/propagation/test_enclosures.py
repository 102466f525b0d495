"""Guaranteed intervals: never exceeded, whatever the data, the error and where it enters."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.propagation import (
    BitFlip,
    Bounded,
    Dropped,
    Noise,
    Pipeline,
    Stage,
    StuckAt,
    derivatives,
    halos,
    histogram,
    linear_operator,
    power_spectrum,
    principal_components,
    trace,
    vorticity,
)
from workbench.propagation.enclosures import Ball, refines
from workbench.propagation.ready.groups import count_range
from workbench.propagation.trace import enclosed

MANY = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True, repr=False)
class Within(Noise):
    """An error that is known to be within a limit."""

    limit: object = None

    def radius(self, values, changed):
        return self.limit


def cases(seed):
    """A pipeline with an input of some scale, shape and type."""
    random = np.random.default_rng(seed)
    scale = 10.0 ** random.integers(-6, 7)
    dtype = [np.float32, np.float64][seed % 2]
    shape = tuple(random.integers(3, 9, size=1 + seed % 3))
    shape = (max(shape[0], 4), *shape[1:])
    field = (scale * (random.normal(size=shape) + random.choice([0, 1, 100]))).astype(dtype)
    kind = (seed // 6) % 6
    if kind == 0:
        density = (scale * np.exp(random.normal(size=shape))).astype(dtype)
        return power_spectrum(density), density, random
    if kind == 1:
        return derivatives(wb.Field(field, spacing=float(random.uniform(0.1, 3)))), field, random
    if kind == 2:
        velocity = (scale * random.normal(size=(3, 4, 5, 3))).astype(dtype)
        return vorticity(velocity, spacing=0.5), velocity, random
    if kind == 3:
        return histogram(field, bins=int(random.integers(1, 20))), field, random
    if kind == 4 and len(shape) < 3:
        matrix = random.normal(size=(4, shape[0])).astype(dtype)
        return Pipeline([linear_operator("projected", matrix), linear_operator("mixed", matrix[:, :4])]), field, random
    samples = (scale * random.normal(size=(12, 3)) + scale * random.normal()).astype(dtype)
    return principal_components(samples), samples, random


def perturbed_within(values, radius, random, way):
    """Changes up to a radius: all of one sign, of random signs, alternating, at one place, or uniform."""
    sign = [
        np.ones(values.shape), random.choice([-1.0, 1.0], values.shape), np.indices(values.shape).sum(axis=0) % 2 * 2.0 - 1,
        np.where(np.arange(values.size).reshape(values.shape) == random.integers(values.size), 1.0, 0.0),
        random.uniform(-1, 1, values.shape),
    ][way]
    phase = np.exp(2j * np.pi * random.random(values.shape)) if values.dtype.kind == "c" else 1.0
    return (values + radius * sign * phase).astype(values.dtype)


def check(seeds):
    """The number of enclosures that were checked, all of which must hold."""
    checked = 0
    for seed in seeds:
        pipeline, x, random = cases(seed)
        run = pipeline.run(x)
        sites = [site for site in pipeline.sites if run[site].dtype.kind in "fc" and len(pipeline.after(site)) > 1]
        for site, way in itertools.product(sites, range(5)):
            values = run[site]
            size = float(np.sqrt(np.mean(abs(values).astype(float) ** 2))) or 1.0
            radius = size * 10.0 ** random.uniform(-9, 0.5)
            changed = pipeline.resume(run, {site: perturbed_within(values, radius, random, way)})
            actual = abs(changed[site].astype(np.result_type(values, float)) - values)   # with the rounding of the addition
            given = Within(site, 1.0, limit=np.maximum(radius, actual))
            found = enclosed(pipeline, run, changed, [given])
            for name, enclosure in found.items():
                if enclosure is not None and np.isfinite(changed[name]).all():
                    assert enclosure.holds(run[name], changed[name]), (seed, site, way, name, radius / size)
                    checked += 1
    return checked


def test_no_value_leaves_its_guaranteed_interval():
    assert check(range(40)) > 400


@pytest.mark.long
def test_no_value_leaves_its_guaranteed_interval_in_ten_thousand_cases():
    assert check(range(1000, 2200)) > 10_000


def brute_force(fine, coarse, edges):
    """The least and largest count in each bin over all partitions between two, by trying all of them."""
    pieces = [np.flatnonzero(fine == label) for label in np.unique(fine)]
    owner = [coarse[piece[0]] for piece in pieces]
    counts = []
    for assignment in itertools.product(*[range(len(pieces))] * len(pieces)):
        groups = {}
        for place, group in enumerate(assignment):
            groups.setdefault((owner[place], group), []).extend(pieces[place])
        counts.append(np.histogram([len(members) for members in groups.values()], edges)[0])
    return np.min(counts, axis=0), np.max(counts, axis=0)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 2**32), st.integers(1, 3))
@MANY
def test_counts_of_groups_enclose_every_partition_in_between(sizes, seed, least):
    fine = np.repeat(np.arange(len(sizes)), sizes)
    coarse = np.random.default_rng(seed).integers(0, 2, len(sizes))[fine]
    edges = least * 2 ** np.arange(6)
    found = count_range(fine, coarse, edges)
    low, high = brute_force(fine, coarse, edges)
    assert (found.low <= low).all()
    assert (found.high >= high).all()
    alone = np.bincount(coarse[np.unique(fine, return_index=True)[1]]).max() == 1
    if alone:
        assert (found.low == found.high).all()


@given(st.integers(0, 2**32), st.floats(1e-4, 1.5), st.booleans(), st.sampled_from([2, 3]), st.sampled_from(["f4", "f8"]))
@MANY
def test_groups_and_their_counts_stay_in_their_intervals(seed, share, periodic, dimensions, dtype):
    random = np.random.default_rng(seed)
    box = 10.0 if periodic else None
    positions = (random.random((60, dimensions)) * 9.99).astype(dtype)
    particles = wb.Particles(positions, box=box)
    pipeline = halos(particles, 0.6, "length", min_members=2)
    found = trace(pipeline, particles, Bounded("input", wb.Absolute(share * 0.6), codec="prequantised"))
    assert found["groups"].holds in (True, None)
    assert found["mass_function"].holds in (True, None)
    if share < 0.1:
        assert found["groups"].holds
    moved = positions + (share * 0.6 * random.choice([-1, 1], positions.shape)).astype(dtype)
    moved = np.mod(moved, 10.0).astype(dtype) if periodic else moved
    moved[moved >= 10] = 0
    run = pipeline.run(particles)
    other = pipeline.resume(run, {"input": moved})
    distance = abs(moved.astype(float) - positions)
    distance = np.minimum(distance, abs(10.0 - distance)) if periodic else distance

    for site, enclosure in enclosed(pipeline, run, other, [Within("input", 1.0, limit=distance)]).items():
        if enclosure is not None and site != "input":
            assert enclosure.holds(run[site], other[site]), site


def test_an_enclosure_that_is_wrong_is_reported():
    def too_small(inputs, enclosures, outputs):
        return Ball(0.5 * enclosures[0].radius)

    pipeline = Pipeline([Stage("same", lambda x: x + 0, enclose=too_small)])
    found = trace(pipeline, np.ones(4), BitFlip("input", bit="sign", index=2))
    assert found["same"].holds is False
    assert "outside the guaranteed interval" in found._repr_html_()


def test_intervals_are_sharp_where_the_worst_case_happens():
    wave = np.random.default_rng(0).normal(size=(16, 16))
    pipeline = derivatives(wave)
    run = pipeline.run(wave)
    checkers = 1e-3 * (np.indices(wave.shape).sum(axis=0) % 2 * 2 - 1)
    found = pipeline.resume(run, {"input": wave + checkers})

    enclosure = enclosed(pipeline, run, found, [Within("input", 1.0, limit=1e-3)])["laplacian"]
    worst = abs(found["laplacian"] - run["laplacian"]).max()
    assert worst <= np.max(enclosure.most(run["laplacian"])) <= 1.0001 * worst


def test_refinement_is_that_of_partitions():
    assert refines(np.array([0, 0, 2, 2]), np.array([7, 7, 7, 7]))
    assert not refines(np.array([0, 0, 2, 2]), np.array([0, 1, 2, 2]))


TYPES = ["float32", "float64", "int8", "uint8", "int64", "uint64", "complex64"]


def unusual_values(random):
    """Values of any type and scale, some of them not finite."""
    dtype = np.dtype(str(random.choice(TYPES)))
    shape = [(30,), (6, 8), (5, 6, 4), (12, 3)][random.integers(4)]
    if dtype.kind in "iu":
        span = np.iinfo(dtype)
        return random.integers(span.min, span.max, shape, dtype, endpoint=True)
    values = random.normal(size=shape) * 10.0 ** random.choice([0, 3, -30, 30, -170, 170]) + random.choice([0, 1000])
    with np.errstate(over="ignore"):
        values = (values + 1j * random.normal(size=shape) if dtype.kind == "c" else values).astype(dtype)
    if dtype.kind == "f" and random.random() < 0.3:
        values.ravel()[random.integers(values.size)] = random.choice([np.nan, np.inf])
    return values


def pipelines_for(values, random):
    """What can be computed from these values."""
    matrix = random.normal(size=(4, values.shape[0])).astype(random.choice(["float32", "float64"]))
    made = [lambda: Pipeline([linear_operator("projected", matrix)])] if values.ndim < 3 else []
    if values.dtype.kind == "c":
        return made
    made.append(lambda: derivatives(wb.Field(values, spacing=0.3)))
    made.append(lambda: power_spectrum(values))
    if np.isfinite(values.astype(np.float64)).all() and values.min() < values.max():
        made.append(lambda: histogram(values, bins=5))
        made += [lambda: principal_components(values)] if values.ndim == 2 else []
    else:
        made.append(lambda: histogram(values, bins=5, span=(-1.0, 1.0)))
    return made


def faults_for(values, random):
    """Faults and errors of every kind that this type can have."""
    faults = [BitFlip("input"), BitFlip("input", bit=0), StuckAt("input", bit=0, to=1), Dropped("input", block=5)]
    if values.dtype.kind != "c":
        faults.append(Bounded("input", wb.Relative(10.0 ** random.uniform(-6, 0)), "prequantised"))
    if values.dtype.kind == "f":
        faults.append(Bounded("input", wb.PointwiseRelative(0.01), "prequantised"))
        faults.append(Dropped("input", block=5, fill=float("nan")))
    if values.dtype.kind in "fc" and np.isfinite(values).any():
        faults += [BitFlip("input", bit="exponent"), Noise("input", 0.1, unit="range")]
    return faults


def require_guaranteed(seed):
    """The number of guaranteed intervals of one fault, all of which must hold, overflow or not."""
    random = np.random.default_rng([seed, 7])
    values = unusual_values(random)
    pipelines, faults = pipelines_for(values, random), faults_for(values, random)
    if not pipelines:
        return 0
    pipeline, fault = pipelines[random.integers(len(pipelines))](), faults[random.integers(len(faults))]
    with np.errstate(all="ignore"):
        found = trace(pipeline, values, fault, seed=seed, floor=dict.fromkeys(pipeline.sites, 0.0))
    for each in found.stages:
        assert each.holds is not False, (seed, fault, values.dtype, each)
        assert each.guaranteed is None or not np.isnan(each.guaranteed), (seed, fault, values.dtype, each)
    return sum(each.holds is not None for each in found.stages)


@pytest.mark.long
def test_guaranteed_intervals_hold_for_every_type_and_fault_also_where_numbers_overflow():
    assert sum(map(require_guaranteed, range(300))) > 400


@pytest.mark.long
def test_guaranteed_intervals_hold_for_every_type_and_fault_in_ten_thousand_cases():
    assert sum(map(require_guaranteed, range(1000, 11_000))) > 10_000


def test_the_size_of_a_fault_in_integers_is_exact():
    """Differences of integers wrap around in their own type, and in float64 those beyond 2^53 are rounded."""
    change = BitFlip("input").radius
    assert change(np.array([200], np.uint8), np.array([0], np.uint8)) == 200
    assert change(np.array([-128], np.int8), np.array([127], np.int8)) == 255
    assert change(np.array([2**60 + 1]), np.array([2**60])) == 1
    assert change(np.array([-(2**63)]), np.array([2**63 - 1])) == 2.0**64


def test_derivatives_of_integers_are_not_rounded_to_whole_numbers():
    ramp = np.abs(np.arange(-8, 8))
    assert derivatives(ramp).run(ramp)["gradient"][0, 1:8].tolist() == [-1.0] * 7
    pair = np.array([0, 1, 0, 0, 0, 0], np.int8)
    assert derivatives(pair).run(pair)["gradient"][0].tolist() == [0.5, 0.0, -0.5, 0.0, 0.0, 0.0]


def test_intervals_of_a_spectrum_hold_where_the_mean_is_subnormal_and_where_squares_overflow():
    density = np.random.default_rng(0).uniform(1, 2, 30)
    for values, fault in ((density * 1e-317, BitFlip("input", bit=3, index=0)), (density, Noise("contrast", 1e160))):
        with np.errstate(all="ignore"):
            found = trace(power_spectrum(values), values, fault, floor=dict.fromkeys(power_spectrum(values).sites, 0.0))
        assert all(each.holds for each in found.stages)
