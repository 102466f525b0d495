"""Runs in processes of their own: several codecs hold Python's lock, and any of them may crash.

Each process is a fresh interpreter (`workbench.children`). Questions and answers are lines of JSON; the data are in a file
that all of them map. A process whose questions end, because its parent has gone, ends after the run that it is at.

Every process has one thread, so that the times of runs that share a machine can be compared.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from workbench import children
from workbench.bounds.parts import shared
from workbench.bounds.run import Question, Run
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError

POLL_SECONDS = 0.05   # how often to ask whether it was cancelled
LAST_WORDS = 4096     # bytes of what a process said before it died

PROGRAM = """
from workbench.bounds.worker import main
main(int(sys.argv[1]))
"""


def in_processes(
    data: Particles | Field, questions: Sequence[tuple[int, Question]], workers: int, cancelled: Callable[[], bool]
) -> Iterator[tuple[int, Run]]:
    """Each run with its place, as soon as it is measured; less than all when cancelled.

    All processes have ended when this generator has: by itself, by an error, or because it was closed.
    """
    waiting = deque(questions)
    with shared(data) as (file, described), _Crew(file, described) as crew:
        for _ in range(min(workers, len(waiting))):
            crew.hire()
        while crew.at_work and not cancelled():
            for worker in crew.heard():
                answer = worker.answer()
                if worker.alive and waiting:
                    worker.ask(*waiting.popleft())   # before anybody looks at the answer, which may take a while
                else:
                    crew.dismiss(worker)
                    if waiting:
                        crew.hire()
                if answer is not None:
                    yield answer


class _Worker:
    """One process, and what it was asked last."""

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
        """Ask for a run; the answer has come when there is something to read."""
        self._asked = place, question
        self._say(question.to_dict())

    def answer(self) -> tuple[int, Run] | None:
        """The run it was asked for; None when it only says that it is ready. `alive` then tells whether it still is."""
        line, asked = self.answers.readline(), self._asked
        self.alive = line.endswith("\n")
        if asked is None:
            if not self.alive:
                raise WorkbenchError(f"no process could be started for the runs: {self._end_of_it()}; use workers=1")
            return None
        place, question = asked
        return place, Run.from_dict(json.loads(line)) if self.alive else question.unanswered(self._end_of_it())

    def end(self) -> None:
        """End it at once: it has nothing to lose."""
        self._process.kill()
        self._process.wait()
        for file in (self.answers, self._log):
            file.close()
        with contextlib.suppress(BrokenPipeError):   # a question that it did not read
            self._questions.close()

    def _say(self, what: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):   # it has died: whoever reads its answer will see that
            print(json.dumps(what), file=self._questions, flush=True)

    def _end_of_it(self) -> str:
        """What ended it, and its last words."""
        how = children.how_it_ended(self._process)
        self._log.seek(max(self._log.seek(0, os.SEEK_END) - LAST_WORDS, 0))
        words = self._log.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(words) if line.strip()), "")
        return f"its process ended with {how}{last and f': {last}'}"


class _Crew:
    """The processes that live, all of which end with it."""

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
        """Whether any is left."""
        return bool(self._selector.get_map())

    def hire(self) -> None:
        """Start another."""
        worker = _Worker(self._file, self._described)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)

    def dismiss(self, worker: _Worker) -> None:
        """End one."""
        self._selector.unregister(worker.answers)
        worker.end()

    def heard(self) -> list[_Worker]:
        """Those that have something to say, within a moment; often none."""
        return [key.data for key, _ in self._selector.select(POLL_SECONDS)]
