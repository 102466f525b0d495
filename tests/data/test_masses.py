"""Masses belong to particles wherever these go."""

import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.metrics.halos import match_halos


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_masses_stay_with_their_particles(data):
    """Selecting, copying to workers, and writing and reading NumPy files."""
    count = data.draw(st.integers(1, 30))
    random = np.random.default_rng(count)
    masses = data.draw(st.sampled_from([None, 2.5, random.random(count), random.integers(0, 9, count)]))
    particles = wb.Particles(random.random((count, 3)), 1.0, ids=np.arange(count), masses=masses)
    chosen = data.draw(st.lists(st.integers(0, count - 1), min_size=1))
    found = pickle.loads(pickle.dumps(particles)).select(chosen)
    wanted = masses if masses is None or isinstance(masses, float) else masses[chosen]
    np.testing.assert_array_equal(found.masses, wanted)
    if masses is not None:
        assert "masses" in repr(found)
        sizes = even_sizes(count, 7)
        np.testing.assert_array_equal(ParticlesInMemory(particles, sizes).joined().masses, masses)


def test_centres_of_two_sets_are_weighed_alike():
    """The decoded particles may have no masses: a shift of the centre would only tell that."""
    snapshot = wb.synthetic.cosmic_web(n=16, seed=7)
    heavy = wb.Particles(snapshot.positions, snapshot.box, masses=np.random.default_rng(1).lognormal(0, 1, len(snapshot)))
    order = np.random.default_rng(4).permutation(len(heavy))
    plain = wb.Particles(snapshot.positions, snapshot.box)
    for original, decoded in ((heavy, plain), (plain, heavy), (heavy, heavy)):
        found = match_halos(original, decoded.select(order), order=order)
        assert found.kept
        assert np.abs(found.shifts).max() < 1e-9


