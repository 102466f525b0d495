"""The merger tree of a halo as a chart: branches are as wide as the square root of their members, broken links orange."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.charts.description import Axis, Band, Chart, Part, Series
from workbench.clusters.descent.branches import GAP, Branch, branches_of, spread
from workbench.clusters.descent.differences import KEPT, KINDS, NO_LINK
from workbench.clusters.descent.result import Descent
from workbench.clusters.descent.step import NOBODY

MAIN, MERGING, BROKEN = ("main branch", "#2f7fc1"), ("branches that merge", "#1a9070"), ("broken links", "#d0600f")
OVER = ("links over a gap", "#b9a9dc")
LOOKS = MAIN, MERGING, OVER, BROKEN
CURVE = (1 - np.cos(np.linspace(0, np.pi, 13))) / 2   # from a branch to its parent
HEIGHT = 90, 160, 560   # pixels: of the widest branch, and the least and the most of all
MARK = 4.0


@dataclass(frozen=True, eq=False)
class _Tree:
    """A tree that is drawn: its branches, how many are left out, and the kind of each link of its descent, if compared.

    `counterparts` has the step and number of the halo in the other tree for each that is drawn.
    """

    name: str
    descent: Descent
    branches: list[Branch]
    left_out: int
    links: Sequence[np.ndarray] = ()
    counterparts: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)


def tree_chart(descent: Descent, halo: int, at: int, other: Descent | None, most: int) -> Chart:
    """The merger tree of a halo; if there is another descent, that of its counterpart stands below."""
    number = descent.steps[at].number(halo)
    trees = [_tree("original" if other else f"halo {halo}", descent, at, number, most)]
    if other is not None:
        trees = _both(trees[0], at, number, other, most)
    widest = int(max(branch.members.max() for tree in trees for branch in tree.branches))
    place, names = 0.0, []
    parts: list[Part] = []
    sides: dict[tuple[int, int], int] = {}
    for tree in trees:
        below, above = spread(tree.branches[0], widest, sides)
        place -= above
        names.append((place, tree.name))
        for branch in reversed(tree.branches):
            parts += _drawn(tree, branch, widest, place)
        place += below - GAP
        sides = {tree.counterparts.get((one.last, one.numbers[-1]), (-1, -1)): one.side for one in tree.branches}
    across = Axis.around(descent.unit_of_time, descent.times[: at + 1], room=0.02)
    height = int(np.clip(40 - place * HEIGHT[0], *HEIGHT[1:]))
    about = _words(descent, at, number, trees, other)
    return Chart(
        f"Merger tree of halo {halo}", across, Axis("", place + GAP / 2, GAP / 2, names=tuple(names)), tuple(parts),
        about, height, note=_note(trees, other), scale=_key(parts),
    )


def _key(parts: Sequence[Part]) -> tuple[Part, ...]:
    """One part of each look that there is, the main branch first."""
    drawn = {part.name for part in parts}
    return tuple(Band(name, [0, 1], [0, 0], [1, 1], colour, 1.0) for name, colour in LOOKS if name in drawn)


def _tree(name: str, descent: Descent, at: int, number: int, most: int) -> _Tree:
    return _Tree(name, descent, *branches_of(descent, at, number, most))


def _both(tree: _Tree, at: int, number: int, other: Descent, most: int) -> list[_Tree]:
    """The tree with what has become of its links, and the tree of the halo's counterpart, if it has one."""
    there = tree.descent.differences(other)
    back = other.differences(tree.descent)
    counterparts = {
        (step, one): (step, int(there.counterparts[step][one]))
        for branch in tree.branches for step, one in enumerate(branch.numbers, branch.first) if one != NOBODY
    }
    trees = [replace(tree, links=there.links, counterparts=counterparts)]
    found = int(there.counterparts[at][number])
    if found != NOBODY:
        trees.append(replace(_tree("decoded", other, at, found, most), links=back.links))
    return trees


