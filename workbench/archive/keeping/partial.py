"""One attempt at the violated constraints of some of the particles, of which only some may move.

The moves are those of `clusters/keep`. The other particles belong to somebody else, so constraints that reach them are left
alone, with all candidates that interact with them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from workbench.archive.keeping.moved import STATE, Changes
from workbench.archive.keeping.terms import Terms
from workbench.backend import Array
from workbench.clusters.keep.attempts import RADII, Attempts
from workbench.clusters.keep.edits import Surmise
from workbench.clusters.keep.needs import Needs
from workbench.clusters.keep.problem import Problem
from workbench.clusters.keep.state import State
from workbench.clusters.keep.surroundings import Surroundings
from workbench.data import Particles
from workbench.guarantees.guarantee import Allowance

Free = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Excerpt(Problem):
    """Some particles of all subdomains, by rising index; what depends on all of them is given."""

    terms: Terms = field(kw_only=True)
    labels: np.ndarray = field(kw_only=True)   # for each linking length, what tells groups apart (int32), or UNASKED
    context: np.ndarray = field(kw_only=True)
    forward: np.ndarray = field(kw_only=True)

    @classmethod
    def of(cls, terms: Terms, columns: Mapping[str, np.ndarray], labels: np.ndarray) -> Self:
        """The problem of these particles, of which the columns are given by name."""
        original, decoded = Particles(columns["original"], terms.box), columns["decoded"]
        own = {"labels": labels, "context": columns["context"], "forward": columns["forward"]}
        return cls(original, decoded, terms.limit, terms.promise, len(decoded), terms=terms, **own)

    @property
    def lengths(self) -> tuple[float, ...]:
        """The linking lengths."""
        return self.terms.lengths

    @property
    def margin(self) -> float:
        """The distance that deciding pairs keep from a linking length."""
        return self.terms.margin

    @functools.cached_property
    def surmise(self) -> Surmise:
        """The side information, from the chunks of the file."""
        return Surmise(self.context, self.forward, (self.bound, self.lengths, self.original.box))

    @property
    def group(self) -> Array:
        """For each linking length the label of every particle's group (int32); UNASKED in groups that are too small."""
        return self.labels


class PartialRepair(Attempts):
    """An attempt at constraints between particles of an excerpt; `state` is what earlier ones have made of them.

    `free` says which of some particles may move.
    """

    def __init__(self, problem: Excerpt, state: Changes, free: Free, allowance: Allowance) -> None:
        super().__init__(State(problem), None, allowance)
        self.before, self.free = state, free
        for name in STATE:
            getattr(self.state, name)[...] = state[name]
        self.state.most_tries = int(self.state.tries.max(initial=0))

    def attempt(self, needs: Needs) -> np.ndarray:
        """Attempt to repair the constraints that only concern particles which are free; returns which these are."""
        radius, ends = np.zeros(len(self.state.problem)), needs.pairs.ravel()
        radius[ends] = np.where(self.state.tries[ends] > 0, RADII[1], RADII[0])   # as they will be tried once more
        self._listed = Surroundings.of(self.state, needs, radius, RADII[bool(self.state.tries[ends].any())])
        treated = self._treatable(needs)
        if treated.any():
            self._attempt(needs.chosen(np.flatnonzero(treated)))
        return treated

    def changes(self, index: np.ndarray) -> dict[str, np.ndarray]:
        """What differs from before: the index, position, move and number of tries of these particles."""
        differs = [getattr(self.state, name) != self.before[name] for name in STATE]
        rows = np.flatnonzero(differs[0].any(axis=1) | differs[1] | differs[2])
        return {"index": index[rows], **{name: getattr(self.state, name)[rows] for name in STATE}}

    def _treatable(self, needs: Needs) -> np.ndarray:
        """Which constraints only have candidates that may move, with all candidates that interact with them."""
        around = self._listed
        component = around.components(self.state.problem)
        fixed = np.zeros(len(around), bool)
        fixed[component[~self.free(around.candidates)]] = True
        treatable: np.ndarray = ~fixed[component[around.slot[needs.pairs[:, 0]]]]
        return treatable

    def _around(self, needs: Needs) -> Surroundings:
        return self._listed.among(needs)

    def _escalated(self, needs: Needs, ends: Array) -> Array:
        forced = super()._escalated(needs, ends)
        return forced[self.free(forced)]
