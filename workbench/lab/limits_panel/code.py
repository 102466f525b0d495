"""The Python code that reproduces the figures of the limits panel, with public names only, for a script."""

from __future__ import annotations

from workbench.lab.limits_panel.state import LimitsState


def code(state: LimitsState, name: str, compared: bool = False) -> str:
    """The limits of the field in the variable `name`; when codecs were `compared`, their operating points.

    >>> print(code(LimitsState(eb=0.05, tile=16), "field"))
    import workbench as wb
    <BLANKLINE>
    eb = 0.05
    distortion = eb**2 / 3   # the mean square of errors spread evenly within the bound
    limits = wb.rate_distortion(field)
    tiled = limits.tiled(16)
    print(limits.rate(distortion), limits.interval(distortion), limits.price_of_one_model(distortion))
    print(tiled.rate(distortion))
    print(tiled.converse(distortion, 0.01, per="tile"), tiled.achievable(distortion, 0.01, per="tile"))
    print(limits.pointwise(eb), limits.instance(eb), limits.gaussianity)
    """
    regions = "" if state.regions == "auto" else f", regions={state.regions}"
    lines = [
        "import workbench as wb",
        "",
        f"eb = {state.eb!r}",
        "distortion = eb**2 / 3   # the mean square of errors spread evenly within the bound",
        f"limits = wb.rate_distortion({name}{regions})",
        f"tiled = limits.tiled({state.tile})",
        "print(limits.rate(distortion), limits.interval(distortion), limits.price_of_one_model(distortion))",
        "print(tiled.rate(distortion))",
        "print("
        + ", ".join(f'tiled.{bound}(distortion, {state.eps!r}, per="tile")' for bound in ("converse", "achievable")) + ")",
        "print(limits.pointwise(eb), limits.instance(eb), limits.gaussianity)",
    ]
    return "\n".join([*lines, *(["points = limits.compare()"] if compared else [])])
