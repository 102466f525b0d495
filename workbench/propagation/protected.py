"""`wb.propagation.protected`: a pipeline that checks the arrays at its sites before they are read.

A check sees an array after all that went wrong there, and what its stage has read. So it stands for the checksums that a
stage keeps of its result, for a guard of what the next stages read, and for computing a stage twice. All else that is known
about the stages stays: predictions, guaranteed intervals, updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.containers import array_of
from workbench.propagation.execution import Check
from workbench.propagation.names import require_known
from workbench.propagation.pipeline import Pipeline, Run
from workbench.propagation.protection import Findings, Finite, Guard, Twice, learn_ranges
from workbench.propagation.stage import Stage

Protection = Literal["checksums", "twice", "range", "finite"]
PROTECTIONS: tuple[Protection, ...] = get_args(Protection)   # in the order in which they are applied
FEWEST = 16    # values from which a range is learned
MARGIN = 0.2   # on both sides of a learned range, as a share of its width


def protected(
    pipeline: Pipeline,
    x: Any,
    how: Protection | Sequence[Protection] | Mapping[str, Guard] = "range",
    sites: str | Iterable[str] | None = None,
) -> Pipeline:
    """The pipeline with protected sites: by default all, or those that a campaign has found the most vulnerable.

    `how` is one or several of: "checksums" of the stages that have some (products, convolutions, Fourier transforms,
    k-means), "twice" to compute stages again and take the second result where the bits differ, "range" to bring values
    back into the range of the run without an error, a fifth wider (results and arrays of few values have none), and
    "finite" to replace NaN and infinity by zero. Or it is a guard for each of some sites, such as those that
    `learn_ranges` makes of several runs. `x` is the input, or a finished run. Each of the named sites must get a check;
    of all sites, those for which there is none are left out.

    >>> import numpy as np
    >>> from workbench.propagation import BitFlip, campaign
    >>> pipeline, x = Pipeline([("squares", lambda x: x * x), ("sum", lambda s: s.sum())]), np.ones(64)
    >>> found = campaign(pipeline, x, [BitFlip("squares", bit="exponent")], until=50)
    >>> safe = protected(pipeline, x, "twice", sites=found.most_vulnerable(1))
    >>> campaign(safe, x, [BitFlip("squares", bit="exponent")], until=50).counts[0]["masked"]
    50
    """
    run = x if isinstance(x, Run) else pipeline.run(x)
    named = [sites] if isinstance(sites, str) else pipeline.sites if sites is None else list(sites)
    for site in named:
        require_known("site", site, pipeline.sites)
    found: dict[str, list[Check]] = {site: [] for site in named}
    if isinstance(how, Mapping):
        for site, guard in how.items():
            require_known("site", site, pipeline.sites)
            if sites is None or site in found:
                found[site].append(Guarded(guard))
    else:
        asked = [how] if isinstance(how, str) else list(how)
        for each in asked:
            require_known("protection", each, PROTECTIONS)
        for each in sorted(set(asked), key=PROTECTIONS.index):
            for site, check in MAKERS[each](run, named).items():
                found[site].append(check)
    checks = {site: tuple(each) for site, each in found.items() if each}
    bare = [site for site in named if site not in checks]
    if not checks or (sites is not None and bare):
        left = ", ".join(bare) or "none"
        named_ones = " and ".join([how] if isinstance(how, str) else map(str, how))
        raise WorkbenchError(f"protection by {named_ones} must suit the sites; there is none for {left}: choose another")
    return pipeline.like(checks=checks)


@dataclass(frozen=True)
class Guarded:
    """A guard as the check of a site.

    >>> import numpy as np
    >>> Guarded(Finite())([], np.array([1.0, np.nan]))[0].tolist()
    [1.0, 0.0]
    """

    guard: Guard

    def __call__(self, read: Sequence[Any], values: Array) -> tuple[Array, Findings]:
        """The values as they should be."""
        return self.guard(values)


@dataclass(frozen=True)
class Verified:
    """The checksums of a stage as the check of the site that it writes."""

    stage: Stage

    def __call__(self, read: Sequence[Any], values: Array) -> tuple[Array, Findings]:
        """The values, corrected by the checksums."""
        assert self.stage.verify is not None
        return self.stage.verify([array_of(each) for each in read], values)


@dataclass(frozen=True)
class Result:
    """The function of a stage, for one of its outputs."""

    stage: Stage
    place: int

    def __call__(self, *read: Any) -> Array:
        """What it returns for the site."""
        results = self.stage.function(*read)
        return array_of(results[self.place] if len(self.stage.outputs) > 1 else results)


def _checksums(run: Run, sites: Sequence[str]) -> dict[str, Check]:
    stages = {site: run.pipeline.stage_of(site) for site in sites}
    return {site: Verified(stage) for site, stage in stages.items() if stage is not None and stage.verify is not None}


def _twice(run: Run, sites: Sequence[str]) -> dict[str, Check]:
    if run.pipeline.whole:
        return {}
    stages = {site: run.pipeline.stage_of(site) for site in sites}
    return {site: Twice(Result(stage, stage.outputs.index(site))) for site, stage in stages.items() if stage is not None}


def _range(run: Run, sites: Sequence[str]) -> dict[str, Check]:
    """Of results, and of few values, the run itself would be learned by heart."""
    inner = [site for site in sites if site not in run.pipeline.outputs and run[site].size >= FEWEST]
    real = {site: run[site] for site in inner if run[site].dtype.kind == "f"}
    return {site: Guarded(guard) for site, guard in learn_ranges([real], MARGIN).items()} if real else {}


def _finite(run: Run, sites: Sequence[str]) -> dict[str, Check]:
    return {site: Guarded(Finite()) for site in sites if run[site].dtype.kind in "fc"}


MAKERS: Mapping[Protection, Callable[[Run, Sequence[str]], dict[str, Check]]] = {
    "checksums": _checksums, "twice": _twice, "range": _range, "finite": _finite,
}
