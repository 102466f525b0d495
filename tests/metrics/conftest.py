"""The stand-in for CuPy, for the metrics that work on a GPU."""

from types import ModuleType

import pytest


@pytest.fixture
def cupy(stand_in: ModuleType) -> ModuleType:
    return stand_in


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks and tiles of a few values, so that small arrays have many."""
    monkeypatch.setattr("workbench.metrics.pairs.CHUNK_VALUES", 100)
