"""What is decoded already of the same values at earlier times: codecs that predict in time begin from it.

Predictions must be the same where archives are written and read, so they rest on decoded values, never on originals.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.backend import Array
from workbench.errors import WorkbenchError


@dataclass(frozen=True, eq=False)
class Earlier:
    """The same chunk at one or two earlier times, the latest first, each of the shape and type of what follows.

    `times` are that of the values to come, then those of `values`, in any unit; they decrease. `rates` are decoded time
    derivatives at the latest of them, such as velocities, of the shape of the values, in a unit that need not fit: codecs
    find the factor. Rows of particles that did not exist at a time are NaN there.

    >>> import numpy as np
    >>> Earlier((np.zeros(3),), (2.0, 1.5)).intervals
    (0.5,)
    """

    values: tuple[Array, ...]
    times: tuple[float, ...]
    rates: Array | None = None

    def __post_init__(self) -> None:
        if len(self.values) not in (1, 2) or len(self.times) != len(self.values) + 1:
            raise WorkbenchError(
                f"one or two earlier times are expected, and one time more; got {len(self.values)} and {len(self.times)}"
            )
        if any(not later > earlier for later, earlier in zip(self.times, self.times[1:], strict=False)):
            raise WorkbenchError(f"times must decrease from this step to earlier ones; got {self.times}")

    @property
    def intervals(self) -> tuple[float, ...]:
        """The time since the latest of them, and between the two."""
        return tuple(later - earlier for later, earlier in zip(self.times, self.times[1:], strict=False))
