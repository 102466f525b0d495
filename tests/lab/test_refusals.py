"""Every panel answers a change that makes no sense with False and a sentence, from code as from its controls."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.lab.clusters_panel.state import Chosen
from workbench.lab.panel import Panel


def cube() -> wb.Field:
    return wb.Field(np.random.default_rng(1).normal(size=(6, 6, 6)))


def analysis(values: wb.Field) -> Panel[Any]:
    return wb.lab.propagation(wb.propagation.Pipeline([("doubled", lambda x: 2 * x)]), values.values)


PANELS: dict[str, Callable[[], Panel[Any]]] = {
    "bounds": lambda: wb.lab.bounds(cube()),
    "limits": lambda: wb.lab.limits(cube()),
    "clusters": lambda: wb.lab.clusters(wb.synthetic.cosmic_web(n=8)),
    "propagation": lambda: analysis(cube()),
}
NONSENSE = [
    "nonsense", -1, np.int64(-1), float("nan"), 10**400, np.arange(3), np.zeros(0), {}, object(), b"", (0.0, 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize("name", PANELS)
def test_nonsense_in_any_choice_is_refused_with_a_sentence(name: str) -> None:
    with PANELS[name]() as panel:
        before = panel.state
        allowed = {("protect", "array([], dtype=float64)")}
        allowed |= {(goal, number) for goal in ("goal", "second_goal") for number in ("-1", "np.int64(-1)")}
        for field in (each.name for each in dataclasses.fields(before)):
            for value in NONSENSE:
                if (field, repr(value)) not in allowed:
                    assert panel.request(**{field: value}) is False, (field, value)
                    assert panel.status.error
        assert panel.state == before
        with pytest.raises(WorkbenchError, match="no choice 'no_such_choice'"):
            panel.change(no_such_choice=1)
        assert panel.request(no_such_choice=1) is False
        assert f"a {name} panel has no choice 'no_such_choice'; its choices are" in panel.status.error


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("bounds", "pixels", 0), ("clusters", "axis", np.True_), ("clusters", "linking_length", 1e300),
        ("clusters", "chosen", Chosen.halo(8**3)),
    ],
)
def test_what_no_picture_can_be_drawn_of_is_refused_before_it_is_drawn(name: str, field: str, value: Any) -> None:
    with PANELS[name]() as panel:
        panel.widget   # noqa: B018
        assert panel.request(**{field: value}) is False
        assert panel.status.error
