"""What several tests need: where the real data are, and a GPU when there is one."""

import functools
import os
from pathlib import Path

import pytest
from hypothesis import settings

from workbench import backend
from workbench.errors import WorkbenchError

# No deadline: a slow machine is not a wrong result. CI tries the same examples each time, people try new ones.
settings.register_profile("workbench", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("workbench")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real files with known answers, beside the checkout; it is too large to be part of it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the folder of real data is not there: {folder}")
    return folder


@functools.cache
def why_no_gpu() -> str | None:
    try:
        backend.gpu()
    except WorkbenchError as error:
        return str(error)
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and (reason := why_no_gpu()):
        pytest.skip(reason)
