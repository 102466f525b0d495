"""The answer of a search: the bound with an archive that was measured, or why there is none and what came nearest."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from workbench.archive import Archive
from workbench.bounds.as_code import bound_code, codec_code
from workbench.bounds.result import Sweep
from workbench.bounds.run import Run, label_of
from workbench.bounds.tuning.several import All
from workbench.bounds.tuning.slack import Slack, as_html, as_text, slacks_of
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.json_values import json_value
from workbench.metrics import Report


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """The bound that meets a target, with the archive made with it, which was decoded and measured.

    `met` says whether there is one. If not, `bound`, `archive` and `report` raise an error that says what came nearest;
    `nearest` is that run in any case. `runs` are all full compressions of the search, in their order. `values` are the
    figures of the target, and `slacks` say how far each is from its limit. `velocities` is the bound of the velocities of
    particles, if they have one.
    """

    target: All
    codec: Codec
    nearest: Run
    runs: Sweep
    notes: tuple[str, ...] = ()
    options: str = ""            # further arguments of wb.compress, as Python
    answer: tuple[Bound, Archive | None, Report] | None = None
    velocities: Bound | None = None

    @property
    def met(self) -> bool:
        """Whether a bound meets the target."""
        return self.answer is not None

    @property
    def bound(self) -> Bound:
        """The bound."""
        return self._answer[0]

    @property
    def archive(self) -> Archive:
        """The archive made with this bound; of a field in parts, only if it was written."""
        if (archive := self._answer[1]) is None:
            raise WorkbenchError(f"the archive of a field in parts is kept if find_bound has out=...; {self.sentence}")
        return archive

    @property
    def report(self) -> Report:
        """How different the decoded data are."""
        return self._answer[2]

    @property
    def values(self) -> dict[str, float]:
        """The figures of the target, of the answer or of what came nearest."""
        return {name: float(self.nearest[name]) for name in self.target.names or ("ratio",)}

    @property
    def slacks(self) -> tuple[Slack, ...]:
        """How far each target is from its limit, with the answer or with what came nearest."""
        return slacks_of(self.target, self.nearest.figures)

    def code(self, name: str = "data") -> str:
        """The Python code that makes the archive again, without a search, from the data in the variable `name`."""
        call = f"wb.compress({name}, {bound_code(self.bound)}, codec={codec_code(self.codec)}{self.options})"
        return f"import workbench as wb\n\narchive = {call}\nprint(wb.compare({name}, archive.decompress()))"

    def to_dict(self) -> dict[str, Any]:
        """The answer and all runs in JSON types."""
        return {
            "target": str(self.target), "met": self.met, "codec": self.codec.to_dict(),
            "bound": self.bound.to_dict() if self.met else None,
            "velocities": None if self.velocities is None else self.velocities.to_dict(),
            "nearest": json_value(self.nearest.row()),
            "values": json_value(self.values), "slacks": [each.to_dict() for each in self.slacks],
            "notes": list(self.notes), "runs": self.runs.to_dict()["rows"],
        }

    @property
    def _answer(self) -> tuple[Bound, Archive | None, Report]:
        if self.answer is None:
            raise WorkbenchError(self.sentence)
        return self.answer

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        values = ", ".join(f"{name} {value:.6g}" for name, value in self.values.items())
        codec, runs = label_of(self.codec), f"{len(self.runs)} compression{'' if len(self.runs) == 1 else 's'}"
        if not self.met:
            jumps = any(not (each.predictable and each.in_order) for each in self.target.measurable)
            tried = " that was tried" if jumps else ""
            every = list(dict.fromkeys(run.label for run in self.runs))
            none, of = f"no bound of {' or '.join(every)}{tried} meets {self.target}", f" of {codec}" if every[1:] else ""
            return f"{none}; the nearest is {self.nearest.bound!r}{of} with {values} ({runs})"
        beside = "" if self.velocities is None else f", and {self.velocities!r} for velocities,"
        return f"{self.bound!r} with {codec}{beside} meets {self.target}: {values} ({runs})"

    @property
    def table(self) -> str:
        """The slack of each target that is measured, if there are several targets."""
        return as_text(self.slacks) if len(self.target.targets) > 1 and self.slacks else ""

    def __repr__(self) -> str:
        return "\n".join(filter(None, [self.sentence, self.table, *self.notes]))

    def _repr_html_(self) -> str:
        """The sentence and the runs, for notebooks."""
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        below = f"<ul>{notes}</ul>" if notes else ""
        slacks = as_html(self.slacks) if self.table else ""
        return f"<div><strong>{html.escape(self.sentence)}</strong>{slacks}{below}{self.runs._repr_html_()}</div>"
