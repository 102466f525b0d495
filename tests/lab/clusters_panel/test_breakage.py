"""What a codec makes of halos: against the public functions, one after the other."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from lab.clusters_panel import samples
from workbench.clusters import catalogue
from workbench.clusters.matching import INTACT, MERGED, SPLIT
from workbench.lab.cloud_view.fates import fates_of
from workbench.lab.clusters_panel.breakage import Halos, Links, break_halos, groups_of, in_original_order
from workbench.lab.clusters_panel.curves import counted, mass_edges
from workbench.lab.clusters_panel.state import ClustersState
from workbench.metrics import mass_function, match_halos

CLUMPS = [name for name in samples.SETS if name.endswith("-D")]


@pytest.mark.parametrize("name", samples.SETS)
def test_the_halos_are_those_of_the_finder_and_its_catalogue(name):
    case = samples.case(name)
    groups = wb.friends_of_friends(case.particles, case.state.linking_length, case.state.unit)
    assert case.halos.groups.equals(groups)
    assert (case.halos.catalogue.members >= 2).all()
    for members in (2, 3, 20, 10**6):
        assert case.halos.count(members) == groups.count(members)
    for place, label in enumerate(case.halos.catalogue.labels[:5].tolist()):
        assert case.halos.place(label) == place
    assert case.halos.place(-1) is None


@pytest.mark.parametrize("order", ["free", "keep"])
@pytest.mark.parametrize("name", samples.SETS)
def test_decoded_particles_are_in_the_order_of_the_original_and_in_its_bound(name, order):
    case = samples.case(name)
    state = case.changed(order=order)
    breakage = break_halos(case.particles, state, case.halos, samples.ignore)
    decoded = breakage.outcome.decoded
    error = decoded.positions.astype(float) - case.particles.positions
    if case.particles.box is not None:
        error -= np.asarray(case.particles.box) * np.rint(error / case.particles.box)
    assert np.abs(error).max() <= state.bound
    assert breakage.archive.reordered == (order == "free")
    assert breakage.bits_per_particle == breakage.archive.bits_per_particle
    assert breakage.archive.verify(case.particles).passed


@pytest.mark.parametrize("name", samples.SETS)
def test_groups_and_links_are_those_that_public_functions_find(name):
    case = samples.case(name)
    outcome, length = case.breakage.outcome, case.halos.groups.linking_length
    assert outcome.groups.equals(wb.friends_of_friends(outcome.decoded, length, "length"))
    broken = wb.clusters.broken_links(case.particles, outcome.decoded, case.halos.groups)
    for links, expected in ((outcome.missing, broken.missing), (outcome.false, broken.false)):
        assert sorted(links.pairs.tolist()) == sorted(expected.tolist())
        assert links.middles.shape == (len(expected), case.particles.dimensions)
    assert (outcome.missing.lengths > length).all()
    assert (outcome.false.lengths <= length).all()
    sizes = np.sort(outcome.groups.sizes)[::-1]
    assert outcome.sizes.tolist() == sizes[sizes >= 2].tolist()


@pytest.mark.parametrize("name", CLUMPS)
def test_at_a_quarter_of_the_linking_length_much_is_broken(name):
    case = samples.case(name)
    intact, split, merged = case.breakage.outcome.counts(case.halos.count(2))
    assert min(intact, split, merged) > 0
    assert min(len(case.breakage.outcome.missing), len(case.breakage.outcome.false)) > 0


@pytest.mark.parametrize("name", samples.SETS)
def test_what_became_of_halos_is_what_following_them_says(name):
    case = samples.case(name)
    outcome, length = case.breakage.outcome, case.halos.groups.linking_length
    for members in (2, 20):
        match = match_halos(case.particles, outcome.decoded, length, "length", members)
        status = outcome.status[: case.halos.count(members)]
        np.testing.assert_array_equal(status == INTACT, match.identical)
        np.testing.assert_array_equal(status == SPLIT, match.split)
        np.testing.assert_array_equal(status == MERGED, match.merged)
        np.testing.assert_array_equal(status != INTACT, match.broken)
        sizes = np.bincount(outcome.groups.labels)
        np.testing.assert_array_equal(outcome.members[: len(match)], sizes[match.counterpart])
        assert outcome.counts(case.halos.count(members)) == tuple(int((status == kind).sum()) for kind in range(3))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40), st.integers(1, 4))
def test_what_becomes_of_a_halo_is_the_same_everywhere(given_labels, least):
    """In the panel, in the cloud, in the comparison of groups, and by sets of members; ties go to the smaller label."""
    before, after = (wb.Groups.from_labels(np.array(labels), 0.1) for labels in zip(*given_labels, strict=True))
    particles = wb.Particles(np.random.default_rng(0).random((len(before.labels), 2)))
    match, fates = wb.compare_groups(before, after, min_members=least).match, fates_of(particles, before, after, least)
    halos = Halos(before, catalogue(particles, before, least))
    found = halos.matched(after, least)
    for name in ("labels", "members", "counterpart", "counterpart_members", "matched", "status"):
        np.testing.assert_array_equal(getattr(found, name), getattr(match, name))
    np.testing.assert_array_equal(fates.status, match.status)
    np.testing.assert_array_equal(fates.sizes, np.where(match.matched, match.counterpart_members, 0))
    groups = [set(after.members(label).tolist()) for label in after.ids]
    for label, status in zip(match.labels.tolist(), match.status.tolist(), strict=True):
        members = set(before.members(label).tolist())
        expected = INTACT if members in groups else MERGED if any(members < group for group in groups) else SPLIT
        assert status == expected


@pytest.mark.parametrize("name", CLUMPS)
def test_the_links_of_the_largest_groups_come_first(name):
    case = samples.case(name)
    groups = case.halos.groups
    members = dict(zip(groups.ids.tolist(), groups.sizes.tolist(), strict=True))
    for links in (case.breakage.outcome.missing, case.breakage.outcome.false):
        sizes = [max(members[label] for label in ends) for ends in groups.labels[links.pairs].tolist()]
        assert sizes == sorted(sizes, reverse=True)


def test_the_middle_of_a_link_across_a_face_is_at_the_face():
    particles = wb.Particles([[0.02, 0.5], [0.96, 0.5]], box=1.0)
    links = Links.of(np.array([[0, 1]], np.int32), particles, wb.Groups.from_labels([0, 0], 0.1))
    assert links.lengths == pytest.approx([0.06])
    assert links.middles[0] == pytest.approx([-0.01, 0.5], abs=1e-6)


@pytest.mark.parametrize("members", [2, 20, 37])
@pytest.mark.parametrize("name", samples.SETS)
def test_the_mass_function_is_that_of_the_metrics(name, members):
    case = samples.case(name)
    before, after = case.halos.catalogue.members, case.breakage.outcome.sizes
    edges = mass_edges(members, max([1, *before[:1].tolist(), *after[:1].tolist()]))
    expected = mass_function(case.halos.groups, case.breakage.outcome.groups, members)
    assert edges.tolist() == expected.edges.tolist()
    assert counted(before, edges).tolist() == expected.original.tolist()
    assert counted(after, edges).tolist() == expected.decoded.tolist()


def test_velocities_and_ids_are_no_part_of_the_figures():
    web = wb.synthetic.cosmic_web(n=8, seed=1)
    bare = wb.Particles(web.positions, web.box)
    assert web.velocities is not None
    found = [samples.Case.of(particles, bound=0.05) for particles in (web, bare)]
    assert found[0].breakage.archive.nbytes == found[1].breakage.archive.nbytes
    assert found[0].kept.archive.nbytes == found[1].kept.archive.nbytes


@pytest.mark.parametrize("codec", [name for name in ("sz3", "zfp", "prequantised") if name in wb.codecs.available()])
def test_any_codec_will_do(codec):
    particles = samples.clumps(3, np.float32, 1.0, seed=1, count=800)
    state = dataclasses.replace(ClustersState.for_(particles), codec=codec, order="keep")
    halos = groups_of(particles, state, samples.ignore)
    breakage = break_halos(particles, state, halos, samples.ignore)
    assert np.abs(breakage.outcome.decoded.positions - particles.positions).max() < 1
    assert codec in repr(breakage.archive)


def test_a_codec_that_nobody_knows_is_an_error_in_a_sentence():
    case = samples.case("one halo")
    with pytest.raises(wb.WorkbenchError, match="nonesuch"):
        break_halos(case.particles, case.changed(codec="nonesuch"), case.halos, samples.ignore)


@pytest.mark.parametrize("order", ["free", "keep"])
def test_particles_come_back_to_their_places(order):
    particles = samples.clumps(2, np.float64, 1.0, seed=4, count=500)
    archive = wb.compress(particles, wb.Absolute(1e-6), order=order)
    assert np.abs(in_original_order(archive, particles).positions - particles.positions).max() <= 1e-6


def test_particles_on_a_gpu_are_refused_in_a_sentence(stand_in):
    particles = wb.Particles(stand_in.asarray(samples.SETS["one halo"]().positions), 1.0)
    with pytest.raises(wb.WorkbenchError, match="the clusters panel must be given NumPy arrays"):
        groups_of(particles, ClustersState(0.01), samples.ignore)


def test_progress_rises_and_whoever_raises_is_let_through():
    case = samples.case("periodic 3-D")
    told: list[tuple[float, str]] = []
    break_halos(case.particles, case.state, case.halos, lambda share, text: told.append((share, text)))
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert len(told) >= 4
    assert shares[0] >= 0
    assert shares[-1] <= 1
    for last in range(1, len(told) + 1):
        calls: list[str] = []

        def stop(share: float, text: str, calls: list[str] = calls, last: int = last) -> None:
            calls.append(text)
            if len(calls) == last:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            break_halos(case.particles, case.state, case.halos, stop)
        assert len(calls) == last


def test_results_say_how_much_memory_they_take():
    case = samples.case("periodic 3-D")
    count = len(case.particles)
    assert case.halos.nbytes >= 8 * count
    assert case.breakage.nbytes >= case.breakage.archive.nbytes + 20 * count
    assert case.kept.nbytes >= case.kept.archive.nbytes + 20 * count
