"""How far each of several targets is from its limit, as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.archive.collection.reports import aligned
from workbench.bounds.tuning.several import All
from workbench.charts.table import html_table
from workbench.json_values import json_value


@dataclass(frozen=True)
class Slack:
    """The figure of a target, and how far it is on the right side of the limit: less than zero where it is missed.

    `slack` is in the unit of the figure. If all targets are met, `decides` marks the one with the least room, which ended
    the search.
    """

    target: str
    figure: str
    value: float
    slack: float
    met: bool
    decides: bool

    @property
    def remark(self) -> str:
        """What there is to say of it."""
        return "decides" if self.decides else "" if self.met else "missed"

    def to_dict(self) -> dict[str, Any]:
        """Everything in JSON types."""
        return {name: json_value(value) for name, value in vars(self).items()}


def slacks_of(target: All, figures: Mapping[str, Any]) -> tuple[Slack, ...]:
    """The slack of each target that is measured.

    >>> from workbench.bounds.tuning.targets import PSNR, Ratio
    >>> print(as_text(slacks_of(All(PSNR(60), Ratio(10)), {"psnr": 60.04, "ratio": 12.5})))
      target                    reached  slack
      a PSNR of at least 60 dB    60.04  +0.04  decides
      a ratio of at least 10       12.5   +2.5
    """
    rooms = target.rooms_of(figures)
    leading = [room for each, room in zip(target.measurable, rooms, strict=True) if each in target.leading]
    return tuple(
        Slack(
            str(each), name, value := float(figures[name]), each.slack(value), room >= 0,
            min(rooms) >= 0 and each in target.leading and room == min(leading),
        )
        for (each, name), room in zip(target.named, rooms, strict=True)
    )


def as_text(slacks: Sequence[Slack]) -> str:
    """A table of a line for each."""
    return textwrap.indent(aligned(list(map(_cells, slacks)), {"reached", "slack"}), "  ")


def as_html(slacks: Sequence[Slack]) -> str:
    """The table for notebooks."""
    return html_table(["target", "reached", "slack", ""], [[*_cells(each).values()] for each in slacks], texts=(0, 3))


def _cells(each: Slack) -> dict[str, str]:
    return {"target": each.target, "reached": f"{each.value:.6g}", "slack": f"{each.slack:+.3g}", "": each.remark}
