"""Runs in processes of their own: several codecs hold Python's lock, and any of them may crash.

Each process is a fresh interpreter, not a fork, after which OpenMP hangs; and it is started by its own command instead of
by `multiprocessing`, which would import the caller's script again, and so sweep again. Questions and answers are lines of
JSON; the data are in a file that all of them map. A process whose questions end, because its parent has gone, ends too.

Every process has one thread, so that the times of runs that share a machine can be compared.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from workbench.bounds.measure import Metrics
from workbench.bounds.parts import shared
from workbench.bounds.run import Run, label_of
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound

POLL_SECONDS = 0.05   # how often to ask whether it was cancelled
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLOSC_NTHREADS", "NUMEXPR_NUM_THREADS")

# An interrupt from the keyboard goes to all processes of a terminal; only the parent should answer it.
PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from workbench.bounds.worker import main
main(int(sys.argv[2]), sys.argv[3])
"""


@dataclass(frozen=True)
class Question:
    """A run to be measured."""

    codec: Codec
    bound: Bound
    order: str
    metrics: Metrics

    def to_json(self) -> str:
        """The question as a line."""
        asked = {"codec": self.codec.to_dict(), "bound": self.bound.to_dict()}
        return json.dumps({**asked, "order": self.order, "metrics": self.metrics})

    def unanswered(self, error: str) -> Run:
        """The run that failed."""
        return Run(self.codec.to_dict(), label_of(self.codec), self.bound, self.order, error=error)


class Worker:
    """One process, and what it was asked last."""

    def __init__(self, file: int, described: str) -> None:
        self.asked: tuple[int, Question] | None = None
        self._log = tempfile.TemporaryFile(prefix="lossbench-")   # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, json.dumps(sys.path), str(file), described],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, pass_fds=[file], text=True,
            env={**os.environ, **dict.fromkeys(THREADS, "1")},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self.answers = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it at once: it has nothing to lose."""
        self._process.kill()
        self._process.wait()
        self.answers.close()
        self._log.close()
        try:
            self._questions.close()
        except BrokenPipeError:   # a question that nobody read
            pass

    def ask(self, place: int, question: Question) -> None:
        """Ask for a run; the answer comes when `answers` can be read."""
        self.asked = place, question
        try:
            print(question.to_json(), file=self._questions, flush=True)
        except BrokenPipeError:   # it has died, and its answer will say so
            pass

    def answer(self) -> Any | None:
        """What it says; None when it has died."""
        line = self.answers.readline()
        return json.loads(line) if line.endswith("\n") else None

    def obituary(self) -> str:
        """What ended it, and its last words."""
        status = self._process.wait()
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        self._log.seek(max(self._log.seek(0, os.SEEK_END) - 4096, 0))
        words = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return f"its process ended with {how}{f': {words[-1]}' if words else ''}"


def in_processes(
    data: Particles | Field, questions: Sequence[tuple[int, Question]], workers: int, cancelled: Callable[[], bool]
) -> Iterator[tuple[int, Run]]:
    """Each run with its place, as soon as it is measured; less than all when cancelled.

    All processes have ended when this generator has: by itself, by an error, or because it was closed.
    """
    with ExitStack() as stack:
        file, described = stack.enter_context(shared(data))
        crew = stack.enter_context(_Crew(file, json.dumps(described)))
        waiting = deque(questions)
        for _ in range(min(workers, len(waiting))):
            crew.hire()
        while crew.busy and not cancelled():
            for worker in crew.heard():
                found = _after(worker)
                if waiting and found.alive:
                    worker.ask(*waiting.popleft())
                else:
                    crew.dismiss(worker)
                    if waiting:
                        crew.hire()
                if found.run is not None:
                    yield found.run


@dataclass(frozen=True)
class _Found:
    """What a worker has said: that it lives, and the run it was asked for, if it was."""

    alive: bool
    run: tuple[int, Run] | None


def _after(worker: Worker) -> _Found:
    answer = worker.answer()
    if worker.asked is None:
        if answer is None:
            raise WorkbenchError(f"no process could be started to measure in: {worker.obituary()}; use workers=1")
        return _Found(True, None)   # it is ready
    place, question = worker.asked
    if answer is None:
        return _Found(False, (place, question.unanswered(worker.obituary())))
    return _Found(True, (place, Run.from_dict(answer)))


class _Crew:
    """The workers that live, all of which end with it."""

    def __init__(self, file: int, described: str) -> None:
        self._file, self._described = file, described
        self._stack = ExitStack()
        self._selector = self._stack.enter_context(selectors.DefaultSelector())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers():
            self.dismiss(worker)
        self._selector.close()

    @property
    def busy(self) -> bool:
        """Whether any is at work."""
        return bool(self._selector.get_map())

    def hire(self) -> None:
        """Start another."""
        worker = Worker(self._file, self._described)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)

    def dismiss(self, worker: Worker) -> None:
        """End one."""
        self._selector.unregister(worker.answers)
        with worker:
            pass

    def heard(self) -> list[Worker]:
        """Those that have something to say, soon; often none."""
        return [key.data for key, _ in self._selector.select(POLL_SECONDS)]

    def _workers(self) -> list[Worker]:
        return [key.data for key in self._selector.get_map().values()]
