"""The program of the process that forks for trials; `isolation.py` starts it.

A trial ends itself: by a timer of processor time, and one of the clock for a stage that waits. Their signals end a process
whatever it does, so no code of a library needs to cooperate. Memory is limited, so that a size with a flipped bit does not
take all that the machine has.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from workbench.propagation.trials import Experiment, Trial

READY = "ready"
DONE = 86   # the exit status of a trial that has sent its outcome: a stage may call exit(0)
STATM = Path("/proc/self/statm")

_OVERTIME = {"signal SIGPROF": "{seconds:g} s of processor time", "signal SIGALRM": "{clock:g} s, waiting"}


def clock(seconds: float) -> float:
    """The seconds by the clock in which so much processor time is had, as other programs run too.

    >>> clock(1.0)
    9.0
    """
    return 5.0 + 4.0 * seconds


def main(descriptor: int) -> None:
    """Take an experiment, and then trials, from this socket, and answer with their outcomes until the other side ends."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))   # no dump of the memory of each crash
    link = Connection(descriptor)
    try:
        experiment, seconds = pickle.loads(link.recv_bytes())
        run = experiment.run
    except BaseException as error:   # whatever the code of a user raises
        link.send(f"{type(error).__name__}: {error}")
        return

    def repeated() -> None:
        """Say whether a process like those of the trials computes the same."""
        _start_timers(seconds)
        try:
            run.pipeline.require_deterministic(run)
            said = READY
        except Exception as error:   # whatever the code of a user raises
            said = f"{type(error).__name__}: {error}"
        _stop_timers()
        link.send(said)

    if failed := _in_a_fork(repeated, seconds):
        link.send(f"the run without an error {failed}")
    while True:
        try:
            trials: Sequence[int] = link.recv()
        except EOFError:
            return
        _tried(experiment, trials, seconds, link)


def _tried(experiment: Experiment, trials: Sequence[int], seconds: float, link: Connection) -> None:
    """Send the outcome of each trial: what it finds, or how its process ended.

    A process goes on with the next trial. One that ends under a trial may have been harmed by those before, so that trial
    is tried again in a fresh one, whose end is its outcome.
    """
    left, done = list(trials), mmap.mmap(-1, mmap.PAGESIZE)   # of which the first bytes count trials, shared with the fork

    def work() -> None:
        for number, trial in enumerate(left, 1):
            _start_timers(seconds)
            (found,) = experiment.outcomes([trial])
            _stop_timers()   # so that no message is cut off
            link.send(found)
            done[:8] = number.to_bytes(8, "little")

    while left:
        done[:8] = bytes(8)
        failed = _in_a_fork(work, seconds)
        finished = int.from_bytes(done[:8], "little")
        del left[:finished]
        if left and not finished:
            link.send(Trial(left.pop(0), "crash", None, None, f"the process {failed}"))


def _in_a_fork(work: Callable[[], object], seconds: float) -> str | None:
    """Do some work in a process of its own, with limits; returns how that ended, None if as it should."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _limit_memory()
            work()
            status = DONE
        finally:
            os._exit(status)   # without the clean-up of the parent, whatever was raised
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == DONE:
        return None
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    if how in _OVERTIME:
        return "took more than " + _OVERTIME[how].format(seconds=seconds, clock=clock(seconds))
    return f"ended with {how}"


def _start_timers(seconds: float) -> None:
    """Have the system end this process when its time is over."""
    for timer, number, limit in (
        (signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, clock(seconds))
    ):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, limit)


def _stop_timers() -> None:
    for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
        signal.setitimer(timer, 0)


def _limit_memory() -> None:
    """Refuse this process more than half of the machine's memory beyond what it has."""
    import resource

    if STATM.exists():
        used = int(STATM.read_text().split()[0]) * mmap.PAGESIZE
        allowed = used + os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (allowed if most < 0 else min(allowed, most), most))
