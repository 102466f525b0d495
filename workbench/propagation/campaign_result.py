"""The result of a campaign: shares of outcomes with intervals, as a table, a heat map, and a list of sites to protect."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.arguments import whole_number
from workbench.charts.table import data_frame, html_table
from workbench.errors import WorkbenchError
from workbench.json_values import json_value
from workbench.propagation.intervals import Rate, clopper_pearson, weighted
from workbench.propagation.names import require_known
from workbench.propagation.pipeline import Run
from workbench.propagation.strata import name_of
from workbench.propagation.trials import MEANING, OUTCOMES, Outcome, Stratum, Trial, drawn

HARMFUL: tuple[Outcome, ...] = ("silent", "detected", "crash")


def counted(trials: Iterable[Trial], strata: int) -> list[dict[Any, int]]:
    """The number of each outcome in each stratum."""
    counts: list[dict[Any, int]] = [dict.fromkeys(OUTCOMES, 0) for _ in range(strata)]
    for trial in trials:
        counts[trial.trial % strata][trial.outcome] += 1
    return counts


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Shares of an outcome by site (rows) and bits (columns); NaN where nothing was tried."""

    outcome: str
    sites: tuple[str, ...]
    bits: tuple[str, ...]
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    trials: np.ndarray

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(bit)}</th>" for bit in ("", *self.bits))
        rows = "".join(
            f"<tr><th style='text-align: left'>{html.escape(site)}</th>{''.join(map(self._cell, *self._row(place)))}</tr>"
            for place, site in enumerate(self.sites)
        )
        title = html.escape(f"share of trials that end {self.outcome}")
        return f"<div><strong>{title}</strong><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"

    def _row(self, place: int) -> tuple[Any, ...]:
        return self.share[place], self.low[place], self.high[place], self.trials[place]

    def _cell(self, share: float, low: float, high: float, trials: int) -> str:
        if not trials:
            return "<td></td>"
        title = html.escape(f"{share:.3f}, between {low:.3f} and {high:.3f}, {trials:,} trials")
        return f'<td title="{title}" style="background: rgba(208, 96, 15, {0.9 * share:.2f})">{share:.2f}</td>'


