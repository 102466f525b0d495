"""A repair depends on its neighbourhood alone, and its work grows with the particles, not with their pairs."""

import numpy as np
import pytest

import workbench as wb
from clusters.keep.scenarios import decoded_with
from workbench.clusters.keep import Correction, KeepClusters, attempts, keep_clusters
from workbench.clusters.keep.edits import Surmise
from workbench.data.synthetic import adversarial

WEB = wb.synthetic.cosmic_web(n=24, seed=7)
LENGTH = 0.2


def corrected(original: wb.Particles, decoded: np.ndarray, bound: float) -> Correction:
    limit = wb.Absolute(bound).limit(original.positions)
    return keep_clusters(original, decoded, limit, KeepClusters(LENGTH, "length"))


def interaction(bound: float, tries: int) -> float:
    """How far what happens to a particle can depend on others, in so many attempts: each sees, moves and is seen."""
    return tries * 2 * (LENGTH + attempts.RADII[1] * bound)


@pytest.mark.parametrize(("share", "resort_after"), [(0.1, 64), (0.3, 64), (0.6, 64), (0.6, 2)])
def test_a_part_with_enough_context_is_repaired_as_in_the_whole(
    share: float, resort_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The particles around a place, with their groups whole, get the same moves by themselves, bit for bit.

    The predicted direction of a move comes from neighbours in the file, so it is taken from the whole. The last
    resort is no exception.
    """
    monkeypatch.setattr(attempts, "RESORT_AFTER", resort_after)
    bound = share * LENGTH
    original = wb.Particles(WEB.positions, WEB.box)
    noise = np.random.default_rng(0).uniform(-1, 1, original.positions.shape)
    decoded = decoded_with(original, noise, bound)
    whole = corrected(original, decoded, bound)
    surmise = Surmise.of(decoded, bound, (LENGTH,), original.box)
    rank = np.zeros(len(original), np.int64)
    rank[whole.index], rank[whole.pinned] = whole.rank, -1
    assert whole.attempts <= 6
    labels = whole.groups[0].labels
    for centre in np.random.default_rng(1).random((4, 3)) * 24:
        away = np.abs((original.positions - centre + 12) % 24 - 12).max(axis=1)
        inside = away < 2.5
        context = away < 2.5 + interaction(bound, whole.attempts)
        cut = np.flatnonzero(np.isin(labels, np.unique(labels[context])))
        assert inside.sum() > 20
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Surmise, "of", lambda *given, cut=cut: surmise.part(cut))
            alone = corrected(wb.Particles(original.positions[cut], original.box), decoded[cut], bound)
        chosen = inside[cut]
        assert (alone.positions[chosen] == whole.positions[cut][chosen]).all()
        found = np.zeros(len(cut), np.int64)
        found[alone.index], found[alone.pinned] = alone.rank, -1
        np.testing.assert_array_equal(found[chosen], rank[cut][chosen])
        assert len(cut) < len(original)


def crowds(kind: str, count: int) -> tuple[wb.Particles, float, float]:
    """Particles, a linking length and a bound at which neighbours are many."""
    random = np.random.default_rng(count)
    if kind == "piles":
        sites = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), -1).reshape(-1, 2)
        return wb.Particles(sites[random.integers(0, 25, count)] + random.uniform(-0.05, 0.05, (count, 2))), 0.9, 1.35
    if kind == "web":
        return wb.synthetic.cosmic_web(n=round(count ** (1 / 3)), seed=1), LENGTH, LENGTH
    made = {"sheets": adversarial.two_sheets, "clumps": adversarial.two_clumps}[kind]
    return made(3, np.float64, count=count), adversarial.LINK, 0.1 * adversarial.LINK


@pytest.mark.long_with("sheets")
@pytest.mark.parametrize("kind", ["sheets", "clumps", "piles", "web"])
def test_work_grows_with_the_particles_not_with_their_pairs(kind: str) -> None:
    """Distances are counted, not seconds: four times the particles take at most a little more than four times as many."""
    evaluated = {}
    for count in (2000, 8000):
        original, length, bound = crowds(kind, count)
        noise = np.random.default_rng(0).uniform(-1, 1, original.positions.shape)
        decoded = decoded_with(wb.Particles(original.positions, original.box), noise, bound)
        found = wb.clusters.correct(wb.Particles(original.positions, original.box), decoded, bound, length, "length")
        evaluated[count] = found.evaluated
        assert found.evaluated <= 10_000 * count
    assert evaluated[8000] <= max(5 * evaluated[2000], 8000)
