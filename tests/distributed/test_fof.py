"""Groups over subdomains: equal, particle for particle, to those found in one process."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.distributed.decomposition import Decomposition
from workbench.distributed.executors import InProcess
from workbench.distributed.fof import groups_in_parts


def found_in_parts(particles, length, parts, chunk, folder):
    source = ParticlesInMemory(particles, even_sizes(len(particles), chunk))
    sample = particles.positions[:: max(len(particles) // 1000, 1)]
    decomposition = Decomposition.of(sample, parts, particles.box)
    return groups_in_parts(source, decomposition, length, folder, InProcess())


def assert_same(particles, length, parts, chunk, folder):
    expected = wb.friends_of_friends(particles, length, unit="length")
    found = found_in_parts(particles, length, parts, chunk, folder)
    np.testing.assert_array_equal(found.gathered().labels, expected.labels)
    return found


@pytest.mark.parametrize("parts", [1, 2, 3, 8, 37])
@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_groups_of_a_snapshot_are_those_of_one_process(parts, share, tmp_path):
    snapshot = wb.synthetic.cosmic_web(n=24, seed=3)
    assert_same(snapshot, share * snapshot.spacing, parts, 3000, tmp_path)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_groups_are_those_of_one_process(tmp_path_factory, data):
    dimensions, count = data.draw(st.integers(2, 3)), data.draw(st.integers(1, 120))
    box = data.draw(st.sampled_from([None, 1.0, tuple(np.linspace(1, 2, dimensions).tolist())]))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    positions = random.random((count, dimensions)) ** data.draw(st.sampled_from([1, 4]))
    positions = positions.astype(data.draw(st.sampled_from([np.float32, np.float64])))
    if data.draw(st.booleans()):
        positions = np.round(positions * 8) / 8 * np.float32(0.999)   # ties, and particles at one place
    particles = wb.Particles.wrapped(positions, 1.0) if box == 1.0 else wb.Particles(positions, box) if box is None else (
        wb.Particles.wrapped(positions, box)
    )
    length = data.draw(st.sampled_from([0.01, 0.05, 0.125, 0.3, 0.7, 1.5]))
    assert_same(particles, length, data.draw(st.integers(1, 20)), data.draw(st.integers(1, count)), tmp_path_factory.mktemp("parts"))


def test_a_chain_through_every_subdomain_is_one_group(tmp_path):
    count = 2000
    chain = np.stack([np.linspace(0, 0.9995, count), np.full(count, 0.5)], axis=1)
    shuffled = chain[np.random.default_rng(1).permutation(count)]
    found = assert_same(wb.Particles(shuffled, box=1.0), 0.0006, 50, 100, tmp_path)
    assert len(found.gathered()) == 1


def test_all_particles_at_one_place(tmp_path):
    assert_same(wb.Particles(np.full((500, 3), 0.25), box=1.0), 0.1, 7, 64, tmp_path)
