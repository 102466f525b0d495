"""What follows from a change of the user's choices in the bounds panel."""

from __future__ import annotations

from workbench.codecs.interpolation import Interpolation
from workbench.data import Field, Particles
from workbench.lab.bounds_panel.goals import GOALS
from workbench.lab.bounds_panel.state import BoundsState, slices
from workbench.lab.choices import one_of, whole
from workbench.lab.engine import Fields


def implied(state: BoundsState, data: Particles | Field, fields: Fields) -> Fields:
    """Another kind of bound is about as strict, another axis resets the window, another target has its usual number.

    A model is chosen together with its codec, and left with it. Whoever chooses a bound wants no exact values any more.

    >>> field = Field([0.0, 20.0])
    >>> implied(BoundsState("zfp", "absolute", eb=0.2), field, {"kind": "relative"})
    {'kind': 'relative', 'eb': 0.01, 'exact': False}
    """
    if fields.get("model") is not None and "codec" not in fields and not isinstance(state.given, Interpolation):
        fields["codec"] = Interpolation.id
    elif fields.get("codec", Interpolation.id) != Interpolation.id and "model" not in fields:
        fields["model"] = None
    if (kind := fields.get("kind", state.kind)) != state.kind and "eb" not in fields:
        fields["eb"] = state.with_kind(kind, data).eb
    if "eb" in fields and "exact" not in fields:
        fields["exact"] = False
    if (axis := fields.get("axis", state.axis)) != state.axis:
        fields = {"window": None, "index": slices(data, whole("the axis", axis, least=0)) // 2, **fields}
    for field, number, name in (("target", "goal", "the target"), ("second", "second_goal", "the second target")):
        goal = fields.get(field, getattr(state, field))
        if goal is not None and goal != getattr(state, field) and number not in fields:
            fields[number] = GOALS[one_of(name, goal, tuple(GOALS))].usual
    return fields
