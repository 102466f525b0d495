"""After repairs, a look at suspects finds what a look at all particles finds: the same constraints in each subdomain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.archive.keeping import proof, rounds
from workbench.archive.keeping.look import constraints, look
from workbench.clusters.keep import KeepClusters
from workbench.data.chunked import ParticlesInMemory, even_sizes

SNAPSHOT = wb.synthetic.cosmic_web(n=20, seed=3)
WEB = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box)


def named(cast, found):
    """The constraints of each subdomain, with indices in the archive."""
    every = []
    for part in cast.parts:
        pairs, kind = constraints(cast, found.links, part)
        index = cast.of(part)["index"]
        every.append(np.column_stack([index[pairs].reshape(-1, 2), kind]).tolist())
    return every


class Witness:
    """Looks at all particles whenever only suspects are looked at, and compares."""

    def __init__(self):
        self.scoped = self.found = self.close = 0

    def look_again(self, real):
        def compared(cast, executor, earlier):
            full = look(cast, executor)
            expected = named(cast, full) if full.count else []
            found, known = real(cast, executor, earlier)
            assert (found.count, found.exact) == (full.count, full.exact)
            assert (named(cast, found) if found.count else []) == expected
            self.scoped += proof.scope_of(cast, known) is not None if None not in known else 0
            self.found += found.count
            return found, known
        return compared

    def close_calls(self, real):
        def compared(cast, executor):
            found = real(cast, executor)
            assert found == look(cast, executor, exempt=False).count
            self.close += found
            return found
        return compared


@pytest.fixture
def witness(monkeypatch):
    watching = Witness()
    monkeypatch.setattr(rounds, "_look_again", watching.look_again(rounds._look_again))
    monkeypatch.setattr(rounds, "_close_calls", watching.close_calls(rounds._close_calls))
    return watching


def kept(particles, bound, keep, parts, folder):
    source = ParticlesInMemory(particles, even_sizes(len(particles), max(len(particles) // 5, 1)))
    archive = wb.compress(source, wb.Absolute(bound), keep=keep, parts=parts, out=folder / "kept.zarr")
    assert archive.verify(particles).passed


@pytest.mark.parametrize(("parts", "share", "lengths"), [(5, 0.1, 0.2), (3, 0.7, 0.2), (6, 0.4, [0.15, 0.2])])
def test_suspects_are_all_that_can_be_wrong(tmp_path, witness, parts, share, lengths):
    kept(WEB, share * 0.2 * WEB.spacing, KeepClusters(lengths), parts, tmp_path)
    assert witness.scoped
    assert witness.found or share < 0.7   # at large bounds, some repairs disturb others


def on_a_lattice():
    """Many distances are the linking length, nearly: original distances decide about pairs within the margin."""
    random = np.random.default_rng(4)
    places = np.stack(np.meshgrid(*[np.arange(14)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * 0.1 + 0.05
    places = places[random.random(len(places)) < 0.5] + random.choice([0.0, 1e-8], (1, 3))
    return wb.Particles(places.astype(np.float32), box=1.4)


def test_close_calls_are_those_of_all_particles(tmp_path, witness):
    kept(on_a_lattice(), 0.002, KeepClusters(0.1, "length"), 4, tmp_path)
    assert witness.close


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(st.data())
def test_suspects_are_all_that_can_be_wrong_in_any_set(tmp_path_factory, data):
    dimensions, count = data.draw(st.integers(2, 3)), data.draw(st.integers(50, 3000))
    box = data.draw(st.sampled_from([None, 1.0]))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    positions = random.random((count, dimensions)) ** data.draw(st.sampled_from([1, 4]))
    positions = positions.astype(data.draw(st.sampled_from([np.float32, np.float64])))
    if data.draw(st.booleans()):
        positions = (np.round(positions * 64) / 64 * np.float32(0.999)).astype(positions.dtype)
    particles = wb.Particles(positions) if box is None else wb.Particles.wrapped(positions, box)
    length = data.draw(st.sampled_from([0.02, 0.05, 0.125]))
    keep = KeepClusters(data.draw(st.sampled_from([length, [length, 1.3 * length]])), "length")
    watching = Witness()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rounds, "_look_again", watching.look_again(rounds._look_again))
        patched.setattr(rounds, "_close_calls", watching.close_calls(rounds._close_calls))
        bound = data.draw(st.sampled_from([0.02, 0.2, 0.7])) * length
        kept(particles, bound, keep, data.draw(st.integers(1, 8)), tmp_path_factory.mktemp("any"))
