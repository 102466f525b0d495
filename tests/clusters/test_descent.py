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
    """The descent by its definition: halos are sets of ids, and each is a step and a name."""

    def __init__(self, labels: list, ids: list, min_members: int, gap: int = 0) -> None:
        self.steps, self.gap = [], gap
        for of, names in zip(labels, ids, strict=True):
            members = {}
            for label, name in zip(of, names, strict=True):
                members.setdefault(label, set()).add(name)
            self.steps.append({min(one): one for one in members.values() if len(one) >= min_members})

    def rank(self, step: int, halo: int) -> tuple:
        return -len(self.steps[step][halo]), halo

    def descendant(self, step: int, halo: int) -> tuple | None:
        own = self.steps[step][halo]
        for after in range(step + 1, min(step + 2 + self.gap, len(self.steps))):
            shared = {name: len(own & other) for name, other in self.steps[after].items() if own & other}
            if shared:
                return after, min(shared, key=lambda name: (-shared[name], self.rank(after, name)))
        return None

    def progenitors(self, step: int, halo: int) -> list:
        found = [
            (before, name) for before in range(max(step - 1 - self.gap, 0), step) for name in self.steps[before]
            if self.descendant(before, name) == (step, halo)
        ]
        return sorted(found, key=lambda one: (-one[0], -self.shared(*one, step, halo), self.rank(*one)))

    def shared(self, before: int, name: int, step: int, halo: int) -> int:
        return len(self.steps[before][name] & self.steps[step][halo])

    def row(self, step: int, halo: int) -> dict:
        origin = fate = descendant = passed = main = over = None
        if step:
            before = self.progenitors(step, halo)
            main = before[0][1] if before else None
            most = max((self.shared(step - 1, name, step, halo) for name in self.steps[step - 1]), default=0)
            origin = "continued" if before else "split off" if 2 * most > len(self.steps[step][halo]) else "formed"
        if step + 1 < len(self.steps):
            fate = "dissolves"
            if (there := self.descendant(step, halo)) is not None:
                over, descendant, passed = there[0] - step - 1, there[1], self.shared(step, halo, *there)
                fate = "continues" if self.progenitors(*there)[0] == (step, halo) else "merges"
        return {
            "step": step, "halo": halo, "members": len(self.steps[step][halo]), "origin": origin, "fate": fate,
            "progenitors": len(self.progenitors(step, halo)), "main_progenitor": main, "descendant": descendant,
            "passed": passed, "over": over,
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
            branch.insert(0, before[0])
        return branch

    def tree(self, step: int, halo: int) -> tuple:
        return step, halo, [self.tree(*before) for before in self.progenitors(step, halo)]


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
    return node["step"], node["halo"], [nested(below) for below in node["progenitors"]]


def dipping(seed: int) -> tuple[list, list, int]:
    """The same, with halos that are not found at some steps."""
    (labels, ids, min_members), random = case(seed), np.random.default_rng(seed)
    hidden = [{label for label in sorted(set(of)) if random.random() < 0.3} for of in labels]
    labels = [
        [5000 + name if label in away else label for label, name in zip(of, names, strict=True)]
        for of, names, away in zip(labels, ids, hidden, strict=True)
    ]
    return labels, ids, max(min_members, 2)


@pytest.mark.parametrize(
    ("seed", "gap"), [*((seed, 0) for seed in range(100)), *((seed, 1 + seed % 3) for seed in range(45))]
)
def test_descent_is_as_defined(seed: int, gap: int):
    labels, ids, min_members = dipping(seed) if gap else case(seed)
    descent, oracle = found(labels, ids, min_members, gap=gap), Oracle(labels, ids, min_members, gap)
    rows = [{name: row[name] for name in row if name not in ("time", "label")} for row in descent.table()]
    assert rows == oracle.rows
    for step, halos in enumerate(oracle.steps):
        for halo in halos:
            assert descent.members(halo, step).tolist() == sorted(halos[halo])
            assert [(row["step"], row["halo"]) for row in descent.main_branch(halo, step)] == oracle.main_branch(step, halo)
            assert nested(descent.tree(halo, step)) == oracle.tree(step, halo)
            assert [(row["step"], row["halo"], row["shared"]) for row in descent.progenitors(halo, step)] == [
                (*before, oracle.shared(*before, step, halo)) for before in oracle.progenitors(step, halo)
            ]
            after = descent.descendant(halo, step)
            assert (None if after is None else (after["step"], after["halo"])) == oracle.descendant(step, halo)
    fates, origins = (Counter(row[name] for row in oracle.rows) for name in ("fate", "origin"))
    assert list(descent.counts.values()) == [
        *(fates[kind] for kind in ("continues", "merges", "dissolves")),
        *(origins[kind] for kind in ("split off", "formed")),
        *([sum(bool(row["over"]) for row in oracle.rows)] if gap else []),
    ]
    for row in descent.mergers():
        main = oracle.main_branch(row["step"], row["into"])[-2]
        assert row["ratio"] == row["members"] / len(oracle.steps[main[0]][main[1]])
    assert len(descent.mergers()) == fates["merges"]
    assert len(descent.splits()) == origins["split off"]


def test_the_cases_have_everything():
    descents = [found(*case(seed)) for seed in range(100)]
    counts = sum((Counter(each.counts) for each in descents), Counter())
    assert min(counts[kind] for kind in ("continue", "merge", "dissolve", "split off", "form")) > 20
    assert any(len(step) == 0 for each in descents for step in each.steps)
    wide = [found(*dipping(seed), gap=1 + seed % 3) for seed in range(45)]
    gaps = Counter(int(one) for each in wide for since in each.successions for one in since.over)
    main = Counter(int(one) for each in wide for since in each.successions for one in since.main_over)
    assert min(main[over] for over in (1, 2)) > 5
    assert min(gaps[over] - main[over] for over in (1, 2)) > 2   # those that merge
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


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([0, 1, 2]))
@settings(max_examples=60, deadline=None)
def test_differences_are_as_defined(seed: int, other_seed: int, gap: int):
    labels, ids, min_members = dipping(seed) if gap else case(seed)
    random = np.random.default_rng(other_seed)
    changed = [[0 if random.random() < 0.1 else 1 + label for label in of] for of in labels]
    first, other = (found(each, ids, min_members, gap=gap) for each in (labels, changed))
    one, two = (Oracle(each, ids, min_members, gap) for each in (labels, changed))
    counts, same = Counter(), [counterparts(*steps) for steps in zip(one.steps, two.steps, strict=True)]
    for row in one.rows:
        if row["descendant"] is None:
            continue
        counts["links"] += 1
        step, halo = row["step"], row["halo"]
        after = step + 1 + row["over"]
        start, end = same[step].get(halo), same[after].get(row["descendant"])
        if start is None or end is None:
            counts["no counterpart"] += 1
        elif two.descendant(step, start) != (after, end):
            counts["leads elsewhere"] += 1
        else:
            counts["kept" if two.row(step, start)["fate"] == row["fate"] else "other rank"] += 1
    links = sum(row["descendant"] is not None for row in two.rows)
    counts["added"] = links - counts["kept"] - counts["other rank"]
    difference = first.differences(other)
    assert difference.counts == {kind: counts[kind] for kind in difference.counts}
    last = len(labels) - 1
    assert difference.whole_branches == sum(
        [(step, same[step].get(halo)) for step, halo in one.main_branch(last, name)]
        == two.main_branch(last, same[last][name]) for name in one.steps[last] if name in same[last]
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


def test_a_halo_that_is_not_found_at_a_step_goes_on():
    there, away = [0, 0, 0, 3, 3], [0, 1, 2, 3, 3]
    groups = [Groups.from_labels(labels, 0.1) for labels in (there, away, there)]
    assert wb.descent(groups, min_members=2).counts == {
        "continue": 2, "merge": 0, "dissolve": 1, "split off": 0, "form": 1,
    }
    descent = wb.descent(groups, times=[1, 2, 4], min_members=2, gap=1)
    assert repr(descent).endswith("3 continue, 0 merge, 0 dissolve; 0 split off, 0 form; 1 over a gap)")
    assert [(row["step"], row["time"], row["halo"]) for row in descent.main_branch(0)] == [(0, 1, 0), (2, 4, 0)]
    assert descent.descendant(0, 0) == {"step": 2, "time": 4.0, "halo": 0, "members": 3, "shared": 3}
    assert descent.progenitors(0) == [{"step": 0, "time": 1.0, "halo": 0, "members": 3, "shared": 3}]
    assert [row["over"] for row in descent.table()] == [1, 0, 0, None, None]
    assert not descent.equals(wb.descent(groups, min_members=2))
    long = wb.descent([groups[0], groups[1], groups[1], groups[0]], min_members=2, gap=1)
    assert long.counts["over a gap"] == 0


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
    (([PAIR],), {"gap": -1}, "gap must be a whole number, between 0 and 16; got -1"),
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