@dataclass(frozen=True, eq=False, repr=False)
class Campaign:
    """All trials of a campaign. `populations` counts the different faults that each stratum stands for.

    `floor` is the measured round-off floor of every site; an error up to two floors counts as masked.
    """

    strata: tuple[Stratum, ...]
    populations: tuple[int, ...]
    trials: tuple[Trial, ...]
    seed: int
    tolerance: str
    floor: dict[str, float]
    complete: bool = True

    @cached_property
    def counts(self) -> list[dict[Any, int]]:
        """The number of each outcome in each stratum."""
        return counted(self.trials, len(self.strata))

    def rate(self, outcome: str, stratum: int | None = None) -> Rate:
        """The share of an outcome in one stratum; without one, that of a fault drawn evenly from all that were possible."""
        require_known("outcome", outcome, OUTCOMES)
        if stratum is not None:
            if not 0 <= stratum < len(self.strata):
                raise WorkbenchError(f"stratum must be between 0 and {len(self.strata) - 1}; got {stratum}")
            return clopper_pearson(self.counts[stratum][outcome], sum(self.counts[stratum].values()))
        return weighted([self.rate(outcome, each) for each in range(len(self.strata))], self.populations)

    def reasons(self, outcome: str = "crash") -> dict[str, int]:
        """Why trials ended with this outcome, where a reason is known, and how many did, the most frequent first."""
        require_known("outcome", outcome, OUTCOMES)
        found = Counter(trial.reason for trial in self.trials if trial.outcome == outcome and trial.reason)
        return dict(found.most_common())

    def most_vulnerable(self, count: int = 1, outcome: str = "silent") -> list[str]:
        """The sites with the highest share of an outcome, for `wb.propagation.protected`, without those that have none."""
        whole_number("count", count, 1)
        return [site for site, rate in self.ranking(outcome)[:count] if rate.estimate > 0]

    def drawn(self, run: Run, trial: int) -> Stratum:
        """The perturbations of a trial with all choices made, given the unperturbed run: to follow it by `trace`."""
        return drawn(self.strata, run, self.seed, whole_number("trial", trial, 0))

    def heat_map(self, outcome: str = "silent") -> HeatMap:
        """The share of an outcome by site and bits."""
        sites = tuple(dict.fromkeys(stratum[0].site for stratum in self.strata))
        bits = tuple(dict.fromkeys(name_of(stratum[0]) for stratum in self.strata))
        share, low, high = (np.full((len(sites), len(bits)), np.nan) for _ in range(3))
        trials = np.zeros(share.shape, np.int64)
        for number, stratum in enumerate(self.strata):
            place = sites.index(stratum[0].site), bits.index(name_of(stratum[0]))
            rate = self.rate(outcome, number)
            share[place], low[place], high[place], trials[place] = rate.estimate, rate.low, rate.high, rate.trials
        return HeatMap(outcome, sites, bits, share, low, high, trials)

    def ranking(self, outcome: str = "silent") -> list[tuple[str, Rate]]:
        """The sites by their share of an outcome, the most vulnerable first: those to protect."""
        sites = dict.fromkeys(stratum[0].site for stratum in self.strata)
        found = []
        for site in sites:
            own = [number for number, stratum in enumerate(self.strata) if stratum[0].site == site]
            rates = [self.rate(outcome, number) for number in own]
            found.append((site, weighted(rates, [self.populations[number] for number in own])))
        return sorted(found, key=lambda entry: -entry[1].estimate)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each stratum: what was tried, the counts, and the shares with their intervals."""
        rows = []
        for number, stratum in enumerate(self.strata):
            row: dict[str, Any] = {
                "site": stratum[0].site, "bits": name_of(stratum[0]), "perturbation": ", ".join(map(repr, stratum)),
                "trials": sum(self.counts[number].values()), **self.counts[number],
            }
            for outcome in HARMFUL:
                rate = self.rate(outcome, number)
                row |= {f"{outcome}_rate": rate.estimate, f"{outcome}_low": rate.low, f"{outcome}_high": rate.high}
            rows.append(row)
        return rows

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame."""
        return data_frame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Everything except the single trials, as JSON types."""
        overall = {outcome: asdict(self.rate(outcome)) for outcome in OUTCOMES}
        return json_value({
            "complete": self.complete, "trials": len(self.trials), "seed": self.seed, "tolerance": self.tolerance,
            "overall": overall, "reasons": self.reasons("crash"), "strata": self.rows(), "floor": self.floor,
        })

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def __repr__(self) -> str:
        counts = [f"{sum(each[outcome] for each in self.counts):,} {outcome}" for outcome in OUTCOMES]
        state = "" if self.complete else ", not complete"
        strata = "1 stratum" if len(self.strata) == 1 else f"{len(self.strata):,} strata"
        return f"Campaign({len(self.trials):,} trials in {strata}{state}: {', '.join(counts)})"

    def _repr_html_(self) -> str:
        heads = ["site", "bits", "trials", *OUTCOMES, "silent, 95%"]
        rows = [
            [row["site"], row["bits"], f"{row['trials']:,}", *(f"{row[name]:,}" for name in OUTCOMES), self._interval(row)]
            for row in self.rows()
        ]
        meanings = "; ".join(f"{name}: {meaning}" for name, meaning in MEANING.items())
        note = html.escape(f"Tolerance: {self.tolerance}. {meanings}.")
        return f"{html_table(heads, rows, texts=(0, 1), title=repr(self))}<p>{note}</p>"

    @staticmethod
    def _interval(row: dict[str, Any]) -> str:
        return f"{row['silent_low']:.3f} to {row['silent_high']:.3f}" if row["trials"] else ""
