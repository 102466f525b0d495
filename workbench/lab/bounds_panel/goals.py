"""What the user asks the panel to find: a target with one number, or two of them, and the answer in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from workbench.bounds import PSNR, SSIM, All, Found, KeepMassFunction, KeepSpectrum, Ratio, Run, Target
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


@dataclass(frozen=True)
class Wanted:
    """A target and its number; one that makes no sense is refused.

    >>> print(Wanted("spectrum", 1).target)
    a power spectrum within 1% up to half the Nyquist wave number
    """

    goal: Goal
    number: float

    def __post_init__(self) -> None:
        _ = self.target

    @property
    def target(self) -> Target | KeepClusters:
        """The target as `wb.find_bound` takes it."""
        return GOALS[self.goal].make(self.number)

    @property
    def code(self) -> str:
        """The target as Python."""
        return GOALS[self.goal].code.format(self.number)

    @property
    def words(self) -> str:
        """The number in a few words."""
        return GOALS[self.goal].wanted.format(f"{self.number:g}")

    def reached(self, run: Run) -> str:
        """The figure of a run in a few words."""
        kind = GOALS[self.goal]
        value = short(kind.scale * float(run[kind.figure]), 4 if self.goal in ("psnr", "ssim") else 3)
        return kind.reached.format(value)


def target_of(every: Sequence[Wanted]) -> All:
    """All targets in one."""
    return All(*(each.target for each in every))


def code_of(every: Sequence[Wanted]) -> str:
    """All targets as Python.

    >>> code_of([Wanted("psnr", 60), Wanted("ratio", 10)])
    'wb.All(wb.PSNR(60), wb.Ratio(10))'
    """
    codes = [each.code for each in every]
    return f"wb.All({', '.join(codes)})" if codes[1:] else codes[0]


@dataclass(frozen=True)
class Answer:
    """The outcome of a search: a bound, if one meets the target; and the outcome in a few words, with notes."""

    bound: Bound | None
    words: str
    notes: tuple[str, ...] = ()


def answer_of(every: Sequence[Wanted], search: Found) -> Answer:
    """The outcome of a search, with the figures that were reached."""
    best = search.nearest
    wanted, reached = " and ".join(each.words for each in every), ", ".join(each.reached(best) for each in every)
    if search.met:
        return Answer(search.bound, f"{exact(search.bound.eb)} meets {wanted} ({reached})", search.notes)
    jumps = any(not (each.predictable and each.in_order) for each in search.target.measurable)
    none = "no bound that was tried" if jumps else "no bound"
    return Answer(None, f"{none} meets {wanted}: nearest is {reached}, at {best.bound.eb:.3g}", search.notes)
