"""Runs in separate processes, because several codecs hold Python's global lock and any of them may crash.

Each process is a fresh interpreter (`workbench.children`). Questions and answers are lines of JSON; the data are in a file
that all processes map. If the parent dies, the questions end, and each process ends after its current run.

Every process has one thread, so that the times of concurrent runs can be compared. Standard output carries the answers, but
C libraries print there, too: the answers get their own descriptor, and all other output goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from workbench import children
from workbench.bounds.measure import measure
from workbench.bounds.parts import mapped, shared
from workbench.bounds.run import Question, Run
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError

POLL_SECONDS = 0.05   # interval of checks for cancellation
LAST_WORDS = 4096     # bytes of the last output of a process that died

PROGRAM = """
from workbench.bounds.workers import main
main(int(sys.argv[1]))
"""


def in_processes(
    data: Particles | Field, questions: Sequence[tuple[int, Question]], workers: int, cancelled: Callable[[], bool]
) -> Iterator[tuple[int, Run]]:
    """Each run with its place, as soon as it is measured; incomplete if cancelled.

    All processes have ended when this generator ends, also after an error and after `close`.
    """
    waiting = deque(questions)
    with shared(data) as (file, described), _Crew(file, described) as crew:
        for _ in range(min(workers, len(waiting))):
            crew.hire()
        while crew.at_work and not cancelled():
            for worker in crew.heard():
                answer = worker.answer()
                if worker.alive and waiting:
                    worker.ask(*waiting.popleft())   # before the caller handles the answer, which may take a while
                else:
                    crew.dismiss(worker)
                    if waiting:
                        crew.hire()
                if answer is not None:
                    yield answer


class _Worker:
    """One process and its current question."""

    def __init__(self, file: int, described: Mapping[str, Any]) -> None:
        self.alive = True
        self._asked: tuple[int, Question] | None = None
        self._log = tempfile.TemporaryFile(prefix="lossbench-")   # noqa: SIM115 - closed by `end`
        self._process = children.start(
            PROGRAM, file, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self.answers = self._process.stdin, self._process.stdout
        self._say(described)

    def ask(self, place: int, question: Question) -> None:
        """Request a run; the answer is available when `answers` is readable."""
        self._asked = place, question
        self._say(question.to_dict())

    def answer(self) -> tuple[int, Run] | None:
        """The requested run, or None for the message that the process is ready. Also updates `alive`."""
        line, asked = self.answers.readline(), self._asked
        self.alive = line.endswith("\n")
        if asked is None:
            if not self.alive:
                raise WorkbenchError(f"no process could be started for the runs: {self._end_of_it()}; use workers=1")
            return None
        place, question = asked
        return place, Run.from_dict(json.loads(line)) if self.alive else question.unanswered(self._end_of_it())

    def end(self) -> None:
        """Kill the process: it has no state to save."""
        self._process.kill()
        self._process.wait()
        for file in (self.answers, self._log):
            file.close()
        with contextlib.suppress(BrokenPipeError):   # a question that the process did not read
            self._questions.close()

    def _say(self, what: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):   # the process has died, which `answer` detects
            print(json.dumps(what), file=self._questions, flush=True)

    def _end_of_it(self) -> str:
        """The exit status or signal of the process, and the last line of its output."""
        how = children.how_it_ended(self._process)
        self._log.seek(max(self._log.seek(0, os.SEEK_END) - LAST_WORDS, 0))
        words = self._log.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(words) if line.strip()), "")
        return f"its process ended with {how}{last and f': {last}'}"


class _Crew:
    """The running processes, all of which end with the context."""

    def __init__(self, file: int, described: Mapping[str, Any]) -> None:
        self._file, self._described = file, described
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for key in list(self._selector.get_map().values()):
            self.dismiss(key.data)
        self._selector.close()

    @property
    def at_work(self) -> bool:
        """Whether any process is left."""
        return bool(self._selector.get_map())

    def hire(self) -> None:
        """Start another process."""
        worker = _Worker(self._file, self._described)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)

    def dismiss(self, worker: _Worker) -> None:
        """End a process."""
        self._selector.unregister(worker.answers)
        worker.end()

    def heard(self) -> list[_Worker]:
        """The processes with readable output, waiting up to `POLL_SECONDS`; often none."""
        return [key.data for key, _ in self._selector.select(POLL_SECONDS)]


def main(file: int) -> None:
    """The program of a process: map the data once, and answer questions until standard input ends or the parent is gone."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    data = mapped(file, json.loads(sys.stdin.readline()))
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        run = measure(data, Question.from_dict(json.loads(line)))
        print(json.dumps(run.to_dict()), file=answers, flush=True)
