"""The user's choices in the panel of an archived field: the visible slice, and the part that statistics are of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from workbench.archive import Archive
from workbench.errors import WorkbenchError
from workbench.lab.choices import one_of, told_how_to_change, whole, with_choices, within
from workbench.lab.description import PIXELS, Window, checked_window

Part = Literal["field", "slice", "window"]
PARTS: dict[str, Part] = {"the whole field": "field", "this slice": "slice", "the visible part": "window"}

EVEN = 1e-6   # of a cell: rounding errors of a window

Region = tuple[tuple[int, int], ...]   # (start, stop) along each axis, in grid points


@told_how_to_change
@dataclass(frozen=True)
class StatisticsState:
    """The slice at `index` across `axis` (of the last three axes) at a `time`, its window, and what statistics are of."""

    of: Part = "field"
    bins: int = 60
    axis: int = 0
    index: int = 0
    time: int = 0
    window: Window | None = None
    pixels: int = PIXELS

    def __post_init__(self) -> None:
        one_of("what statistics are of", self.of, get_args(Part))
        object.__setattr__(self, "bins", whole("the number of bins", self.bins, least=2))
        for field, name in {"axis": "the axis", "index": "the slice", "time": "the time"}.items():
            object.__setattr__(self, field, whole(name, getattr(self, field), least=0))
        object.__setattr__(self, "pixels", whole("pixels", self.pixels, least=1))
        object.__setattr__(self, "window", checked_window(self.window))

    @classmethod
    def for_(cls, archive: Archive, **choices: Any) -> StatisticsState:
        """The first state for an archive: its middle slice."""
        state = with_choices(cls(), choices)
        return state if "index" in choices else replace(state, index=slices(archive, state.axis) // 2)

    def check(self, archive: Archive) -> None:
        """Refuse slices that this field does not have."""
        shape = archive.data.layout.shape
        if len(shape) > 2:
            within("the axis", self.axis, 3)
            within("the slice", self.index, slices(archive, self.axis))
            within("the time", self.time, shape[0] if len(shape) == 4 else 1)

    def crossed(self, archive: Archive) -> tuple[int, ...]:
        """The axes that the slice crosses: of volumes one, of series of volumes also the first."""
        axes = len(archive.data.layout.shape)
        return () if axes < 3 else (self.axis,) if axes == 3 else (0, 1 + self.axis)

    def slice_of(self, archive: Archive) -> Region:
        """The slice, as ends along each axis of the field."""
        ends = [(0, size) for size in archive.data.layout.shape]
        for axis, at in zip(reversed(self.crossed(archive)), (self.index, self.time), strict=False):
            ends[axis] = at, at + 1
        return tuple(ends)

    def region(self, archive: Archive) -> Region:
        """What statistics are of."""
        ends = list(self.slice_of(archive))
        if self.of == "field":
            return tuple((0, size) for size in archive.data.layout.shape)
        shown = [axis for axis in range(len(ends)) if axis not in self.crossed(archive)]
        if self.of == "window" and self.window is not None and len(shown) == 2:
            for axis, (low, high) in zip(shown, (self.window[2:], self.window[:2]), strict=True):
                step, size = archive.spacing[axis], ends[axis][1]
                start = min(max(math.floor(low / step + EVEN), 0), size - 1)
                ends[axis] = start, min(max(math.ceil(high / step - EVEN), start + 1), size)
        return tuple(ends)


def slices(archive: Archive, axis: int) -> int:
    """How many slices there are across an axis; fields of fewer than three axes have one."""
    shape = archive.data.layout.shape
    return int(shape[-3:][axis]) if len(shape) > 2 and axis < 3 else 1


def require_field(archive: Any) -> Archive:
    """An archive of a field of one to four axes; raises for anything else."""
    if not isinstance(archive, Archive):
        raise WorkbenchError(
            f"the statistics panel needs an archive of a field; got {type(archive).__name__}: give wb.open('x.zarr'), a "
            "member of an archive of a dataset, or what wb.compress returns"
        )
    if archive.kind != "field" or not 1 <= len(archive.data.layout.shape) <= 4:
        raise WorkbenchError(f"the statistics panel needs an archive of a field of one to four axes; got {archive!r}")
    return archive
