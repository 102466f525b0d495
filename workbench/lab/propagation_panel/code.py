"""The Python code that reproduces the trace of the propagation panel, with public names only, for a script."""

from __future__ import annotations

from workbench.lab.propagation_panel.state import PropagationState
from workbench.propagation import Bounded


def code(state: PropagationState, pipeline: str, x: str, told: str, counted: bool = False) -> str:
    """The trace of the error with its figures at the site `told`, and the campaign if there was one.

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
    if state.protections:
        sites = "" if state.protect is None else f", sites={list(state.protect)!r}"
        how = repr(state.protections[0] if len(state.protections) == 1 else list(state.protections))
        lines.append(f"protected = wb.propagation.protected({pipeline}, {x}, {how}{sites})")
        pipeline = "protected"
    lines += [
        f"error = wb.propagation.{_perturbation(state)}",
        f"trace = wb.propagation.trace({pipeline}, {x}, error{drawn})",
        "print(trace)",
        f'print(trace["{told}"].error, trace["{told}"].predicted, trace["{told}"].badge)',
    ]
    if counted:
        kind = "" if state.fault == "flip" else f", kind={state.fault!r}"
        lines += [
            f"faults = wb.propagation.strata({pipeline}, {x}, {state.bits!r}{kind})",
            f"until = {state.trials} * len(faults)",
            f"campaign = wb.propagation.campaign({pipeline}, {x}, faults, seed={state.seed}, until=until)",
            f'print(campaign.rate("{state.outcome}"))',
        ]
    return "\n".join(lines)


def _perturbation(state: PropagationState) -> str:
    error = state.perturbation
    if not isinstance(error, Bounded):
        return repr(error)
    codec = "" if state.codec == "auto" else f", codec={state.codec!r}"
    return f"Bounded({state.site!r}, wb.Relative({state.bound!r}){codec})"
