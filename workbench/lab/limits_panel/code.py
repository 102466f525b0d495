"""The Python code that reproduces the figures of the limits panel."""

from __future__ import annotations

from collections.abc import Collection

from workbench.lab.limits_panel.state import LimitsState
from workbench.lab.script import call, script


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
    ends = [f'tiled.{bound}(distortion, {state.eps!r}, per="tile")' for bound in ("converse", "achievable")]
    bounds = sorted(compared, reverse=True)
    return script([
        f"eb = {state.eb!r}",
        "distortion = eb**2 / 3   # the mean square of errors spread evenly within the bound",
        f"limits = {call('wb.rate_distortion', name, regions=None if state.regions == 'auto' else state.regions)}",
        f"tiled = limits.tiled({state.tile})",
        "print(limits.rate(distortion), limits.interval(distortion), limits.price_of_one_model(distortion))",
        "print(tiled.rate(distortion))",
        "print(limits.pointwise(eb), limits.instance(eb), limits.gaussianity)",
        *([f"print({', '.join(ends)})"] if fixed else []),
        *([f"points = limits.compare(bounds=[wb.Absolute(each) for each in {bounds}])"] if compared else []),
    ])
