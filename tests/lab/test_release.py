"""After a panel is closed, nothing of it keeps the data alive."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.lab.panel import Panel

SOON = 60.0
Made = tuple[Any, Panel[Any]]


def of_bounds() -> Made:
    field = wb.Field(np.random.default_rng(1).normal(size=(16, 16)))
    return field, wb.lab.bounds(field, codec="prequantised")


def of_a_dataset() -> Made:
    field = wb.Field(np.random.default_rng(1).normal(size=(16, 16)))
    panel = wb.lab.bounds({"T": wb.Field(np.arange(9.0)), "P": field}, variable="T", codec="prequantised")
    panel.widget   # noqa: B018
    panel.change(variable="P")
    return field, panel


def of_limits() -> Made:
    field = wb.Field(np.random.default_rng(1).normal(size=200))
    return field, wb.lab.limits(field, regions=1)


def of_clusters() -> Made:
    particles = wb.synthetic.cosmic_web(n=8)
    return particles, wb.lab.clusters(particles, min_members=4)


def of_propagation() -> Made:
    run = wb.propagation.Pipeline([("doubled", lambda x: 2 * x)]).run(np.ones(20))
    return run, wb.lab.propagation(run.pipeline, run, trials=2)


def of_compression() -> Made:
    run = wb.propagation.Pipeline([("doubled", lambda x: 2 * x)]).run(np.arange(20.0))
    return run, wb.lab.propagation(run.pipeline, run, kind="compression", codec="prequantised")


@pytest.mark.long_with("of_limits", "of_a_dataset", "of_bounds")
@pytest.mark.parametrize("make", [of_bounds, of_a_dataset, of_limits, of_clusters, of_propagation, of_compression])
def test_data_are_free_after_a_panel_with_all_its_charts_is_closed(make: Callable[[], Made]) -> None:
    data, panel = make()
    panel.widget   # noqa: B018
    for name in [stage.name for stage in panel._engine.stages.values() if stage.on_demand]:
        if (name, make) != ("campaign", of_compression):   # which has none
            panel.ask(name)
            panel.wait(SOON)
    assert not panel.status.error
    assert [panel.shown.charts[name] for name in panel.shown.charts]
    held = weakref.ref(data)
    panel.close()
    del data, panel
    gc.collect()
    assert held() is None
