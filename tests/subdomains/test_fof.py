"""Groups over subdomains: equal, particle for particle, to those found in one process."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from combinations import in_pairs
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError


def search(particles, length, parts, chunk, client=None):
    source = ParticlesInMemory(particles, even_sizes(len(particles), chunk))
    return wb.friends_of_friends(source, length, "length", client, parts=parts)


def assert_same(particles, length, parts, chunk, client=None):
    expected = wb.friends_of_friends(particles, length, unit="length")
    with search(particles, length, parts, chunk, client) as found:
        np.testing.assert_array_equal(found.gathered().labels, expected.labels)
        return found


@pytest.mark.few(2)
@pytest.mark.parametrize(("parts", "share"), in_pairs([1, 2, 3, 8, 37], [0.1, 0.2, 0.5]))
def test_groups_of_a_snapshot_are_those_of_one_process(parts, share):
    snapshot = wb.synthetic.cosmic_web(n=24, seed=3)
    assert_same(snapshot, share * snapshot.spacing, parts, 3000)


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_groups_are_those_of_one_process(data):
    dimensions, count = data.draw(st.integers(2, 3)), data.draw(st.integers(1, 120))
    box = data.draw(st.sampled_from([None, 1.0, tuple(np.linspace(1, 2, dimensions).tolist())]))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    positions = random.random((count, dimensions)) ** data.draw(st.sampled_from([1, 4]))
    positions = positions.astype(data.draw(st.sampled_from([np.float32, np.float64])))
    if data.draw(st.booleans()):
        positions = np.round(positions * 8) / 8 * np.float32(0.999)   # ties, and particles at one place
    particles = wb.Particles(positions) if box is None else wb.Particles.wrapped(positions, box)
    length = data.draw(st.sampled_from([0.01, 0.05, 0.125, 0.3, 0.7, 1.5]))
    assert_same(particles, length, data.draw(st.integers(1, 20)), data.draw(st.integers(1, count)))


def test_a_chain_through_every_subdomain_is_one_group():
    count = 2000
    chain = np.stack([np.linspace(0, 0.9995, count), np.full(count, 0.5)], axis=1)
    shuffled = chain[np.random.default_rng(1).permutation(count)]
    particles = wb.Particles(shuffled, box=1.0)
    assert_same(particles, 0.0006, 50, 100)
    with search(particles, 0.0006, 50, 100) as found:
        assert found.catalogue(2).members.tolist() == [count]


def test_all_particles_at_one_place():
    assert_same(wb.Particles(np.full((500, 3), 0.25), box=1.0), 0.1, 7, 64)


@pytest.mark.parametrize("box", [True, False])
def test_the_catalogue_is_that_of_one_process(box):
    snapshot = wb.synthetic.cosmic_web(n=24, seed=5)
    particles = wb.Particles(snapshot.positions, snapshot.box if box else None)
    groups = wb.friends_of_friends(particles)
    for least in (1, 2, 20):
        expected = wb.clusters.catalogue(particles, groups, least)
        with wb.friends_of_friends(particles, parts=11) as found:
            assert found.linking_length == groups.linking_length
            measured = found.catalogue(least)
        np.testing.assert_array_equal(measured.labels, expected.labels)
        np.testing.assert_array_equal(measured.members, expected.members)
        apart = np.abs(measured.centres - expected.centres)
        apart = np.minimum(apart, snapshot.box[0] - apart) if box else apart
        assert apart.max() < 1e-9 * snapshot.box[0]
        np.testing.assert_allclose(measured.radii, expected.radii, atol=1e-9 * snapshot.box[0])


def test_positions_in_a_file_are_read_chunk_by_chunk(tmp_path):
    snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    np.save(tmp_path / "positions.npy", snapshot.positions)
    source = wb.open_chunked(tmp_path / "positions.npy", box=snapshot.box, chunk=1000)
    with wb.friends_of_friends(source, parts=5) as found:
        assert found.gathered().equals(wb.friends_of_friends(snapshot))
        assert found.mass_function(20)[1].sum() == found.count(20)
        folder = found._labels.folder
        assert folder.exists()
    assert not folder.exists()


def test_what_cannot_be_searched_is_refused(tmp_path):
    with pytest.raises(WorkbenchError, match=r"must be wb\.Particles, particles in chunks, or what wb\.open_chunked takes"):
        wb.friends_of_friends([[0.1, 0.2]])
    for parts in (0, 513):
        with pytest.raises(WorkbenchError, match="parts must be a whole number"):
            wb.friends_of_friends(wb.synthetic.cosmic_web(n=8), parts=parts)
    (tmp_path / "file").touch()
    with pytest.raises(WorkbenchError, match="scratch must be a folder that can be written to"):
        wb.friends_of_friends(wb.synthetic.cosmic_web(n=8), scratch=tmp_path / "file")
    with pytest.raises(WorkbenchError, match="there is no scheduler file"):
        wb.friends_of_friends(wb.synthetic.cosmic_web(n=8), client=tmp_path / "none.json")
    with pytest.raises(WorkbenchError, match=r"client must be a dask\.distributed\.Client"):
        wb.friends_of_friends(wb.synthetic.cosmic_web(n=8), client=3)
    for content in ("", "{}", "[1]", '{"address": 5}'):
        (tmp_path / "broken.json").write_text(content)
        with pytest.raises(WorkbenchError, match=r"broken\.json must hold the address of a scheduler"):
            wb.friends_of_friends(wb.synthetic.cosmic_web(n=8), client=tmp_path / "broken.json")
    given = wb.synthetic.cosmic_web(n=8), wb.Absolute(0.01)
    with pytest.raises(WorkbenchError, match="parts must be a whole number, between 1 and 512; got 5000"):
        wb.compress(*given, keep=wb.KeepClusters(0.2), parts=5000, out=tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


def test_a_chunk_that_holds_no_particles_is_named(tmp_path):
    positions = np.random.default_rng(0).random((100, 3))
    positions[70, 1] = np.nan
    np.save(tmp_path / "some.npy", positions)
    source = wb.open_chunked(tmp_path / "some.npy", box=1.0, chunk=30)
    with pytest.raises(WorkbenchError, match=r"chunk 3 of 4 of some\.npy: positions must be finite; got nan"):
        wb.friends_of_friends(source)


def test_closed_groups_say_so():
    with wb.friends_of_friends(wb.synthetic.cosmic_web(n=8), parts=3) as groups:
        for number in (-1, 1, 0.5):
            with pytest.raises(WorkbenchError, match="number must be a whole number, between 0 and 0; got"):
                groups.chunk(number)
    for use in (groups.gathered, groups.catalogue, groups.count, lambda: groups.chunk(0), lambda: len(groups)):
        with pytest.raises(WorkbenchError, match="these groups were closed, and their files are deleted"):
            use()
    assert (groups.parts, len(groups.source)) == (3, 512)
