"""`wb.propagation.tolerated`: the largest rate of faults that costs no more than so much quality, in the mean over chips.

Rates are points of a fixed logarithmic grid, in which bisection finds the last one that the mean loss of some draws allows.
Draws are numbered, and draw t has the same random numbers at every rate; where faults of a lower rate are among those of a
higher one, as in `StuckCells`, the curve of losses is smooth although the draws are few.

Two more bisections ask for the last rate whose interval is below the limit, and the first whose interval is above it. Each
interval is one-sided, by Student's t, with the error that is allowed divided by the number of intervals that are asked (of
Bonferroni), so both statements hold together, if the mean loss does not fall with the rate and draws are not of rare, much
worse kinds: of those, `unseen` says how frequent they may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arguments import function, number, positive, whole_number
from workbench.backend import Array, to_host
from workbench.charts.description import Axis, Band, Chart, Rule, Series
from workbench.charts.table import html_table
from workbench.errors import WorkbenchError, briefly
from workbench.json_values import json_value
from workbench.progress import Progress
from workbench.propagation.charts import BLUE, HEIGHT
from workbench.propagation.containers import array_of
from workbench.propagation.intervals import CONFIDENCE, Mean, clopper_pearson, mean_of
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.pipeline import Pipeline, Run
from workbench.propagation.stage import Detected, StageFailed

STEP = 2.0 ** (1 / 8)     # from one rate of the grid to the next
Results = Mapping[str, Array]
Quality = Callable[[Results], float]
OfRate = Callable[[float], Perturbation | Sequence[Perturbation]]


def accuracy(labels: Any) -> Quality:
    """The share of rows of the output whose largest number is that of their class: a quality for `tolerated`.

    >>> accuracy([0, 1])({"logits": np.array([[2.0, 1.0], [4.0, 3.0]])})
    0.5
    """
    return _Accuracy(np.asarray(labels))


@dataclass(frozen=True, eq=False)
class _Accuracy:
    labels: np.ndarray

    def __call__(self, results: Results) -> float:
        if len(results) != 1:
            raise WorkbenchError(f"accuracy needs one output, of rows of numbers; got {', '.join(results)}: give a quality")
        (rows,) = map(to_host, results.values())
        if rows.ndim != 2 or self.labels.shape != rows.shape[:1]:
            raise WorkbenchError(f"accuracy needs a label for each row of {rows.shape}; got labels of {self.labels.shape}")
        return float(np.mean(rows.argmax(axis=1) == self.labels))


@dataclass(frozen=True, eq=False, repr=False)
class Tolerated:
    """The largest rate whose mean loss is at most `loss`.

    `rate` is where the mean over the draws crosses the limit. With the stated confidence, the mean over all chips is within
    it up to the rate `certain` (0: at none that was asked), and beyond it from `too_much` on (infinite: at none). `losses`
    are the means at all rates that were asked, with those one-sided intervals.
    """

    rate: float
    certain: float
    too_much: float
    loss: float
    confidence: float
    draws: int
    quality: float
    losses: Mapping[float, Mean]

    @property
    def unseen(self) -> float:
        """The share of chips that may be of a kind that no draw was, with the same confidence."""
        return clopper_pearson(0, self.draws, 2 * self.confidence - 1).high

    @property
    def promise(self) -> str:
        """What is certain, as a sentence."""
        lowest, highest = min(self.losses), max(self.losses)
        within = f"up to {_percent(self.certain)} the mean loss is at most {self.loss:g}" if self.certain else (
            f"at {_percent(lowest)} the mean loss is not certainly {self.loss:g} or less"
        )
        beyond = f"from {_percent(self.too_much)} on it is more" if math.isfinite(self.too_much) else (
            f"at {_percent(highest)} it is not certainly more"
        )
        return (
            f"with {100 * self.confidence:g}% confidence, {within}, and {beyond}, if it does not fall with the rate; kinds "
            f"of chips that are less than {100 * self.unseen:.2g}% of all may be missed by {self.draws} draws"
        )

    def plot(self) -> Chart:
        """The mean loss at each rate, with its interval and the limit."""
        rates = sorted(each for each, found in self.losses.items() if math.isfinite(found.value))
        means = [self.losses[rate] for rate in rates]
        low, high = [each.low for each in means], [each.high for each in means]
        tooltips = [f"rate {rate:.3g}: loss {each}" for rate, each in zip(rates, means, strict=True)]
        return Chart(
            "Loss of quality", Axis.around("rate of faults", rates, True),
            Axis.around("mean loss", [*(each.value for each in means), 0.0, 2 * self.loss]),
            (
                Rule("limit", "y", self.loss), Band("interval", rates, low, high, BLUE),
                Series("mean", rates, [each.value for each in means], BLUE, marker="circle", tooltips=tooltips),
            ),
            height=HEIGHT,
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON types."""
        losses = [{"rate": rate, **vars(self.losses[rate])} for rate in sorted(self.losses)]
        found: dict[str, Any] = json_value({**vars(self), "losses": losses, "promise": self.promise})
        return found

    def __repr__(self) -> str:
        return f"Tolerated({_percent(self.rate)} at a loss of {self.loss:g} of {self.quality:.4g}; {self.promise})"

    def _repr_html_(self) -> str:
        rows = [[f"{rate:.3g}", str(self.losses[rate])] for rate in sorted(self.losses)]
        return html_table(["rate", "mean loss"], rows, title=repr(self))


