"""Memory that is freed and taken again and again stays with the process.

The C library gives freed memory back to the system, page by page, unless it has seen a block of about this size freed: it
then keeps as much. Trials and runs free and take the same few megabytes; giving them back takes up to half of the time.
"""

from __future__ import annotations

import numpy as np

FREED_ONCE = 30 * 2**20


def keep_freed_memory() -> None:
    """Free a block of this size."""
    np.empty(FREED_ONCE, np.uint8)
