"""Subdomains have equally many particles, in whatever order the source has them."""

from contextlib import suppress

import numpy as np
import pytest

import workbench as wb
from workbench.codecs.curve import Lattice
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError
from workbench.run.executors import InProcess
from workbench.subdomains import sources
from workbench.subdomains.decomposition import Decomposition
from workbench.subdomains.exchange import Exchange
from workbench.subdomains.fof import find_groups

UNIFORM = np.random.default_rng(1).random((200_000, 3)).astype(np.float32) * np.float32(0.999999)
CURVE = Lattice.fitted((0.0,) * 3, (1.0,) * 3, 1e-3, np.float32)
ALONG_THE_CURVE = UNIFORM[np.argsort(CURVE.keys(UNIFORM), kind="stable")]


def cut(positions, chunk):
    return ParticlesInMemory(wb.Particles(positions, 1.0), even_sizes(len(positions), chunk))


@pytest.mark.parametrize("positions", [UNIFORM, ALONG_THE_CURVE])
def test_every_chunk_is_sampled(monkeypatch, tmp_path, positions):
    """256 chunks and subdomains, of which a tenth of the particles are sampled."""
    monkeypatch.setattr(sources, "SAMPLE", 20_000)
    monkeypatch.setattr(sources, "SAMPLED", 80)
    sample = sources.sample_of(cut(positions, 800), InProcess(), tmp_path, 256)
    owners = Decomposition.of(sample, 256, (1.0,) * 3).owners(positions)
    assert 19_000 < len(sample) < 21_000
    assert np.bincount(owners, minlength=256).max() <= 1.5 * len(positions) / 256


@pytest.fixture
def steps(monkeypatch):
    """The names of the steps that run."""
    names, run = [], InProcess.map

    def noted(self, name, *args, **options):
        names.append(name)
        return run(self, name, *args, **options)

    monkeypatch.setattr(InProcess, "map", noted)
    return names


class Misleading(ParticlesInMemory):
    """A first sample that shows one corner only."""

    def sample(self, number, share):
        found = super().sample(number, share)
        return found if share > 0.1 else found / 4


class WithStraggler(InProcess):
    """A worker that was given up goes on with the first division while the last one is searched."""

    def map(self, name, step, items, *args, shared=None, **options):
        if name == "send-particles":
            divisions.append(shared)
        if name == "find-groups":
            with suppress(WorkbenchError):
                divisions[0].send(0)
        return super().map(name, step, items, *args, shared=shared, **options)


divisions: list[Exchange] = []


def test_a_sample_that_has_misled_is_replaced_by_a_larger_one(monkeypatch, tmp_path, steps):
    monkeypatch.setattr(sources, "SAMPLE", 5_000)
    particles = wb.Particles(UNIFORM, 1.0)
    source = Misleading(particles, even_sizes(len(particles), 50_000))
    labels, _ = find_groups(source, 0.002, 16, tmp_path, WithStraggler())
    assert steps.count("send-particles") == steps.count("sample-particles") == 3   # 0.025, 0.1 and 0.4 of the particles
    owned = [len(labels.joint.own(part)) for part in range(16)]
    assert max(owned) <= 1.1 * len(particles) / 16
    expected = wb.friends_of_friends(particles, 0.002, "length").labels
    np.testing.assert_array_equal(np.concatenate([labels.of_chunk(chunk) for chunk in range(4)]), expected)


def test_particles_at_one_place_are_no_reason_to_divide_again(monkeypatch, tmp_path, steps):
    monkeypatch.setattr(sources, "SAMPLE", 5_000)
    positions = UNIFORM[:20_000].copy()
    positions[::2] = 0.3
    find_groups(cut(positions, 5000), 1e-4, 8, tmp_path, InProcess())
    assert steps.count("send-particles") == 1
