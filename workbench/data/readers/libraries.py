"""The optional libraries behind some formats: loaded when a file needs them; the error names a missing one."""

from __future__ import annotations

import importlib
from typing import Any

from workbench.errors import WorkbenchError


def library(module: str, purpose: str) -> Any:
    """The module, or an error that says how to install what the file needs.

    >>> library("no_such_library", "dream files")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: reading dream files needs no_such_library: pip install 'lossbench[io]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise WorkbenchError(f"reading {purpose} needs {package}: pip install 'lossbench[io]'") from None
