"""Lost data: a block of an array that has not arrived, and what is put in its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.perturbation import Changed, Perturbation, require_draws

Fill = float | Literal["mean"]


@dataclass(frozen=True, repr=False)
class Dropped(Perturbation):
    """A block of values that is lost, as a chunk of a file or a message: zeros, NaN, or the mean of the rest are there.

    The array is cut into blocks of the shape `block`, one number for each axis, or one for the first (whole rows). `index`
    is the number of the lost block, in C order, or its place; None draws one.

    >>> Dropped("x", block=2, index=1).apply(np.arange(1.0, 7.0)).values.tolist()
    [1.0, 2.0, 0.0, 0.0, 5.0, 6.0]
    """

    block: int | tuple[int, ...] = 1
    index: int | tuple[int, ...] | None = None
    fill: Fill = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "block", _whole_numbers("block", self.block, 1))
        if self.index is not None:
            object.__setattr__(self, "index", _whole_numbers("index", self.index, 0))
        if self.fill != "mean":
            if isinstance(self.fill, str | bool) or not isinstance(self.fill, int | float):
                raise WorkbenchError(f"fill must be a number or 'mean'; got {self.fill!r}")
            object.__setattr__(self, "fill", float(self.fill))

    def check(self, values: Array) -> None:
        """Refuse blocks and places outside of the array, and what its type cannot hold."""
        self._flat(values)
        if values.dtype.kind in "iub" and self.fill != 0.0:
            raise WorkbenchError(f"fill must be 0 at {self.site!r}, which holds {values.dtype}; got {self.fill!r}")

    def drawn(self, values: Array, draws: np.random.Generator, box: Any = None) -> tuple[Self, ...]:
        """The loss of one certain block."""
        flat = self._flat(values)
        return (replace(self, index=self._draw(values, draws) if flat is None else flat),)

    def apply(self, values: Array, draws: np.random.Generator | None = None, box: Any = None) -> Changed:
        """The array without the block."""
        self.check(values)
        flat = self._flat(values)
        number = self._draw(values, require_draws(self, draws)) if flat is None else flat
        place = np.unravel_index(number, self._blocks(values.shape))
        shape = self._shape(values.shape)
        lost = tuple(slice(int(i) * n, (int(i) + 1) * n) for i, n in zip(place, shape, strict=True))
        copy = values.copy()
        copy[lost] = self._filling(values, lost)
        where = np.arange(values.size).reshape(values.shape)[lost].ravel()
        xp = backend.namespace(values)
        note = {"block": int(number), "values_lost": len(where)}
        return Changed(copy, where if xp is np else xp.asarray(where), (note,))

    def _filling(self, values: Array, lost: tuple[slice, ...]) -> Any:
        if self.fill != "mean":
            return self.fill
        kept = np.ones(values.shape, bool)
        kept[lost] = False
        rest = backend.to_host(values)[kept]
        return rest.mean() if rest.size else 0.0

    def _shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of a block: the axes that it does not name are whole."""
        named = self.block if isinstance(self.block, tuple) else (self.block,)
        if not shape or (isinstance(self.block, tuple) and len(named) != len(shape)):
            got = f"{tuple(shape)}; got {self.block}"
            raise WorkbenchError(f"block must have a number for each axis of {self.site!r}, {got}")
        return tuple(min(n, most) for n, most in zip((*named, *shape[len(named) :]), shape, strict=True))

    def _blocks(self, shape: Sequence[int]) -> tuple[int, ...]:
        """How many blocks there are along each axis."""
        return tuple(-(-n // side) for n, side in zip(shape, self._shape(shape), strict=True))

    def _draw(self, values: Array, draws: np.random.Generator) -> int:
        return int(draws.integers(math.prod(self._blocks(values.shape))))

    def _flat(self, values: Array) -> int | None:
        """The number of the chosen block; refuses one outside."""
        blocks = self._blocks(values.shape)
        if self.index is None:
            return None
        if isinstance(self.index, int):
            if self.index >= math.prod(blocks):
                raise WorkbenchError(
                    f"index must be less than the {math.prod(blocks):,} blocks at {self.site!r}; got {self.index}"
                )
            return self.index
        if len(self.index) != len(blocks) or not all(i < n for i, n in zip(self.index, blocks, strict=True)):
            raise WorkbenchError(f"index must lie within the {blocks} blocks at {self.site!r}; got {self.index}")
        return int(np.ravel_multi_index(self.index, blocks))


def _whole_numbers(name: str, given: Any, least: int) -> int | tuple[int, ...]:
    if isinstance(given, tuple | list):
        return tuple(whole_number(name, each, least) for each in given)
    return whole_number(name, given, least)
