"""The names of the parts of an archive: relative paths of plain names, so that none leads out of the archive."""

from __future__ import annotations

import re

from workbench.errors import WorkbenchError

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_MOST_CHARACTERS = 512

ROOT = "zarr.json"      # the document of the archive
SERIES = "series.json"   # that of a series, whose folder has an archive for each step
COPY = "root.json.z"    # the second copy of the root, deflated, in the folder of the data
COPY_OF_COLLECTION = f"lossbench/{COPY}"


def require_key(key: str) -> str:
    """The key itself, if it is a relative path of plain names.

    >>> require_key("../positions")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: a key must be names of letters, digits, '_', '-' and '.' with '/' between them, none
    beginning with '-' or '.'; got '../positions'
    """
    if not is_key(key):
        shown = repr(key if len(key) <= 80 else f"{key[:80]}...")
        raise WorkbenchError(
            "a key must be names of letters, digits, '_', '-' and '.' with '/' between them, none beginning with "
            f"'-' or '.'; got {shown}"
        )
    return key


def is_document(key: str) -> bool:
    """Whether a document stands under this key, and no chunk.

    >>> is_document("positions/root.json.z"), is_document("positions/c/0/0")
    (True, False)
    """
    return key.rsplit("/", 1)[-1] in (ROOT, COPY)


def is_key(key: str) -> bool:
    """Whether this can be the key of a part.

    >>> is_key("positions/c/0"), is_key(".DS_Store"), is_key("a/../b")
    (True, False, False)
    """
    return len(key) <= _MOST_CHARACTERS and _KEY.fullmatch(key) is not None
