"""SIGTERM and SIGHUP handled like Ctrl-C: a batch system that stops a job must not leave partial files behind.

A signal raises its exception wherever Python happens to be. Where that is a finaliser or a callback of a weak reference
(imports have some), Python prints the exception and goes on, and the user would have to press Ctrl-C again. Such a signal
is sent again a moment later.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
MOMENT = 0.02   # seconds until an ignored signal is sent again; finalisers are done by then


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
    hook, sys.unraisablehook = sys.unraisablehook, _send_again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: object) -> NoReturn:
    raise Ended(number)


def _send_again(ignored: sys.UnraisableHookArgs) -> None:
    """The hook for exceptions that Python must ignore: a signal among them is sent to the main thread again."""
    if not isinstance(ignored.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    number = ignored.exc_value.number if isinstance(ignored.exc_value, Ended) else signal.SIGINT
    main = threading.main_thread().ident
    assert main is not None
    again = threading.Timer(MOMENT, signal.pthread_kill, (main, number))
    again.daemon = True
    again.start()
