"""The Python code that reproduces what the propagation panel shows, with public names only, for a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.lab.propagation_panel.state import UNPROTECTED, ChosenProtection, PropagationState
from workbench.lab.propagation_panel.travel import tolerance_of
from workbench.propagation import Bounded, Pipeline


def code(
    state: PropagationState, pipeline: Pipeline, names: tuple[str, str], looked_at: str,
    results: Mapping[str, Any] | None = None,
) -> str:
    """The trace of the error with its figures at the site `looked_at`, and what else is among the `results`.

    `names` are those of the variables that hold the pipeline and its input.

    >>> pipeline = Pipeline([("waves", abs)])
    >>> print(code(PropagationState("input", "input", bit=30), pipeline, ("pipeline", "density"), "waves"))
    import workbench as wb
    <BLANKLINE>
    error = wb.propagation.BitFlip('input', bit=30)
    trace = wb.propagation.trace(pipeline, density, error)
    print(trace)
    print(trace["waves"].error, trace["waves"].predicted, trace["waves"].badge)
    tolerance = wb.propagation.within(0.01)
    print(tolerance.damage(trace.original.results, trace.changed.results))
    """
    drawn = "".join(f", {name}={value}" for name, value in (("seed", state.seed), ("trial", state.trial)) if value)
    analysis, x = names
    tried = "protected" if state.protections else analysis
    lines = [
        "import workbench as wb",
        "",
        *_protected(state.protection, *names),
        f"error = wb.propagation.{_perturbation(state)}",
        f"trace = wb.propagation.trace({tried}, {x}, error{drawn})",
        "print(trace)",
        f'print(trace["{looked_at}"].error, trace["{looked_at}"].predicted, trace["{looked_at}"].badge)',
        f"tolerance = {_tolerance(pipeline, analysis, state.tolerance)}",
        "print(tolerance.damage(trace.original.results, trace.changed.results))",
    ]
    known = results or {}
    if doses := known.get("doses"):
        shares = ", ".join(repr(each.bound.eb) for each in doses.doses)
        lines += [
            f"bounds = [wb.Relative(share) for share in ({shares},)]",
            f"sweep = wb.propagation.dose_response({analysis}, {x}, {state.site!r}, bounds, {state.codec!r}, tolerance)",
            "print(sweep.largest)",
        ]
    if found := known.get("budget"):
        sites = list(found.budget.bounds)
        lines += [f"print(wb.propagation.budget({analysis}, {x}, tolerance, {sites!r}, {state.codec!r}))"]
    if counted := known.get("campaign"):
        lines += _campaign(counted.asked, state, pipeline, names)
    return "\n".join(lines)


def _campaign(asked: Any, state: PropagationState, pipeline: Pipeline, names: tuple[str, str]) -> list[str]:
    """The campaign that was asked for, which may have been before the state of now."""
    analysis, x = names
    again = asked.protection != state.protection
    tried = "protected" if asked.protection != UNPROTECTED else analysis
    kind = "" if asked.kind == "flip" else f", kind={asked.kind!r}"
    same = asked.tolerance == state.tolerance
    tolerance = "tolerance" if same else _tolerance(pipeline, analysis, asked.tolerance)
    return [
        *(_protected(asked.protection, *names) if again else []),
        f"faults = wb.propagation.strata({tried}, {x}, {asked.bits!r}{kind})",
        f"until = {asked.trials} * len(faults)",
        f"campaign = wb.propagation.campaign({tried}, {x}, faults, {asked.seed}, until, tolerance={tolerance})",
        f'print(campaign.rate("{state.outcome}"))',
    ]


def _tolerance(pipeline: Pipeline, name: str, limit: float | None) -> str:
    """The tolerance with this limit, as it is made; a measure of the user's own is named where it is."""
    tolerance = tolerance_of(pipeline, limit)
    if tolerance.made is not None:
        return f"wb.propagation.{tolerance.made.__name__}({tolerance.limit!r})"
    return f"{name}.tolerance" if limit is None else f"{name}.tolerance.with_limit({limit!r})"


def _protected(protection: ChosenProtection, pipeline: str, x: str) -> list[str]:
    """The line that makes the protected pipeline, if anything protects it."""
    how, where = protection
    if not how:
        return []
    sites = "" if where is None else f", sites={list(where)!r}"
    named = repr(how[0] if len(how) == 1 else list(how))
    return [f"protected = wb.propagation.protected({pipeline}, {x}, {named}{sites})"]


def _perturbation(state: PropagationState) -> str:
    error = state.perturbation
    if not isinstance(error, Bounded):
        return repr(error)
    codec = "" if state.codec == "auto" else f", codec={state.codec!r}"
    return f"Bounded({state.site!r}, wb.Relative({state.bound!r}){codec})"
