"""Catalogues with masses and velocities: against sums by hand, wherever the particles are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.clusters import catalogue
from workbench.errors import WorkbenchError

da = pytest.importorskip("dask.array")
SNAPSHOT = wb.synthetic.cosmic_web(n=16, seed=7)
MASSES = np.random.default_rng(1).lognormal(0, 1, len(SNAPSHOT))


def by_hand(particles, labels, masses, velocities, least):
    """Member by member, with positions moved to the side of the first member."""
    found = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        if len(rows) < least:
            continue
        places, m = particles.positions[rows].astype(float), masses[rows]
        if particles.box is not None:
            box = np.array(particles.box)
            places = places[0] + (places - places[0] + box / 2) % box - box / 2
        centre, velocity = (np.average(of, axis=0, weights=m) for of in (places, velocities[rows].astype(float)))
        radius = np.sqrt(np.average(((places - centre) ** 2).sum(axis=1), weights=m))
        motion = np.sqrt(np.average(((velocities[rows] - velocity) ** 2).sum(axis=1) / places.shape[1], weights=m))
        found.append((-len(rows), label, m.sum(), centre, radius, velocity, motion))
    return sorted(found, key=lambda one: one[:2])


def assert_as_by_hand(found, expected, box):
    assert found.labels.tolist() == [one[1] for one in expected]
    assert found.members.tolist() == [-one[0] for one in expected]
    columns = (found.masses, found.centres, found.radii, found.velocities, found.dispersions)
    for number, column in enumerate(columns, start=2):
        wanted = np.array([one[number] for one in expected])
        apart = column - wanted
        if number == 3 and box is not None:
            apart -= np.round(apart / box) * box
        assert np.abs(apart).max(initial=0) <= 1e-9 * max(1, np.abs(wanted).max(initial=0))


def source(chunks=700, masses=MASSES, box=SNAPSHOT.box):
    arrays = (np.array(array) for array in (SNAPSHOT.positions, SNAPSHOT.velocities, SNAPSHOT.ids, masses))
    positions, velocities, ids, masses = (da.from_array(array, chunks=chunks) for array in arrays)
    return wb.distributed.from_dask(positions, box, velocities, ids, masses)


@pytest.mark.few(2)
@pytest.mark.parametrize("box", [True, False])
@pytest.mark.parametrize("least", [1, 20])
def test_centres_of_mass_and_dispersions(box, least):
    particles = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box if box else None)
    groups = wb.friends_of_friends(particles)
    expected = by_hand(particles, groups.labels, MASSES, SNAPSHOT.velocities, least)
    here = catalogue(particles, groups, least, MASSES, SNAPSHOT.velocities)
    assert_as_by_hand(here, expected, particles.box)
    for parts in (1, 7):
        with wb.friends_of_friends(source(box=particles.box), parts=parts) as found:
            assert_as_by_hand(found.catalogue(least), expected, particles.box)
            plain = found.catalogue(least, columns=())
            assert (plain.masses, plain.velocities, plain.dispersions) == (None, None, None)
            assert plain.members.tolist() == here.members.tolist()


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_cut_of_any_group(data):
    count = data.draw(st.integers(1, 60))
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    particles = wb.Particles(random.random((count, 2)), box=data.draw(st.sampled_from([None, 1.0])))
    labels = wb.friends_of_friends(particles, 0.03, "length")
    masses = random.integers(1, 5, count) * data.draw(st.sampled_from([1.0, 1e12]))
    velocities = random.normal(size=(count, 2))
    expected = by_hand(particles, labels.labels, masses, velocities, 1)
    assert_as_by_hand(catalogue(particles, labels, 1, masses, velocities), expected, particles.box)
    arrays = (da.from_array(array, chunks=7) for array in (np.array(particles.positions), velocities, masses))
    positions, moving, heavy = arrays
    given = wb.distributed.from_dask(positions, particles.box, moving, None, heavy)
    with wb.friends_of_friends(given, 0.03, "length", parts=data.draw(st.integers(1, 6))) as found:
        assert_as_by_hand(found.catalogue(1), expected, particles.box)


def test_particles_without_mass_count_as_members_alone():
    """As black holes that have merged: they pull no centre, and a group of them alone has none."""
    particles = wb.Particles([[0.1, 0.5], [0.15, 0.5], [0.2, 0.5], [0.6, 0.5], [0.62, 0.5]], box=1.0)
    groups = wb.friends_of_friends(particles, 0.06, "length")
    found = catalogue(particles, groups, 2, masses=[0.0, 1.0, 3.0, 0.0, 0.0])
    assert found.members.tolist() == [3, 2]
    assert found.masses.tolist() == [4.0, 0.0]
    np.testing.assert_allclose(found.centres, [[0.1875, 0.5], [np.nan, np.nan]])


def test_masses_of_a_snapshot_of_several_types(tmp_path):
    """Gas with masses of its own and dark matter with the mass of the header, as in a hydrodynamical snapshot."""
    h5py = pytest.importorskip("h5py", reason="needs the io extra")
    cut = len(SNAPSHOT) // 3
    with h5py.File(tmp_path / "snap.hdf5", "w") as file:
        header = file.create_group("Header").attrs
        header["BoxSize"], header["NumFilesPerSnapshot"], header["Time"] = SNAPSHOT.box[0], 1, 1.0
        header["NumPart_ThisFile"] = header["NumPart_Total"] = [cut, len(SNAPSHOT) - cut, 0, 0, 0, 0]
        header["MassTable"] = [0.0, 5.0, 0.0, 0.0, 0.0, 0.0]
        for name, rows in (("PartType0", slice(0, cut)), ("PartType1", slice(cut, None))):
            kind = file.create_group(name)
            kind["Coordinates"], kind["Velocities"] = SNAPSHOT.positions[rows], SNAPSHOT.velocities[rows]
            kind["ParticleIDs"] = SNAPSHOT.ids[rows]
        file["PartType0/Masses"] = MASSES[:cut]
    opened = wb.open_chunked(tmp_path / "snap.hdf5", particle_type="all")
    masses = np.concatenate([MASSES[:cut], np.full(len(SNAPSHOT) - cut, 5.0)])
    groups = wb.friends_of_friends(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box))
    expected = by_hand(SNAPSHOT, groups.labels, masses, SNAPSHOT.velocities, 20)
    with wb.friends_of_friends(opened, parts=3) as found:
        assert_as_by_hand(found.catalogue(), expected, SNAPSHOT.box)
    whole = wb.open(tmp_path / "snap.hdf5", particle_type="all")
    assert whole.masses.tolist() == masses.tolist()
    assert_as_by_hand(catalogue(whole, groups, velocities=whole.velocities), expected, SNAPSHOT.box)
    with wb.friends_of_friends(whole, parts=3) as found:
        assert_as_by_hand(found.catalogue(), expected, SNAPSHOT.box)


@pytest.mark.parametrize(("masses", "told"), [
    ([1.0], r"masses must be numbers of shape \(3,\), or one number for all; got float64 of shape \(1,\)"),
    ([1.0, -2.0, 1.0], "masses must be finite and not negative; got -2.0 to 1.0"),
    ([1.0, np.inf, 1.0], "masses must be finite"),
    (["a", "b", "c"], "masses must be numbers"),
])
def test_what_is_no_mass_is_refused(masses, told):
    particles = wb.Particles([[0.1, 0.5], [0.15, 0.5], [0.2, 0.5]])
    groups = wb.friends_of_friends(particles, 0.06, "length")
    with pytest.raises(WorkbenchError, match=told):
        catalogue(particles, groups, 1, masses)
    with pytest.raises(WorkbenchError, match=told):
        wb.Particles(particles.positions, masses=masses)


def test_columns_that_are_not_there_are_refused():
    bad = source(masses=np.where(np.arange(len(SNAPSHOT)) == 1000, np.nan, MASSES))
    with wb.friends_of_friends(bad, parts=2) as found:
        with pytest.raises(WorkbenchError, match=r"masses must be finite .*chunk 2 of 6"):
            found.catalogue()
        assert found.count(20) == wb.friends_of_friends(SNAPSHOT).count(20)   # needs no masses
        with pytest.raises(WorkbenchError, match=r"as far as the source has them \(masses, velocities\); got 'ids'"):
            found.catalogue(columns=["ids"])
    with (
        wb.friends_of_friends(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box), parts=2) as found,
        pytest.raises(WorkbenchError, match=r"as far as the source has them \(neither\); got 'masses'"),
    ):
        found.catalogue(columns=["masses"])
    with pytest.raises(WorkbenchError, match=r"masses must be a Dask array of floats of shape \(3,\)"):
        wb.distributed.from_dask(da.zeros((3, 3)), masses=da.zeros(4))
