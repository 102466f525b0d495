"""Sets made to be hard to keep: ties to the last bit, piles, sheets, faces of the box, bounds of nothing and of all."""

import numpy as np
import pytest

import oracles
import workbench as wb
from clusters.keep.scenarios import SOLVERS, Scenario, decoded_with, keep, require_kept, require_stored
from combinations import in_pairs
from workbench.data.synthetic import adversarial
from workbench.guarantees import check

HARD = oracles.hard_cases(crowd=900)


@pytest.mark.few
@pytest.mark.parametrize("name", oracles.half_of(HARD))
def test_hard_cases_are_kept(name: str) -> None:
    original, length = HARD[name]
    for share, solver, corners in ((0.1, "auto", False), (0.6, "refine", True)):
        scenario, correction = keep(original, share, length, solver=solver, corners=corners)
        require_kept(scenario, correction)
        require_stored(scenario, correction)


@pytest.mark.parametrize(
    ("share", "min_members", "solver"), in_pairs([1e-6, 0.01, 0.3, 1.5], [1, 10, 216], SOLVERS)
)
def test_lattices_at_the_linking_length_are_one_group_or_none(share: float, min_members: int, solver: str) -> None:
    original = adversarial.lattice_at_link(3, np.float64)
    for length in (adversarial.LINK, float(np.nextafter(adversarial.LINK, 0))):
        scenario, correction = keep(original, share, length, solver=solver, min_members=min_members, corners=True)
        require_kept(scenario, correction)
        assert correction.groups[0].count(1) == (1 if length == adversarial.LINK else 216)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dimensions", [2, 3])