def tolerated(
    pipeline: Pipeline,
    x: Any,
    perturbation_of_rate: OfRate,
    loss: float = 0.01,
    *,
    quality: Quality | None = None,
    draws: int = 30,
    seed: int = 0,
    rates: tuple[float, float] = (1e-5, 0.5),
    confidence: float = CONFIDENCE,
    progress: Progress | None = None,
) -> Tolerated:
    """The largest rate of faults between these that costs at most `loss` of the quality, by bisection over many draws.

    `perturbation_of_rate` makes one or several perturbations. `quality` takes the outputs by name, and is larger for better
    ones, as `accuracy(labels)` is; by default, the share of rows whose largest number (or of labels, which) is that of the
    unperturbed run. A draw in which a stage ends with an error costs infinitely much.

    >>> from workbench.propagation.stuck_cells import StuckCells
    >>> double = Pipeline([("double", lambda x: 2 * x)])
    >>> weights = np.random.default_rng(0).normal(size=(400, 5))
    >>> found = tolerated(double, weights, lambda rate: StuckCells("input", off=rate), loss=0.05)
    >>> 0 < found.certain < found.rate < found.too_much < 0.2
    True
    """
    limit, draws = positive("loss", loss), whole_number("draws", draws, 3)
    first, last = (number("each of rates", each, 1e-12, 1.0) for each in rates)
    if not first < last:
        raise WorkbenchError(f"rates must be a smaller and a larger one; got {rates}")
    sure = number("confidence", confidence, 0.5, 0.999)
    if not callable(perturbation_of_rate):
        raise WorkbenchError(f"perturbation_of_rate must be a function of a rate; got {briefly(perturbation_of_rate)}")
    for name, given in (("quality", quality), ("progress", progress)):
        function(name, given)
    run = x if isinstance(x, Run) else pipeline.run(x)
    count = math.ceil(math.log(last / first) / math.log(STEP)) + 1
    grid = [min(first * STEP**place, last) for place in range(count)]
    tests = 2 * math.ceil(math.log2(count + 1))
    level = min(1 - 2 * (1 - sure) / tests, 0.9999)
    study = _Study(run, perturbation_of_rate, quality or _Kept(run), draws, whole_number("seed", seed, 0), level, progress)
    at = study.loss_at
    crossing = _bisected(0, count, lambda place: at(grid[place]).value <= limit)
    certain = _bisected(0, crossing, lambda place: at(grid[place]).high <= limit)
    beyond = _bisected(crossing, count, lambda place: not at(grid[place]).low > limit)
    return Tolerated(
        rate=grid[crossing - 1] if crossing else 0.0,
        certain=grid[certain - 1] if certain else 0.0,
        too_much=grid[beyond] if beyond < count else math.inf,
        loss=limit, confidence=sure, draws=draws, quality=study.best, losses=dict(study.found),
    )


def _percent(rate: float) -> str:
    """A rate of faults in words.

    >>> _percent(0.00117)
    '0.117%'
    """
    return f"{100 * rate:.3g}%"


def _bisected(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first place from low on, up to high, that does not hold, if those before do."""
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if holds(middle) else (low, middle)
    return low


class _Study:
    """The losses at each rate, each computed once."""

    def __init__(
        self, run: Run, of_rate: OfRate, quality: Quality, draws: int, seed: int, level: float, progress: Progress | None
    ) -> None:
        self.run, self.of_rate, self.quality, self.draws, self.seed, self.level = run, of_rate, quality, draws, seed, level
        self.tell = progress or (lambda share, what: None)
        self.best = self._quality(run.results)
        if not math.isfinite(self.best):
            raise WorkbenchError(f"quality must be a finite number for the unperturbed run; got {self.best}")
        self.found: dict[float, Mean] = {}

    def loss_at(self, rate: float) -> Mean:
        """The mean loss at a rate."""
        if rate not in self.found:
            self.tell(1 - 0.9 ** len(self.found), f"rate {rate:.3g}")
            given = self.of_rate(rate)
            chosen = list(given) if isinstance(given, Sequence) else [given]
            if not all(isinstance(each, Perturbation) for each in chosen):
                raise WorkbenchError(f"perturbation_of_rate must return perturbations; got {briefly(given)} at {rate:.3g}")
            losses = [self._loss(chosen, draw) for draw in range(self.draws)]
            whole = all(map(math.isfinite, losses))
            self.found[rate] = mean_of(losses, confidence=self.level) if whole else Mean(math.inf, math.inf, math.inf)
        return self.found[rate]

    def _loss(self, chosen: Sequence[Perturbation], draw: int) -> float:
        """What one draw costs; infinitely much where there is no result."""
        pipeline = self.run.pipeline
        with np.errstate(all="ignore"):
            (results,) = pipeline.results(self.run, [pipeline.interventions(chosen, self.seed, draw)])
            if isinstance(results, Detected | StageFailed):
                return math.inf
            after = self._quality({site: array_of(results[site]) for site in pipeline.outputs})
        return math.inf if math.isnan(after) else self.best - after

    def _quality(self, results: Results) -> float:
        return float(self.quality(results))


class _Kept:
    """The share of rows whose largest number is where it was; of labels, the share that is the same."""

    def __init__(self, run: Run) -> None:
        self.pipeline = run.pipeline
        self.right = {site: self._classes(site, array) for site, array in run.results.items()}

    def __call__(self, results: Results) -> float:
        return min(float(np.mean(self.right[site] == self._classes(site, results[site]))) for site in self.right)

    def _classes(self, site: str, values: Array) -> np.ndarray:
        array = to_host(values)
        if self.pipeline.categorical(site):
            return array
        if not array.ndim or array.shape[-1] < 2:
            raise WorkbenchError(f"{site!r} holds no rows of several numbers, of which one is the largest: give a quality")
        return np.asarray(array.argmax(axis=-1))
