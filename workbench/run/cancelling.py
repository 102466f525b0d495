"""Whether the run in this thread was cancelled; asked wherever a run waits for steps."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from contextvars import ContextVar

CANCELLED: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


def end_if_cancelled() -> None:
    """Raise `CancelledError` in a run that was cancelled.

    >>> end_if_cancelled()
    """
    if (cancelled := CANCELLED.get()) is not None and cancelled.is_set():
        raise CancelledError
