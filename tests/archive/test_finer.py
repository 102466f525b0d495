"""Keeping clusters never takes many more bytes at a coarser bound: a finer lattice is always there to fall back on."""

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.archive.finer import smallest
from workbench.guarantees import Limit
from workbench.guarantees.guarantee import Allowance, TooExpensive


def crystal(sites: int, noise: float) -> wb.Particles:
    lattice = np.stack(np.meshgrid(*[np.arange(sites)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) + 0.5
    moved = lattice + np.random.default_rng(0).normal(0, noise, lattice.shape)
    return wb.Particles.wrapped(moved.astype(np.float32), float(sites))


def fluid(count: int) -> wb.Particles:
    """Particles that keep a distance from each other, and percolate at little more than that distance."""
    random = np.random.default_rng(1)
    sites = crystal(round(count ** (1 / 3)), 0.16).positions
    return wb.Particles.wrapped((sites + random.normal(0, 0.12, sites.shape)).astype(np.float32), crystal(10, 0).box)


CASES = {
    "crystal": (crystal(14, 0.05), 0.95), "fluid": (fluid(1000), 0.9),
    "cosmology": (wb.synthetic.cosmic_web(n=16, seed=2), 0.2),
}


@pytest.mark.parametrize("name", CASES)
def test_a_coarser_bound_hardly_takes_more_bits(name: str) -> None:
    particles, length = CASES[name]
    bare = wb.Particles(particles.positions, particles.box)
    least = np.inf
    for share in (0.1, 0.2, 0.4, 0.8, 1.6):
        bound = wb.Absolute(share * length)
        archive = wb.compress(bare, bound, keep=[wb.KeepClusters(length, "length")], order="free")
        layout = archive.data.layout
        keys = [layout.chunk_key(index) for index in layout.chunk_indices()]
        bits = 8 * sum(len(archive.store.read(key)) for key in keys) / len(bare)
        assert bits <= 1.1 * least
        least = min(least, bits)
        (kept,) = archive.certificate["positions"].keep
        assert 0 < kept["encoded_within"] <= bound.eb
        assert archive.verify(bare).passed


class Result:
    def __init__(self, nbytes: int, added: int) -> None:
        self.nbytes, self.added = nbytes, added


@pytest.mark.parametrize(
    ("given_up_above", "best", "expected"),
    [(9.0, 1.0, 1.0), (9.0, 0.5, 0.5), (0.6, 0.3, 0.35), (0.6, 0.5, 0.5), (0.0, 0.5, 1.0)],
)
def test_the_smallest_is_found_by_steps(given_up_above: float, best: float, expected: float) -> None:
    """Sizes grow to either side of the best bound; above another, too many particles need their original coordinates."""
    tried: list[float] = []

    def encode(limit: Limit, allowance: Allowance) -> Result:
        tried.append(limit.value)
        if allowance != Allowance() and limit.value > given_up_above:
            raise TooExpensive
        return Result(round(1e6 * (1 + abs(np.log2(limit.value / best)))), 10**6 if limit.value > best else 0)

    found = smallest(encode, Limit("absolute", 1.0), np.zeros((500_000, 2)))
    at = min(tried, key=lambda value: abs(1e6 * (1 + abs(np.log2(value / best))) - found.nbytes))
    assert at == pytest.approx(expected, rel=0.02)
    assert len(tried) < 14


@pytest.mark.parametrize(("length", "first"), [(1.4, 1.0), (1.3, 0.91), (0.1, 0.07)])
def test_near_the_linking_length_the_first_trial_is_a_finer_bound(length: float, first: float) -> None:
    tried: list[float] = []

    def encode(limit: Limit, allowance: Allowance) -> Result:
        tried.append(limit.value)
        return Result(round(1e6 * limit.value), 10**6 if limit.value > 0.2 * first else 0)

    smallest(encode, Limit("absolute", 1.0), np.zeros((500_000, 2)), length)
    assert tried[0] == pytest.approx(first)
    assert len(set(tried)) == len(tried)   # no bound is tried twice
    tried.clear()
    smallest(encode, Limit("relative", 0.9), np.zeros((500_000, 2)), length)
    assert tried[0] == 0.9   # a share of each coordinate, not a length


def test_a_bound_of_the_linking_length_takes_one_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted, not seconds: repairs are the cost of keeping clusters."""
    within: list[float] = []
    repair = wb.KeepClusters.attach

    def counted(keep: wb.KeepClusters, original: wb.Particles, decoded: np.ndarray, limit: Limit, *rest: Any) -> object:
        within.append(limit.value)
        return repair(keep, original, decoded, limit, *rest)

    monkeypatch.setattr(wb.KeepClusters, "attach", counted)
    web = wb.synthetic.cosmic_web(n=24, seed=2)
    for bound in (0.2, 0.4):
        within.clear()
        archive = wb.compress(web, wb.Absolute(bound), keep=[wb.KeepClusters(0.2, "length")], order="free")
        assert within == pytest.approx([0.14])
        assert archive.certificate["positions"].keep[0]["encoded_within"] == pytest.approx(0.14)
