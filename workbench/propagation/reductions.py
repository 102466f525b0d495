"""`wb.propagation.compare_reductions`: what bounded errors, pruned weights, low ranks and faulty chips do, in one table.

A reduction is one or several perturbations. Each is applied to the same inputs, and its bits are those that it took: real
bytes of an archive for `Bounded`, and what a perfect coder would need for `Prune` and `LowRank`, so a comparison favours
these. What is drawn at random is drawn several times: the interval is then over these draws, on these inputs. All else has
one outcome, and the interval is over stretches of rows, such as the tokens of a text, as for other texts of this kind.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arguments import function, whole_number
from workbench.backend import Array, to_host
from workbench.charts.description import Axis, Chart, Point, joined
from workbench.charts.looks import looks_of
from workbench.charts.table import html_table
from workbench.errors import WorkbenchError, briefly
from workbench.json_values import json_value
from workbench.progress import Progress
from workbench.propagation.draws import draws_of
from workbench.propagation.intervals import Mean, mean_of
from workbench.propagation.language.quality import divergences
from workbench.propagation.names import require_known
from workbench.propagation.perturbation import Changed, Perturbation
from workbench.propagation.pipeline import Pipeline, require_pipeline
from workbench.propagation.tolerated import Quality, Results

STRETCH = 64   # rows that are one draw of an interval: errors of neighbours are alike
Reduction = Perturbation | Sequence[Perturbation]


@dataclass(frozen=True, eq=False)
class ReductionFigures:
    """One reduction: bits for each value of the sites that it changes, and what it does.

    `divergence` is the Kullback-Leibler divergence of the classes from those without the reduction in nats, and `kept` the
    share of most likely classes that stay; or `quality` is what the given function returns, which is then the only figure.
    `draws` is how many random outcomes were averaged.
    """

    name: str
    bits: float
    values: int
    draws: int
    divergence: Mean | None = None
    kept: Mean | None = None
    quality: Mean | None = None

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON types."""
        given = {name: getattr(self, name) for name in ("divergence", "kept", "quality")}
        means = {name: vars(mean) for name, mean in given.items() if mean is not None}
        found: dict[str, Any] = json_value({**vars(self), **means})
        return found


