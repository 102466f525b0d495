"""Quantiles, counts and histograms of archives: those of the original are in every interval, in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from archive.statistics_cases import archives, every_codec, made_up, regions_of, valid_in
from workbench.archive import Archive
from workbench.archive.statistics import METADATA, SOME, Statistic
from workbench.archive.statistics.envelopes import Cut, lower, upper
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit

SHARES = (0.0, 0.01, 0.25, 0.5, 0.9, 1.0, 1 / 3)


def true_quantile(ordered: np.ndarray, share: float) -> Fraction:
    place = Fraction(share) * (len(ordered) - 1)
    before, after = Fraction(ordered[math.floor(place)].item()), Fraction(ordered[math.ceil(place)].item())
    return before + (place - math.floor(place)) * (after - before)


def holds(found: Statistic, true: Fraction) -> bool:
    low, high = Fraction(found.value) - Fraction(found.bound), Fraction(found.value) + Fraction(found.bound)
    return low <= true <= high and found.low <= true <= found.high


def check(archive: Archive, inside: np.ndarray, region: object, rng: np.random.Generator) -> int:
    """Compare quantiles, counts and a histogram with the exact ones; returns how many figures."""
    ordered = np.sort(inside.astype(np.float64))
    for share, found in zip(SHARES, archive.quantile(SHARES, region), strict=True):
        assert holds(found, true_quantile(ordered, share)), (share, found)
    checked = len(SHARES)
    for _ in range(3):
        ends = sorted(float(end) for end in rng.choice(ordered, 2) + rng.choice([0, 0.1]) * ordered[-1])
        for above, below in ((ends[0], None), (None, ends[0]), (ends[0], ends[1] if ends[0] < ends[1] else math.inf)):
            low, high = -math.inf if above is None else above, math.inf if below is None else below
            true = int(((ordered > low) & (ordered < high)).sum())
            found = archive.count(above, below, region)
            assert found.low <= true <= found.high, (above, below, found, true)
            assert found.low <= found.value <= found.high
            assert found.count == len(ordered)
            checked += 1
    edges = np.unique(rng.choice(ordered, 5) if rng.random() < 0.5 else np.linspace(ends[0], ends[0] + ordered[-1], 7))
    if len(edges) > 1:
        counts, found = np.histogram(ordered, edges)[0], archive.histogram(edges, region=region)
        assert ((found.low <= counts) & (counts <= found.high)).all()
        checked += len(edges) - 1
    return checked


def case(seed: int) -> int:
    rng = np.random.default_rng(seed)
    archive, values, mask = made_up(rng)
    checked = 0
    for region in regions_of(rng, values.shape):
        inside = valid_in(values, mask, region)
        if inside.size:
            checked += check(archive, inside, region, rng)
    return checked


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in (1, 2, 3))])
def test_the_exact_figures_are_in_every_interval(part):
    assert sum(case(seed) for seed in range(1000 * part, 1000 * part + 25)) > 400


@pytest.mark.parametrize("held", [1, pytest.param(300, marks=pytest.mark.long)])
def test_quantiles_need_not_hold_more_than_a_few_values(held, monkeypatch):
    monkeypatch.setattr("workbench.archive.statistics.order_statistics.MOST_HELD", held)
    monkeypatch.setattr("workbench.archive.statistics.order_statistics.PIECES", 7)
    assert sum(case(seed) for seed in range(5000, 5012)) > 200


@every_codec
def test_ties_are_found_in_any_number_of_values(codec, monkeypatch):
    monkeypatch.setattr("workbench.archive.statistics.order_statistics.MOST_HELD", 10)
    values = np.repeat(np.array([0.0, 1.0, 1.0, 5.0], np.float32), 700).reshape(70, 40)
    for archive in archives(values, wb.Absolute(0.01), codec):
        assert archive.median().value == pytest.approx(1.0, abs=0.02)
        assert holds(archive.quantile(0.25), true_quantile(np.sort(values.reshape(-1)), 0.25))


def test_staged_archives_decode_only_what_may_matter():
    noise = np.random.default_rng(1).random((64, 64, 64), np.float32)
    values = np.cumsum(np.ones((64, 64, 64), np.float32), axis=0) + noise
    archive = wb.compress(values, wb.Absolute(1e-3), wb.codecs.get("staged", sides=(1, 16, 32)))
    assert archive.count(above=70).stage == METADATA
    assert archive.histogram([-1.0, 30.5, 70.0]).stage == SOME
    found = archive.median()
    assert found.stage == SOME
    assert found.bytes_read < 0.3 * found.bytes_stored
    assert found.bound <= 1.01e-3
    assert archive.explain("median").bytes_read == found.bytes_read
    assert archive.count(above=30.5).bytes_read < 0.3 * found.bytes_stored


def test_blocks_with_missing_values_are_decoded_without_them():
    values = np.random.default_rng(1).normal(size=(40, 50)).astype(np.float32)
    values[::3, ::7] = np.nan
    mask = np.random.default_rng(2).random(values.shape) < 0.2
    archive = wb.compress(wb.Field(values, mask=mask), wb.Absolute(1e-2), "staged")
    inside = values[np.isfinite(values) & ~mask]
    found = archive.quantile([0.1, 0.5])
    assert [one.count for one in found] == [inside.size] * 2
    for one, share in zip(found, (0.1, 0.5), strict=True):
        assert abs(one.value - np.quantile(inside.astype(float), share)) <= one.bound


def test_ends_beyond_the_range_of_floats():
    values, largest = np.array([-1.7e308, -1.0, 1.0, 1.7e308]), np.finfo(np.float64).max
    archive = wb.compress(values, wb.Absolute(1e307), "prequantised")
    assert (archive.min().low, archive.max().high) == (-math.inf, math.inf)
    assert Cut(Fraction(largest) * 2, above=False).in_type(np.dtype("f8")) == math.inf
    assert Cut(Fraction(largest) * -2, above=False).in_type(np.dtype("f8")) == -largest
    counts = archive.histogram(np.array([-largest, 0.0, largest]))
    assert (counts.low <= 2).all()
    assert (counts.high >= 2).all()


@pytest.mark.few
@pytest.mark.parametrize(("dtype", "limit"), [   # integers have no relative limit
    *itertools.product(["int16", "int64", "uint64", "float32", "float64"], [None, Limit("absolute", 0.7)]),
    *itertools.product(["float32", "float64"], [Limit("relative", 0.3)]),
])
def test_cuts_divide_values_where_their_intervals_pass_an_edge(dtype, limit):
    rng = np.random.default_rng(3)
    kind = np.dtype(dtype)
    near = rng.normal(size=60) * 10 ** rng.uniform(-3, 3, 60)
    values = np.unique((np.abs(near) if kind.kind == "u" else near).astype(kind))
    edges = [0.0, 1.0, -1.0, 0.1, 1e300, -1e300, *rng.choice(near, 20).tolist(), *values[:20].tolist()]
    for edge in map(Fraction, edges):
        for value in values:
            low, high = ends(Fraction(value.item()), limit)
            assert lower(np.array([value]), limit)[0] <= low <= high <= upper(np.array([value]), limit)[0]
            for above in (False, True):
                passed = [end > edge if above else end >= edge for end in (low, high)]
                cuts = Cut.of_low(edge, limit, above).in_type(kind), Cut.of_high(edge, limit, above).in_type(kind)
                assert [value.item() >= cut for cut in cuts] == passed


def ends(value: Fraction, limit: Limit | None) -> tuple[Fraction, Fraction]:
    if limit is None:
        return value, value
    error = Fraction(limit.value)
    if not limit.relative:
        return value - error, value + error
    both = value / (1 - error), value / (1 + error)
    return min(both), max(both)


def test_wrong_calls_are_refused_in_words():
    archive = wb.compress(np.linspace(0, 1, 600).reshape(20, 30), wb.Absolute(1e-3), "staged")
    for wrong in (-0.1, 1.5, "half", [], [0.5, math.nan]):
        with pytest.raises(WorkbenchError, match="q must be"):
            archive.quantile(wrong)
    for bins in (0, [1.0], [1.0, 1.0], [0.0, math.inf], "many", [[0.0, 1.0]]):
        with pytest.raises(WorkbenchError, match=r"bins must|the edges of bins"):
            archive.histogram(bins, (0, 1))
    assert archive.histogram(np.int64(3)).count == 600
    assert archive.quantile(np.array(0.5)) == archive.median() == archive.quantile(np.array([0.5]))[0]
    with pytest.raises(WorkbenchError, match="range must be two numbers"):
        archive.histogram(3, "all")
    with pytest.raises(WorkbenchError, match="count takes above=, below= or both"):
        archive.count()
    with pytest.raises(WorkbenchError, match="above must be less than below"):
        archive.count(2, 1)
    with pytest.raises(WorkbenchError, match="at least one valid value"):
        wb.compress(np.full((8, 9), np.nan), wb.Absolute(0.1), "staged").median()


def test_every_statistic_of_a_region_without_whole_blocks_reads_the_same_groups():
    values = np.random.default_rng(1).normal(size=(40, 50, 60)).cumsum(0)
    archive, region = wb.compress(values, wb.Absolute(1e-3), "staged"), [(0, 3), (0, 3), (0, 3)]
    read = {each.bytes_read for each in (archive.mean(region), archive.median(region), archive.count(0, region=region))}
    assert len(read) == 1
    assert read.pop() < archive.median().bytes_read
