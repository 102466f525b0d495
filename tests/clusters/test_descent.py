"""Descent against a definition in dictionaries and sets, on random halos that merge, split, vanish and tie."""

import itertools
import weakref
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.clusters import Groups


class Oracle:
    """The descent by its definition: halos are sets of ids."""

    def __init__(self, labels: list, ids: list, min_members: int) -> None:
        self.steps = []
        for of, names in zip(labels, ids, strict=True):
            members = {}
            for label, name in zip(of, names, strict=True):
                members.setdefault(label, set()).add(name)
            self.steps.append({min(one): one for one in members.values() if len(one) >= min_members})

    def rank(self, step: int, halo: int) -> tuple:
        return -len(self.steps[step][halo]), halo

    def descendant(self, step: int, halo: int) -> int | None:
        own, after = self.steps[step][halo], self.steps[step + 1]
        shared = {name: len(own & other) for name, other in after.items() if own & other}
        return min(shared, key=lambda name: (-shared[name], self.rank(step + 1, name)), default=None)

    def progenitors(self, step: int, halo: int) -> list:
        if step == 0:
            return []
        found = [name for name in self.steps[step - 1] if self.descendant(step - 1, name) == halo]
        return sorted(found, key=lambda name: (-self.shared(step, name, halo), self.rank(step - 1, name)))

    def shared(self, step: int, before: int, halo: int) -> int:
        return len(self.steps[step - 1][before] & self.steps[step][halo])

    def row(self, step: int, halo: int) -> dict:
        origin = fate = descendant = passed = main = None
        if step:
            before = self.progenitors(step, halo)
            main = before[0] if before else None
            most = max((self.shared(step, name, halo) for name in self.steps[step - 1]), default=0)
            origin = "continued" if before else "split off" if 2 * most > len(self.steps[step][halo]) else "formed"
        if step + 1 < len(self.steps):
            descendant = self.descendant(step, halo)
            passed = None if descendant is None else self.shared(step + 1, halo, descendant)
            first = descendant is not None and self.progenitors(step + 1, descendant)[0] == halo
            fate = "dissolves" if descendant is None else "continues" if first else "merges"
        return {
            "step": step, "halo": halo, "members": len(self.steps[step][halo]), "origin": origin, "fate": fate,
            "progenitors": len(self.progenitors(step, halo)), "main_progenitor": main, "descendant": descendant,
            "passed": passed,
        }

    @property
    def rows(self) -> list[dict]:
        return [
            self.row(step, halo) for step in range(len(self.steps))
            for halo in sorted(self.steps[step], key=lambda name: self.rank(step, name))
        ]

    def main_branch(self, step: int, halo: int) -> list[tuple]:
        branch = [(step, halo)]
        while before := self.progenitors(*branch[0]):
            branch.insert(0, (branch[0][0] - 1, before[0]))
        return branch

    def tree(self, step: int, halo: int) -> tuple:
        return halo, [self.tree(step - 1, before) for before in self.progenitors(step, halo)]


