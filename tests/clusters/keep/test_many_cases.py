"""Ten thousand random and directed cases, from a hundredth of a linking length to twenty: the finder judges every one."""

import itertools
from collections import Counter
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import workbench as wb
from clusters.keep.scenarios import SOLVERS, TOGETHER, Scenario, large_groups, scenarios, thrown_together
from workbench.archive import finer
from workbench.clusters.keep import Correction
from workbench.data.chunked import ParticlesInMemory, even_sizes

SHARES = (0.01, 0.05, 0.1, 0.3, 0.6, 1.0, 1.75, 2.5, 4.0, 6.0, 10.0, 20.0)


def groups_of(positions: np.ndarray, scenario: Scenario, length: float) -> set[frozenset[int]]:
    labels = wb.friends_of_friends(wb.Particles(positions, scenario.original.box), length, "length").labels
    return large_groups(np.asarray(labels), scenario.min_members)


def is_wrong(scenario: Scenario, positions: np.ndarray, original: np.ndarray | None = None) -> bool:
    given = scenario.original.positions if original is None else original
    return any(groups_of(given, scenario, length) != groups_of(positions, scenario, length) for length in scenario.lengths)


def breaks_margin(scenario: Scenario, correction: Correction) -> bool:
    """Whether a pair decides within the margin although the correction says that none does."""
    found = (
        groups_of(correction.positions, scenario, length + off * 0.99 * correction.margin)
        != groups_of(scenario.original.positions, scenario, length)
        for length in scenario.lengths for off in (-1, 1)
    )
    return not correction.close_calls and any(found)


def directed(count: int) -> Iterator[tuple[str, Scenario]]:
    """Every kind, bound, solver and space in turn."""
    for number in range(count):
        random = np.random.default_rng([2026, number])
        kind, solver = TOGETHER[number % 3], SOLVERS[number // 3 % 3]
        share = SHARES[number // 9 % len(SHARES)]
        boxed, dimensions = bool(random.integers(2)), int(random.integers(2, 4))
        members, dtype = int(random.choice([1, 1, 2, 5])), (np.float32, np.float64)[random.integers(2)]
        yield solver, thrown_together(number, share, kind, boxed, dimensions, members, dtype)


@pytest.mark.long
def test_corrections_of_directed_cases() -> None:
    wrong, count = Counter(), 6000   # type: Counter[str], int
    for solver, scenario in directed(count):
        correction = scenario.correct(solver)
        wrong[solver] += is_wrong(scenario, correction.positions) or breaks_margin(scenario, correction)
    assert sum(wrong.values()) == 0, f"of {count:,}: {dict(wrong)}"


@pytest.mark.long
@settings(
    max_examples=3000, deadline=None, phases=[Phase.generate], derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)
@given(scenario=scenarios())
def test_corrections_of_random_cases(scenario: Scenario) -> None:
    for solver in SOLVERS:
        assert not is_wrong(scenario, scenario.correct(solver).positions)


@pytest.mark.long
def test_archives_of_directed_cases() -> None:
    """Every codec in turn, in both orders."""
    codecs = wb.codecs.available()
    wrong, count = Counter(), 800   # type: Counter[str], int
    for number, (solver, scenario) in enumerate(directed(count)):
        codec, order = codecs[number % len(codecs)], ("keep", "free")[number % 2]
        keep = wb.KeepClusters(scenario.lengths, "length", scenario.min_members, solver)
        halves = 0 if number // 20 % 2 else finer.MOST_HALVES   # 0: no finer bound is tried
        with mock.patch.object(finer, "MOST_HALVES", halves):
            archive = wb.compress(scenario.original, scenario.bound, codec, keep=[keep], order=order)
        original = scenario.original.select(archive.permutation(scenario.original)).positions
        wrong[codec] += is_wrong(scenario, archive.decompress().positions, original)
    assert sum(wrong.values()) == 0, f"of {count:,}: {dict(wrong)}"


@pytest.mark.long
@pytest.mark.parametrize("start", range(8))
def test_subdomains_of_directed_cases(tmp_path, start: int) -> None:
    wrong, count = 0, 200
    for number, (solver, scenario) in itertools.islice(enumerate(directed(count)), start, None, 8):
        keep = wb.KeepClusters(scenario.lengths, "length", scenario.min_members, solver)
        source = ParticlesInMemory(scenario.original, even_sizes(len(scenario.original), 9))
        archive = wb.compress(
            source, scenario.bound, keep=keep, order="keep", chunk_values=60, parts=2 + number % 3,
            out=tmp_path / f"{number}.zarr",
        )
        wrong += is_wrong(scenario, archive.decompress().positions)
    assert wrong == 0
