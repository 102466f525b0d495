"""The stand-in for CuPy, for the metrics that work on a GPU."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import fake_cupy
from workbench import backend


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    fake = fake_cupy.module()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    for cache in (backend._device_function, backend._device_module):
        cache.cache_clear()
    yield fake
    for cache in (backend._device_function, backend._device_module):
        cache.cache_clear()


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks and tiles of a few values, so that small arrays have many."""
    monkeypatch.setattr("workbench.metrics.pairs.CHUNK_VALUES", 100)
