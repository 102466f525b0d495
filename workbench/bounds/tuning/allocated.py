"""The answer of `wb.find_bounds`: a bound for each variable of a dataset, and the archive of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.archive import Collection
from workbench.archive.collection.reports import table
from workbench.bounds.as_code import bound_of, rule_code
from workbench.bounds.tuning.several import All
from workbench.bounds.tuning.slack import Slack, as_text
from workbench.codecs import Codec


@dataclass(frozen=True, repr=False)
class Allocation:
    """The bound of each variable, and the archive of all of them.

    `bounds` are the bound of each variable that was sought, and the rules of the others; with the codecs of the archive,
    they are `rules` for `wb.compress`. `met` says whether all targets hold, `slacks` how far each is from its limit, and
    `runs` how often all data were compressed, or where each variable was searched alone, how often one was.
    """

    target: All
    bounds: Mapping[str, Any]
    archive: Collection
    met: bool
    runs: int
    codecs: Mapping[str, str | Codec] = field(default_factory=dict)   # of variables for which one was asked for
    slacks: tuple[Slack, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """How many times smaller the archive is, everything included."""
        return self.archive.ratio

    @property
    def rules(self) -> dict[str, Any]:
        """The rules with which `wb.compress` makes the archive."""
        named = {name: {"bound": self.bounds[name], "codec": codec} for name, codec in self.codecs.items()}
        return {**self.bounds, **named}

    def to_dict(self) -> dict[str, Any]:
        """The answer in JSON types."""
        return {
            "target": str(self.target), "met": self.met, "ratio": self.ratio, "runs": self.runs,
            "bounds": {name: bound_of(rule).to_dict() for name, rule in self.bounds.items()},
            "slacks": [each.to_dict() for each in self.slacks], "notes": list(self.notes),
            "members": [row.to_dict() for row in self.archive.rows()],
        }

    def code(self) -> str:
        """The call that makes the archive."""
        rules = ", ".join(f"{name!r}: {rule_code(rule)}" for name, rule in self.rules.items())
        return f"archive = wb.compress(dataset, {{{rules}}})"

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        verb = f"{'is' if len(self.target.targets) == 1 else 'are'} {'met' if self.met else 'not met'}"
        return f"{self.target} {verb}: the ratio is {self.ratio:.4g}, in {self.runs} compressions"

    def __repr__(self) -> str:
        slacks = as_text(self.slacks) if len(self.slacks) > 1 else ""
        return "\n".join(filter(None, [self.sentence, table(self.archive.rows()), slacks, *self.notes]))
