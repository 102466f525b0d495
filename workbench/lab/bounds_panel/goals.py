"""What the user asks the panel to find: a target with one number, and the answer in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from workbench.bounds import PSNR, SSIM, Found, KeepMassFunction, KeepSpectrum, Ratio, Target
from workbench.clusters import KeepClusters
from workbench.data import Field, Particles
from workbench.guarantees import Bound
from workbench.lab.bounds_panel.number_texts import short
from workbench.lab.controls import exact

Goal = Literal["psnr", "ratio", "ssim", "spectrum", "halos", "clusters", "total"]


@dataclass(frozen=True)
class Kind:
    """A kind of target: its words, a usual number, the target of a number, its Python, and the number in few words.

    `figure` is what is measured of a run, here in units that are `scale` times smaller, and `reached` says it.
    """

    words: str
    usual: float
    make: Callable[[float], Target | KeepClusters]
    code: str
    wanted: str
    reached: str = "{}x"
    figure: str = "ratio"
    scale: float = 1.0


GOALS: Mapping[Goal, Kind] = MappingProxyType({
    "psnr": Kind("PSNR [dB]", 60.0, PSNR, "wb.PSNR({:g})", "{} dB", "{} dB", "psnr"),
    "ratio": Kind("ratio", 20.0, Ratio, "wb.Ratio({:g})", "{}x"),
    "ssim": Kind("SSIM", 0.99, SSIM, "wb.SSIM({:g})", "SSIM {}", "{}", "ssim"),
    "spectrum": Kind(
        "power spectrum [%]", 1.0, lambda share: KeepSpectrum(share / 100), "wb.KeepSpectrum({:g} / 100)",
        "{}% in P(k)", "{}%", "spectrum_deviation", 100.0,
    ),
    "halos": Kind(
        "numbers of halos [%]", 5.0, lambda share: KeepMassFunction(share / 100), "wb.KeepMassFunction({:g} / 100)",
        "{}% in numbers of halos", "{}%", "mass_function_deviation", 100.0,
    ),
    "clusters": Kind("linking length of kept clusters", 0.2, KeepClusters, "wb.KeepClusters({:g})", "clusters at {}"),
    "total": Kind("ratio of all variables", 20.0, Ratio, "wb.Ratio({:g})", "{}x for all variables"),   # of a dataset
})
OF_FIELDS: tuple[Goal, ...] = ("psnr", "ratio", "ssim", "spectrum")
OF_PARTICLES: tuple[Goal, ...] = ("psnr", "ratio", "spectrum", "halos", "clusters")


def goals_of(data: Particles | Field) -> dict[str, Goal]:
    """The targets that these data may have, by their words: integers have none, since no search takes them.

    >>> list(goals_of(Field([[1.0]]))), goals_of(Field([[1]]))
    (['PSNR [dB]', 'ratio', 'SSIM', 'power spectrum [%]'], {})
    """
    if isinstance(data, Field) and data.values.dtype.kind != "f":
        return {}
    return {GOALS[goal].words: goal for goal in (OF_PARTICLES if isinstance(data, Particles) else OF_FIELDS)}


def target_of(goal: Goal, number: float) -> Target | KeepClusters:
    """The target; a number that makes no sense is refused.

    >>> print(target_of("spectrum", 1))
    a power spectrum within 1% up to half the Nyquist wave number
    """
    return GOALS[goal].make(number)


@dataclass(frozen=True)
class Answer:
    """The outcome of a search: a bound, if one meets the target; and the outcome in a few words, with notes."""

    bound: Bound | None
    words: str
    notes: tuple[str, ...] = ()


def answer_of(goal: Goal, number: float, search: Found) -> Answer:
    """The outcome of a search, with the figure that was reached."""
    kind, best = GOALS[goal], search.nearest
    wanted = kind.wanted.format(f"{number:g}")
    reached = kind.reached.format(short(kind.scale * float(best[kind.figure]), 4 if goal in ("psnr", "ssim") else 3))
    if search.met:
        return Answer(search.bound, f"{exact(search.bound.eb)} meets {wanted} ({reached})", search.notes)
    every = all(each.predictable and each.in_order for each in search.target.measurable)
    none = "no bound" if every else "no bound that was tried"
    return Answer(None, f"{none} meets {wanted}: nearest is {reached}, at {best.bound.eb:.3g}", search.notes)