def case(seed: int) -> tuple[list, list, int]:
    """Labels and ids of a few steps: from step to step halos stay, merge, split, and exchange and lose particles."""
    random = np.random.default_rng(seed)
    count, steps = int(random.integers(1, 60)), int(random.integers(1, 6))
    everyone = random.permutation(200)[:count] - int(random.integers(0, 2)) * 100   # negative ids, too
    halo_of = dict(zip(everyone.tolist(), random.integers(0, max(count // 5, 1), count).tolist(), strict=True))
    labels, ids = [], []
    for _ in range(steps):
        there = random.permutation(everyone)[: max(1, count - int(random.integers(0, 1 + count // 4)))]
        labels.append([halo_of[name] for name in there.tolist()])
        ids.append(there.tolist())
        for name in random.permutation(everyone)[: count // 6].tolist():
            halo_of[name] = int(random.integers(0, max(count // 4, 1)))
        one, other = random.integers(0, max(count // 5, 1), 2).tolist()
        if random.random() < 0.5:
            halo_of = {name: one if halo == other else halo for name, halo in halo_of.items()}
        if random.random() < 0.5:   # in two equal parts, where that is possible
            members = [name for name, halo in halo_of.items() if halo == one]
            halo_of |= dict.fromkeys(members[: len(members) // 2], 1000 + len(labels))
        if random.random() < 0.1:   # a step without halos
            halo_of = {name: 2000 + name for name in halo_of}
    return labels, ids, int(random.integers(1, 5))


def found(labels: list, ids: list, min_members: int, **options: object) -> wb.Descent:
    groups = [Groups.from_labels(of, 0.2) for of in labels]
    return wb.descent(groups, map(np.array, ids), min_members=min_members, **options)


def nested(node: dict) -> tuple:
    return node["halo"], [nested(below) for below in node["progenitors"]]


@pytest.mark.parametrize("seed", range(100))
def test_descent_is_as_defined(seed: int):
    labels, ids, min_members = case(seed)
    descent, oracle = found(labels, ids, min_members), Oracle(labels, ids, min_members)
    rows = [{name: row[name] for name in row if name not in ("time", "label")} for row in descent.table()]
    assert rows == oracle.rows
    for step, halos in enumerate(oracle.steps):
        for halo in halos:
            assert descent.members(halo, step).tolist() == sorted(halos[halo])
            assert [(row["step"], row["halo"]) for row in descent.main_branch(halo, step)] == oracle.main_branch(step, halo)
            assert nested(descent.tree(halo, step)) == oracle.tree(step, halo)
            assert [(row["halo"], row["shared"]) for row in descent.progenitors(halo, step)] == [
                (before, oracle.shared(step, before, halo)) for before in oracle.progenitors(step, halo)
            ]
    fates, origins = (Counter(row[name] for row in oracle.rows) for name in ("fate", "origin"))
    assert list(descent.counts.values()) == [
        *(fates[kind] for kind in ("continues", "merges", "dissolves")),
        *(origins[kind] for kind in ("split off", "formed")),
    ]
    assert len(descent.mergers()) == fates["merges"]
    assert len(descent.splits()) == origins["split off"]


def test_the_cases_have_everything():
    descents = [found(*case(seed)) for seed in range(100)]
    counts = sum((Counter(each.counts) for each in descents), Counter())
    assert min(counts[kind] for kind in ("continue", "merge", "dissolve", "split off", "form")) > 20
    assert any(len(step) == 0 for each in descents for step in each.steps)
    assert any(len(set(one.pairs.shared[one.pairs.first == 0].tolist())) < (one.pairs.first == 0).sum()
               for each in descents for one in each.successions)   # ties


@given(st.integers(0, 10**6), st.randoms())
@settings(max_examples=40, deadline=None)
def test_the_order_of_particles_changes_nothing(seed: int, random):
    labels, ids, min_members = case(seed)
    orders = [random.sample(range(len(of)), len(of)) for of in labels]
    shuffled = [[[each[at] for at in order] for each, order in zip(both, orders, strict=True)] for both in (labels, ids)]
    first, other = found(labels, ids, min_members), found(*shuffled, min_members)
    assert first.equals(other)
    difference = first.differences(other)
    assert difference.equal
    assert difference.broken == difference.counts["added"] == 0
    assert difference.branches == difference.whole_branches


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_differences_are_as_defined(seed: int, other_seed: int):
    labels, ids, min_members = case(seed)
    random = np.random.default_rng(other_seed)
    changed = [[0 if random.random() < 0.1 else 1 + label for label in of] for of in labels]
    first, other = found(labels, ids, min_members), found(changed, ids, min_members)
    one, two = Oracle(labels, ids, min_members), Oracle(changed, ids, min_members)
    counts, same = Counter(), [counterparts(*steps) for steps in zip(one.steps, two.steps, strict=True)]
    for row in one.rows:
        if row["descendant"] is None:
            continue
        counts["links"] += 1
        step, halo = row["step"], row["halo"]
        start, end = same[step].get(halo), same[step + 1].get(row["descendant"])
        if start is None or end is None:
            counts["no counterpart"] += 1
        elif two.descendant(step, start) != end:
            counts["leads elsewhere"] += 1
        else:
            counts["kept" if two.row(step, start)["fate"] == row["fate"] else "other rank"] += 1
    links = sum(row["descendant"] is not None for row in two.rows)
    counts["added"] = links - counts["kept"] - counts["other rank"]
    difference = first.differences(other)
    assert difference.counts == {kind: counts[kind] for kind in difference.counts}
    last = len(labels) - 1
    assert difference.whole_branches == sum(
        [same[step].get(halo) for step, halo in one.main_branch(last, name)]
        == [halo for _, halo in two.main_branch(last, same[last][name])] for name in one.steps[last] if name in same[last]
    )


def counterparts(halos: dict, others: dict) -> dict:
    """The halos that match, by name: each has most of the other's members."""
    def best(members: set, among: dict) -> int | None:
        shared = {name: len(members & other) for name, other in among.items() if members & other}
        return min(shared, key=lambda name: (-shared[name], -len(among[name]), name), default=None)

    chosen = {name: best(members, others) for name, members in halos.items()}
    return {name: other for name, other in chosen.items() if other is not None and best(others[other], halos) == name}


def test_kept_clusters_keep_the_descent_and_a_bound_alone_does_not():
    snapshots = list(wb.synthetic.cosmic_web_series(24, [0.6, 0.3, 0], seed=2, steps=16))
    original = wb.descent([wb.friends_of_friends(one) for one in snapshots], snapshots)

    def decoded(**options: object) -> wb.Descent:
        archives = [wb.compress(one, wb.Absolute(0.05), **options) for one in snapshots]
        back = [archive.decompress() for archive in archives]
        return wb.descent([wb.friends_of_friends(one, 0.2) for one in back], back)

    assert original.equals(decoded(keep=[wb.KeepClusters(0.2)]))
    loose = decoded()
    assert not original.equals(loose)
    assert original.differences(loose).broken > 10


def test_two_steps_are_enough_in_memory():
    labels, ids, min_members = case(7)
    made, alive = [], []

    def groups():
        for of in labels:
            found = Groups.from_labels(of, 0.2)
            made.append(weakref.ref(found.labels))
            alive.append(sum(each() is not None for each in made))
            yield found

    lazily = wb.descent(groups(), (np.array(each) for each in ids), min_members=min_members, keep_members=False)
    assert len(alive) == len(labels) > 3
    assert max(alive) <= 2
    assert all(step.ids is None for step in lazily.steps)
    assert lazily.equals(found(labels, ids, min_members))
    with pytest.raises(wb.WorkbenchError, match="made without the members of halos: make it with keep_members=True"):
        lazily.members(lazily.largest(1)[0])
    with pytest.raises(wb.WorkbenchError, match="differences need the members"):
        lazily.differences(lazily)


def test_ids_beyond_signed_integers():
    high = 2**63
    ids = [[high + 5, high + 1, 7], [7, high + 1, high + 5]]
    groups = [Groups.from_labels([0, 0, 1], 0.1), Groups.from_labels([4, 5, 5], 0.1)]
    descent = wb.descent(groups, [np.array(each, np.uint64) for each in ids], min_members=2)
    assert descent.main_branch(high + 1) == [
        {"step": 0, "time": 0.0, "halo": high + 1, "members": 2, "shared": 2},
        {"step": 1, "time": 1.0, "halo": high + 1, "members": 2},
    ]


def test_a_long_series_has_a_deep_tree():
    descent = wb.descent([Groups.from_labels([0, 0, 1], 0.1)] * 3000, min_members=2)
    depth, node = 0, descent.tree(0)
    while node["progenitors"]:
        depth, node = depth + 1, node["progenitors"][0]
    assert depth == 2999


PAIR = Groups.from_labels([0, 0, 1], 0.1)


@pytest.mark.parametrize(("arguments", "options", "message"), [
    (([],), {}, "needs the groups of at least one step; got none"),
    ((PAIR,), {}, "groups must have one entry for each step, in order of time; got Groups"),
    ((5,), {}, "groups must have one entry for each step"),
    (([PAIR], 5), {}, "ids must have one entry for each step"),
    (([[0, 0, 1]],), {}, "the groups of step 0 must be wb.Groups; got .* search them with wb.friends_of_friends"),
    (([PAIR, Groups.from_labels([0, 0], 0.1)],), {}, "step 1 has 2, the one before 3: give the ids of each step"),
    (([PAIR, PAIR], [[1, 2, 3]]), {}, "groups and ids must have one entry for each step; got fewer ids than groups"),
    (([PAIR], [[1, 2, 3]] * 2), {}, "got fewer groups than ids"),
    (([PAIR], [[1, 2]]), {}, "step 0 must have one id for each of its 3 particles; got 2 ids"),
    (([PAIR], [[1, 2, 2]]), {}, "step 0 has id 2 twice, and 1 repeated ids in all"),
    (([PAIR], [[1.0, 2.0, 3.0]]), {}, "the ids of step 0 must be a row of integers; got float64"),
    (([PAIR], [[[1], [2, 3]]]), {}, "the ids of step 0 must be a row of integers"),
    (([PAIR], [wb.Particles([[0.0, 0.0]] * 3)]), {}, "the particles of step 0 have no ids: give ids=None"),
    (([PAIR],), {"min_members": 0}, "min_members must be a whole number, at least 1; got 0"),
    (([PAIR, PAIR],), {"times": [0, 0]}, "times must be finite numbers that rise"),
    (([PAIR, PAIR],), {"times": [0, float("nan")]}, "times must be finite numbers that rise"),
    (([PAIR, PAIR],), {"times": [0]}, "times must have one number for each of 2 steps; got 1"),
    (([PAIR],), {"times": [0, 1]}, "times must have one number for each of 1 step; got 2"),
    (([PAIR],), {"times": []}, "times must have one number for each of 1 step; got 0"),
    (([PAIR],), {"times": "now"}, "times must be a row of numbers"),
])
def test_nonsense_is_refused(arguments: tuple, options: dict, message: str):
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.descent(*arguments, **options)


def test_halos_and_steps_that_are_not_there_are_refused():
    descent = wb.descent([PAIR, PAIR], min_members=2)
    for ask, message in [
        (lambda: descent.main_branch(2), r"got 2 \(the largest halos: 0\): descent.largest\(10, step\) lists them"),
        (lambda: descent.tree("0"), "halo must be the smallest id"),
        (lambda: descent.progenitors(0, step=2), "step must be a whole number, between -2 and 1; got 2"),
        (lambda: descent.descendant(0, step=0.0), "step must be a whole number"),
        (lambda: descent.equals(PAIR), "a descent is compared with another one"),
        (lambda: descent.differences(wb.descent([PAIR], min_members=2)), "the same steps; got 2 and 1 steps"),
    ]:
        with pytest.raises(wb.WorkbenchError, match=message):
            ask()


def test_tables_of_pandas_keep_integers_beside_none():
    high = 2**60 + 1
    frame = wb.descent([PAIR, PAIR], [np.array([high, high + 2, 9])] * 2, min_members=2).to_dataframe()
    assert frame["descendant"].tolist() == [high, None]
    assert frame["main_progenitor"].tolist() == [None, high]


def test_what_notebooks_show():
    descent = wb.descent([PAIR] * 40, min_members=2)
    assert "…" in descent._repr_html_()
    assert "39 continue" in repr(descent)
    difference = descent.differences(descent)
    assert repr(difference).startswith("DescentDifferences(39 links: 39 kept, 0 no counterpart")
    assert difference._repr_html_().count("<tr>") == 40
    assert list(itertools.islice(descent.times, 2)) == [0.0, 1.0]
