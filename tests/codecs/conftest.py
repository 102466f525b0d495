"""A second process, for what may end the first one."""

import subprocess
import sys
from collections.abc import Callable

import pytest

PREPARE = """
import numpy as np
from workbench.codecs import Tolerance, get
from workbench.errors import WorkbenchError
rng = np.random.default_rng(1)
"""


@pytest.fixture
def in_child() -> Callable[[str], str]:
    """Run code in a process of its own and return what it printed; a crash there is a failure here."""

    def run(code: str) -> str:
        command = [sys.executable, "-c", PREPARE + code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}"
        return done.stdout

    return run
