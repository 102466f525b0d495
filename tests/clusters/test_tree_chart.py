"""The drawing of merger trees: branches do not cross, are as wide as they should be, and broken links are seen."""

import itertools

import numpy as np
import pytest

import workbench as wb
from workbench.charts.description import Band, Series
from workbench.charts.to_holoviews import to_holoviews
from workbench.clusters import Groups
from workbench.clusters.descent.branches import GAP, Branch, branches_of, spread
from workbench.clusters.descent.step import NOBODY
from workbench.clusters.descent.tree_chart import BROKEN, CURVE, MAIN, OVER


def merging(seed: int, steps: int = 10, broken: float = 0.0, hidden: float = 0.0) -> list[np.ndarray]:
    """Labels of halos that merge, two and more at a step, until few are left.

    Some particles may leave their halo, and some halos may not be found at a step.
    """
    random = np.random.default_rng(seed)
    labels = random.integers(0, 40, 800)
    made = []
    for _ in range(steps):
        away = np.flatnonzero(random.random(40) < hidden) if len(made) < steps - 1 else []
        left = np.where(np.isin(labels, away), np.arange(1000, 1800), labels)
        made.append(np.where(random.random(800) < broken, 900, left))
        for _ in range(random.integers(2, 7)):
            one, other = random.choice(np.unique(labels), 2)
            labels = np.where(labels == one, other, labels)
    return made


def descent_of(labels: list[np.ndarray], min_members: int = 5, gap: int = 0) -> wb.Descent:
    return wb.descent([Groups.from_labels(each, 0.2) for each in labels], min_members=min_members, gap=gap)


def path(branch: Branch) -> tuple[np.ndarray, np.ndarray]:
    """Where a branch runs: along its steps, then along the curve to its parent, up to just before they meet."""
    steps = np.arange(branch.first, branch.last + 1, dtype=float)
    if branch.parent is None:
        return steps, np.full(len(steps), branch.place)
    along = np.linspace(branch.last, branch.last + 1, len(CURVE))
    across = branch.place + (branch.parent.place - branch.place) * CURVE
    return np.append(steps, along[1:-1]), np.append(np.full(len(steps), branch.place), across[1:-1])


@pytest.mark.parametrize("gap", [0, 2])
@pytest.mark.parametrize("seed", range(20))
def test_branches_do_not_cross(seed: int, gap: int):
    descent = descent_of(merging(seed, hidden=0.2 if gap else 0.0), gap=gap)
    branches, left_out = branches_of(descent, len(descent) - 1, 0, most=100)
    widest = int(branches[0].members.max())
    down, up = spread(branches[0], widest, {})
    assert left_out == 0
    assert len(branches) > (3 if gap else 5)
    for one, other in itertools.combinations(branches, 2):
        (x, y), (u, v) = path(one), path(other)
        start, end = max(x[0], u[0]), min(x[-1], u[-1])
        times = np.linspace(start, end, 200 if start <= end else 0)
        above = np.interp(times, x, y) > np.interp(times, u, v)
        assert above.all() or not above.any()
        if max(one.first, other.first) <= min(one.last, other.last):
            together = (one.width(widest).max() + other.width(widest).max()) / 2
            assert abs(one.place - other.place) >= together + GAP - 1e-9
    for branch in branches:
        assert down <= branch.place - branch.width(widest).max() / 2
        assert up >= branch.place + branch.width(widest).max() / 2


@pytest.mark.parametrize("gap", [0, 2])
@pytest.mark.parametrize("seed", range(10))
def test_all_progenitors_are_drawn_or_counted(seed: int, gap: int):
    descent = descent_of(merging(seed, hidden=0.2 if gap else 0.0), gap=gap)
    halo, at = descent.largest(1)[0], len(descent) - 1
    complete, _ = branches_of(descent, at, 0, most=100)
    waiting, halos = [descent.tree(halo)], 0
    while waiting:
        halos += 1
        waiting += waiting.pop()["progenitors"]
    assert sum(number != NOBODY for branch in complete for number in branch.numbers) == halos
    assert sum(NOBODY in branch.numbers for branch in complete) > 2 * (gap > 0) - 1
    some, left_out = branches_of(descent, at, 0, most=3)
    assert len(some) == 4
    assert len(some) + left_out == len(complete)
    assert f"{left_out} smaller branches are not drawn" in descent.plot(halo, most=3).note


