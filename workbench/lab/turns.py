"""One thread at a time changes panels and their widgets, and what can wait is done when changes rest.

Changes come from several threads, each with an event loop of its own: cells run in the kernel's main thread, JupyterLab
delivers the messages of widgets in subshells, and without a loop results arrive from workers. A chart must not be drawn
in one thread while another closes its panel. HoloViews and Bokeh share state between all plots, so the lock does, too.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

TURN = threading.RLock()
BREATH = 0.01   # seconds between two steps, for the events of the user
GIVEN_UP = 2.0  # seconds
POLLING = 0.05     # seconds between two checks whether what steps need is there

log = logging.getLogger(__name__)


def in_turn(method: Callable[P, R]) -> Callable[P, R]:
    """A decorator: the method runs while no other thread changes a panel. It must not wait for other threads.

    >>> in_turn(len)("abc")
    3
    """

    @functools.wraps(method)
    def taking_turns(*args: P.args, **kwargs: P.kwargs) -> R:
        with TURN:
            return method(*args, **kwargs)

    return taking_turns


class Rest:
    """Runs steps one after the other when there was no newer request for some seconds, in the event loop of the request.

    >>> Rest(0.1).begin(lambda: print("drawn"))   # without an event loop there is nothing to wait in
    False
    """

    def __init__(self, seconds: float, failed: Callable[[Exception], object] = lambda error: None) -> None:
        self.seconds, self._failed = seconds, failed
        self._newest = object()

    @in_turn
    def begin(self, *steps: Callable[[], object], ready: Callable[[], bool] = lambda: True) -> bool:
        """Run these steps, unless newer ones come before they have ended; False, and nothing, without an event loop.

        They wait until `ready` returns true.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        self._newest = request = object()

        def take(number: int) -> None:
            with TURN:
                if request is not self._newest:
                    return
                if not ready():
                    loop.call_later(POLLING, take, number)
                    return
                try:
                    steps[number]()
                except Exception as error:   # no cell would show it, since none is running
                    log.exception("drawing failed")
                    self._failed(error)
            if number + 1 < len(steps):
                loop.call_later(BREATH, take, number + 1)

        loop.call_later(self.seconds, take, 0)
        return True

    @in_turn
    def cancel(self) -> None:
        """Forget the steps that have not run."""
        self._newest = object()


class Patience:
    """Runs a step once after some seconds, unless it is cancelled before; requests while it waits change nothing.

    >>> Patience(0.1).begin(lambda: print("still waiting"))   # without an event loop there is nothing to wait in
    False
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._waiting: object = None
        self._lost = 0.0   # when a step that has not run is given up: its event loop has ended

    @in_turn
    def begin(self, step: Callable[[], object]) -> bool:
        """Run this step later, unless one waits already; False, and nothing, without an event loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if self._waiting is not None and time.monotonic() < self._lost:
            return True
        self._waiting = request = object()
        self._lost = time.monotonic() + self.seconds + GIVEN_UP

        def take() -> None:
            with TURN:
                if request is self._waiting:
                    self._waiting = None
                    step()

        loop.call_later(self.seconds, take)
        return True

    @in_turn
    def cancel(self) -> None:
        """Forget the step, if it has not run."""
        self._waiting = None
