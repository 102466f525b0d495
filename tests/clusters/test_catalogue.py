"""Catalogues: centres and radii against plain definitions."""

import numpy as np
import pytest

import workbench as wb
from workbench.clusters import catalogue


def test_known_groups_across_the_faces_of_a_box() -> None:
    random = np.random.default_rng(0)
    centres = np.array([[0.0, 0.5, 0.99], [0.5, 0.25, 0.5]])
    offsets = random.normal(scale=0.004, size=(2, 200, 3))
    positions = (centres[:, None] + offsets).reshape(-1, 3)
    order = random.permutation(400)
    particles = wb.Particles.wrapped(positions[order], box=1.0)
    labels = np.repeat([0, 1], 200)[order]
    found = catalogue(particles, wb.Groups.from_labels(labels, 0.01))
    assert found.members.tolist() == [200, 200]
    for label, centre, radius in zip(found.labels, found.centres, found.radii, strict=True):
        group = labels[label]
        expected = centres[group] + offsets[group].mean(axis=0)
        np.testing.assert_allclose((centre - expected + 0.5) % 1, 0.5, atol=1e-12)
        spread = offsets[group] - offsets[group].mean(axis=0)
        assert radius == pytest.approx(np.sqrt((spread**2).sum(axis=1).mean()), rel=1e-12)
        assert ((centre >= 0) & (centre < 1)).all()


def test_order_and_smallest_group() -> None:
    particles = wb.Particles(np.arange(12.0).reshape(6, 2))
    groups = wb.Groups.from_labels([0, 1, 1, 3, 3, 5], 0.1)
    found = catalogue(particles, groups, min_members=1)
    assert found.labels.tolist() == [1, 3, 0, 5]
    assert found.members.tolist() == [2, 2, 1, 1]
    assert found.radii[2:].tolist() == [0.0, 0.0]
    assert len(catalogue(particles, groups, min_members=3)) == 0


def test_groups_of_other_particles_are_refused() -> None:
    with pytest.raises(wb.WorkbenchError, match="groups must be of these 1 particles; got labels of 2"):
        catalogue(wb.Particles([[0.0, 0.0]]), wb.Groups.from_labels([0, 0], 0.1))


def test_it_says_what_it_is_in_one_line():
    particles = wb.Particles(np.random.default_rng(0).random((500, 3)), 1.0)
    found = catalogue(particles, wb.friends_of_friends(particles, 0.7), min_members=2)
    assert repr(found) == f"Catalogue({len(found)} groups of 2 to {found.members[0]} members)"
    assert repr(catalogue(particles, wb.friends_of_friends(particles, 0.7), min_members=501)) == "Catalogue(0 groups)"