def test_bands_are_as_wide_as_the_root_of_their_members():
    descent = descent_of(merging(1))
    halo = descent.largest(1)[0]
    members = [row["members"] for row in descent.main_branch(halo)]
    (trunk,) = [part for part in descent.plot(halo).of(Band) if part.name == MAIN[0]]
    x, widths = trunk.x[::2].tolist(), (np.array(trunk.high) - trunk.low)[::2]
    assert x == list(range(len(descent) - 1))
    assert widths == pytest.approx(np.sqrt(np.array(members[:-1]) / max(members)))


def test_links_over_a_gap_are_told_from_others():
    labels = merging(1)
    at = len(labels) // 2
    (most,) = np.flatnonzero(np.bincount(labels[-1]) == np.bincount(labels[-1]).max())
    dip = [*labels]
    dip[at] = np.where(labels[-1] == most, np.arange(1000, 1800), labels[at])
    descent = descent_of(dip, gap=1)
    halo = descent.largest(1)[0]
    chart = descent.plot(halo, most=0)
    spans = [(min(part.x), max(part.x)) for part in chart.of(Band) if part.name == OVER[0]]
    assert spans == [(at - 1, at + 1)]
    (row,) = [row for row in chart.of(Series) if len(row.x) > 5]
    assert at not in np.array(row.x).tolist()
    assert sum("not found at the next step" in words for words in row.tooltips) == 1
    assert OVER[0] in chart.key
    assert [row["step"] for row in descent.main_branch(halo)] == [step for step in range(len(labels)) if step != at]
    assert OVER[0] not in descent_of(dip).plot(halo, most=0).key
    other = [*dip[: at + 1], np.arange(800), *dip[at + 2 :]]
    both = descent.plot(halo, other=descent_of(other, gap=1), most=0)
    assert BROKEN[0] in both.key
    assert "<svg" in both.svg


def test_links_that_broke_are_marked_in_both_trees():
    labels = merging(2)
    changed = [*labels[:6], np.arange(800), *labels[7:]]   # at one step, all halos are gone
    original, decoded = descent_of(labels), descent_of(changed)
    halo = original.largest(1)[0]
    chart = original.plot(halo, other=decoded)
    broken = [part for part in chart.of(Band) if part.name == BROKEN[0]]
    assert broken
    assert {place for part in broken for place in np.round(part.x, 9).tolist() if place == int(place)} >= {5, 6}
    assert [name for _, name in chart.y.names] == ["original", "decoded"]
    told = [words for part in chart.of(Series) for words in part.tooltips if "is broken" in words]
    assert any(words.endswith("is broken: no counterpart") for words in told)
    assert BROKEN[0] in chart.key
    same = original.plot(halo, other=original)
    assert BROKEN[0] not in same.key
    assert same.words.endswith("Of the links drawn, 0 are broken in the decoded tree.")


def test_without_a_counterpart_the_chart_says_so():
    labels = merging(3)
    gone = [*labels[:-1], np.arange(800)]
    chart = descent_of(labels).plot(descent_of(labels).largest(1)[0], other=descent_of(gone))
    assert chart.note.endswith("no decoded halo matches this one")
    assert len(chart.y.names) == 1


@pytest.mark.parametrize("steps", [1, 2, 6])
def test_drawings_of_all_kinds(steps: int):
    descent = descent_of(merging(4, steps))
    chart = descent.plot(descent.largest(1)[0], other=descent)
    assert chart.svg.count("<svg") >= 1
    assert chart.x.title == "step"
    to_holoviews(chart)
