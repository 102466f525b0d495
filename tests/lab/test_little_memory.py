"""Panels whose results do not fit into their memory of results, while choices change 50 times a second."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import workbench as wb

LITTLE = 1000   # bytes: each result alone is larger
EVERY = 0.02    # seconds
SOON = 120.0


def bounds() -> tuple[Any, list[dict[str, Any]]]:
    return wb.lab.bounds(wb.synthetic.gaussian_field((48, 48), seed=1)), [{"eb": 0.01 + 0.001 * i} for i in range(50)]


def dataset() -> tuple[Any, list[dict[str, Any]]]:
    names = {name: wb.synthetic.gaussian_field((32, 32), seed=seed) for seed, name in enumerate("TP")}
    return wb.lab.bounds(names), [{"variable": "TP"[i % 2], "eb": 0.01 + 0.001 * i} for i in range(50)]


def clusters() -> tuple[Any, list[dict[str, Any]]]:
    return wb.lab.clusters(wb.synthetic.cosmic_web(n=12)), [{"bound": 0.01 + 0.001 * i} for i in range(50)]


def limits() -> tuple[Any, list[dict[str, Any]]]:
    return wb.lab.limits(wb.synthetic.gaussian_field((32, 32), seed=1)), [{"eb": 0.01 + 0.001 * i} for i in range(50)]


def propagation() -> tuple[Any, list[dict[str, Any]]]:
    data = wb.synthetic.gaussian_field((8, 8, 8), seed=1).values + 9.0
    return wb.lab.propagation(wb.propagation.power_spectrum(data), data), [{"bit": i % 24} for i in range(50)]


@pytest.mark.long_with("dataset")
@pytest.mark.parametrize("opened", [bounds, dataset, clusters, limits, propagation])
def test_results_larger_than_the_memory_and_50_changes_a_second_end_with_the_last_state(opened: Any) -> None:
    async def change() -> None:
        panel, changes = opened()
        with panel:
            panel._engine._memory.most_bytes = LITTLE
            panel.widget   # noqa: B018
            for fields in changes:
                assert panel.request(**fields)
                await asyncio.sleep(EVERY)
            async with asyncio.timeout(SOON):
                while panel.status.busy:
                    await asyncio.sleep(EVERY)
            assert not panel.status.error
            runs = dict(panel._engine.runs)
            results = panel._engine.results()
            assert {stage.name for stage in panel._engine.stages.values() if not stage.on_demand} <= results.keys()
            assert sum(int(getattr(result, "nbytes", 0)) for result in results.values()) > LITTLE
            assert all(getattr(panel.state, name) == value for name, value in changes[-1].items())
            assert panel.shown.pictures[0].pixels.size
            assert panel.result.keys() >= results.keys()   # which nothing is computed for again
            assert dict(panel._engine.runs) == runs
            assert max(runs.values()) <= len(changes) + 1

    asyncio.run(change())


def test_a_panel_never_computes_a_result_twice_that_it_shows() -> None:
    with wb.lab.bounds(wb.synthetic.gaussian_field((48, 48), seed=1)) as panel:
        panel._engine._memory.most_bytes = 0
        for eb in (0.1, 0.2):
            panel.change(eb=eb)
            assert np.isfinite(panel.result["trial"].run["max_error"])
            assert panel.result["spectra"] is panel.result["spectra"]