@dataclass(frozen=True, eq=False, repr=False)
class ReductionComparison:
    """Reductions of the same pipeline on the same inputs, in the order given; `exact` is the quality without any."""

    figures: tuple[ReductionFigures, ...]
    inputs: int
    exact: float | None = None

    def __getitem__(self, place: int | str) -> ReductionFigures:
        if isinstance(place, str):
            names = [each.name for each in self.figures]
            return self.figures[names.index(require_known("reduction", place, names))]
        return self.figures[place]

    def __len__(self) -> int:
        return len(self.figures)

    def plot(self) -> Chart:
        """Divergence against bits: reductions that are further down and to the left are better."""
        points = [
            Point(each.name, each.bits, each.divergence.value, f"{each.name}: {each.bits:.2f} bits, {each.divergence} nats")
            for each in self.figures if each.divergence is not None and each.divergence.value > 0
        ]
        return Chart(
            "Reductions",
            Axis.around("bits per value", [each.x for each in points]),
            Axis.around("KL divergence (nats)", [each.y for each in points], True, 0.1),
            tuple(joined(points, looks_of([each.name for each in self.figures]))),
        )

    @property
    def heads(self) -> list[str]:
        """The heads of the columns of `rows`."""
        figures = ["KL divergence (nats)", "most likely kept"] if self.exact is None else ["quality"]
        return ["reduction", "bits per value", *figures]

    def rows(self) -> list[list[str]]:
        """The table: a row for each reduction."""
        rows = []
        for each in self.figures:
            name = each.name if each.draws == 1 else f"{each.name} ({each.draws} draws)"
            measured = [each.quality] if each.kept is None else [each.divergence]
            kept = [] if each.kept is None else [
                f"{100 * each.kept.value:.1f}% [{100 * max(each.kept.low, 0.0):.1f}, {100 * min(each.kept.high, 1.0):.1f}]"
            ]
            rows.append([name, f"{each.bits:.2f}", *map(str, measured), *kept])
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON types."""
        found: dict[str, Any] = json_value({
            "inputs": self.inputs, "exact": self.exact, "reductions": [each.to_dict() for each in self.figures],
        })
        return found

    @property
    def _inputs(self) -> str:
        return f"{self.inputs} input{'s' if self.inputs > 1 else ''}"

    def __repr__(self) -> str:
        best = min(self.figures, key=lambda each: each.bits)
        fewest = f"the fewest bits per value: {best.bits:.2f}, {best.name}"
        return f"ReductionComparison({len(self)} reductions, {self._inputs}; {fewest})"

    def _repr_html_(self) -> str:
        title = self._inputs
        title += "" if self.exact is None else f"; quality without a reduction: {self.exact:.6g}"
        return html_table(self.heads, self.rows(), title=title)


def compare_reductions(
    pipeline: Pipeline,
    inputs: Any,
    reductions: Mapping[str, Reduction] | Sequence[Reduction],
    *,
    quality: Quality | None = None,
    draws: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> ReductionComparison:
    """Apply each reduction to the pipeline on one input, or on each of a list, and measure bits and damage.

    The output `logits`, or the only one, must hold rows of logits of classes, unless there is a `quality` of the outputs.
    Reductions have the names that are given, or those of their perturbations.

    >>> from workbench.propagation.reduced import Prune
    >>> double = Pipeline([("logits", lambda x: 2 * x)])
    >>> rows = np.random.default_rng(0).normal(size=(256, 4))
    >>> found = compare_reductions(double, rows, {"half": Prune("input", 0.5), "most": Prune("input", 0.9)})
    >>> [round(each.bits, 2) for each in found.figures], found["half"].divergence.value > found["most"].divergence.value
    ([9.0, 14.88], True)
    """
    require_pipeline(pipeline)
    function("quality", quality)
    function("progress", progress)
    listed = _listed(reductions)
    given = list(inputs) if _several(inputs) else [inputs]
    most, seed = whole_number("draws", draws, 1), whole_number("seed", seed, 0)
    tell = progress or (lambda share, what: None)
    exact = []
    for x in given:
        tell(0.0, "without a reduction")
        exact.append(dict(pipeline.run(x).results))
    measure = _Measure(pipeline, given, exact, quality)
    figures = []
    for number, (name, chosen) in enumerate(listed):
        tell((number + 1) / (len(listed) + 1), name)
        figures.append(measure.figures(name, chosen, most, seed))
    best = None if quality is None else float(np.mean([quality(results) for results in exact]))
    return ReductionComparison(tuple(figures), len(given), best)


def _several(inputs: Any) -> bool:
    """A list of inputs, rather than one that is written as a list of numbers."""
    return isinstance(inputs, list | tuple) and bool(inputs) and not isinstance(inputs[0], numbers.Number | list)


def _listed(reductions: Any) -> list[tuple[str, tuple[Perturbation, ...]]]:
    given = reductions if isinstance(reductions, Mapping | Sequence) and not isinstance(reductions, str) else [reductions]
    named = given.items() if isinstance(given, Mapping) else ((None, each) for each in given)
    found = []
    for name, each in named:
        chosen = (each,) if isinstance(each, Perturbation) else tuple(each) if isinstance(each, Sequence) else ()
        if not chosen or not all(isinstance(one, Perturbation) for one in chosen):
            raise WorkbenchError(f"a reduction must be perturbations such as Prune or Bounded; got {briefly(each)}")
        found.append((", ".join(map(repr, chosen)) if name is None else str(name), chosen))
    if not found:
        raise WorkbenchError("a comparison needs at least one reduction; got none")
    return found


@dataclass(frozen=True, eq=False)
class _Measure:
    """What reductions do to the results on these inputs."""

    pipeline: Pipeline
    inputs: Sequence[Any]
    exact: Sequence[Results]
    quality: Quality | None

    def figures(self, name: str, chosen: Sequence[Perturbation], most: int, seed: int) -> ReductionFigures:
        """Those of one reduction; what leaves nothing to chance is done once."""
        draws = [_Applied(self.pipeline, chosen, seed, 0)]
        measured = [self._measured(draws[0])]
        while draws[0].random and len(draws) < most:
            draws.append(_Applied(self.pipeline, chosen, seed, len(draws)))
            measured.append(self._measured(draws[-1]))
        found = {kind: _mean([each[kind] for each in measured]) for kind in measured[0]}
        bits = float(np.mean([each.bits for each in draws]))
        return ReductionFigures(name, bits, draws[0].values, len(draws), **found)

    def _measured(self, applied: _Applied) -> dict[str, list[np.ndarray]]:
        """The numbers of each input: by row, or one for the quality."""
        found: dict[str, list[np.ndarray]] = {"quality": []} if self.quality else {"divergence": [], "kept": []}
        for x, exact in zip(self.inputs, self.exact, strict=True):
            changed = self.pipeline.run(x, at=applied.interventions).results
            if self.quality:
                found["quality"].append(np.array([float(self.quality(changed))]))
                continue
            right, other = (self._logits(results) for results in (exact, changed))
            found["divergence"].append(divergences(right, other))
            found["kept"].append((right.argmax(axis=1) == other.argmax(axis=1)).astype(np.float64))
        return found

    def _logits(self, results: Results) -> np.ndarray:
        site = "logits" if "logits" in results else next(iter(results))
        rows = to_host(results[site])
        if (site != "logits" and len(results) > 1) or rows.ndim != 2 or rows.dtype.kind != "f" or rows.shape[1] < 2:
            raise WorkbenchError(f"a divergence needs rows of logits; {site!r} has shape {rows.shape}: give a quality")
        return rows


class _Applied:
    """Perturbations with the random numbers of one draw. A site that is the same again is not changed anew."""

    def __init__(self, pipeline: Pipeline, chosen: Sequence[Perturbation], seed: int, draw: int) -> None:
        self.random, self._pipeline, self._key = False, pipeline, (seed, draw)
        self._by_site: dict[str, list[tuple[int, Perturbation]]] = {}
        for number, each in enumerate(chosen):
            self._by_site.setdefault(require_known("site", each.site, pipeline.sites), []).append((number, each))
        self._known: dict[str, tuple[Array, Changed]] = {}

    @property
    def interventions(self) -> dict[str, Any]:
        """What is done to each site."""
        return {site: lambda values, site=site: self._changed(site, values) for site in self._by_site}

    @property
    def values(self) -> int:
        """How many values the sites have."""
        return sum(values.size for values, _ in self._known.values())

    @property
    def bits(self) -> float:
        """The bits of a value: those that the last perturbation with a size took, else those of its type."""
        return sum(map(_bits, *zip(*self._known.values(), strict=True))) / self.values

    def _changed(self, site: str, values: Array) -> Changed:
        if site in self._known and np.array_equal(to_host(self._known[site][0]), to_host(values)):
            return self._known[site][1]
        done = Changed(values, np.empty(0, np.int64))
        notes: list[Mapping[str, Any]] = []
        for number, each in self._by_site[site]:
            draws = draws_of(*self._key, number)
            done = each.apply(done.values, draws, self._pipeline.boxes.get(site))
            self.random |= repr(draws.bit_generator.state) != repr(draws_of(*self._key, number).bit_generator.state)
            notes += done.notes
        self._known[site] = (values, Changed(done.values, None, notes))
        return self._known[site][1]


def _bits(values: Array, done: Changed) -> float:
    sizes = [8 * note["nbytes"] for note in done.notes if "nbytes" in note]
    return float(sizes[-1] if sizes else 8 * values.nbytes)


def _mean(draws: Sequence[Sequence[np.ndarray]]) -> Mean:
    """The mean over draws, or over the stretches of the rows of a single one; infinite where a number is not finite."""
    means = [float(np.concatenate(each).mean()) for each in draws]
    if not all(map(math.isfinite, means)):
        return Mean(math.inf, math.inf, math.inf)
    if len(draws) > 1:
        return mean_of(means)
    parts = [float(part.mean()) for rows in draws[0] for part in np.array_split(rows, max(len(rows) // STRETCH, 1))]
    return mean_of(parts, means[0])
