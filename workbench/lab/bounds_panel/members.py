"""The members of a dataset in the bounds panel: which of them pictures can show, and their values once they are looked at.

Members of a file that xarray has opened stay there until somebody looks at them. Few are held at a time; what was measured
of them stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from workbench.archive import choice
from workbench.archive.collection.dataset import LEFT_OUT, Dataset, plain_values
from workbench.archive.collection.names import require_known
from workbench.archive.collection.rules import is_exact
from workbench.bounds.run import Run
from workbench.bounds.sources import source_of
from workbench.data import Field, Particles
from workbench.data.units import UNSTATED, unit_of
from workbench.data.variable import Variable
from workbench.data.xarray_variables import to_variable
from workbench.errors import WorkbenchError
from workbench.lab.bounds_panel.examined import Examined
from workbench.lab.grid import Coordinates, grid_of
from workbench.lab.memory import Memory
from workbench.run.chunked_field import ChunkedField

KINDS = {
    "b": "truth values", "c": "complex numbers", "M": "dates", "m": "durations", "S": "bytes", "U": "text", "O": "text",
    "T": "text", "V": "records",
}


class Members:
    """All members by name: `why_not` says of each why it cannot be chosen, or is empty.

    >>> members = Members(Dataset({"T": np.zeros((3, 4)), "station": np.array(["A", "B"]), "count": np.arange(3)}))
    >>> members.why_not
    {'T': '', 'station': 'text', 'count': ''}
    >>> members.shape("T"), members.first
    ('3×4', 'T')
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.why_not = {name: why_not(member) for name, member in dataset.items()}
        self._held = Memory()
        self._runs: dict[str, dict[str, Run]] = {}
        self._searched: dict[str, dict[str, str]] = {}

    @property
    def first(self) -> str:
        """The member to begin with: the largest that may have errors, or else of those that can be drawn."""
        drawn = [name for name, reason in self.why_not.items() if not reason]
        if not drawn:
            listed = "; ".join(f"{name!r}, which is {reason}" for name, reason in list(self.why_not.items())[:5])
            raise WorkbenchError(f"the bounds panel needs a field of floats or integers, or particles; got {listed}")
        return max(drawn, key=lambda name: (not self.is_exact(name), _size(self.dataset[name])))

    @property
    def fields(self) -> list[str]:
        """The members that are fields of floats and can be drawn: those whose bounds can be searched for."""
        drawn = [name for name, reason in self.why_not.items() if not reason]
        return [name for name in drawn if not isinstance(self.dataset[name], Particles) and not self._of_integers(name)]

    def _of_integers(self, name: str) -> bool:
        return np.dtype(_array(self.dataset[name]).dtype).kind in "iu"

    def require(self, name: Any) -> str:
        """The name itself, if it can be chosen."""
        require_known(name, self.dataset, "a variable")
        if reason := self.why_not[name]:
            wanted = "a field of floats or integers, or particles"
            raise WorkbenchError(f"the variable must be {wanted}; {name!r} is {reason}: it is kept exactly")
        return str(name)

    def is_exact(self, name: str) -> bool:
        """Whether a member is kept exactly unless a rule names it."""
        return is_exact(self.dataset, name)

    def is_there(self, name: str) -> bool:
        """Whether the values are in memory."""
        member = self.dataset[name]
        return not isinstance(member, ChunkedField) or member.in_memory is not None or self._held.find(name) is not None

    def examined(self, name: str) -> Examined:
        """A member with all that was measured of it; its values are read if they are not in memory."""
        held: Examined | None = self._held.find(name)
        if held is None:
            size = 0 if self.is_there(name) else _size(self.dataset[name])
            held = Examined.of(
                _read(name, self.dataset[name]), self._runs.setdefault(name, {}), self._searched.setdefault(name, {})
            )
            if isinstance(held.data, Field):
                grid_of(held.data, partial(self._coordinates, name.rpartition("/")[0]))
            self._held.keep(name, held, size)
        return held

    def _coordinates(self, group: str, dimension: str, count: int) -> Coordinates | None:
        """The values of the member that has the name of a dimension, in this group or one around it, and their unit."""
        name = f"{group}/{dimension}" if group else dimension
        if name not in self.dataset:
            return self._coordinates(group.rpartition("/")[0], dimension, count) if group else None
        given = self.dataset[name]
        if getattr(_array(given), "shape", None) != (count,):
            return None
        member: Field | Variable = _read(name, given) if isinstance(given, ChunkedField) else given   # type: ignore[assignment]
        if member.metadata.get("calendar_coded"):
            return to_variable(dimension, plain_values(member), member.metadata).values, ""
        return plain_values(member), self.unit(name)

    def runs(self, name: str) -> Mapping[str, Run]:
        """All runs of a member."""
        return self._runs.get(name, {})

    def has_riders(self, name: str) -> bool:
        """Whether particles have further columns, which runs leave out."""
        member = self.dataset[name]
        return isinstance(member, Particles) and bool(member.companions)

    def usual(self, name: str) -> str:
        """The codec that keeps a member exactly if none is named."""
        member = self.dataset[name]
        return "lattice" if isinstance(member, Particles) else choice.usual(np.dtype(_array(member).dtype))

    def shape(self, name: str) -> str:
        """The size of a member in words."""
        member = self.dataset[name]
        if isinstance(member, Particles):
            return f"{len(member):,} particles"
        return "\N{MULTIPLICATION SIGN}".join(map(str, _array(member).shape)) or "one value"

    def bits(self, name: str) -> int:
        """The bits of a value of a field as it is given; 0 for all other members."""
        member = self.dataset[name]
        return 8 * np.dtype(_array(member).dtype).itemsize if isinstance(member, Field | ChunkedField) else 0

    @property
    def left_out(self) -> list[str]:
        """What of the files is not in the dataset."""
        return [str(one) for group in self.dataset.groups.values() for one in group.get(LEFT_OUT, [])]

    def unit(self, name: str) -> str:
        """The unit of its errors; empty if it is not stated."""
        member = self.dataset[name]
        if isinstance(member, Particles | Field | ChunkedField):
            return unit_of(member.described if isinstance(member, ChunkedField) else member)
        units = getattr(member, "metadata", {}).get("units")
        return units if isinstance(units, str) and not units.startswith(UNSTATED) else ""