def test_simplices_with_all_edges_at_the_linking_length(dimensions: int, solver: str) -> None:
    corners = np.eye(3) * np.sqrt(0.5) if dimensions == 3 else np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    random = np.random.default_rng(dimensions)
    points = (corners + 10 * np.arange(40)[:, None, None]).reshape(-1, dimensions)
    scenario, correction = keep(wb.Particles(random.permutation(points)), 0.4, 1.0, solver=solver)
    require_kept(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_long_chain_without_slack_is_kept(solver: str) -> None:
    """All links are exactly as long as they may be, and all are needed."""
    random = np.random.default_rng(0)
    points = random.permutation(np.stack([0.25 * np.arange(3000), np.zeros(3000), np.zeros(3000)], axis=1))
    scenario, correction = keep(wb.Particles(points.astype(np.float32)), 0.2, 0.25, solver=solver)
    require_kept(scenario, correction)
    assert len(correction.groups[0]) == 1


def test_bounds_below_the_last_bit_change_nothing() -> None:
    original = wb.Particles(np.random.default_rng(0).random((500, 3)).astype(np.float32), box=1.0)
    scenario = Scenario(original, original.positions, wb.Absolute(1e-12), (0.06,))
    correction = scenario.correct()
    assert correction.edited == correction.needs == correction.nbytes == 0
    require_kept(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
def test_bounds_of_one_or_two_last_bits_are_kept(solver: str) -> None:
    """No eighth of such a bound moves anything; a few particles can only get their original coordinates."""
    random = np.random.default_rng(1)
    original = wb.Particles((random.integers(0, 32, (800, 2)) / 32).astype(np.float32), box=1.0)
    for places in (1, 2, 9):
        bound = wb.Absolute(places * float(np.spacing(np.float32(0.5))))
        decoded = decoded_with(original, random.choice([-1.0, 0.0, 1.0], original.positions.shape), bound)
        scenario = Scenario(original, decoded, bound, (1 / 32,))
        correction = scenario.correct(solver)
        assert correction.needs > 0
        require_kept(scenario, correction)
        require_stored(scenario, correction)


@pytest.mark.parametrize("bound", [0.0, 5e-324, 1e-300, 0.01, 1e300])
def test_what_is_exact_is_left_alone(bound: float) -> None:
    original = adversarial.lattice_at_link(2, np.float64)
    correction = wb.clusters.correct(original, original.positions, bound, adversarial.LINK, "length")
    assert (correction.edited, correction.attempts, correction.sections()) == (0, 0, {})
    assert correction.positions.tobytes() == original.positions.tobytes()
    assert correction.close_calls > 0 or bound < 1e-20   # a lattice at the linking length has nothing but close calls


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bound", [5e-324, 1e-320, 1e-300])
def test_denormal_bounds_are_kept(bound: float, solver: str) -> None:
    """An eighth of these is nothing; and all positions that can be told apart are within them."""
    original = wb.Particles(np.arange(12.0).reshape(6, 2) * bound)
    decoded = decoded_with(original, np.random.default_rng(0).choice([-1.0, 0.0, 1.0], (6, 2)), bound)
    scenario = Scenario(original, decoded, wb.Absolute(bound), (1e-140,))
    require_kept(scenario, scenario.correct(solver))


@pytest.mark.parametrize(("share", "solver"), in_pairs([0.05, 0.45, 2.0], SOLVERS))
def test_a_group_that_percolates_stays_one(share: float, solver: str) -> None:
    original = wb.Particles(np.random.default_rng(3).random((1400, 3)), box=1.0)
    length = 1.15 * original.spacing
    scenario, correction = keep(original, share, length, solver=solver)
    assert correction.groups[0].sizes.max() > 1300
    require_kept(scenario, correction)


@pytest.mark.parametrize(("solver", "dtype"), in_pairs(SOLVERS, [np.float32, np.float64]))
def test_links_through_faces_and_corners_are_kept(solver: str, dtype: type) -> None:
    """Everything lies within a linking length of a face, and errors carry much of it through."""
    random = np.random.default_rng(5)
    points = random.uniform(-0.5, 0.5, (900, 3))
    points[np.arange(900), random.integers(0, 3, 900)] *= 0.05
    original = wb.Particles.wrapped(points.astype(dtype), box=1.1)
    for share in (0.1, 0.7):
        scenario, correction = keep(original, share, 0.05, solver=solver)
        assert (np.abs(scenario.decoded - original.positions) > 0.5).any()
        assert correction.edited > 0
        require_kept(scenario, correction)
        require_stored(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("box", [0.3, 0.5, 0.75, 1.0, 1.5])
def test_boxes_of_a_few_linking_lengths(box: float, solver: str) -> None:
    random = np.random.default_rng(int(100 * box))
    original = wb.Particles(random.random((30, 3)) * box, box)
    for length in (0.1 * box, 0.25, 0.6 * box):
        scenario, correction = keep(original, 0.2, length, solver=solver)
        require_kept(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bound", [0.3, 0.75, 1.2, 40.0, 1e300, 1.7e308])
def test_bounds_of_half_the_box_and_more(bound: float, solver: str) -> None:
    """Such a bound says nothing, but groups are to be kept all the same, and inside the box."""
    random = np.random.default_rng(0)
    original, decoded = (np.floor(random.random((40, 2)) * 8) / 8 for _ in range(2))
    scenario = Scenario(wb.Particles(original, 1.0), decoded, wb.Absolute(max(bound, 0.5)), (0.125,))
    correction = scenario.correct(solver)
    require_kept(scenario, correction)
    require_stored(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
def test_relative_bounds_do_not_reach_through_faces(solver: str) -> None:
    """A share of a coordinate's size is of where it is in the box: no small coordinate has an image at the far end."""
    random = np.random.default_rng(2)
    for _ in range(30):
        original = wb.Particles.wrapped(random.uniform(-0.1, 0.1, (12, 2)), box=1.0)
        bound = wb.PointwiseRelative(float(random.uniform(0.01, 0.3)))
        decoded = decoded_with(original, random.uniform(-1, 1, (12, 2)), bound)
        scenario = Scenario(original, decoded, bound, (0.05,))
        correction = scenario.correct(solver)
        require_kept(scenario, correction)
        require_stored(scenario, correction)


@pytest.mark.parametrize("far", [1e5, 1e15, 1e30])
def test_a_stray_particle_changes_nothing(far: float) -> None:
    random = np.random.default_rng(0)
    points = random.random((400, 3))
    strayed = wb.Particles(np.concatenate([points, [[far, -far, 0.5]]]))
    noise = random.uniform(-1, 1, (401, 3))
    noise[-1] = 0
    scenario = Scenario(strayed, decoded_with(strayed, noise, 0.01), wb.Absolute(0.01), (0.1,))
    correction = scenario.correct()
    assert correction.edited > 0
    require_kept(scenario, correction)
    require_stored(scenario, correction)


def two_piles(count: int, gap: float) -> wb.Particles:
    """Two piles of particles, each smaller than a linking length of 1, so many linking lengths apart."""
    random = np.random.default_rng(count)
    piles = random.random((2, count, 3)) * 0.2
    piles[1, :, 0] += 0.2 + gap
    return wb.Particles(random.permutation(piles.reshape(-1, 3)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("share", [1e-4, 0.05])
def test_piles_just_beyond_each_other_are_kept_apart(share: float, solver: str) -> None:
    """Millions of pairs are too close after an error of nothing; no list of them can be held."""
    original = two_piles(3000, 1.0001)
    scenario, correction = keep(original, share, 1.0, solver=solver)
    found = wb.friends_of_friends(wb.Particles(correction.positions), 1.0, unit="length")
    assert found.equals(wb.friends_of_friends(original, 1.0, unit="length"))
    assert len(found) == 2
    assert correction.needs > 0 or share < 1e-3
    assert check(original.positions, correction.positions, scenario.limit).holds
    require_stored(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
def test_piles_that_barely_touch_stay_together(solver: str) -> None:
    """One pair in millions links the two, and it is torn."""
    piles = two_piles(1000, 1.0001).positions.copy()
    along, first = piles[:, 0], piles[:, 0] < 0.5
    left, right = np.argmax(np.where(first, along, -1)), np.argmin(np.where(first, 9, along))
    piles[right] = piles[left] + [1.0, 0, 0]
    original = wb.Particles(piles)
    noise = np.zeros(piles.shape)
    noise[left, 0], noise[right, 0] = -1, 1
    bound = wb.Absolute(0.03)
    scenario = Scenario(original, decoded_with(original, noise, bound), bound, (1.0,))
    correction = scenario.correct(solver)
    assert (correction.opened, correction.needs) == (1, 1)
    found = wb.friends_of_friends(wb.Particles(correction.positions), 1.0, unit="length")
    assert len(found) == len(correction.groups[0]) == 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_sheets_that_look_at_each_other_everywhere_stay_apart(solver: str) -> None:
    original = adversarial.two_sheets(3, np.float64, count=800)
    scenario, correction = keep(original, 0.02, adversarial.LINK, solver=solver)
    assert correction.needs > 100
    require_kept(scenario, correction)


@pytest.mark.few(1)
@pytest.mark.parametrize(("share", "solver"), in_pairs([0.05, 0.8], SOLVERS))
def test_interleaved_lattices_stay_apart(share: float, solver: str) -> None:
    """Each site of one lattice has those of the other just beyond the linking length, all around."""
    sites = np.stack(np.meshgrid(*[np.arange(8.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    original = wb.Particles(np.concatenate([sites, sites + 0.5]) + 0.1, box=8.0)
    for length in (0.866, 0.8661, 1.0):   # the two are 0.8660254 apart
        scenario, correction = keep(original, share, length, solver=solver)
        require_kept(scenario, correction)
        assert len(correction.groups[0]) == {0.866: 1024, 0.8661: 1, 1.0: 1}[length]


@pytest.mark.parametrize("solver", SOLVERS)
def test_coincident_particles_of_one_group_are_pulled_together_again(solver: str) -> None:
    """Bounds beyond the linking length tear points that were all in one place, each from every other."""
    random = np.random.default_rng(7)
    points = np.repeat(random.random((12, 3)), 25, axis=0)
    original = wb.Particles(random.permutation(points))
    scenario, correction = keep(original, 1.3, 0.02, solver=solver)
    assert correction.needs >= 20
    require_kept(scenario, correction)
    require_stored(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
def test_strangers_that_were_decoded_to_one_place_are_pushed_apart(solver: str) -> None:
    """A distance of zero has no direction."""
    pairs, apart = np.stack([np.arange(0, 60, 2.0), np.zeros(30)], axis=1), np.array([0.11, 0.0])
    original = wb.Particles(np.concatenate([pairs, pairs + apart]))
    middle = np.concatenate([pairs, pairs]) + apart / 2
    scenario = Scenario(original, middle, wb.Absolute(0.0551), (0.1,))
    correction = scenario.correct(solver)
    assert correction.needs == 30
    require_kept(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
def test_small_groups_do_not_grow_through_links_within_the_margin(solver: str) -> None:
    """Three particles become one group by a link that is shorter than the linking length by less than the margin."""
    original = wb.Particles(np.array([[0.5, 0.53], [0.53, 0.53], [0.56, 0.53]], np.float32))
    decoded = np.array([[0.506, 0.524], [0.53599995, 0.524], [0.554, 0.53599995]], np.float32)
    scenario = Scenario(original, decoded, wb.Absolute(0.0061), (0.03,), min_members=3)
    correction = scenario.correct(solver)
    require_kept(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_many_small_groups_do_not_grow_together(share: float, solver: str) -> None:
    """Pairs, in rows in which each is about a linking length from the next: joined, they would count."""
    random = np.random.default_rng(11)
    along = np.arange(300.0)
    first = np.stack([along % 30 * 2.1, along // 30 * 3.0], axis=1)
    pairs = np.concatenate([first, first + np.array([1.0, 0.0])])
    original = wb.Particles(random.permutation(pairs).astype(np.float32))
    for min_members in (3, 6):
        scenario, correction = keep(original, share, 1.02, solver=solver, min_members=min_members)
        assert correction.groups[0].sizes.max() == 2
        assert correction.edited > 0 or min_members == 6
        require_kept(scenario, correction)


@pytest.mark.parametrize("solver", SOLVERS)
def test_small_groups_may_do_as_they_like(solver: str) -> None:
    """Groups too small to count are neither mended nor kept apart, as long as none grows to count."""
    original = wb.Particles(np.array([[0.0, 0.0], [0.9, 0.0], [5.0, 0.0], [6.1, 0.0]]))
    decoded = np.array([[-0.1, 0.0], [1.0, 0.0], [5.1, 0.0], [6.0, 0.0]])
    scenario = Scenario(original, decoded, wb.Absolute(0.11), (1.0,), min_members=3)
    correction = scenario.correct(solver)
    assert correction.needs == correction.edited == 0
    require_kept(scenario, correction)
