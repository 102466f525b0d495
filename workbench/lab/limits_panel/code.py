"""The Python code that reproduces the figures of the limits panel, with public names only, for a script."""

from __future__ import annotations

from collections.abc import Collection

from workbench.lab.limits_panel.state import LimitsState


def code(state: LimitsState, name: str, compared: Collection[float] = (), fixed: bool = False) -> str:
    """The limits of the field in the variable `name`, and the operating points of codecs at the error bounds `compared`.

    `fixed` adds the bounds for codes of fixed length.

    >>> print(code(LimitsState(eb=0.05, tile=16), "field"))
    import workbench as wb
    <BLANKLINE>
    eb = 0.05
    distortion = eb**2 / 3   # the mean square of errors spread evenly within the bound
    limits = wb.rate_distortion(field)
    tiled = limits.tiled(16)
    print(limits.rate(distortion), limits.interval(distortion), limits.price_of_one_model(distortion))
    print(tiled.rate(distortion))
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
        "print(limits.pointwise(eb), limits.instance(eb), limits.gaussianity)",
    ]
    if fixed:
        bounds = (f'tiled.{bound}(distortion, {state.eps!r}, per="tile")' for bound in ("converse", "achievable"))
        lines.append(f"print({', '.join(bounds)})")
    if compared:
        lines.append(f"points = limits.compare(bounds=[wb.Absolute(each) for each in {sorted(compared, reverse=True)}])")
    return "\n".join(lines)
