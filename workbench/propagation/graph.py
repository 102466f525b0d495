"""The graph of a pipeline: which stage reads what another writes, and an order in which they can be computed."""

from __future__ import annotations

import graphlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.errors import WorkbenchError
from workbench.propagation.names import require_known
from workbench.propagation.stage import Stage


def as_stage(given: Any) -> Stage:
    """A stage, also of a pair of a name and a function.

    >>> as_stage(("double", lambda x: 2 * x))
    Stage('double')
    """
    if isinstance(given, Stage):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return Stage(*given)
    raise WorkbenchError(f"a pipeline is made of stages, or of pairs of a name and a function; got {given!r:.100}")


def connected(stages: Sequence[Stage], inputs: tuple[str, ...]) -> list[Stage]:
    """The stages with the names of all their inputs."""
    if not stages:
        raise WorkbenchError("a pipeline needs at least one stage")
    names = [stage.name for stage in stages]
    sites = [*inputs, *(site for stage in stages for site in stage.outputs)]
    for what, found in (("stages", names), ("sites", sites)):
        twice = sorted({name for name in found if found.count(name) > 1})
        if twice:
            raise WorkbenchError(f"{what} need different names; {twice[0]!r} is there more than once")
    connected, before = [], inputs
    for stage in stages:
        named = stage if stage.inputs is not None else replace(stage, inputs=before)
        for site in named.inputs or ():
            if site not in sites:
                _unknown(f"stage {stage.name!r} reads", site, sites)
        connected.append(named)
        before = stage.outputs
    return connected


def _unknown(what: str, site: str, sites: Sequence[str]) -> None:
    try:
        require_known("site", site, sites)
    except WorkbenchError as error:
        raise WorkbenchError(f"{what} {site!r}, but {error}") from None


def in_order(stages: Sequence[Stage], inputs: tuple[str, ...]) -> tuple[Stage, ...]:
    """The stages, each after those that it reads from, otherwise in the given order."""
    writer = {site: stage.name for stage in stages for site in stage.outputs}
    needs = {stage.name: {writer[site] for site in stage.inputs or () if site in writer} for stage in stages}
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        raise WorkbenchError(f"stages must not go in a circle; got {' -> '.join(reversed(error.args[1]))}") from None
    ordered: list[Stage] = []
    done: set[str] = set()
    while len(ordered) < len(stages):
        stage = next(each for each in stages if each.name not in done and needs[each.name] <= done)
        ordered.append(stage)
        done.add(stage.name)
    return tuple(ordered)
