"""What the user asks the panel to find: a target with one number, and the answer in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from workbench.bounds import PSNR, SSIM, KeepMassFunction, KeepSpectrum, Ratio, Target
from workbench.clusters import KeepClusters
from workbench.data import Field, Particles
from workbench.guarantees import Bound

Goal = Literal["psnr", "ratio", "ssim", "spectrum", "halos", "clusters", "total"]


@dataclass(frozen=True)
class Kind:
    """A kind of target: its words, a usual number, the target of a number, and its Python."""

    words: str
    usual: float
    make: Callable[[float], Target | KeepClusters]
    code: str


GOALS: Mapping[Goal, Kind] = MappingProxyType({
    "psnr": Kind("PSNR [dB]", 60.0, PSNR, "wb.PSNR({:g})"),
    "ratio": Kind("ratio", 20.0, Ratio, "wb.Ratio({:g})"),
    "ssim": Kind("SSIM", 0.99, SSIM, "wb.SSIM({:g})"),
    "spectrum": Kind("power spectrum [%]", 1.0, lambda share: KeepSpectrum(share / 100), "wb.KeepSpectrum({:g} / 100)"),
    "halos": Kind(
        "numbers of halos [%]", 5.0, lambda share: KeepMassFunction(share / 100), "wb.KeepMassFunction({:g} / 100)"
    ),
    "clusters": Kind("linking length of kept clusters", 0.2, KeepClusters, "wb.KeepClusters({:g})"),
    "total": Kind("ratio of all variables", 20.0, Ratio, "wb.Ratio({:g})"),   # of a dataset
})
OF_FIELDS: tuple[Goal, ...] = ("psnr", "ratio", "ssim", "spectrum")
OF_PARTICLES: tuple[Goal, ...] = ("psnr", "ratio", "spectrum", "halos", "clusters")


def goals_of(data: Particles | Field) -> dict[str, Goal]:
    """The targets that these data may have, by their words.

    >>> list(goals_of(Field([[1.0]])))
    ['PSNR [dB]', 'ratio', 'SSIM', 'power spectrum [%]']
    """
    return {GOALS[goal].words: goal for goal in (OF_PARTICLES if isinstance(data, Particles) else OF_FIELDS)}


def target_of(goal: Goal, number: float) -> Target | KeepClusters:
    """The target; a number that makes no sense is refused.

    >>> print(target_of("spectrum", 1))
    a power spectrum within 1% up to half the Nyquist wave number
    """
    return GOALS[goal].make(number)


@dataclass(frozen=True)
class Answer:
    """The outcome of a search: a bound, if one meets the target, and sentences."""

    bound: Bound | None
    sentence: str
    notes: tuple[str, ...] = ()
