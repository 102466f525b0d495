"""The Python code that reproduces what the propagation panel shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.lab.propagation_panel.state import ChosenProtection, PropagationState
from workbench.lab.propagation_panel.travel import tolerance_of
from workbench.lab.script import call, script
from workbench.propagation import Bounded, Pipeline


class Names(NamedTuple):
    """The variables that hold the pipeline, the field that is shown, and all fields, of which it may be the first."""

    pipeline: str
    x: str
    fields: str


def code(
    state: PropagationState, pipeline: Pipeline, names: Names, looked_at: str,
    results: Mapping[str, Any] | None = None,
) -> str:
    """The trace of the error with its figures at the site `looked_at`, and what else is among the `results`.

    >>> pipeline = Pipeline([("waves", abs)])
    >>> print(code(PropagationState("input", "input", bit=30), pipeline, Names("pipeline", "density", "density"), "waves"))
    import workbench as wb
    <BLANKLINE>
    error = wb.propagation.BitFlip('input', bit=30)
    trace = wb.propagation.trace(pipeline, density, error)
    print(trace)
    print(trace["waves"].error, trace["waves"].predicted, trace["waves"].badge)
    tolerance = wb.propagation.within(0.01)
    print(tolerance.damage(trace.original.results, trace.changed.results))
    """
    known, error, drawn = results or {}, state.perturbation, {"seed": state.seed or None, "trial": state.trial or None}
    put_in = repr(error)
    if isinstance(error, Bounded):
        codec = None if state.codec == "auto" else state.codec
        put_in = call("Bounded", repr(state.site), f"wb.Relative({state.bound!r})", codec=codec)
    lines = [
        *_protected(state.protection, names),
        f"error = wb.propagation.{put_in}",
        f"trace = {call('wb.propagation.trace', _tried(state.protection, names.pipeline), names.x, 'error', **drawn)}",
        "print(trace)",
        f'print(trace["{looked_at}"].error, trace["{looked_at}"].predicted, trace["{looked_at}"].badge)',
        f"tolerance = {_tolerance(pipeline, names.pipeline, state.tolerance)}",
        "print(tolerance.damage(trace.original.results, trace.changed.results))",
    ]
    if doses := known.get("doses"):
        bounds = ", ".join(repr(each.bound.eb) for each in doses.doses)
        sweep = call("wb.propagation.dose_response", *names[:2], repr(state.site), "bounds", repr(state.codec), "tolerance")
        lines += [f"bounds = [wb.Relative(share) for share in ({bounds},)]", f"sweep = {sweep}", "print(sweep.largest)"]
    if found := known.get("budget"):
        sites = repr(list(found.budget.bounds))
        budget = call("wb.propagation.budget", names.pipeline, names.fields, "tolerance", sites, repr(state.codec))
        lines.append(f"print({budget})")
    if counted := known.get("campaign"):
        lines += _campaign(counted.asked, state, pipeline, names)
    return script(lines)


def _campaign(asked: Any, state: PropagationState, pipeline: Pipeline, names: Names) -> list[str]:
    """The campaign that was asked for, which may have been before the state of now."""
    tried = _tried(asked.protection, names.pipeline)
    same = asked.tolerance == state.tolerance
    tolerance = "tolerance" if same else _tolerance(pipeline, names.pipeline, asked.tolerance)
    kind = None if asked.kind == "flip" else asked.kind
    counted = f"{tried}, {names.x}, faults, {asked.seed}, until, tolerance={tolerance}"
    return [
        *(_protected(asked.protection, names) if asked.protection != state.protection else []),
        f"faults = {call('wb.propagation.strata', tried, names.x, repr(asked.bits), kind=kind)}",
        f"until = {asked.trials} * len(faults)",
        f"campaign = wb.propagation.campaign({counted})",
        f'print(campaign.rate("{state.outcome}"))',
    ]


def _tolerance(pipeline: Pipeline, name: str, limit: float | None) -> str:
    """The tolerance with this limit, as it is made; a measure of the user's own is named where it is."""
    tolerance = tolerance_of(pipeline, limit)
    if tolerance.made is not None:
        return f"wb.propagation.{tolerance.made.__name__}({tolerance.limit!r})"
    return f"{name}.tolerance" if limit is None else f"{name}.tolerance.with_limit({limit!r})"


def _tried(protection: ChosenProtection, pipeline: str) -> str:
    return "protected" if protection[0] else pipeline


def _protected(protection: ChosenProtection, names: Names) -> list[str]:
    """The line that makes the protected pipeline, if anything protects it."""
    how, where = protection
    named = repr(how[0] if len(how) == 1 else list(how))
    sites = None if where is None else list(where)
    return [f"protected = {call('wb.propagation.protected', names.pipeline, names.x, named, sites=sites)}"] if how else []
