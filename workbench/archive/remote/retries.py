"""Requests that may fail for a moment: how often they are repeated, and what is said when they do not succeed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from workbench.errors import WorkbenchError

Result = TypeVar("Result")

TRIES = 4
FIRST_WAIT = 0.5    # seconds before the second try; doubled each time
LONGEST_WAIT = 15   # seconds that a server may ask for


class Unavailable(Exception):
    """A request that failed, and may succeed when it is repeated."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait   # seconds, if the server says how long


def with_retries(request: Callable[[], Result], name: str) -> Result:
    """What a request returns; one that fails for a moment is repeated.

    >>> with_retries(lambda: 5, "example.org")
    5
    """
    wait = FIRST_WAIT
    for left in reversed(range(TRIES)):
        try:
            return request()
        except Unavailable as error:
            if not left:
                raise WorkbenchError(f"{name} cannot be read ({error}; {TRIES} tries): try again later") from error
            time.sleep(min(wait if error.wait is None else error.wait, LONGEST_WAIT))
            wait *= 2
    raise AssertionError("the last try returns or raises")
