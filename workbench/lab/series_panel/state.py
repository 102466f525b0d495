"""The user's choices in the clusters panel of a series: the step, the halo whose tree is shown, and the visible part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, get_args

from workbench.arguments import whole_number
from workbench.clusters.descent import MOST_GAP
from workbench.clusters.friends import Unit
from workbench.errors import WorkbenchError
from workbench.lab.choices import one_of, positive, told_how_to_change, whole, with_choices
from workbench.lab.description import PIXELS, Window, checked_window

USUAL_LENGTH = 0.2   # of the mean spacing


@told_how_to_change
@dataclass(frozen=True)
class SeriesState:
    """The choices. `chosen` is the step and the name of the halo whose merger tree is shown; None: the largest at the end.

    >>> SeriesState(step=3, chosen=(15, 1548)).min_members
    20
    """

    step: int = 0
    linking_length: float = USUAL_LENGTH
    unit: Unit = "spacing"
    min_members: int = 20
    gap: int = 0
    chosen: tuple[int, int] | None = None
    axis: int = 2
    window: Window | None = None
    pixels: int = PIXELS

    def __post_init__(self) -> None:
        whole("the step", self.step, 0)
        object.__setattr__(self, "linking_length", positive("the linking length b", self.linking_length))
        one_of("the unit of the linking length", self.unit, get_args(Unit))
        whole("the number of members of the smallest halo", self.min_members, 1)
        whole_number("the number of steps that links pass over", self.gap, least=0, most=MOST_GAP)
        one_of("the line of sight", self.axis, (0, 1, 2))
        whole("pixels", self.pixels, 1)
        object.__setattr__(self, "chosen", _halo(self.chosen))
        object.__setattr__(self, "window", checked_window(self.window))

    @classmethod
    def for_(cls, steps: int, kept: tuple[float, Unit] | None, **choices: Any) -> Self:
        """The initial state: the last step, and the linking length at which clusters are kept, if they are.

        >>> state = SeriesState.for_(16, (0.5, "length"), axis=0)
        >>> state.step, state.linking_length, state.unit
        (15, 0.5, 'length')
        """
        length, unit = kept or (USUAL_LENGTH, "spacing")
        return with_choices(cls(steps - 1, length, unit), choices)


def _halo(given: Any) -> tuple[int, int] | None:
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise WorkbenchError(f"a halo is chosen by its step and the smallest id of its members; got {given!r:.60}")
    return whole_number("the step of the chosen halo", given[0], least=0), int(given[1])
