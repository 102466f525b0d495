"""The graph of a pipeline with the error at every site, and the button to see the error travel from site to site.

A site has a place, and its error as a number, a place on an axis and a word. Sites are buttons of HTML over arrows of SVG,
so that they have names, focus and keys, and follow the theme of the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.lab.part import Part
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import Floor, Travel
from workbench.propagation import Pipeline, Run, Trace

LEAST, MOST = 1e-18, 1e40   # what is beyond is drawn at the end of the axis
SIGNS = {
    "linear": "", "non-linear": "≠", "round-off-limited": "≈", "discrete": "#", "NaN": "!", "unchanged": "", "stopped": "✕",
}
Node = dict[str, Any]


class StageGraph(Part):
    """The drawing; `look(site)` is called when a site is pressed, and for each step of *play*.

    Its content: `nodes` and `arrows`; the `path` of sites that the error reaches, in order; the `ends` of the axis of
    errors as texts; `key`, the signs in words; and whether all is `stale`.

    >>> graph = StageGraph(print, [("input", "sum")])
    >>> graph.content["arrows"]
    [['input', 'sum']]
    """

    kind = "graph"

    def __init__(self, look: Callable[[str], object], arrows: Sequence[tuple[str, str]]) -> None:
        super().__init__(nodes=[], arrows=[list(pair) for pair in arrows], path=[], ends=[], key="", stale=False)
        self._look = look

    def heard(self, content: Mapping[str, Any]) -> None:
        """A site was pressed."""
        if content.get("look") in {node["site"] for node in self.content["nodes"]}:
            self._look(content["look"])


def nodes(
    run: Run, state: PropagationState, travel: Travel | None, floor: Floor | None, traced: Trace | None
) -> list[Node]:
    """One entry for each site; places are shares of one logarithmic axis for all."""
    low, high = scale(travel, floor)
    found = []
    for site, (column, row) in places(run.pipeline).items():
        error = None if travel is None else travel.errors.get(site)
        told = None if traced is None or error is None else traced[site]
        kind = _kind(site, travel, error, None if told is None else told.badge)
        stopped = kind == "stopped"
        found.append({
            "site": site, "column": column, "row": row, "about": about(run, site), "kind": kind,
            "sign": SIGNS.get(kind, ""), "error": _text(error, kind),
            "brief": "" if error is None or stopped else brief_text(error), "chosen": site == state.look,
            "hit": site == state.site,
            "bar": None if error is None or stopped else _share(error, low, high),
            "floor": None if floor is None or floor[site] == 0 else _share(floor[site], low, high),
            "predicted": None if told is None or stopped or not told.predicted else _share(told.predicted, low, high),
        })
    return found


def places(pipeline: Pipeline) -> dict[str, tuple[int, int]]:
    """The column and the row of each site, right of all that it is computed from, in a row of these as far as that is free.

    >>> places(Pipeline([("a", lambda x: x), ("b", lambda a: a), ("c", lambda x: x)], outputs=["b", "c"]))
    {'input': (0, 0), 'a': (1, 0), 'b': (2, 0), 'c': (3, 0)}
    """
    found: dict[str, tuple[int, int]] = {}
    for site in pipeline.sites:
        stage = pipeline.stage_of(site)
        sources = [found[name] for name in (stage.inputs or () if stage else ())]
        column, row = max(sources, key=lambda place: place[0], default=(-1, 0))
        while (column + 1, row) in found.values():
            row += 1
        found[site] = column + 1, row
    return found


def arrows(pipeline: Pipeline) -> list[tuple[str, str]]:
    """The pairs of sites of which the second is computed from the first."""
    return list(dict.fromkeys((read, written) for read, _, written in pipeline.edges()))


def scale(travel: Travel | None, floor: Floor | None) -> tuple[float, float]:
    """The ends of the axis, whole powers of ten: below the floor, above the largest error."""
    errors = [] if travel is None else [error for site, error in travel.errors.items() if site not in travel.stopped]
    floors = [] if floor is None else list(floor.values())
    shown = [min(max(each, LEAST), MOST) for each in (*errors, *floors, 1.0) if each > 0 and not math.isnan(each)]
    return 10.0 ** (math.floor(math.log10(min(shown))) - 1), 10.0 ** math.ceil(math.log10(max(shown)))


def about(run: Run, site: str) -> str:
    """The type and the shape of an array.

    >>> import numpy as np
    >>> from workbench.propagation import Pipeline
    >>> about(Pipeline([("sum", lambda x: x.sum())]).run(np.ones((2, 3))), "input")
    'float64 2 x 3'
    """
    array = run[site]
    return f"{array.dtype} {' x '.join(map(str, array.shape)) or 'number'}"


def error_text(error: float) -> str:
    """A relative error in a few letters.

    >>> error_text(0.0), error_text(1.234e-5), error_text(0.25), error_text(float("inf"))
    ('0', '1.2e-05', '0.25', '∞')
    """
    if error == 0:
        return "0"
    return f"{error:.2g}" if math.isfinite(error) else "∞"


def brief_text(error: float) -> str:
    """A relative error in at most five letters or so, where there is little room.

    >>> brief_text(0.0), brief_text(1.234e-5), brief_text(0.0256), brief_text(26.0), brief_text(1e40)
    ('0', '1e-5', '0.03', '26', '1e40')
    """
    if error == 0 or not math.isfinite(error) or 0.01 <= error < 1000:
        return "0" if error == 0 else "∞" if not math.isfinite(error) else f"{error:.2f}" if error < 1 else f"{error:.2g}"
    factor, power = f"{error:.0e}".split("e")
    return f"{factor}e{int(power)}"


def explained(trace: Trace) -> str:
    """The signs that occur, in words."""
    kinds = dict.fromkeys(each.badge for each in trace.stages)
    return ", ".join(f"{SIGNS[kind]} {kind}" for kind in kinds if SIGNS[kind])


def _kind(site: str, travel: Travel | None, error: float | None, badge: str | None) -> str:
    if travel is None:
        return "waiting"
    if site in travel.stopped:
        return "stopped"
    if error is None:
        return "untouched"
    return badge or ("NaN" if travel.lost[site] else "unchanged" if error == 0 else "reached")


def _text(error: float | None, kind: str) -> str:
    if kind == "stopped":
        return "not reached"
    return "" if error is None else error_text(error)


def _share(error: float, low: float, high: float) -> float:
    """The place of an error between both ends, from 0 to 1; 0 is where there is none."""
    if error <= 0:
        return 0.0
    place = (math.log10(min(max(error, low), high)) - math.log10(low)) / (math.log10(high) - math.log10(low))
    return round(min(max(place, 0.0), 1.0), 4)
