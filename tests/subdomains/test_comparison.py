"""Halos of two sets of groups, matched by their members: against sets of particles, in one process and in subdomains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.clusters.matching import NONE, Pairs
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.data.ids import common
from workbench.errors import WorkbenchError


def by_hand(first: dict[int, int], second: dict[int, int], min_members: int) -> dict[str, object]:
    """The comparison of two sets of labels by id, each group followed as a set of ids."""

    def groups_of(labels):
        return {label: {id for id, other in labels.items() if other == label} for label in set(labels.values())}

    groups, others = groups_of(first), groups_of(second)

    def best(of, among):
        shared = {label: len(of & group) for label, group in among.items() if of & group}
        return max(shared, key=lambda label: (shared[label], -label)) if shared else NONE

    halos = {label: group for label, group in groups.items() if len(group) >= min_members}
    counterparts = {label: group for label, group in others.items() if len(group) >= min_members}
    rows, taken = [], set()
    for label, group in halos.items():
        found = best(group, others)
        there = others.get(found, set())
        matched = found in counterparts and best(there, halos) == label
        taken |= {found} if matched else set()
        state = "identical" if group == there else "merged" if group <= there else "split"
        rows.append((label, len(group), found, len(there), len(group & there), len(group ^ there),
                     len(group - set(second)), state, matched))
    for label, group in counterparts.items():
        if label not in taken:
            found = best(group, groups)
            there = groups.get(found, set())
            rows.append((found, len(there), label, len(group), len(group & there), len(group ^ there),
                         len(group - set(first)), "new", False))
    pairs = {
        (one, other, len(halos[one] & counterparts[other]))
        for one in halos for other in counterparts if halos[one] & counterparts[other]
    }
    return {"rows": sorted(rows), "pairs": pairs}


def rows_of(found: wb.distributed.GroupComparison) -> list[tuple[object, ...]]:
    return sorted(tuple(values) for values in found.to_dataframe().itertuples(index=False, name=None))


def pairs_of(found: wb.distributed.GroupComparison) -> set[tuple[int, int, int]]:
    pairs = found.pairs
    return set(zip(pairs.first.tolist(), pairs.second.tolist(), pairs.shared.tolist(), strict=True))


@st.composite
def sets_of_labels(draw):
    """Labels by id of two sets that have some particles in common, with ids of any size and sign."""
    kind, low = draw(st.sampled_from([("i8", -5), ("i8", -(2**62)), ("u8", 2**64 - 60), ("i4", 0), ("u2", 7)]))
    pool = np.arange(60) * (draw(st.sampled_from([1, 2**57])) if low == -(2**62) else 1)
    ids = np.array([low + int(step) for step in pool], kind)
    found = []
    for _ in range(2):
        count = draw(st.integers(1, 50))
        which = np.array(draw(st.permutations(range(60))))[:count]
        found.append((ids[which], np.array(draw(st.lists(st.integers(0, 6), min_size=count, max_size=count)))))
    return found


@given(sets_of_labels(), st.integers(1, 4))
def test_halos_are_compared_as_sets_are(sets, min_members):
    (first_ids, first_labels), (second_ids, second_labels) = sets
    groups = [wb.Groups.from_labels(labels, 0.2) for labels in (first_labels, second_labels)]
    found = wb.compare_groups(*groups, ids=(first_ids, second_ids), min_members=min_members)
    expected = by_hand(
        dict(zip(first_ids.tolist(), groups[0].labels.tolist(), strict=True)),
        dict(zip(second_ids.tolist(), groups[1].labels.tolist(), strict=True)),
        min_members,
    )
    assert rows_of(found) == expected["rows"]
    assert pairs_of(found) == expected["pairs"]
    states = [row[7] for row in expected["rows"]]
    assert found.counts == {
        **{kind: states.count(kind) for kind in ("identical", "split", "merged", "new")},
        "lost": sum(not row[8] for row in expected["rows"] if row[7] != "new"),
    }
    assert found.equal == (set(states) <= {"identical"})


@given(st.integers(1, 40), st.integers(1, 3), st.data())
def test_without_ids_the_order_tells(count, min_members, data):
    labels = st.lists(st.integers(0, 5), min_size=count, max_size=count)
    first, second = (wb.Groups.from_labels(data.draw(labels), 0.2) for _ in range(2))
    in_order = wb.compare_groups(first, second, min_members=min_members)
    expected = by_hand(dict(enumerate(first.labels.tolist())), dict(enumerate(second.labels.tolist())), min_members)
    assert rows_of(in_order) == expected["rows"]


def test_the_same_halos_as_in_a_comparison_of_decoded_particles():
    snapshot = wb.synthetic.cosmic_web(n=24, seed=5)
    archive = wb.compress(snapshot, wb.Absolute(0.05), order="free")
    decoded = archive.decompress()
    report = wb.compare(snapshot, decoded, order=archive.permutation(snapshot))
    groups = wb.friends_of_friends(snapshot)
    found = wb.compare_groups(
        groups, wb.friends_of_friends(decoded, groups.linking_length, "length"), ids=(snapshot, decoded)
    )
    assert report["halos_broken"] > 10
    for kind in ("identical", "split", "merged", "new"):
        assert found.counts[kind] == report[f"halos_{kind}"]
    assert found.counts["lost"] == report["halos_original"] - report["halos_matched"]


def test_a_halo_that_differs_by_seven_particles_is_named():
    snapshot = wb.synthetic.cosmic_web(n=24, seed=5)
    groups = wb.friends_of_friends(snapshot)
    labels = groups.labels.copy()
    halo = groups.largest(3)[2]
    labels[groups.members(halo)[-7:]] = len(labels) + np.arange(7)
    found = wb.compare_groups(groups, wb.Groups.from_labels(labels, groups.linking_length))
    (worst, *_) = found.most_different()
    assert (worst["first"], worst["different"], worst["state"], worst["matched"]) == (halo, 7, "split", True)
    assert found.counts == {"identical": groups.count() - 1, "split": 1, "merged": 0, "lost": 0, "new": 0}
    shown = found._repr_html_()
    assert "1 split" in shown
    assert shown.count("<tr>") == 2
    assert "polyline" in found.plot().svg


@pytest.mark.parametrize("chunks", [pytest.param((1000, 1000), marks=pytest.mark.long), (700, 3000)])
def test_subdomains_are_compared_without_gathering_labels(chunks):
    snapshot = wb.synthetic.cosmic_web(n=24, seed=5)
    noise = np.random.default_rng(1).normal(0, 0.05, snapshot.positions.shape).astype("f4")
    moved = wb.Particles.wrapped(snapshot.positions + noise, snapshot.box)
    sources = [
        ParticlesInMemory(one, even_sizes(len(one), size)) for one, size in zip((snapshot, moved), chunks, strict=True)
    ]
    for min_members in (1, 20):
        with (
            wb.friends_of_friends(sources[0], parts=5) as first,
            wb.friends_of_friends(sources[1], 0.2 * snapshot.spacing, "length", parts=3) as second,
        ):
            found = wb.compare_groups(first, second, min_members=min_members)
            expected = wb.compare_groups(first.gathered(), second.gathered(), min_members=min_members)
            mixed = wb.compare_groups(first, second.gathered(), min_members=min_members)
            by_id = wb.compare_groups(first, second, (snapshot.ids, snapshot.ids), min_members)
        assert expected.counts["split"] > 10
        for one in (found, mixed, by_id):
            assert rows_of(one) == rows_of(expected)
            assert pairs_of(one) == pairs_of(expected)


def test_pairs_of_labels_too_large_for_one_key():
    first, second = np.array([2**40, 3, 2**40, 3]), np.array([2**41, 5, 2**41, 2**41])
    pairs = Pairs.counted(first, second)
    assert list(zip(pairs.first, pairs.second, pairs.shared, strict=True)) == [(3, 5, 1), (3, 2**41, 1), (2**40, 2**41, 2)]
    twice = Pairs.together([pairs, pairs, Pairs.counted(first[:0], second[:0])])
    assert twice.shared.tolist() == [2, 2, 4]


GROUPS = wb.Groups.from_labels([0, 0, 1], 0.2)


@pytest.mark.parametrize(("arguments", "told"), [
    ({"second": wb.Groups.from_labels([0, 0], 0.2)}, "got 3 and 2 particles: give ids="),
    ({"ids": ([1, 2, 1], [1, 2, 3])}, "the first set has id 1 twice, and 1 repeated ids in all"),
    ({"ids": ([1, 2, 3], [3, 3, 3])}, "the second set has id 3 twice, and 2 repeated"),
    ({"ids": ([1, 2], [1, 2, 3])}, "one id for each of 3 particles; got 2 ids"),
    ({"ids": ([1, 2, 3.5], [1, 2, 3])}, "ids of the first set must be a row of integers; got float64"),
    ({"ids": ([-1, 2, 3], np.array([1, 2, 2**64 - 1], np.uint64))}, "ids must span less than"),
    ({"ids": np.arange(6).reshape(2, 3)}, "ids must have two entries"),
    ({"ids": 3}, "first and of the second set; got 3: give ids="),
    ({"ids": {0: [1, 2, 3], 1: [1, 2, 3]}}, "ids must have two entries"),
    ({"ids": ([1, 2, 3],)}, "second set; got 1 entries"),
    ({"ids": (3, [1, 2, 3])}, "ids of the first set must be a row of integers, or Particles; got 3"),
    ({"ids": ([[1, 2], [3], [4]], [1, 2, 3])}, "ids of the first set must be a row of integers"),
    ({"ids": (wb.Particles([[0, 0], [1, 1], [2, 2.0]]), [1, 2, 3])}, "particles of the first set have no ids"),
    ({"min_members": 0}, "min_members must be a whole number"),
    ({"second": np.array([0, 0, 1])}, "found by friends of friends, or wb.Groups; got ndarray"),
])
def test_what_cannot_be_compared_is_refused(arguments, told):
    with pytest.raises(WorkbenchError, match=told):
        wb.compare_groups(**{"first": GROUPS, "second": GROUPS, **arguments})


def test_particles_in_common_come_by_rising_id():
    first, second = common(np.array([9, -4, 7, 3]), np.array([3, 9, 11, -4], np.int16))
    assert (first.tolist(), second.tolist()) == ([1, 3, 0], [3, 0, 1])


def test_sets_without_a_common_particle_have_only_lost_and_new_halos():
    found = wb.compare_groups(GROUPS, GROUPS, ids=([1, 2, 3], [4, 5, 6]), min_members=2)
    assert found.counts == {"identical": 0, "split": 1, "merged": 0, "lost": 1, "new": 1}
    assert rows_of(found) == [(-1, 0, 0, 2, 0, 2, 2, "new", False), (0, 2, -1, 0, 0, 2, 2, "split", False)]


def test_another_finder_has_the_same_groups_of_galaxies(shared_data):
    galaxies = wb.open(shared_data / "corrfunc_mr19" / "gals_Mr19.ff")
    label = np.load(shared_data / "corrfunc_mr19" / "mr19_kdcount_fof_b0.2_min20.npz")["label"]
    grouped = np.random.default_rng(1).permutation(np.flatnonzero(label >= 0))   # it has no others, here in any order
    theirs, ours = wb.Groups.from_labels(label[grouped], 0.2), wb.friends_of_friends(galaxies)
    found = wb.compare_groups(ours, theirs, ids=(np.arange(len(galaxies)), grouped))
    assert found.equal
    assert found.counts == {"identical": 2601, "split": 0, "merged": 0, "lost": 0, "new": 0}
    fewer = grouped[1000:]
    without = wb.compare_groups(ours, wb.Groups.from_labels(label[fewer], 0.2), (np.arange(len(galaxies)), fewer))
    assert without.match.absent.sum() == without.match.different.sum() == 1000
    assert without.counts["split"] > 100


def test_ids_of_a_real_file_that_name_several_particles_are_refused(shared_data):
    particles = wb.open(shared_data / "disperse_32" / "disperse_simu_32_id.gad")
    groups = wb.friends_of_friends(particles)
    with pytest.raises(WorkbenchError, match="ids must name each particle once; the first set has id 0 twice"):
        wb.compare_groups(groups, groups, ids=(particles, particles))


def test_labels_and_ids_on_a_gpu_are_compared_here(stand_in):
    labels, ids = np.array([0, 0, 0, 1, 1, 2]), np.array([5, 3, 9, 7, 4, 8])
    expected = wb.compare_groups(wb.Groups.from_labels(labels, 0.2), GROUPS, (ids, [3, 9, 7]), 2)
    there = wb.Groups.from_labels(stand_in.asarray(labels), 0.2)
    assert rows_of(wb.compare_groups(there, GROUPS, (stand_in.asarray(ids), [3, 9, 7]), 2)) == rows_of(expected)
