"""Crystals: the right neighbours at the right distance, the stated noise, inside the box."""

import numpy as np
import pytest

import workbench as wb
from workbench.data.synthetic import molecular_lattice


@pytest.mark.parametrize(("lattice", "atoms", "neighbours", "distance"), [
    ("sc", 1, 6, 1.0), ("bcc", 2, 8, np.sqrt(3) / 2), ("fcc", 4, 12, np.sqrt(0.5)),
])
def test_each_atom_has_its_neighbours(lattice: str, atoms: int, neighbours: int, distance: float):
    crystal = molecular_lattice(cells=4, lattice=lattice, noise=0)
    positions = crystal.positions.astype(np.float64)
    offsets = (positions[:, None] - positions[None] + 2) % 4 - 2
    between = np.linalg.norm(offsets, axis=-1)
    assert len(crystal) == atoms * 4**3
    assert (np.count_nonzero(np.abs(between - distance) < 1e-6, axis=1) == neighbours).all()
    assert between[~np.eye(len(crystal), dtype=bool)].min() > distance - 1e-6


def test_noise_has_the_stated_size():
    cold, warm = (molecular_lattice(cells=(8, 9, 10), noise=noise, constant=3.6, seed=4) for noise in (0, 0.05))
    box = np.array(warm.box)
    assert warm.box == pytest.approx((28.8, 32.4, 36.0))
    moved = (warm.positions - cold.positions + box / 2) % box - box / 2
    assert moved.std() == pytest.approx(0.05 * 3.6, rel=0.02)
    assert np.array_equal(warm.ids, np.arange(4 * 720))


def test_seeds():
    first, again, other = (molecular_lattice(cells=3, seed=seed).positions for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"lattice": "hcp"}, "lattice must be one of sc, bcc, fcc; got 'hcp'"),
    ({"cells": 0}, "each number of cells must be a whole number, at least 1; got 0"),
    ({"cells": (2, 2)}, "cells must be a whole number or three of them"),
    ({"noise": -0.1}, r"noise must be a number in \[0, 1\]; got -0.1"),
    ({"constant": 0.0}, "constant must be positive and finite; got 0.0"),
])
def test_nonsense_is_refused(arguments: dict[str, object], message: str):
    with pytest.raises(wb.WorkbenchError, match=message):
        molecular_lattice(**arguments)
