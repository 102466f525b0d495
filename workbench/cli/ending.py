"""SIGTERM and SIGHUP handled like Ctrl-C: a batch system that stops a job must not leave partial files behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """A signal asked this process to end; the clean-up is the same as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise `Ended` on these signals, unless they are ignored (nohup) or already have other handlers.

    >>> with ended_by_signals():
    ...     signal.getsignal(signal.SIGTERM) is _end
    True
    """
    if threading.current_thread() is not threading.main_thread():   # only the main thread may set handlers
        yield
        return
    ours = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: object) -> NoReturn:
    raise Ended(number)
