"""A verb that runs in a thread of its own, while the caller goes on: `submit=True`.

Who waits for a step counts its items, and from time to time looks for workers (`patience.py`); verbs report their progress.
At these places a run that was cancelled ends, with an error like any other: steps on the cluster are given up, scratch
files removed, and what is done of an archive stays for the same call.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

from workbench.arguments import flag
from workbench.progress import Progress
from workbench.run.cancelling import CANCELLED, end_if_cancelled

Result = TypeVar("Result", covariant=True)
Owner = TypeVar("Owner", contravariant=True)
Given = ParamSpec("Given")
Rest = ParamSpec("Rest")


class Submittable(Protocol[Given, Result]):
    """A verb that takes `submit`, too."""

    @overload
    def __call__(self, *args: Given.args, **options: Given.kwargs) -> Result: ...

    @overload
    def __call__(self, *args: Any, submit: Literal[True], **options: Any) -> Submitted[Result]: ...

    @overload
    def __call__(self, *args: Any, submit: bool, **options: Any) -> Any: ...

    def __get__(
        self: Submittable[Concatenate[Owner, Rest], Result], owner: Owner, kind: Any = None
    ) -> Submittable[Rest, Result]: ...


def submittable(verb: Callable[Given, Result]) -> Submittable[Given, Result]:
    """The verb with a parameter `submit`: True returns at once, with a `Submitted` for the result.

    >>> @submittable
    ... def multiply(one, other, progress=None):
    ...     return one * other
    >>> multiply(6, 7), multiply(6, 7, submit=True).result(timeout=60)
    (42, 42)
    """
    signature = inspect.signature(verb)
    *others, last = signature.parameters.values()
    added = inspect.Parameter("submit", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool)
    parameters = [*others, added, last] if last.kind is last.VAR_KEYWORD else [*others, last, added]

    @functools.wraps(verb)
    def call(*args: Any, submit: bool = False, **options: Any) -> Any:
        if not flag("submit", submit):
            return verb(*args, **options)
        given = signature.bind(*args, **options)
        progress = given.arguments.get("progress")
        if "progress" in signature.parameters and (progress is None or callable(progress)):
            given.arguments["progress"] = Watched(progress)
        return Submitted(functools.partial(verb, *given.args, **given.kwargs), verb.__name__)

    call.__signature__ = signature.replace(parameters=parameters)   # type: ignore[attr-defined]
    return call   # type: ignore[return-value]


@dataclass(frozen=True)
class Watched:
    """The progress of a run that ends here if it was cancelled."""

    progress: Progress | None

    def __call__(self, share: float, name: str) -> Any:
        """Pass it on."""
        end_if_cancelled()
        return None if self.progress is None else self.progress(share, name)

    @property
    def watch(self) -> Callable[..., object] | None:
        """What is told every step of keeping clusters, if the caller wants that."""
        return getattr(self.progress, "watch", None)


class Submitted(Generic[Result]):
    """The result of a verb that runs in a thread of this process, as of `concurrent.futures`.

    The program ends after the thread does: `cancel` a run that is no longer wanted.

    >>> run = Submitted(lambda: 6 * 7, "multiply")
    >>> run.result(timeout=60), run.done(), run.cancel()
    (42, True, False)
    """

    def __init__(self, verb: Callable[[], Result], name: str) -> None:
        self._name, self._verb = name, verb
        self._future: Future[Result] = Future()
        self._cancelled, self._deciding = threading.Event(), threading.Lock()
        threading.Thread(target=copy_context().run, args=(self._run,), name=name).start()

    def result(self, timeout: float | None = None) -> Result:
        """The result, once it is there; raises the error of the verb, or `TimeoutError` after `timeout` seconds."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error that `result` would raise, or None."""
        return self._future.exception(timeout)

    def done(self) -> bool:
        """Whether it has ended: with a result, an error, or cancelled, when all has been cleared away."""
        return self._future.done()

    def cancel(self) -> bool:
        """Ask the run to end, with `CancelledError` for its result; False if it has ended before.

        On a cluster it gives its steps up within seconds; in this process it ends with the step in hand.
        """
        with self._deciding:
            if not self._future.done():
                self._cancelled.set()
            return self._cancelled.is_set()

    def cancelled(self) -> bool:
        """Whether it has been cancelled."""
        return self._cancelled.is_set()

    def _run(self) -> None:
        CANCELLED.set(self._cancelled)
        try:
            result = self._verb()
        except BaseException as error:   # for the caller, who may be another thread
            self._future.set_exception(error)
            return
        with self._deciding:
            if not self._cancelled.is_set():
                self._future.set_result(result)
                return
        ended = CancelledError()
        try:
            if callable(close := getattr(result, "close", None)):
                close()
        except BaseException as error:   # as above
            ended.__cause__ = error
        self._future.set_exception(ended)

    def __repr__(self) -> str:
        return f"Submitted({self._name}, {'done' if self.done() else 'cancelled' if self.cancelled() else 'running'})"
