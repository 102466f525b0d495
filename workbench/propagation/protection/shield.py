"""Protected stages: a function whose arrays are guarded, or that is computed more than once.

A fault that strikes an array after a stage has returned it is seen by the stage that reads it: guard what that one `reads`.
A fault inside a stage is seen in what it `returns`, or by computing it again. A shielded stage is called like the function,
so it can take its place anywhere; `checked` returns the findings, too.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.protection.findings import Findings
from workbench.propagation.protection.guards import Guard

Stage = Callable[..., Array]


@dataclass(frozen=True)
class Shielded:
    """A function of arrays with guards on what it reads (one per input, None for no guard) and on what it returns.

    `times` is how often it is computed: 1; 2, where a difference makes a third run decide; or more, of which two must
    agree.

    >>> import numpy as np
    >>> from workbench.propagation.protection import Finite
    >>> total = Shielded(lambda x: x.sum(), reads=(Finite(),))
    >>> total.checked(np.array([1.0, np.nan]))[1].corrected, float(total(np.array([1.0, np.nan])))
    (1, 1.0)
    """

    function: Stage
    reads: tuple[Guard | None, ...] = ()
    returns: Guard | None = None
    times: int = 1

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise WorkbenchError(f"a function is shielded; got {self.function!r:.100}")
        for guard in (*self.reads, self.returns):
            if guard is not None and not callable(guard):
                raise WorkbenchError(f"a guard must be callable, such as Range or Finite, or None; got {guard!r:.100}")
        whole_number("times", self.times, least=1)

    def __call__(self, *arrays: Array) -> Array:
        """The result alone."""
        return self.checked(*arrays)[0]

    def checked(self, *arrays: Array) -> tuple[Array, Findings]:
        """The result, and what was found."""
        if len(self.reads) > len(arrays):
            raise WorkbenchError(f"there are {len(self.reads)} guards of what is read, but {len(arrays)} arrays")
        found, read = Findings(), list(arrays)
        for place, guard in enumerate(self.reads):
            if guard is not None:
                read[place], seen = guard(read[place])
                found += seen
        result, seen = self._agreed(read)
        found += seen
        if self.returns is not None:
            result, seen = self.returns(result)
            found += seen
        return result, found

    def _agreed(self, arrays: list[Array]) -> tuple[Array, Findings]:
        """A result on which two computations agree, bit by bit."""
        results = [self.function(*arrays) for _ in range(self.times)]
        if self.times == 1:
            return results[0], Findings()
        agree = sum(same_bits(results[0], other) for other in results[1:])
        if agree == len(results) - 1:
            return results[0], Findings(checks=agree)
        if self.times == 2:
            results.append(self.function(*arrays))
        for number, first in enumerate(results):
            if any(same_bits(first, other) for other in results[number + 1 :]):
                return first, Findings(checks=len(results) - 1, detected=1, recomputed=1)
        raise WorkbenchError(
            f"{len(results)} computations of one stage gave as many results: the fault persists, or the stage is random"
        )


@dataclass(frozen=True)
class Twice:
    """A result compared, bit by bit, with a second one of the same function, which is right where they differ.

    >>> import numpy as np
    >>> Twice(np.sqrt)([np.array([4.0, 9.0])], np.array([2.0, 7.0]))[0].tolist()
    [2.0, 3.0]
    """

    function: Stage

    def __call__(self, inputs: Sequence[Array], output: Array) -> tuple[Array, Findings]:
        """The result, or the second one."""
        again = self.function(*inputs)
        if same_bits(output, again):
            return output, Findings(checks=1)
        return again, Findings(checks=1, detected=1, recomputed=1)


def same_bits(first: Array, second: Array) -> bool:
    """Whether two arrays are identical, bit by bit.

    >>> import numpy as np
    >>> same_bits(np.array([np.nan]), np.array([np.nan])), same_bits(np.array([0.0]), np.array([-0.0]))
    (True, False)
    """
    xp = backend.namespace(first, second)
    one, other = xp.ascontiguousarray(first), xp.ascontiguousarray(second)
    if one.dtype != other.dtype or first.shape != second.shape:
        return False
    return bool(xp.array_equal(one.reshape(-1).view(xp.uint8), other.reshape(-1).view(xp.uint8)))


def protect(
    stages: Mapping[str, Stage], sites: Iterable[str], how: Guard | Mapping[str, Guard] | None = None, times: int = 1
) -> dict[str, Stage]:
    """All stages, of which those at some sites are shielded: selective protection.

    `how` guards what they return, one guard for all or one for each site (as `learn_ranges` returns); `times` is how often
    each is computed. The stages with the highest share of harmful faults in a campaign are worth it first.

    >>> import numpy as np
    >>> from workbench.propagation.protection import Finite
    >>> stages = {"double": lambda x: 2 * x, "mean": np.mean}
    >>> protect(stages, ["double"], Finite())["double"](np.array([1.0, np.inf])).tolist()
    [2.0, 0.0]
    """
    sites = list(sites)
    for site in sites:
        if site not in stages:
            near = difflib.get_close_matches(str(site), list(stages), n=3) or list(stages)[:3]
            raise WorkbenchError(f"there is no stage {site!r}; the nearest names are {', '.join(near)}")
    if how is None and times == 1:
        raise WorkbenchError("protect needs a guard, or times of at least 2; got neither")
    guards = dict.fromkeys(sites, how) if how is None or callable(how) else dict(how)
    if missing := [site for site in sites if site not in guards]:
        raise WorkbenchError(f"there is no guard for {', '.join(missing)}; there are some for {', '.join(guards)}")
    shielded = {site: Shielded(stages[site], returns=guards[site], times=times) for site in sites}
    return {**stages, **shielded}
