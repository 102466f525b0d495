"""What comes out has a margin around the linking length, so that finders of other makes find the same groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import workbench as wb
from clusters.keep.scenarios import SOLVERS, Scenario, decoded_with, keep
from combinations import in_pairs
from workbench.clusters.keep import Correction
from workbench.data.synthetic import adversarial


def last_places(original: wb.Particles, correction: Correction) -> float:
    """The margin, in units of the last place in single precision just below the box or the farthest coordinate."""
    reach = max(original.box) if original.box else float(np.abs(original.positions).max())
    return correction.margin / float(np.spacing(np.nextafter(np.float32(reach), np.float32(0))))


@st.composite
def single_precision(draw: st.DrawFn) -> Scenario:
    """Sets in float32 whose pairs are often about one linking length apart, and errors with room for a margin."""
    dimensions = draw(st.sampled_from([2, 3]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    length = draw(st.sampled_from([0.05, 0.125, 0.2]))
    points = random.random((draw(st.integers(2, 120)), dimensions))
    if draw(st.booleans()):   # neighbours a few last places nearer or farther than the linking length
        points = np.floor(points / length) * length + random.integers(-2, 3, points.shape) * 2.0**-24
    scale = draw(st.sampled_from([1e-3, 1.0, 250.0]))
    positions = (points * scale).astype(np.float32)
    box = draw(st.sampled_from([None, 1.0, 1.1]))
    original = wb.Particles(positions) if box is None else wb.Particles.wrapped(positions, box * scale)
    bound = wb.Absolute(draw(st.sampled_from([0.01, 0.1, 0.4])) * length * scale)
    decoded = decoded_with(original, random.uniform(-1, 1, positions.shape), bound)
    return Scenario(original, decoded, bound, (length * scale,))


@given(single_precision(), st.sampled_from(SOLVERS))
@settings(max_examples=120)
@pytest.mark.long
def test_finders_in_single_precision_agree(scenario: Scenario, solver: str) -> None:
    correction = scenario.correct(solver)
    corrected = wb.Particles(correction.positions, scenario.original.box)
    wanted = correction.groups[0].labels
    if correction.close_calls:
        return
    np.testing.assert_array_equal(oracles.scipy_labels(corrected, scenario.lengths[0]), wanted)
    for touching in (True, False) if last_places(scenario.original, correction) > 1 else ():
        found = oracles.single_precision_labels(corrected, scenario.lengths[0], touching)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.few(1)
@pytest.mark.parametrize(("box", "solver"), in_pairs([None, 1.0], SOLVERS))
def test_all_finders_agree_about_a_clustered_snapshot(box: float | None, solver: str) -> None:
    web = wb.synthetic.cosmic_web(n=32, seed=4)
    assert web.box is not None
    positions = web.positions[:, :3] / np.float32(web.box[0]) % np.float32(1.0)
    original = wb.Particles.wrapped(positions, 1.0) if box else wb.Particles(positions)
    length = 0.2 / 32
    _, correction = keep(original, 0.1, length, solver=solver)
    corrected = wb.Particles(correction.positions, box)
    assert correction.close_calls == 0
    assert last_places(original, correction) > 1
    for off in (-1, 0, 1):   # no pair decides anything anywhere within the margin
        found = wb.friends_of_friends(corrected, length + off * 0.99 * correction.margin, unit="length")
        assert found.equals(correction.groups[0])
    np.testing.assert_array_equal(oracles.scipy_labels(corrected, length), correction.groups[0].labels)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kdcount_agrees(dtype: type) -> None:
    cluster = pytest.importorskip("kdcount.cluster", reason="kdcount is not installed")
    models = pytest.importorskip("kdcount.models")
    web = wb.synthetic.cosmic_web(n=32, seed=5)
    original = wb.Particles(web.positions.astype(np.float32), web.box)
    _, correction = keep(original, 0.1, 0.2 * original.spacing)
    assert correction.close_calls == 0
    dataset = models.dataset(correction.positions.astype(dtype), boxsize=np.array(web.box))
    theirs = cluster.fof(dataset, correction.lengths[0], np=0).labels
    assert correction.groups[0].equals(wb.Groups.from_labels(theirs, correction.lengths[0]))


def test_close_calls_are_counted_where_the_original_leaves_no_room() -> None:
    """All of a lattice is at the linking length, and its particles are where they were."""
    original = adversarial.lattice_at_link(2, np.float32, side=8)
    correction = wb.clusters.correct(original, original.positions, 0.05, adversarial.LINK, "length")
    assert correction.close_calls >= 63   # as many as hold the group together
    assert correction.margin > 0


def test_close_calls_are_counted_within_cells() -> None:
    """Two in opposite corners of a cell: friends by a linking length, and not by one that is shorter by the margin."""
    side = (1 - 3e-5) / np.sqrt(2)
    original = wb.Particles(np.array([[0, 0], [side, side], [1000, 0]], np.float32))
    correction = wb.clusters.correct(original, original.positions, 0.5, 1.0, "length")
    assert correction.margin > 6e-5
    assert correction.close_calls == 1


@pytest.mark.parametrize("bound", [0.01, 1e-7, 1e-12])
def test_the_margin_is_a_small_part_of_the_bound(bound: float) -> None:
    original = wb.Particles(np.random.default_rng(0).random((50, 3)), box=1.0)
    correction = wb.clusters.correct(original, original.positions, bound, 0.1, "length")
    assert 0 < correction.margin <= bound / 16


def test_moves_are_found_with_the_margin_where_there_is_room() -> None:
    """Two that are a hair too far apart come as near as the margin asks, no less."""
    original = wb.Particles(np.array([[0.0, 0.0], [0.0, 0.09]], np.float32))
    decoded = np.array([[0.0, 0.0], [0.0, 0.1]], np.float32)
    correction = wb.clusters.correct(original, decoded, 0.0101, 0.1, "length")
    apart = float(np.linalg.norm(np.diff(correction.positions.astype(np.float64), axis=0)))
    assert 0.1 - correction.margin < 0.1 == pytest.approx(float(decoded[1, 1]))
    assert apart <= 0.1 - correction.margin
    assert correction.close_calls == 0
