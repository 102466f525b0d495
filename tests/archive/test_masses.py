"""Masses of particles in archives: those of each particle, or the one that all have."""

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError

SNAPSHOT = wb.synthetic.cosmic_web(n=16, seed=7)
MASSES = np.random.default_rng(1).lognormal(0, 1, len(SNAPSHOT))


@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("masses", [MASSES, MASSES.astype("f4"), 2.5])
def test_archives_keep_masses(tmp_path, order, masses):
    """Exactly, in the order of the positions; the mass that all particles have is one number and counts as no array."""
    particles = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box, masses=masses)
    archive = wb.compress(particles, wb.Absolute(0.01), order=order)
    decoded = wb.open(archive.save(tmp_path / "a.zip")).decompress()
    assert archive.verify(particles).passed
    at = archive.permutation(particles)
    wanted = masses if isinstance(masses, float) else masses[at]
    np.testing.assert_array_equal(decoded.masses, wanted)
    assert type(decoded.masses) is type(particles.masses)
    size = 0 if isinstance(masses, float) else masses.nbytes
    assert archive.original_nbytes == particles.positions.nbytes + size
    low, high = ((0.0, length / 2) for length in SNAPSHOT.box[:2])
    part = archive.read((low, high, (0.0, SNAPSHOT.box[2])))
    inside = (decoded.positions[:, :2] < np.array(SNAPSHOT.box[:2]) / 2).all(axis=1)
    np.testing.assert_array_equal(part.masses, decoded.masses if isinstance(masses, float) else decoded.masses[inside])
    source = wb.open_chunked(tmp_path / "a.zip", chunk=1000)
    np.testing.assert_array_equal(source.joined().masses, decoded.masses)
    rest, damage = archive.salvage()
    assert not damage
    np.testing.assert_array_equal(rest.masses, decoded.masses)
    other = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box, masses=np.multiply(masses, 2))
    with pytest.raises(WorkbenchError, match=r"mass(es)?\b"):
        archive.verify(other)
