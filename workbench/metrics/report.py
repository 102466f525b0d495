"""The result of a comparison, for people and for programs: named figures, curves, and checks against a bound.

The names are stable: scripts and archives rely on them. The meaning of each figure is defined here, once, and shown with
every report.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.charts.table import html_table
from workbench.errors import WorkbenchError
from workbench.json_values import json_value

Figure = float | int | bool

MEANINGS: Mapping[str, str] = MappingProxyType({
    "values": "finite, unmasked values of the original",
    "particles": "particles",
    "numbers": "numbers that were decoded, including ids",
    "chunks": "chunks that were decoded and checked against their checksums",
    "lost": "of these, decoded as NaN, infinite or masked",
    "invalid": "NaN, infinite or masked in the original; not measured",
    "invalid_kept": "whether these are bit-identical",
    "differing": "values that are not exactly equal",
    "exceeding": "values whose error exceeds the bound",
    "max_error": "largest |decoded - original|, in the unit of the data",
    "rms_error": "root mean square error, in the unit of the data",
    "mean_error": "mean of decoded - original (the bias), in the unit of the data",
    "max_relative_error": "largest |decoded - original| / |original|",
    "value_range": "largest less smallest value of the original",
    "max_distance": "largest distance that a particle moved, in the unit of the positions",
    "rms_distance": "root mean square distance that particles moved",
    "psnr": "peak signal-to-noise ratio in dB; peak: range of the values, longest side of the box",
    "nrmse": "rms error / peak",
    "ssim": "structural similarity, 1 is equal (windows of 7 points; its range is that of the original)",
    "error_autocorrelation": "largest |correlation| of errors 1 to 10 points apart along an axis",
    "spectrum_worst": "largest |P'/P - 1| of the power spectrum (periodic, with shot noise), up to the Nyquist wave number",
    "spectrum_worst_half": "the same up to half of the Nyquist wave number",
    "velocity_max_error": "largest error of a velocity component",
    "velocity_rms_error": "root mean square error of the velocity components",
    "clusters_kept": "whether all friends-of-friends groups have exactly the same members",
    "halos_original": "halos in the original",
    "halos_decoded": "halos in the decoded particles",
    "halos_matched": "halos found again, one to one",
    "halos_identical": "halos with exactly the same members",
    "halos_broken": "halos that lost or gained members: split and merged ones",
    "halos_split": "halos that lost members",
    "halos_merged": "halos that lost no members, but gained some",
    "halos_new": "decoded halos that match none of the original",
    "halo_recall": "mean share of a halo's members that stayed together",
    "halo_shift_max": "largest shift of the centre of a matched halo, in the unit of the positions",
    "halo_shift_rms": "root mean square shift of the centres of matched halos",
    "groups_followed": "groups, at all steps, whose descent was compared with that of the originals",
    "descent_links": "links from a group to its descendant, all of which the originals have",
    "mass_function_worst": "largest |n'/n - 1| of the number of halos in a bin of size",
})


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a guarantee: the value of a figure must not exceed the limit."""

    name: str
    limit: float
    value: float

    @property
    def ok(self) -> bool:
        """Whether it holds; NaN never does."""
        return self.value <= self.limit


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """How different two things are.

    `figures` are numbers by name, also reached as `report["psnr"]` or `report.psnr`; `curves` are small arrays by name.
    `checks` say whether a bound holds, `notes` what does not apply and why.

    >>> report = Report("two fields", {"max_error": 0.25, "values": 1000}, checks=(Check("max_error", 0.5, 0.25),))
    >>> report.max_error, report.passed
    (0.25, True)
    >>> print(report)
    two fields: passed
      max_error   0.25  largest |decoded - original|, in the unit of the data
      values     1,000  finite, unmasked values of the original
      max_error <= 0.5: passed
    """

    subject: str
    figures: Mapping[str, Figure]
    curves: Mapping[str, np.ndarray] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", MappingProxyType(dict(self.figures)))
        object.__setattr__(self, "curves", MappingProxyType(dict(self.curves)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only views cannot be pickled, the dictionaries behind them can.
        return Report, (self.subject, dict(self.figures), dict(self.curves), self.checks, self.notes)

    @property
    def passed(self) -> bool | None:
        """Whether every check holds; None without checks."""
        return all(check.ok for check in self.checks) if self.checks else None

    def __getitem__(self, name: str) -> Figure:
        if name not in self.figures:
            raise WorkbenchError(f"expected a figure of this report; got {name!r}: it has {self._names}")
        return self.figures[name]

    def __getattr__(self, name: str) -> Figure:
        figures = self.__dict__.get("figures", {})
        if name in figures:
            return figures[name]
        raise AttributeError(f"a Report has no {name!r}; its figures are: {', '.join(figures)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.figures]

    @property
    def _names(self) -> str:
        return ", ".join(self.figures)

    @property
    def _title(self) -> str:
        return f"{self.subject}{'' if self.passed is None else f': {_verdict(self.passed)}'}"

    def __str__(self) -> str:
        shown = {name: _shown(value) for name, value in self.figures.items()}
        name_width, width = (max(map(len, texts), default=0) for texts in (shown, shown.values()))
        rows = [f"  {name:<{name_width}}  {text:>{width}}  {MEANINGS.get(name, '')}" for name, text in shown.items()]
        checks = [f"  {_sentence(check)}" for check in self.checks]
        return "\n".join(line.rstrip() for line in [self._title, *rows, *checks, *(f"  {note}" for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table for notebooks; the page's own colours, so that it can be read in light and dark themes."""
        rows = [[name, _shown(value), MEANINGS.get(name, "")] for name, value in self.figures.items()]
        lines = [*map(_sentence, self.checks), *self.notes]
        below = f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>" if lines else ""
        return f"<div>{html_table(['figure', 'value', 'meaning'], rows, texts=(0, 2), title=self._title)}{below}</div>"

    def to_dict(self) -> dict[str, Any]:
        """Everything in JSON types: numbers that are NaN or infinite become None."""
        return {
            "subject": self.subject,
            "passed": self.passed,
            "figures": json_value(self.figures),
            "curves": json_value(self.curves),
            "checks": [json_value({"name": c.name, "limit": c.limit, "value": c.value, "ok": c.ok}) for c in self.checks],
            "notes": list(self.notes),
        }


def _verdict(ok: bool) -> str:
    return "passed" if ok else "FAILED"


def _sentence(check: Check) -> str:
    got = "" if check.ok else f", got {check.value!r}"   # all digits: the excess can be in the last one
    return f"{check.name} <= {check.limit!r}: {_verdict(check.ok)}{got}"


def _shown(value: Figure) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
