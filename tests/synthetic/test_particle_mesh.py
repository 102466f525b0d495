"""The mesh kernels against plain NumPy, and the pull of one particle against Newton's law."""

import itertools

import numpy as np
import pytest

from workbench import backend
from workbench.data.synthetic import Cosmology
from workbench.data.synthetic.particle_mesh import Mesh, Move, leapfrog


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_deposit_is_cloud_in_cell(dimensions: int, dtype: type):
    cells, random = 5, np.random.default_rng(0)
    positions = (cells * random.random((40, dimensions))).astype(dtype)
    positions[0], positions[1] = 0, np.nextafter(dtype(cells), dtype(0))
    mass = np.zeros((cells,) * dimensions, np.int64)
    backend.kernel("mesh", "deposit", dtype, dimensions)(len(positions), cells, positions, mass)
    unit = 2 ** (15 * dimensions)
    assert mass.sum() == len(positions) * unit, "mass is lost"
    assert np.abs(mass / unit - plain_deposit(positions, cells)).max() < 40 * dimensions * 2**-15


def plain_deposit(positions: np.ndarray, cells: int) -> np.ndarray:
    dimensions = positions.shape[1]
    mass = np.zeros((cells,) * dimensions)
    below = np.floor(positions).astype(int)
    for corner in itertools.product((0, 1), repeat=dimensions):
        share = np.where(corner, positions - below, 1 - (positions - below)).prod(axis=1)
        np.add.at(mass, tuple(((below + corner) % cells).T), share)
    return mass


@pytest.mark.parametrize("dimensions", [2, 3])
def test_gradient_of_a_wave(dimensions: int):
    cells, random = 32, np.random.default_rng(1)
    x = 2 * np.pi / cells * np.arange(cells)
    shape = (cells,) + (1,) * (dimensions - 1)
    potential = np.broadcast_to(np.sin(x).reshape(shape), (cells,) * dimensions).astype(np.float64).copy()
    positions, momenta = cells * random.random((100, dimensions)), np.zeros((100, dimensions))
    before = positions.copy()
    kick_and_drift = backend.kernel("mesh", "kick_and_drift", np.float64, dimensions)
    kick_and_drift(100, cells, potential, 1.0, 0.0, positions, momenta)
    expected = -2 * np.pi / cells * np.cos(2 * np.pi / cells * before[:, 0])
    assert np.array_equal(positions, before)
    assert np.abs(momenta[:, 0] - expected).max() < 0.01 * np.abs(expected).max()
    assert np.abs(momenta[:, 1:]).max() < 1e-12


def test_drift_wraps():
    positions = np.array([[0.5, 7.5, 3.0]], np.float32)
    momenta = np.array([[-1.0, 1.0, 100.0]], np.float32)
    Mesh(8).move(np.zeros((8, 8, 8), np.float32), Move(kick=0.0, drift=1.0), positions, momenta)
    assert positions.tolist() == [[7.5, 0.5, 7.0]]


def test_a_step_never_ends_on_the_far_face():
    positions = np.zeros((1, 3), np.float32)
    momenta = np.full((1, 3), -1e-9, np.float32)
    Mesh(8).move(np.zeros((8, 8, 8), np.float32), Move(kick=0.0, drift=1.0), positions, momenta)
    assert positions.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.few(1)
@pytest.mark.parametrize("distance", [4.0, 6.0, 8.0, 12.0])
def test_pull_follows_newton(distance: float):
    # The solution of Laplace(phi) = density of a unit mass pulls by 1 / (4 pi r^2), on average over places on the mesh.
    random, cells, pulls = np.random.default_rng(2), 64, []
    mesh = Mesh(cells)
    for _ in range(20):
        source = np.float32(30 + 4 * random.random((1, 3)))
        direction = random.standard_normal(3)
        direction /= np.linalg.norm(direction)
        probe, momentum = np.float32(source + distance * direction), np.zeros((1, 3), np.float32)
        mesh.move(mesh.potential(source, mean=1.0), Move(kick=1.0, drift=0.0), probe, momentum)
        pulls.append(-(momentum[0] @ direction))
    assert np.mean(pulls) * 4 * np.pi * distance**2 == pytest.approx(1, rel=0.1)


def test_pairs_pull_each_other_equally():
    random = np.random.default_rng(3)
    positions, momenta = np.float32(16 * random.random((50, 3))), np.zeros((50, 3), np.float32)
    mesh = Mesh(16)
    mesh.move(mesh.potential(positions, mean=50 / 16**3), Move(kick=1.0, drift=0.0), positions, momenta)
    assert np.abs(momenta.sum(axis=0)).max() < 1e-4 * np.abs(momenta).sum()


def test_kicks_and_drifts_follow_the_growing_mode():
    # A particle with displacement D(a) feels the slope -D(a): then its momentum and place stay on linear theory.
    cosmology, place = Cosmology(), 0.0
    place, momentum = cosmology.growth(0.1), cosmology.linear_momentum(0.1)
    for move in leapfrog(cosmology, 0.1, 1.0, steps=3):
        momentum += move.kick * place
        place += move.drift * momentum
    assert place == pytest.approx(1)
    assert momentum == pytest.approx(cosmology.linear_momentum(1.0))