def _drawn(tree: _Tree, branch: Branch, widest: int, base: float) -> Iterator[Part]:
    """The links of a branch as bands, those in a row that have one look together, and a mark for each of its halos."""
    times, steps = tree.descent.times, range(branch.first, branch.last + 1)
    centre, half = base + branch.place, branch.width(widest) / 2
    looks = _looks(tree, branch)
    pieces = [
        (np.array(times[step : step + 2]), np.full(2, centre), half[k : k + 2], looks[k])
        for k, step in enumerate(steps[:-1])
    ]
    if branch.parent is not None:
        pieces.append((*_joining(tree, branch, half[-1], centre, base + branch.parent.place, widest), looks[-1]))
    for (name, colour), run in itertools.groupby(pieces, key=lambda piece: piece[3]):
        x, y, width = (np.concatenate(column) for column in list(zip(*run, strict=True))[:3])
        yield Band(name, x, y - width, y + width, colour, opacity=1.0)
    found = [(step, number) for step, number in zip(steps, branch.numbers, strict=True) if number != NOBODY]
    colour = (MAIN if branch.parent is None else MERGING)[1]
    tooltips = [_tooltip(tree, step, number) for step, number in found]
    at = [times[step] for step, _ in found]
    yield Series("", at, np.full(len(found), centre), colour, None, "circle", size=MARK, tooltips=tooltips)


def _looks(tree: _Tree, branch: Branch) -> list[tuple[str, str]]:
    """The look of the link from each step of a branch: broken, over a gap, or that of the branch."""
    own = MAIN if branch.parent is None else MERGING
    looks: list[tuple[str, str]] = []
    for step, number in enumerate(branch.numbers, branch.first):
        if number == NOBODY:
            looks.append(looks[-1])
        elif step == len(tree.descent) - 1:   # from which no link leads
            looks.append(own)
        elif _kind(tree, step, number) not in (KEPT, NO_LINK):
            looks.append(BROKEN)
        else:
            looks.append(OVER if tree.descent.successions[step].over[number] else own)
    return looks


def _joining(
    tree: _Tree, branch: Branch, half: float, centre: float, parent: float, widest: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The last link of a branch, along a curve to the edge of its parent."""
    assert branch.parent is not None
    step = branch.last
    start, end = tree.descent.times[step : step + 2]
    edge = max(branch.parent.width(widest)[step + 1 - branch.parent.first] / 2 - half, 0.0)
    along = np.linspace(start, end, len(CURVE))
    across = centre + (parent + branch.side * edge - centre) * CURVE
    return along, across, np.full(len(CURVE), half)


def _kind(tree: _Tree, step: int, number: int) -> int:
    """What has become of the link of a halo."""
    return int(tree.links[step][number]) if tree.links else KEPT


def _tooltip(tree: _Tree, step: int, number: int) -> str:
    of = tree.descent.steps[step]
    when = f"step {step}, {tree.descent.unit_of_time} {of.time:.4g}"
    told = f"{when}: halo {of.halos[number]}, {of.members[number]:,} members"
    if step == len(tree.descent) - 1:
        return told
    kind, over = _kind(tree, step, number), int(tree.descent.successions[step].over[number])
    told += f"; not found at the next {f'{over} steps' if over > 1 else 'step'}" if over else ""
    return told if kind in (KEPT, NO_LINK) else f"{told}; its link to the next step is broken: {KINDS[kind]}"


def _note(trees: Sequence[_Tree], other: Descent | None) -> str:
    left_out = sum(tree.left_out for tree in trees)
    told = [f"{left_out:,} smaller branches are not drawn"] if left_out else []
    if other is not None and len(trees) == 1:
        told.append("no decoded halo matches this one")
    return "; ".join(told)


def _words(descent: Descent, at: int, number: int, trees: Sequence[_Tree], other: Descent | None) -> str:
    of, tree = descent.steps[at], trees[0]
    said = (
        f"Merger tree of halo {of.halos[number]} with {of.members[number]:,} members at step {at}: "
        f"a main branch from step {tree.branches[0].first}, and {len(tree.branches) - 1 + tree.left_out:,} that merge."
    )
    if other is None:
        return said
    broken = sum(
        _kind(tree, step, one) not in (KEPT, NO_LINK)
        for branch in tree.branches for step, one in enumerate(branch.numbers, branch.first) if step < at and one != NOBODY
    )
    return f"{said} Of the links drawn, {broken:,} are broken in the decoded tree."
