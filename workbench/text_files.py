"""Text as a file, written completely or not at all: pages, drawings and documents that results save."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError, briefly


def write_text(path: Any, content: str, what: str, *kinds: str) -> Path:
    """Write a text file whose name ends in one of these ways, completely or not at all; returns its path.

    >>> write_text("chart.png", "<svg/>", "a chart", ".svg")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: a chart is written as .svg; got chart.png
    """
    try:
        target = Path(path).expanduser()
    except (RuntimeError, TypeError) as error:
        raise WorkbenchError(f"{what} needs the path of a file; got {briefly(path)}: {error}") from None
    if target.suffix not in kinds:
        raise WorkbenchError(f"{what} is written as {' or '.join(kinds)}; got {path}")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with draft.open("x", encoding="utf-8") as file:   # nothing of this name is written through
            file.write(content)
        os.replace(draft, target)
    except FileExistsError as error:
        raise WorkbenchError(f"{draft} must not exist; {error.strerror}: save {what} again") from None
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):   # a name that no file can have
            draft.unlink(missing_ok=True)
        raise WorkbenchError(f"{what} must be written into a folder that exists; {briefly(str(error))}") from None
    return target.resolve()
