"""Rounds of repairs: what need not be searched again has not changed, and moves reach every subdomain that sees them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.archive.keeping import rounds
from workbench.archive.keeping.constraints import constraints
from workbench.archive.keeping.moved import STATE, Moved
from workbench.clusters.keep import KeepClusters
from workbench.data.chunked import ParticlesInMemory, even_sizes

SNAPSHOT = wb.synthetic.cosmic_web(n=20, seed=3)
WEB = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box)


def named(subdomains):
    """The constraints of each subdomain, with indices in the archive."""
    every = []
    for part in subdomains.parts:
        members = subdomains.of(part)
        needs = constraints(members)
        every.append(np.column_stack([members.index[needs.pairs].reshape(-1, 2), needs.kind]).tolist())
    return every


class Witness:
    """Searches all particles whenever only some subdomains are searched, and compares."""

    def __init__(self):
        self.spared = self.found = 0

    def searching(self, real):
        def compared(subdomains, executor, before=None, changed=(), exempt=True):
            found = real(subdomains, executor, before, changed, exempt)
            if before is not None:
                seen = named(subdomains)
                full = real(subdomains, executor, None, (), exempt)
                assert (found.count, seen) == (full.count, named(subdomains))
                self.spared += len(subdomains.parts) - len(changed)
                self.found += found.count
            return found
        return compared


def kept(particles, bound, keep, parts, folder):
    watching, source = Witness(), ParticlesInMemory(particles, even_sizes(len(particles), max(len(particles) // 5, 1)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rounds, "search", watching.searching(rounds.search))
        archive = wb.compress(source, wb.Absolute(bound), keep=keep, parts=parts, out=folder / "kept.zarr")
    assert archive.verify(particles).passed
    return watching


@pytest.mark.long
@pytest.mark.parametrize(("parts", "share", "lengths"), [(20, 0.5, [0.15, 0.2]), (24, 0.5, 0.2), (40, 0.7, 0.2)])
def test_where_nothing_has_changed_nothing_is_new(tmp_path, parts, share, lengths):
    watching = kept(WEB, share * 0.2 * WEB.spacing, KeepClusters(lengths), parts, tmp_path)
    assert watching.spared
    assert watching.found or share < 0.7   # at large bounds, some repairs disturb others late


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(st.data())
def test_where_nothing_has_changed_nothing_is_new_in_any_set(tmp_path_factory, data):
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
    bound = data.draw(st.sampled_from([0.02, 0.2, 0.7])) * length
    kept(particles, bound, keep, data.draw(st.integers(1, 24)), tmp_path_factory.mktemp("any"))


def on_a_lattice():
    """Many distances are the linking length, nearly: original distances decide about pairs within the margin."""
    random = np.random.default_rng(4)
    places = np.stack(np.meshgrid(*[np.arange(14)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * 0.1 + 0.05
    places = places[random.random(len(places)) < 0.5]
    places += 1e-8 * random.standard_normal(places.shape)
    return wb.Particles.wrapped(places.astype(np.float32), 1.4)


@pytest.mark.long
def test_close_calls_are_those_of_one_process(tmp_path):
    particles, bound, keep = on_a_lattice(), wb.Absolute(1e-5), KeepClusters(0.1, "length")
    one = wb.compress(particles, bound, keep=keep)
    many = wb.compress(particles, bound, keep=keep, parts=4, out=tmp_path / "kept.zarr")
    stated = [archive.certificate["positions"].keep[0]["close_calls"] for archive in (one, many)]
    assert stated[0] == stated[1] > 0


@settings(deadline=None)
@given(data=st.data())
def test_moves_after_changes_are_those_of_all_particles(data):
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    index = np.unique(random.integers(0, 60, data.draw(st.integers(0, 40))))
    dense = {"current": np.zeros((len(index), 3), np.float32), "rank": np.zeros(len(index), np.int32)}
    dense["tries"] = dense["rank"].copy()
    moved = Moved.none(np.dtype(np.float32), 3)
    for _ in range(data.draw(st.integers(1, 3))):
        changes = []
        for _ in range(data.draw(st.integers(0, 3))):
            given = random.permutation(60)[: random.integers(0, 20)]
            size = len(given)
            state = random.random((size, 3), np.float32), *random.integers(1, 9, (2, size)).astype(np.int32)
            changes.append({"index": given, **dict(zip(STATE, state, strict=True))})
        moved, any_here = moved.after(changes, index)
        for one in changes:
            for row, particle in enumerate(one["index"].tolist()):
                for name in STATE:
                    dense[name][index == particle] = one[name][row]
        assert any_here == any(np.isin(one["index"], index).any() for one in changes)
        for name, array in dense.items():
            assert np.array_equal(moved.over(name, np.zeros_like(array)), array)
