"""The simulated universe: is it physical, is it the same each time, does it refuse nonsense?

Linear theory, the analytic mass function and conservation laws are the oracles; none of them knows about the mesh.
"""

import numpy as np
import pytest

import workbench as wb
from workbench import backend
from workbench.data.synthetic import Cosmology, cosmic_web, cosmic_web_series
from workbench.data.synthetic.particle_mesh import evolve, leapfrog

COSMOLOGY = Cosmology()


@pytest.fixture(scope="module")
def universe() -> wb.Particles:
    return cosmic_web(n=32, seed=1)


def waves(particles: wb.Particles, largest: int) -> np.ndarray:
    """The Fourier amplitudes of the contrast for small wave vectors, summed over the particles themselves: no mesh."""
    phases = 2 * np.pi * particles.positions.astype(np.float64) / particles.box
    powers = [np.exp(-1j * np.outer(np.arange(largest + 1), phase)) for phase in phases.T]
    return np.einsum("xi,yi,zi->xyz", *powers, optimize=True)[1:, 1:, 1:] / len(particles)


def test_says_what_it_is(universe: wb.Particles):
    assert len(universe) == 32**3
    assert universe.positions.dtype == universe.velocities.dtype == np.float32
    assert universe.box == (32.0, 32.0, 32.0)
    assert np.array_equal(universe.ids, np.arange(32**3))
    assert universe.metadata["sigma8"] == 0.8
    assert universe.metadata["redshift"] == 0
    assert universe.metadata["seed"] == 1
    assert universe.metadata["mesh"] == 64


def test_large_scales_grow_as_linear_theory_says():
    early, late = (cosmic_web(n=32, box=1600.0, seed=3, redshift=z) for z in (8.0, 0.0))
    grown = COSMOLOGY.growth(1.0) / COSMOLOGY.growth(1 / 9)
    before, after = waves(early, 2), waves(late, 2)
    assert np.vdot(before, after).real / np.vdot(before, before).real == pytest.approx(grown, rel=0.02)
    assert np.linalg.norm(after - grown * before) < 0.05 * np.linalg.norm(after)


def test_velocities_are_those_of_the_growing_mode():
    universe, a = cosmic_web(n=32, box=1600.0, seed=3, redshift=1.0), 0.5
    moved = (universe.positions - lattice(universe) + 800) % 1600 - 800
    expected = 100 * a * COSMOLOGY.expansion(a) * COSMOLOGY.growth_rate(a) * long_waves(moved)
    found = long_waves(universe.velocities)
    assert np.vdot(expected, found).real / np.vdot(expected, expected).real == pytest.approx(1, rel=0.02)


def long_waves(vectors: np.ndarray) -> np.ndarray:
    """What vectors on the lattice of 32^3 have in waves down to a quarter of the box."""
    return np.fft.fftn(vectors.reshape(32, 32, 32, 3), axes=(0, 1, 2))[:5, :5, :5]


def lattice(universe: wb.Particles) -> np.ndarray:
    n = round(len(universe) ** (1 / 3))
    return np.stack(np.unravel_index(universe.ids, (n, n, n)), axis=1) * universe.box[0] / n + universe.box[0] / n / 4


