"""Ways to keep the numbers of a model, compared: the bits of a value beside the damage, a row for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from workbench.charts.description import Axis, Chart, Point, joined
from workbench.charts.looks import looks_of
from workbench.charts.table import html_table
from workbench.json_values import json_value
from workbench.propagation.intervals import Mean
from workbench.propagation.names import require_known
from workbench.propagation.report import counted


@dataclass(frozen=True, eq=False, kw_only=True)
class Figures(ABC):
    """One way: bits for each value, and what it does.

    `divergence` is the Kullback-Leibler divergence from the exact predictions in nats, `kept` the share of most likely ones
    that stay.
    """

    name: str
    bits: float
    divergence: Mean | None = None
    kept: Mean | None = None

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON types."""
        found: dict[str, Any] = json_value({
            name: vars(value) if isinstance(value, Mean) else value for name, value in vars(self).items()
        })
        return found

    @abstractmethod
    def cells(self) -> list[str]:
        """The row of the table, below the heads of the comparison."""


F = TypeVar("F", bound=Figures)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ABC, Generic[F]):
    """Figures of several ways on the same inputs, in the order given."""

    figures: tuple[F, ...]

    what: ClassVar[str]   # one of them is called

    def __getitem__(self, place: int | str) -> F:
        if isinstance(place, str):
            names = [each.name for each in self.figures]
            return self.figures[names.index(require_known(self.what, place, names))]
        return self.figures[place]

    def __len__(self) -> int:
        return len(self.figures)

    def plot(self) -> Chart:
        """Divergence against bits: what is further down and to the left is better."""
        points = [
            Point(each.name, each.bits, each.divergence.value, f"{each.name}: {each.bits:.2f} bits, {each.divergence} nats")
            for each in self.figures if each.divergence is not None and each.divergence.value > 0
        ]
        return Chart(
            f"{self.what.capitalize()}s",
            Axis.around("bits per value", [each.x for each in points]),
            Axis.around("KL divergence (nats)", [each.y for each in points], True, 0.1),
            tuple(joined(points, looks_of([each.name for each in self.figures]))),
        )

    @property
    @abstractmethod
    def heads(self) -> list[str]:
        """The heads of the columns of `rows`."""

    def rows(self) -> list[list[str]]:
        """The table: a row for each."""
        return [each.cells() for each in self.figures]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON types."""
        given = {name: value for name, value in vars(self).items() if name != "figures"}
        found: dict[str, Any] = json_value({**given, f"{self.what}s": [each.to_dict() for each in self.figures]})
        return found

    @property
    @abstractmethod
    def _inputs(self) -> str:
        """How much each was tried on."""

    @property
    @abstractmethod
    def _title(self) -> str:
        """What stands above the table."""

    def __repr__(self) -> str:
        best = min(self.figures, key=lambda each: each.bits)
        ways = counted(len(self), self.what)
        return f"{type(self).__name__}({ways}, {self._inputs}; the fewest bits per value: {best.bits:.2f}, {best.name})"

    def _repr_html_(self) -> str:
        return html_table(self.heads, self.rows(), title=self._title)


def percent(share: Mean) -> str:
    """A share with its interval for a table, which ends at none and all.

    >>> percent(Mean(0.995, 0.98, 1.01))
    '99.5% [98.0, 100.0]'
    """
    return f"{100 * share.value:.1f}% [{100 * max(share.low, 0.0):.1f}, {100 * min(share.high, 1.0):.1f}]"
