"""Halos before and after, against sets of particles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.metrics import mass_function, match_halos


def on_sites(labels: np.ndarray, offset: np.ndarray | float = 0.0) -> wb.Particles:
    """Particles whose groups are these, whatever they are: each group is one place, far from all others."""
    places = np.stack([10.0 * labels, np.zeros(len(labels))], axis=1)
    places[:, 1] += offset
    return wb.Particles(places)


def by_hand(before: np.ndarray, after: np.ndarray, min_members: int) -> dict[str, object]:
    """Every halo followed as a set, largest first (smallest first member first)."""
    def sets(labels: np.ndarray) -> list[frozenset[int]]:
        groups = [frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]
        return sorted(groups, key=lambda group: (-len(group), min(group)))

    groups = sets(after)
    halos = [group for group in sets(before) if len(group) >= min_members]

    def best(of: frozenset[int], among: list[frozenset[int]]) -> frozenset[int]:
        return max(among, key=lambda other: (len(of & other), -min(other)))

    found = [best(halo, groups) for halo in halos]
    return {
        "members": [len(halo) for halo in halos],
        "counterpart": [min(group) for group in found],
        "shared": [len(halo & group) for halo, group in zip(halos, found, strict=True)],
        "identical": [halo in groups for halo in halos],
        "matched": [
            len(group) >= min_members and best(group, halos) == halo for halo, group in zip(halos, found, strict=True)
        ],
        "split": [not any(halo <= group for group in groups) for halo in halos],
        "merged": [any(halo < group for group in groups) for halo in halos],
        "broken": [halo not in groups for halo in halos],
        "decoded_halos": sum(len(group) >= min_members for group in groups),
        "kept": set(groups) == set(sets(before)),
    }


@given(st.integers(1, 30), st.integers(1, 4), st.data())
def test_halos_are_followed_as_sets_are(count, min_members, data):
    labels = st.lists(st.integers(0, 5), min_size=count, max_size=count).map(np.array)
    before, after = data.draw(labels), data.draw(labels)
    match = match_halos(on_sites(before), on_sites(after), 1.0, "length", min_members)
    for name, expected in by_hand(before, after, min_members).items():
        found = getattr(match, name)
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == expected, name
    assert match.recall.tolist() == (match.shared / match.members).tolist()
    assert (match.identical.astype(int) + match.split + match.merged == 1).all()
    assert match.new == match.decoded_halos - match.matched.sum()


@given(st.permutations(range(25)), st.data())
def test_the_order_does_not_matter(order, data):
    labels = st.lists(st.integers(0, 4), min_size=25, max_size=25).map(np.array)
    before, after, order = data.draw(labels), data.draw(labels), np.array(order)
    usual = match_halos(on_sites(before), on_sites(after), 1.0, "length", 1)
    decoded = on_sites(after[order])
    shuffled = match_halos(on_sites(before), decoded, 1.0, "length", 1, order)
    for name in ("members", "shared", "decoded_halos", "kept"):
        assert np.array_equal(getattr(shuffled, name), getattr(usual, name)), name
    assert shuffled.identical.tolist() == usual.identical.tolist()


def test_centres_move_through_the_faces_of_a_box():
    random = np.random.default_rng(0)
    blob = random.normal(scale=0.02, size=(50, 3))
    centres = np.array([[0.0, 5.0, 9.99], [5.0, 5.0, 5.0]])
    original = wb.Particles.wrapped((centres[:, None] + blob).reshape(-1, 3), 10.0)
    moved = np.array([[-0.03, 0.0, 0.04], [0.0, 0.1, 0.0]])
    decoded = wb.Particles.wrapped(original.positions + np.repeat(moved, 50, axis=0), 10.0)
    match = match_halos(original, decoded, 0.5, "length")
    assert match.identical.all()
    assert match.shifts == pytest.approx([0.05, 0.1], rel=1e-9)


def test_the_linking_length_stays_that_of_the_original():
    # In an open space the decoded particles' own spacing is larger, and would join what is apart.
    original = wb.Particles([[0.0, 0.0], [1.0, 0.0], [9.0, 10.0], [10.0, 10.0]])
    decoded = wb.Particles([[0.0, 0.0], [1.05, 0.0], [9.0, 10.0], [10.5, 12.0]])
    match = match_halos(original, decoded, 0.2 + 1e-9, min_members=2)
    assert match.members.tolist() == [2, 2]
    assert match.decoded_halos == 0
    assert not match.matched.any()


def test_no_halos_at_all():
    particles = wb.Particles(np.random.default_rng(1).random((30, 3)), 1.0)
    match = match_halos(particles, particles, 1e-4, "length", 2)
    assert len(match) == match.decoded_halos == match.new == 0
    assert match.kept
    assert match.shifts.shape == (0,)
    assert match.mass_function.worst() == 0


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.lists(st.integers(1, 60), min_size=1, max_size=12),
       st.integers(1, 25))
def test_every_halo_is_in_one_bin_of_the_mass_function(before, after, min_members):
    groups = [wb.Groups.from_labels(np.repeat(np.arange(len(sizes)), sizes), 0.1) for sizes in (before, after)]
    found = mass_function(*groups, min_members)
    for sizes, counts in ((before, found.original), (after, found.decoded)):
        bins = zip(found.edges[:-1], found.edges[1:], strict=True)
        assert counts.tolist() == [sum(low <= size < high for size in sizes) for low, high in bins]
        assert counts.sum() == sum(size >= min_members for size in sizes)
    assert found.edges[0] == min_members
    assert (found.edges[1:] == 2 * found.edges[:-1]).all()


def test_ratios_of_the_mass_function():
    groups = [wb.Groups.from_labels(np.repeat(np.arange(len(sizes)), sizes), 0.1) for sizes in ([2, 2, 4], [2, 9, 20])]
    found = mass_function(*groups, 2)
    assert found.ratio.tolist() == [0.5, 0.0, np.inf, np.inf]
    assert (found.worst(), found.worst(least=2), found.worst(least=3)) == (1.0, 0.5, 0.0)


def test_sets_that_do_not_fit_together_are_refused():
    first = wb.Particles([[0.0, 0.0], [0.5, 0.5]], 1.0)
    with pytest.raises(wb.WorkbenchError, match="the same number of particles"):
        match_halos(first, first.select([0]))
    with pytest.raises(wb.WorkbenchError, match="min_members must be a whole number"):
        match_halos(first, first, min_members=0)


@pytest.fixture(scope="module")
def catalogue_of_galaxies(shared_data) -> wb.Particles:
    return wb.open(shared_data / "corrfunc_mr19" / "gals_Mr19.ff")


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_simulation_keeps_its_own_halos(shared_data, shuffled):
    particles = wb.open(shared_data / "disperse_32" / "disperse_simu_32_id.gad")
    order = np.random.default_rng(2).permutation(len(particles)) if shuffled else None
    match = match_halos(particles, particles if order is None else particles.select(order), order=order)
    assert len(match) == match.decoded_halos == 136
    assert match.members[:6].tolist() == [894, 455, 380, 378, 361, 285]
    assert match.kept
    assert match.matched.all()
    assert match.identical.all()
    assert not match.broken.any()
    assert not match.merged.any()
    assert match.shifts.max() < 1e-6


def test_noise_breaks_halos_of_a_simulation(shared_data):
    particles = wb.open(shared_data / "disperse_32" / "disperse_simu_32_id.gad")
    noise = np.random.default_rng(3).uniform(-100, 100, particles.positions.shape)
    match = match_halos(particles, wb.Particles.wrapped(particles.positions + noise, particles.box))
    assert not match.kept
    assert 100 < match.matched.sum() < 136
    assert match.broken.sum() > 50
    assert 0.8 < match.recall.mean() < 1
    assert match.identical.sum() < 50
    before = wb.friends_of_friends(particles).labels
    # Independent of everything above: the largest halo's members, and where they are now.
    members = np.flatnonzero(before == np.bincount(before).argmax())
    decoded = wb.Particles.wrapped(particles.positions + noise, particles.box)
    now = wb.friends_of_friends(decoded, 312.5, "length").labels[members]
    assert match.shared[0] == np.bincount(now).max()


def test_galaxies_keep_their_own_groups(catalogue_of_galaxies):
    match = match_halos(catalogue_of_galaxies, catalogue_of_galaxies)
    assert len(match) == 2601
    assert match.identical.all()
    assert match.mass_function.original.sum() == 2601
    assert match.mass_function.worst() == 0


def test_noise_breaks_groups_of_galaxies(catalogue_of_galaxies):
    noise = np.random.default_rng(4).uniform(-0.1, 0.1, catalogue_of_galaxies.positions.shape)
    decoded = wb.Particles.wrapped(catalogue_of_galaxies.positions + noise, catalogue_of_galaxies.box)
    match = match_halos(catalogue_of_galaxies, decoded)
    assert 0 < match.identical.sum() < match.matched.sum() < 2601
    assert match.broken.sum() > 100