def test_a_plane_wave_follows_the_exact_solution():
    # Zel'dovich's displacement is exact for a plane wave until particles cross: until D * amplitude * k = 1.
    n, cells, amplitude = 32, 64, 0.8 * 64 / (2 * np.pi)
    sites = 2 * np.stack(np.meshgrid(*[np.arange(n) + 0.25] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    wave = np.zeros(sites.shape)
    wave[:, 0] = amplitude * np.sin(2 * np.pi * sites[:, 0] / cells)
    positions = np.float32((sites + COSMOLOGY.growth(0.1) * wave) % cells)
    momenta = np.float32(COSMOLOGY.linear_momentum(0.1) * wave)
    evolve(positions, momenta, cells, leapfrog(COSMOLOGY, 0.1, 1.0, steps=32))
    error = (positions - (sites + wave) + cells / 2) % cells - cells / 2
    assert np.abs(error).max() < 0.3   # cells; the wave moves particles by up to 8
    assert np.abs(momenta - COSMOLOGY.linear_momentum(1.0) * wave).max() < 0.03 * np.abs(momenta).max()


def test_momentum_is_conserved(universe: wb.Particles):
    velocities = universe.velocities.astype(np.float64)
    assert np.abs(velocities.mean(axis=0)).max() < 1e-3 * velocities.std()


@pytest.mark.long
def test_halos_are_as_many_as_theory_says():
    universes = [cosmic_web(n=32, seed=seed) for seed in range(4)]
    sizes = np.concatenate([wb.friends_of_friends(universe).sizes for universe in universes])
    for low, high in [(20, 40), (40, 100), (100, 400)]:
        found = np.count_nonzero((sizes >= low) & (sizes < high))
        assert 0.7 < found / (4 * expected_halos(32.0, low, high)) < 1.4, f"halos of {low} to {high} particles"


@pytest.mark.long
def test_halos_of_the_default_universe():
    universe = cosmic_web()
    sizes = wb.friends_of_friends(universe).sizes
    for low, high in [(20, 40), (40, 80), (80, 160), (160, 640)]:
        found = np.count_nonzero((sizes >= low) & (sizes < high))
        assert 0.75 < found / expected_halos(64.0, low, high) < 1.4, f"halos of {low} to {high} particles"
    assert 0.27 < sizes[sizes >= 20].sum() / len(universe) < 0.42


def expected_halos(box: float, low: int, high: int) -> float:
    """Halos of `low` to `high` particles of 1 (Mpc/h)^3 each, by the fit of Jenkins et al. (2001) to friends of friends."""
    members = np.geomspace(low, high, 33)   # also the volume that a halo's mass once filled
    sigmas = np.array([COSMOLOGY.sigma((3 * volume / (4 * np.pi)) ** (1 / 3)) for volume in members])
    slope = np.abs(np.gradient(np.log(sigmas), np.log(members)))
    per_volume = 0.315 * np.exp(-np.abs(0.61 - np.log(sigmas)) ** 3.8) * slope / members
    return float(box**3 * np.trapezoid(per_volume, np.log(members)))


def test_halos_are_concentrated(universe: wb.Particles):
    groups = wb.friends_of_friends(universe)
    members = universe.positions[groups.members(groups.largest(1)[0])].astype(np.float64)
    offsets = (members - members[0] + 16) % 32 - 16
    centre = np.median(offsets, axis=0)
    distance = np.linalg.norm(offsets - centre, axis=1)
    density = np.count_nonzero(distance < 0.5) / (4 / 3 * np.pi * 0.5**3)   # in units of the mean
    assert density > 400


def test_the_same_seed_gives_the_same_bits(universe: wb.Particles):
    again = cosmic_web(n=32, seed=1)
    assert np.array_equal(again.positions, universe.positions)
    assert np.array_equal(again.velocities, universe.velocities)


def test_the_number_of_threads_changes_nothing():
    made = []
    for threads in (1, 2, 3):
        with backend.using_threads(threads):
            made.append(cosmic_web(n=64, seed=1, steps=3))   # large enough for its mesh to be cut into slabs
    for universe in made[1:]:
        assert np.array_equal(universe.positions, made[0].positions)
        assert np.array_equal(universe.velocities, made[0].velocities)


def test_another_seed_gives_another_universe(universe: wb.Particles):
    assert not np.array_equal(cosmic_web(n=32, seed=2).positions, universe.positions)


@pytest.mark.parametrize("n", [4, 5, 9, np.int16(10)])
def test_any_number_of_particles(n: int):
    universe = cosmic_web(n, box=3.7)
    assert len(universe) == int(n) ** 3
    assert np.isfinite(universe.velocities).all()


def test_fewer_steps_give_nearly_the_same_halos():
    counts = [wb.friends_of_friends(cosmic_web(n=32, seed=1, steps=steps)).count(20) for steps in (16, 32)]
    assert counts[0] == pytest.approx(counts[1], rel=0.15)


def test_structure_is_weaker_in_the_past(universe: wb.Particles):
    past = cosmic_web(n=32, seed=1, redshift=2.0)
    assert past.metadata["redshift"] == pytest.approx(2.0)
    assert wb.friends_of_friends(past).count(20) < 0.6 * wb.friends_of_friends(universe).count(20)


@pytest.mark.parametrize(("options", "message"), [
    ({"n": 3}, "n must be a whole number, between 4 and 1,024; got 3"),
    ({"n": 8.0}, "n must be a whole number"),
    ({"n": True}, "n must be a whole number"),
    ({"n": "64"}, "n must be a whole number"),
    ({"n": 8, "box": 0}, r"box must be a number in \[8e-05, 8e\+06\]; got 0"),
    ({"n": 8, "box": float("nan")}, "box must be a number in"),
    ({"n": 8, "box": (8, 8, 8)}, "box must be a number in"),
    ({"n": 8, "seed": -1}, "seed must be a whole number, at least 0; got -1"),
    ({"n": 8, "cosmology": "planck"}, r"cosmology must be a synthetic.Cosmology\(...\); got 'planck'"),
    ({"n": 8, "steps": 0}, "steps must be a whole number, at least 1; got 0"),
    ({"n": 8, "redshift": -0.5}, r"redshift must be a number in \[0, 20\]; got -0.5"),
])
def test_nonsense_is_refused(options: dict[str, object], message: str):
    with pytest.raises(wb.WorkbenchError, match=message):
        cosmic_web(**options)


def test_a_series_ends_where_the_simulation_ends():
    only, = cosmic_web_series(16, [0.5], seed=1, steps=8)
    alone = cosmic_web(16, seed=1, redshift=0.5, steps=8)
    assert np.array_equal(only.positions, alone.positions)
    assert np.array_equal(only.velocities, alone.velocities)


def test_steps_of_a_series_are_one_simulation(universe: wb.Particles):
    snapshots = list(cosmic_web_series(32, [1, 0.5, 0], seed=1))
    assert [one.metadata["redshift"] for one in snapshots] == [1, 0.5, 0]
    assert [one.metadata["time"] for one in snapshots] == pytest.approx([1 / 2, 2 / 3, 1])
    assert all(np.array_equal(one.ids, universe.ids) for one in snapshots)
    last = (snapshots[-1].positions - universe.positions + 16) % 32 - 16   # other steps, so nearly the same universe
    assert np.median(np.abs(last)) < 0.1
    counts = [wb.friends_of_friends(one).count(20) for one in (snapshots[-1], universe)]
    assert counts[0] == pytest.approx(counts[1], rel=0.1)


def test_snapshots_of_a_series_follow_their_velocities():
    # dx/dt = v / a per Mpc/h and H0: over a short time, comoving positions move by v da / (100 a^3 E(a)) each.
    early, late = cosmic_web_series(32, [1.02, 1.0], seed=1)
    a, end = early.metadata["time"], late.metadata["time"]
    middle = (a + end) / 2
    expected = early.velocities * (end - a) / (100 * middle**2 * COSMOLOGY.expansion(middle))
    moved = (late.positions - early.positions + 16) % 32 - 16
    assert np.linalg.norm(moved - expected) < 0.1 * np.linalg.norm(moved)


def test_a_series_is_made_again_bit_by_bit():
    first, second = (list(cosmic_web_series(16, [2, 1], seed=3)) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.positions, other.positions)
        assert np.array_equal(one.velocities, other.velocities)


@pytest.mark.parametrize(("redshifts", "message"), [
    ([], "redshifts must be one or more numbers that fall"),
    ([1, 2], r"that fall, as time rises: \[3, 2, 1, 0\]; got \[1, 2\]"),
    ([1, 1], "that fall"),
    (1.0, "redshifts must be a row of numbers; got 1.0"),
    ([1, None], "each of redshifts must be a number in"),
    ([30, 0], r"each of redshifts must be a number in \[0, 20\]; got 30"),
])
def test_redshifts_that_are_no_series_are_refused_at_once(redshifts: object, message: str):
    with pytest.raises(wb.WorkbenchError, match=message):
        cosmic_web_series(8, redshifts)
