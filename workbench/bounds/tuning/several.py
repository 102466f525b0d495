"""`wb.All`: several targets at once, and which of them decide where to search.

Targets that a larger bound makes worse ("falling" ones, such as a PSNR) never exclude each other, since a finer bound meets
all of them; a ratio may exclude them. So the search is for the largest bound that meets the falling targets, where any
ratio is largest, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from workbench.bounds.run import MEANINGS as OF_RUNS
from workbench.bounds.tuning.attempt import Attempt
from workbench.bounds.tuning.guides import Expected, Known
from workbench.bounds.tuning.targets import PSNR, SSIM, Ratio, Source, Target
from workbench.clusters import KeepClusters
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.metrics.report import MEANINGS as OF_REPORTS

TAKEN = {**dict.fromkeys([*OF_RUNS, *OF_REPORTS]), **{each.figure: each for each in (Ratio, PSNR, SSIM)}}


@dataclass(frozen=True)
class All(Target):
    """Several targets at once, which must all be met; `KeepClusters` may be one of them.

    The answer is the largest bound with which all hold. `found.slacks` says how far each is from its limit.

    >>> print(All(PSNR(60), All(Ratio(10), PSNR(60))))
    a PSNR of at least 60 dB, and a ratio of at least 10
    """

    targets: tuple[Target | KeepClusters, ...]
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)   # of the figures of `measurable`, in runs
    figure: ClassVar[str] = "room"

    def __init__(self, *targets: Target | KeepClusters) -> None:
        if not targets:
            raise WorkbenchError("All takes at least one target; got none")
        different: list[Target | KeepClusters] = []
        for target in targets:
            require_target(target)
            for part in target.targets if isinstance(target, All) else (target,):
                if part not in different:
                    different.append(part)
        object.__setattr__(self, "targets", tuple(different))
        object.__setattr__(self, "names", _names(self.measurable))
        for name in ("in_order", "predictable"):
            object.__setattr__(self, name, all(getattr(target, name) for target in self.leading))

    def only(self, targets: Sequence[Target]) -> Self:
        """Some of the measurable targets, whose figures keep their names."""
        part = type(self)(*targets)
        named = tuple(name for target, name in self.named if target in targets)
        object.__setattr__(part, "names", named)
        return part

    @property
    def measurable(self) -> tuple[Target, ...]:
        """The targets that are measured; promises are kept by every archive."""
        return tuple(target for target in self.targets if isinstance(target, Target))

    @property
    def named(self) -> tuple[tuple[Target, str], ...]:
        """The measurable targets, with the names of their figures."""
        return tuple(zip(self.measurable, self.names, strict=True))

    @property
    def promises(self) -> tuple[KeepClusters, ...]:
        """The promises that every archive of the search keeps."""
        return tuple(target for target in self.targets if isinstance(target, KeepClusters))

    @property
    def leading(self) -> tuple[Target, ...]:
        """The targets that decide where to search: those that a larger bound makes worse, or else the ratios."""
        falling = tuple(target for target in self.measurable if not target.rises)
        return falling or self.measurable

    @property
    def rising(self) -> tuple[Target, ...]:
        """The targets that a larger bound makes easier: ratios."""
        return tuple(target for target in self.measurable if target.rises)

    @property
    def searched_upwards(self) -> bool:
        """Whether all targets become easier with the bound, so that the smallest bound is wanted."""
        return bool(self.leading) and self.leading[0].rises

    @property
    def stop(self) -> float:
        """The least of the leading targets."""
        return min((target.stop for target in self.leading), default=0.0)

    def for_data(self, data: Source) -> All:
        """Each target, with what it needs to know."""
        return All(*(each.for_data(data) if isinstance(each, Target) else each for each in self.targets))

    def require(self, data: Source) -> None:
        """Each target, in turn."""
        if self.promises and not isinstance(data, Particles):
            raise WorkbenchError(f"KeepClusters is for particles; got {data!r}")
        for target in self.measurable:
            target.require(data)

    def value(self, attempt: Attempt) -> float:
        """The least room."""
        return self.room_of(self.measured(attempt))

    def measured(self, attempt: Attempt) -> dict[str, float]:
        """The figures of all targets; what several are about is measured once."""
        return {name: target.value(attempt) for name, target in {name: target for target, name in self.named}.items()}

    def room(self, value: float) -> float:
        """The value itself."""
        return value

    def rooms_of(self, figures: Mapping[str, Any]) -> list[float]:
        """The room of each measurable target."""
        return [target.room(float(figures[name])) for target, name in self.named]

    def room_of(self, figures: Mapping[str, Any]) -> float:
        """The least room of any target."""
        return min(self.rooms_of(figures), default=0.0)

    def reached(self, figures: Mapping[str, Any]) -> str:
        """The figures in words."""
        return ", ".join(f"{name} {float(figures[name]):.6g}" for name in dict.fromkeys(self.names))

    def leading_room(self, figures: Mapping[str, Any]) -> float:
        """The least room of the leading targets."""
        leading = self.leading
        rooms = zip(self.measurable, self.rooms_of(figures), strict=True)
        return min((room for target, room in rooms if target in leading), default=0.0)

    def expected(self, known: Known) -> Expected:
        """The least of the leading targets."""
        curves = [target.expected(known) for target in self.leading]
        return lambda limits: np.min([curve(limits) for curve in curves], axis=0)

    def __str__(self) -> str:
        return in_words(self.targets)


def _names(targets: Sequence[Target]) -> tuple[str, ...]:
    """A name for the figure of each target: one for all that measure the same, and a number after names that are taken.

    >>> from workbench.bounds.tuning.targets import KeepSpectrum
    >>> _names([PSNR(50), PSNR(60), KeepSpectrum(0.01, 5), KeepSpectrum(0.05, 20)])
    ('psnr', 'psnr', 'spectrum_deviation', 'spectrum_deviation_2')
    """
    taken: dict[str, Any] = dict(TAKEN)
    names = []
    for target in targets:
        name, number = target.figure, 1
        while name in taken and taken[name] != target.subject:
            number += 1
            name = f"{target.figure}_{number}"
        taken[name] = target.subject
        names.append(name)
    return tuple(names)


def require_target(given: Any) -> None:
    """Refuse what is no target, and say which there are."""
    if isinstance(given, Target | KeepClusters):
        return
    hint = ": wrap a function, as in wb.Quality(function, at_least=0.9)" if callable(given) else ""
    names = "wb.Ratio(20), wb.PSNR(60), wb.SSIM(0.99), wb.KeepSpectrum(...), wb.KeepMassFunction(...), wb.KeepClusters(...)"
    raise WorkbenchError(f"target must be {names}, wb.Quality(...) or wb.All(...); got {given!r}{hint}")


def in_words(targets: Sequence[Target | KeepClusters]) -> str:
    """Targets for people.

    >>> in_words([PSNR(60), KeepClusters(0.2)])
    'a PSNR of at least 60 dB, and the clusters at linking length 0.2 (spacing)'
    """
    return ", and ".join(_clusters(each) if isinstance(each, KeepClusters) else str(each) for each in targets)


def _clusters(kept: KeepClusters) -> str:
    assert isinstance(kept.linking_length, tuple)
    lengths = ", ".join(f"{length:g}" for length in kept.linking_length)
    return f"the clusters at linking length {lengths} ({kept.unit})"
