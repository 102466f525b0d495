"""Panels collect garbage when they are closed, each time through all that libraries for charts keep to the end."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def what_libraries_keep_is_left_out_of_garbage_collection() -> Iterator[None]:
    yield
    gc.collect()
    gc.freeze()
