"""One step of a pipeline: a function, what it reads and writes, and what is known about how it treats errors.

Only the function is needed. What is known beyond it makes answers exact or fast: a stage that is linear needs no
finite difference, one with an enclosure has a guaranteed interval, and one with an update is not computed again as a whole
when a single value has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.arguments import flag, function
from workbench.errors import WorkbenchError
from workbench.propagation.names import listed

if TYPE_CHECKING:
    from workbench.propagation.protection.findings import Findings

Where = Any   # flat indices of the values that may have changed, `Rows` of them, or None: any of them
Case = tuple[Sequence[Any], Sequence[Any], Sequence[Any], Sequence[Where]]   # inputs, those before, outputs before, where


class StageFailed(WorkbenchError):
    """A stage raised, or returned something that the rest of the pipeline cannot use."""


class Detected(WorkbenchError):
    """A stage has noticed that its input or its own result is corrupt: what a protected stage raises."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A named function of one or several arrays.

    `inputs` are the sites that it reads, by default what the stage before writes. `outputs` name what it returns, by
    default one array with the name of the stage; several are returned as a tuple.

    `linear` promises f(x + d) = f(x) + L d for a fixed linear L. `derivative(inputs, changes)` returns the change of each
    output to first order. `enclose(inputs, enclosures, outputs)` returns an enclosure of each output when each input is
    anywhere in its enclosure (`workbench.propagation.enclosures`). `update(inputs, before, outputs, where)` returns, for
    each output, its new value and the flat indices that may have changed, given the inputs and outputs before and the
    indices that have changed in each input (None: any); it returns None where it cannot, and its values must be those of
    the function, bit for bit. `together(cases)` does the same for several runs, for stages that compute these faster
    together: each case has the four arguments of `update`, and gets the same, never None. `verify(inputs, output)` compares
    an output with its inputs by checksums, and returns it corrected, with what was found (`wb.propagation.protected`).
    `categorical` outputs are labels: their error is the share that differs, and they have no derivative.

    >>> Stage("double", lambda x: 2 * x, linear=True)
    Stage('double')
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] = ()
    linear: bool = False
    derivative: Callable[[Sequence[Any], Sequence[Any]], Any] | None = None
    enclose: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any] | None = None
    update: Callable[[Sequence[Any], Sequence[Any], Sequence[Any], Sequence[Where]], Any] | None = None
    together: Callable[[Sequence[Case]], Sequence[Any]] | None = None
    verify: Callable[[Sequence[Any], Any], tuple[Any, Findings]] | None = None
    categorical: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise WorkbenchError(f"a stage needs a name; got {self.name!r}")
        if not callable(self.function):
            raise WorkbenchError(f"stage {self.name!r} needs a function; got {self.function!r}")
        for option in ("derivative", "enclose", "update", "together", "verify"):
            function(f"{option} of stage {self.name!r}", getattr(self, option))
        for option in ("linear", "categorical"):
            flag(f"{option} of stage {self.name!r}", getattr(self, option))
        if self.inputs is not None:
            object.__setattr__(self, "inputs", listed(f"the inputs of stage {self.name!r}", self.inputs))
        default = isinstance(self.outputs, tuple | list) and not self.outputs
        outputs = (self.name,) if default else self.outputs
        object.__setattr__(self, "outputs", listed(f"the outputs of stage {self.name!r}", outputs))

    def __repr__(self) -> str:
        return f"Stage({self.name!r})"