def why_not(member: Any) -> str:
    """Why a member cannot be chosen; empty if it can.

    >>> why_not(Variable(np.zeros((2, 2, 2, 2, 2)), "five")), why_not(Field([1.0]))
    ('of 5 axes: pictures show up to 4', '')
    """
    if isinstance(member, Particles):
        return ""
    array = _array(member)
    if array is None:
        return type(member).__name__
    dtype, shape = np.dtype(array.dtype), tuple(array.shape)
    if dtype.kind in KINDS:
        return KINDS[dtype.kind]
    if isinstance(member, Field | ChunkedField):
        return ""
    if not shape:
        return "one value"
    if len(shape) > 4:
        return f"of {len(shape)} axes: pictures show up to 4"
    return "empty" if 0 in shape else f"in numbers of {8 * dtype.itemsize} bits"


def _array(member: Any) -> Any:
    """What has the type and the shape of the values."""
    return member if isinstance(member, ChunkedField) else member.values if isinstance(member, Field | Variable) else None


def _read(name: str, member: Any) -> Particles | Field:
    """The values in memory."""
    if isinstance(member, ChunkedField) and member.in_memory is None:
        if member.on_dask:
            try:
                values, mask = (array.compute() if hasattr(array, "compute") else array for array in member.arrays)
            except Exception as error:   # of any kind, as the steps before it are the user's own
                raise WorkbenchError(f"{name!r} cannot be computed: {type(error).__name__}: {error}") from error
        else:
            part = member.part(tuple(slice(0, size) for size in member.shape))
            values, mask = part.values, part.mask
        spacing = member.spacing if member.knows_spacing else None
        member = Field(values, spacing, member.name, mask, member.metadata)
    source = source_of(member)
    if isinstance(source, ChunkedField):
        raise WorkbenchError(f"{name!r} must be in memory to be looked at; got {member!r}")
    return source


def _size(member: Any) -> int:
    """The bytes of the values, or of the positions."""
    array = member.positions if isinstance(member, Particles) else _array(member)
    return math.prod(array.shape) * int(array.dtype.itemsize)
