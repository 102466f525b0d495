"""One set of data in the bounds panel, with all that was measured of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.bounds.run import Question, Run
from workbench.data import Field, Particles
from workbench.guarantees import Bound

MOST = 200   # runs that are remembered: a slider makes one at every position


@dataclass(frozen=True, eq=False)
class Examined:
    """The data on display; the latest runs by what was asked, and the calls of searches by the question that they answer.

    `riders` says that particles were given with further columns, which the panel leaves out.
    """

    data: Particles | Field
    riders: bool = False
    runs: dict[str, Run] = field(default_factory=dict)
    searched: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, data: Particles | Field, runs: dict[str, Run] | None = None, searched: dict[str, str] | None = None
    ) -> Examined:
        """These data; of particles the positions, as all else is stored exactly at any bound and would only take memory."""
        runs, searched = {} if runs is None else runs, {} if searched is None else searched
        if isinstance(data, Field) or not data.companions:
            return cls(data, False, runs, searched)
        return cls(Particles(data.positions, data.box), True, runs, searched)

    def note(self, run: Run) -> None:
        """Remember a run, in place of the oldest where there are too many."""
        self.runs[_key(run.codec, run.bound, run.order)] = run
        while len(self.runs) > MOST:
            del self.runs[next(iter(self.runs))]


def run_of(runs: Mapping[str, Run], question: Question) -> Run | None:
    """The run that answers a question, if there was one."""
    return runs.get(_key(question.codec.to_dict(), question.bound, question.order))


def _key(codec: Mapping[str, Any], bound: Bound, order: str) -> str:
    return json.dumps([dict(codec), bound.to_dict(), order], sort_keys=True, default=str)
