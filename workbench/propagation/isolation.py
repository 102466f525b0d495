"""Trials in processes of their own, for stages that a fault makes crash the interpreter or run for ever.

A fresh interpreter computes the unperturbed run once, and then forks for trials. So they begin with that run in memory, and
can be ended at any time; what one does to its process ends with it. Only a fresh interpreter with one thread can fork
safely: a fork of the caller's process would hang where OpenMP or other threads were used before.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from workbench import children
from workbench.errors import WorkbenchError
from workbench.propagation.isolated_trials import READY, clock
from workbench.propagation.trials import Experiment, Trial

PROGRAM = """
from workbench.propagation.isolated_trials import main
main(int(sys.argv[1]))
"""
START_SECONDS = 60.0   # to start and import, beyond the time for two runs
GRACE_SECONDS = 30.0   # after which a process that should have been ended is ended


class CannotIsolate(WorkbenchError):
    """Trials cannot run in another process here."""


class Isolated:
    """The trials of an experiment in other processes, each for at most so many `seconds` of processor time.

    >>> import numpy as np
    >>> from workbench.propagation import BitFlip, CampaignPlan, Pipeline
    >>> plan = CampaignPlan(Pipeline([("mean", np.mean)]), np.ones(8), [BitFlip("input", bit=62)])
    >>> with Isolated(plan.experiment, seconds=10) as trials:
    ...     trials.outcomes([0, 1]) == plan.experiment.outcomes([0, 1])
    True
    """

    def __init__(self, experiment: Experiment, seconds: float) -> None:
        self.experiment, self.seconds = experiment, seconds
        self._idle: list[_Runner] = []
        self._lock = threading.Lock()

    def outcomes(self, trials: Sequence[int]) -> list[Trial]:
        """The outcomes of these trials."""
        with self._runner() as runner:
            return runner.outcomes(trials)

    @contextlib.contextmanager
    def _runner(self) -> Iterator[_Runner]:
        """A process that no other thread uses; it is kept for later if it answers."""
        with self._lock:
            runner = self._idle.pop() if self._idle else None
        runner = runner or _Runner(self.experiment, self.seconds)
        try:
            yield runner
        except BaseException:   # an interrupt, too: a late answer would be taken for the next one
            runner.end()
            raise
        with self._lock:
            self._idle.append(runner)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            while self._idle:
                self._idle.pop().end()

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return Isolated, (self.experiment, self.seconds)   # a worker of a cluster starts its own processes

    def __del__(self) -> None:
        self.close()


class _Runner:
    """A fresh interpreter that forks for trials."""

    def __init__(self, experiment: Experiment, seconds: float) -> None:
        if not hasattr(os, "fork"):
            raise CannotIsolate("trials in processes of their own need Linux or another POSIX system; leave out isolate")
        sent = _pickled((experiment, seconds))
        self._patience = 2 * clock(seconds) + GRACE_SECONDS   # as a trial may be tried twice
        own, theirs = socket.socketpair()
        with theirs:
            quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            self._process = children.start(PROGRAM, theirs.fileno(), start_new_session=True, **quiet)
        self._link = Connection(own.detach())
        with contextlib.suppress(OSError):   # it has ended: the missing answer shows that
            self._link.send_bytes(sent)
        ready = self._heard(START_SECONDS + 2 * self._patience)
        if ready != READY:
            how = self.end()
            raise CannotIsolate(f"the pipeline must run in another process without an error; there, {ready or how}")

    def outcomes(self, trials: Sequence[int]) -> list[Trial]:
        """The outcomes of these trials, one after the other."""
        self._link.send(list(trials))
        found: list[Trial] = []
        for _ in trials:
            heard = self._heard(self._patience)
            if not isinstance(heard, Trial):
                raise CannotIsolate(f"the process that starts trials must go on; it {self.end()}: start the campaign again")
            found.append(heard)
        return found

    def _heard(self, seconds: float) -> Any:
        """Its next message; None when it has ended, or does not answer in time."""
        try:
            return self._link.recv() if self._link.poll(seconds) else None
        except (EOFError, OSError):
            return None

    def end(self) -> str:
        """End it, and the trial that it runs; returns how it ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._link.close()
        return f"ended with {children.how_it_ended(self._process)}"


def _pickled(given: Any) -> bytes:
    """The bytes of an experiment; functions that cannot be imported elsewhere need cloudpickle."""
    try:
        import cloudpickle
    except ImportError:
        cloudpickle = None
    try:
        return bytes((cloudpickle or pickle).dumps(given))
    except Exception as error:   # whatever the objects of a user raise
        advice = "" if cloudpickle else ": install cloudpickle, which sends functions of notebooks too (lossbench[dask])"
        raise CannotIsolate(
            f"the pipeline must be sent to another process; {type(error).__name__}: {error}{advice}"
        ) from error
