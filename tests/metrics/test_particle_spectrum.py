"""Power spectra of particles against sums over particles, and against what Poisson's noise must give."""

import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.metrics import particle_spectrum
from workbench.metrics.particle_spectrum import _deposit, _on_mesh, default_cells


def modes_of(cells: int, dimensions: int) -> np.ndarray:
    whole = np.arange(cells) - (cells - 1) // 2
    return np.stack(np.meshgrid(*[whole] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions)


def shells(k: np.ndarray, power: np.ndarray, box: np.ndarray, cells: int) -> np.ndarray:
    width, nyquist = 2 * np.pi / box.max(), np.pi * cells / box.max()
    return np.array([power[np.abs(k - i * width) < width / 2].mean() for i in range(1, int(nyquist / width + 1e-6) + 1)])


def clouds(places: np.ndarray, cells: int) -> np.ndarray:
    """The share of each particle in each cell, cell by cell: a triangle as wide as two cells along each axis."""
    grid = np.stack(np.meshgrid(*[np.arange(cells)] * places.shape[1], indexing="ij"), axis=-1).reshape(-1, places.shape[1])
    apart = np.abs(places[:, None] - grid)
    return np.maximum(1 - np.minimum(apart, cells - apart), 0).prod(axis=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("box", "cells"), [((1.0, 1.0), 8), ((3.0, 2.2), 9), ((1.0, 1.0, 1.0), 6), ((5.0, 4.1, 2.2), 6)])
def test_power_is_that_of_clouds_less_their_window(box, cells, dtype):
    random, box = np.random.default_rng(0), np.array(box)
    positions = (random.random((20, len(box))) * box * (1 - 1e-6)).astype(dtype)
    contrast = clouds(positions / box * cells, cells).sum(axis=0) * cells ** len(box) / 20 - 1
    modes, points = modes_of(cells, len(box)), np.array(list(itertools.product(range(cells), repeat=len(box))))
    amplitude = np.exp(-2j * np.pi * modes @ points.T / cells) @ contrast / cells ** len(box)
    power = np.abs(amplitude) ** 2 * box.prod() / (np.sinc(modes / cells) ** 4).prod(axis=1)
    k = np.sqrt(((2 * np.pi * modes / box) ** 2).sum(axis=1))
    found = particle_spectrum(wb.Particles(positions, box), cells)
    np.testing.assert_allclose(found.power, shells(k, power, box, cells), rtol=1e-3)   # weights have 15 bits


@pytest.mark.parametrize("box", [(1.0, 1.0), (2.0, 3.0), (1.0, 1.0, 1.0)])
def test_long_waves_have_the_power_of_the_particles_themselves(box):
    random, box, cells = np.random.default_rng(1), np.array(box), 64
    positions = random.random((5, len(box))) * box
    modes = modes_of(8, len(box))
    amplitude = np.exp(-2j * np.pi * modes @ (positions / box).T).mean(axis=1)
    k = np.sqrt(((2 * np.pi * modes / box) ** 2).sum(axis=1))
    expected = shells(k, np.abs(amplitude) ** 2 * box.prod(), box, 4)
    found = particle_spectrum(wb.Particles(positions, box), cells)
    np.testing.assert_allclose(found.power[: len(expected)], expected, rtol=0.01)


@pytest.mark.parametrize(("dimensions", "count", "cells"), [(2, 20_000, 64), (3, 30_000, 32)])
def test_random_particles_have_shot_noise_and_no_signal(dimensions, count, cells):
    spectra = [
        particle_spectrum(wb.Particles(2 * np.random.default_rng(seed).random((count, dimensions)), 2.0), cells)
        for seed in range(8)
    ]
    power, noise = np.mean([s.power for s in spectra], axis=0), spectra[0].shot_noise
    scatter = np.sqrt(2 / (8 * spectra[0].modes))
    assert np.abs(power / noise - 1).max() < 5 * scatter.max()
    assert np.abs((power / noise - 1) / scatter).max() < 5
    assert noise[0] == pytest.approx(2.0**dimensions / count, rel=0.01)
    assert (noise[-1] / noise[0]) > 1.2   # images of shorter waves, which the window's inverse enlarges
    assert np.array_equal(spectra[0].signal, spectra[0].power - noise)


def test_a_lattice_has_no_power():
    sites = np.stack(np.meshgrid(*[np.arange(16) + 0.5] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    found = particle_spectrum(wb.Particles(sites, 16.0), cells=16)
    assert found.power.max() < 1e-6 * found.shot_noise.min()
    assert (found.signal < 0).all()


def test_shifts_by_whole_cells_do_not_matter():
    random = np.random.default_rng(3)
    places = random.integers(0, 16 * 2**10, (500, 3)) / 2**10
    usual = particle_spectrum(wb.Particles(places, 16.0), 16)
    moved = particle_spectrum(wb.Particles.wrapped(places + np.array([3, -5, 8]), 16.0), 16)
    np.testing.assert_allclose(moved.power, usual.power, rtol=1e-12)


@pytest.mark.parametrize("count", [2**18 - 1, 2**18 + 1, 900_000])
def test_a_cell_can_hold_any_number_of_particles(count):
    positions = np.full((count, 3), 2.0, np.float32)
    positions[-1] = 0.5
    density = _deposit(wb.Particles(positions, 4.0), 4, np.zeros(3), np.full(3, 4.0))
    assert density[2, 2, 2] == count - 1
    assert density.sum() == count


def test_full_cells_are_emptied_only_when_they_must_be(monkeypatch):
    random = np.random.default_rng(4)
    particles = wb.Particles(random.random((5000, 3)), 1.0)
    usual = _deposit(particles, 2, np.zeros(3), np.ones(3))
    module = sys.modules["workbench.metrics.particle_spectrum"]   # the function of this name stands before it
    monkeypatch.setattr(module, "_CHUNK", 100)
    monkeypatch.setattr(module, "_ROOM", 600)
    np.testing.assert_allclose(_deposit(particles, 2, np.zeros(3), np.ones(3)), usual, rtol=1e-14)


def test_an_open_space_is_seen_in_the_box_of_the_original():
    random = np.random.default_rng(5)
    inside = random.random((2000, 3))
    inside[:2] = np.zeros(3), np.ones(3)
    opened, closed = wb.Particles(inside + 7), wb.Particles.wrapped(inside, 1.0)
    np.testing.assert_allclose(particle_spectrum(opened, 16).power, particle_spectrum(closed, 16).power, rtol=1e-9)
    moved = random.uniform(-0.1, 0.1, inside.shape)
    decoded, wrapped = wb.Particles(opened.positions + moved), wb.Particles.wrapped(inside + moved, 1.0)
    found, expected = particle_spectrum(decoded, 16, within=opened), particle_spectrum(wrapped, 16)
    np.testing.assert_allclose(found.power, expected.power, rtol=1e-3)   # 7 + x has other digits than x


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=20), st.integers(2, 300))
def test_every_position_has_a_place_on_the_mesh(coordinates, cells):
    positions = np.array(coordinates[: len(coordinates) // 2 * 2]).reshape(-1, 2)
    places = _on_mesh(positions, cells, np.zeros(2), np.array([1.0, 0.3]))
    assert ((places >= 0) & (places < cells)).all()


def test_positions_on_faces_are_in_the_first_cell():
    for dtype in (np.float32, np.float64):
        last = np.nextafter(dtype(0.3), dtype(0))
        found = _deposit(wb.Particles(np.full((1, 3), last), 0.3), 7, np.zeros(3), np.full(3, 0.3))
        assert found.sum() == 1
        assert found[0, 0, 0] == pytest.approx(1, abs=1e-3)


def test_meshes_are_as_fine_as_asked_for():
    assert [default_cells(n**3, 3) for n in (1, 8, 9, 32, 33, 128, 129)] == [16, 16, 32, 64, 128, 256, 256]
    assert default_cells(100**2, 2) == 256
    particles = wb.Particles(np.random.default_rng(6).random((100, 3)), 3.0)
    assert particle_spectrum(particles, 20).nyquist == pytest.approx(20 * math.pi / 3)
    with pytest.raises(wb.WorkbenchError, match="cells must be a whole number, between 2 and 4,096; got 1"):
        particle_spectrum(particles, 1)


def test_particles_in_a_plane_are_refused():
    with pytest.raises(wb.WorkbenchError, match="needs particles that fill a volume"):
        particle_spectrum(wb.Particles([[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]))


def test_device_particles_are_refused_with_a_sentence(cupy):
    with pytest.raises(wb.WorkbenchError, match="power spectrum must be given NumPy arrays"):
        particle_spectrum(wb.Particles(cupy.asarray(np.random.default_rng(0).random((9, 3))), 1.0))
