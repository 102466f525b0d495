"""The Python code that reproduces the trace of the propagation panel, with public names only, for a script."""

from __future__ import annotations

from workbench.lab.propagation_panel.counting import Asked
from workbench.lab.propagation_panel.state import UNPROTECTED, ChosenProtection, PropagationState
from workbench.propagation import Bounded


def code(state: PropagationState, pipeline: str, x: str, looked_at: str, campaign: Asked | None = None) -> str:
    """The trace of the error with its figures at the site `looked_at`, and the campaign that is shown, if any.

    `pipeline` and `x` are names of variables.

    >>> print(code(PropagationState("input", "input", bit=30), "pipeline", "density", "waves"))
    import workbench as wb
    <BLANKLINE>
    error = wb.propagation.BitFlip('input', bit=30)
    trace = wb.propagation.trace(pipeline, density, error)
    print(trace)
    print(trace["waves"].error, trace["waves"].predicted, trace["waves"].badge)
    """
    drawn = "".join(f", {name}={value}" for name, value in (("seed", state.seed), ("trial", state.trial)) if value)
    lines = ["import workbench as wb", ""]
    tried = "protected" if state.protections else pipeline
    lines += [
        *_protected(state.protection, pipeline, x),
        f"error = wb.propagation.{_perturbation(state)}",
        f"trace = wb.propagation.trace({tried}, {x}, error{drawn})",
        "print(trace)",
        f'print(trace["{looked_at}"].error, trace["{looked_at}"].predicted, trace["{looked_at}"].badge)',
    ]
    if campaign is not None:
        if campaign.protection != state.protection:
            lines += _protected(campaign.protection, pipeline, x)
            tried = "protected" if campaign.protection != UNPROTECTED else pipeline
        kind = "" if campaign.kind == "flip" else f", kind={campaign.kind!r}"
        lines += [
            f"faults = wb.propagation.strata({tried}, {x}, {campaign.bits!r}{kind})",
            f"until = {campaign.trials} * len(faults)",
            f"campaign = wb.propagation.campaign({tried}, {x}, faults, seed={campaign.seed}, until=until)",
            f'print(campaign.rate("{state.outcome}"))',
        ]
    return "\n".join(lines)


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
