"""Stuck cells of a chip that holds weights as conductances: memristive crossbars, which compute with faulty parts.

A weight w is the difference of two cells with values from 0 to g, the largest |w| of the site. In the mapping of two
columns, one cell carries |w| and the other is off, so a zero is (0, 0). In the mirrored mapping each cell is complemented,
which here means (g - the negative part, g - the positive part): a zero is (g, g). A cell stuck on in one mapping has thus
the effect of a cell stuck off in the other, exactly, and the code computes the mirrored mapping that way: without rounding
of g - (g - |w|).

Each cell has one uniform number, from the seed of the chip alone. It is stuck off below the share `off`, and on above
1 - `on`: a chip with a larger share has the faults of one with a smaller share, and more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

import numpy as np

from workbench.arguments import number, one_of, whole_number
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.draws import MOST, draws_of
from workbench.propagation.perturbation import Changed, Perturbation, require_draws
from workbench.propagation.weight_arrays import changed_weights, finite_weights, require_floats

Mapping = Literal["two-column", "mirrored"]
MOST_BITS = 24


@dataclass(frozen=True, repr=False)
class StuckCells(Perturbation):
    """Weights on a chip, of whose cells the share `off` is stuck at zero and the share `on` at the largest value.

    With `bits`, each cell has 2 ** bits levels, and weights are rounded to them. The `seed` is that of one certain chip;
    None makes another chip in every trial.

    >>> chip = StuckCells("weights", on=0.5, seed=1)
    >>> chip.apply(np.array([0.0, 0.25, -1.0, 0.5])).values.tolist()
    [-1.0, 1.0, -1.0, 0.5]
    >>> zeros = np.array([0.0, 0.0, 1.0])
    >>> StuckCells("weights", on=1.0, mapping="mirrored", seed=1).apply(zeros).values.tolist()
    [0.0, 0.0, 0.0]
    """

    off: float = 0.0
    on: float = 0.0
    mapping: Mapping = "two-column"
    bits: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("off", "on"):
            share = number(f"{name}, a share of the cells,", getattr(self, name), 0.0, 1.0)
            object.__setattr__(self, name, share)
        if self.off + self.on > 1:
            raise WorkbenchError(f"off and on must be shares that add up to at most 1; got {self.off} and {self.on}")
        one_of("mapping", self.mapping, get_args(Mapping))
        if self.bits is not None:
            object.__setattr__(self, "bits", whole_number("bits of a cell", self.bits, 1, MOST_BITS))
        if self.seed is not None:
            object.__setattr__(self, "seed", whole_number("seed", self.seed, 0, MOST))

    def check(self, values: Array) -> None:
        """Refuse what is no array of real floating-point numbers."""
        require_floats(self, values)

    def drawn(self, values: Array, draws: np.random.Generator, box: object = None) -> tuple[Self, ...]:
        """The chip of a trial, by its seed."""
        return (replace(self, seed=self._seed(draws)),)

    def apply(self, values: Array, draws: np.random.Generator | None = None, box: object = None) -> Changed:
        """The weights that the faulty cells stand for."""
        weights = finite_weights(self, values).reshape(-1)
        cells = np.stack([np.maximum(weights, 0.0), np.maximum(-weights, 0.0)])
        full = cells.max()
        if self.bits is not None and full > 0:
            levels = 2**self.bits - 1
            cells = np.rint(cells / full * levels) / levels * full
        note: dict[str, object] = {}
        if self.off or self.on:
            seed = self._seed(draws)
            swapped = self.mapping == "mirrored"
            dark, bright = (self.on, self.off) if swapped else (self.off, self.on)
            chance = draws_of(seed, 0).random(cells.shape)
            low, high = chance < dark, chance >= 1 - bright
            cells[low] = 0.0
            cells[high] = full
            kinds = ("cells_on", "cells_off") if swapped else ("cells_off", "cells_on")
            note = {"seed": seed, kinds[0]: int(low.sum()), kinds[1]: int(high.sum())}
        if self.bits is not None:
            nbytes = -(-weights.size * 2 * self.bits // 8)
            note |= {"nbytes": nbytes, "ratio": values.nbytes / nbytes}
        return changed_weights(values, cells[0] - cells[1], note)

    def _seed(self, draws: np.random.Generator | None) -> int:
        if self.seed is not None:
            return self.seed
        return int(require_draws(self, draws).integers(MOST, endpoint=True, dtype=np.uint64))
