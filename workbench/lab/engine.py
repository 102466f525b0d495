"""A panel without its widgets: the state, the results for it, and the running work.

Computation is divided into stages, each with the part of the state that it depends on. After a change of the state, only
stages without a result for the new state run, in order, in the background; other results are available at once. No view is
needed, so scripts and tests use a panel as a user does.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from workbench.errors import WorkbenchError, briefly
from workbench.lab.choices import plain, with_choices
from workbench.lab.jobs import PAUSE, Deliver, Job, Lane
from workbench.lab.memory import Memory
from workbench.lab.turns import in_turn
from workbench.memory import release_memory
from workbench.progress import Cancelled

State = TypeVar("State")
Results = Mapping[str, Any]
Fields = dict[str, Any]   # of a state that are to change
LATER = 0.25  # seconds that stages which come later leave to a slider that is moved on
QUICK = 0.1   # seconds: a first stage that took less is begun without a pause, as dropping it would save nothing

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stage:
    """One step of a panel's computation.

    `work(state, results, job)` returns the result; `results` has those of earlier stages. It calls `job(share, text)`
    regularly, which raises when the result is no longer needed, and may call `job.show(...)` with a partial result.
    `depends(state)` is the part of the state that the result depends on. A stage `on_demand` runs only on request; `text`
    says what it does, until it reports progress. A stage that comes `later` leaves the processor to the view for a moment,
    so that the results before it are on the screen first.
    """

    name: str
    depends: Callable[[Any], Hashable]
    work: Callable[[Any, Results, Job], Any]
    on_demand: bool = False
    text: str = ""
    later: bool = False


@dataclass(frozen=True)
class Status:
    """What a panel is doing: idle, working (with progress), or failed (with the reason)."""

    busy: bool = False
    share: float = 0.0
    text: str = ""
    error: str = ""


class Engine(Generic[State]):
    """State, results and work of a panel; `changed` is called after every change, in a thread that may change widgets."""

    def __init__(
        self, state: State, stages: Sequence[Stage], deliver: Deliver,
        check: Callable[[State], object] = lambda state: None,
        implied: Callable[[Fields], Fields] = lambda fields: fields, looking: Collection[str] = (),
    ) -> None:
        self.state = state
        self.runs: Counter[str] = Counter()   # how often each stage has run
        self.stages = {stage.name: stage for stage in stages}
        self.status = Status()
        self.partial: dict[str, Any] = {}    # results of running stages
        self.changed: Callable[[], object] = lambda: None
        self._deliver, self._check, self._implied = deliver, check, implied
        self._looking = frozenset(looking)   # fields of the visible part: changing these alone leaves errors standing
        self._memory = Memory()
        self._following, self._asked = Lane(), Lane(pause=0.0)
        self._under_way: list[Job] = []
        self._followed: tuple[Job, list[Hashable]] | None = None   # the latest automatic work, and its results
        self._failed: dict[Hashable, str] = {}
        self._refused = ""   # the reason why the last change was rejected
        self._refused_fields: frozenset[str] = frozenset()   # what that change was of
        self._mistake = ""   # the reason why the last work failed, until there is other work or another change
        self._awaiting: list[Callable[[str], object]] = []   # what follows when all results are there
        self._closed = False

    # Results.

    def results(self, state: State | None = None) -> dict[str, Any]:
        """The available results for a state, by default the present one."""
        state = self.state if state is None else state
        kept = ((name, self._memory.find(self._key(stage, state))) for name, stage in self.stages.items())
        return {name: result for name, result in kept if result is not None}

    def settled(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the results of all stages not on demand, and return all results for the present state."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            self.require_open()
            state = self.state
            results = self.results(state)
            missing = self._missing(results)
            if not missing:
                return results
            key = self._key(missing[0], state)
            if key in self._failed:
                raise WorkbenchError(self._failed[key])
            if not self._following.busy:
                self._follow()
            self._hurry()
            left = until - time.monotonic()
            if left <= 0 or not self._following.wait(None if timeout is None else left):
                raise WorkbenchError(f"the panel must be done within {timeout:g} s; it is still at: {self.status.text}")

    @property
    def quick(self) -> bool:
        """Whether the first stage takes so little time that a view need not tell of it."""
        return self._following.pause == 0

    # Actions.

    def require_open(self) -> None:
        """Raise if the panel was closed."""
        if self._closed:
            raise WorkbenchError("the panel must be open to compute; it was closed: make another one")

    def after(self, fields: Fields) -> State:
        """The state after a change of these fields, and of what follows from them; raises if it is refused."""
        self.require_open()
        try:
            state = with_choices(self.state, self._implied({name: plain(value) for name, value in fields.items()}))
            self._check(state)
        except WorkbenchError:
            raise
        except (ArithmeticError, TypeError, ValueError) as error:   # values that can be neither compared nor converted
            given = ", ".join(f"{name}={briefly(value)}" for name, value in fields.items())
            raise WorkbenchError(f"expected values of other types; got {given}: {briefly(str(error))}") from error
        return state

    @in_turn
    def change(self, **fields: Any) -> bool:
        """Change fields of the state, and what follows from them. If they are refused, the status has the error.

        The error stays until another change; looking at another part of the data is none, unless that was refused.
        """
        try:
            state = self.after(fields)
        except WorkbenchError as error:
            self._refused, self._refused_fields = str(error), frozenset(fields)
            self._say(dataclasses.replace(self.status, error=self._refused))
            return False
        had_error = bool(self.status.error)
        if not fields.keys() <= self._looking or fields.keys() & self._refused_fields:
            self._refused_fields = frozenset()
            self._refused = self._mistake = ""
            self.status = dataclasses.replace(self.status, error="")
        if state != self.state:
            self.state = state
            self.refresh()
        elif had_error:
            self._settle()
            self._news()
        return True

    @in_turn
    def refresh(self) -> None:
        """Compute missing results for the present state, and call `changed`. Work for the same results goes on."""
        if self._missing(self.results()):
            if not self._is_followed():
                self._follow()
        else:
            self._following.cancel()   # the running work is for an earlier state
            self._settle()
            self._tell_awaiting("")
        self._news()

    @in_turn
    def ask(
        self, name: str, then: Callable[[], object] = lambda: None, failed: Callable[[str], object] = lambda reason: None
    ) -> None:
        """Run a stage on demand for the present state, after the missing stages before it; `failed` gets the reason."""
        self.require_open()
        stage, state = self.stages[name], self.state
        work = functools.partial(self._run, state, stage)
        self._submit(self._asked, work, stage.text or name, lambda reason: failed(reason) if reason else then())
        self._news()

    @in_turn
    def do(self, work: Callable[[Job], Any], text: str, then: Callable[[Any, str], object]) -> None:
        """Do some work that is no stage, in place of what was asked for before; `then` gets its value, or the error."""
        self.require_open()
        job = self._submit(self._asked, work, text, lambda reason: then(job.value, reason))
        self._news()

    @in_turn
    def when_settled(self, then: Callable[[str], object]) -> None:
        """Call `then` when all stages not on demand have results: now, or later, with the reason if they come to none."""
        missing = self._missing(self.results())
        if not missing:
            then("")
            return
        self._awaiting.append(then)
        if not self._is_followed():
            self._follow()
            self._news()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all work is done, and all that follows from it."""
        self._hurry()
        while self._following.wait(timeout) and self._asked.wait(timeout):
            if not self._taken_up() and not self._following.busy:   # what has ended may have begun other work
                return True
            self._hurry()
        return False

    @in_turn
    def cancel(self) -> None:
        """Request all running work to stop."""
        self._following.cancel()
        self._asked.cancel()
        self._let_go()
        self.partial.clear()
        missing = self._missing(self.results())
        self._tell_awaiting("cancelled")
        self._say(Status(error="cancelled: change something to go on") if missing else Status(text="cancelled"))

    @in_turn
    def close(self) -> None:
        """Stop, and forget everything."""
        self._closed = True   # no notifications from here on
        self.cancel()
        self.changed = lambda: None
        self._memory.clear()
        self.partial.clear()

    # Implementation.

    def _key(self, stage: Stage, state: State) -> Hashable:
        return stage.name, stage.depends(state)

    def _missing(self, results: Results) -> list[Stage]:
        """The stages that are not on demand and have none of these results."""
        return [stage for stage in self.stages.values() if not stage.on_demand and stage.name not in results]

    def _keys(self, state: State) -> list[Hashable]:
        """The results that a state needs, but for those on demand."""
        return [self._key(stage, state) for stage in self.stages.values() if not stage.on_demand]

    def _follow(self) -> None:
        state = self.state
        self._failed.clear()   # what failed before is tried again
        first = next((stage.text for stage in self._missing(self.results())), "")   # work may wait for a step before it
        job = self._submit(self._following, functools.partial(self._run, state, None), first)
        self._followed = job, self._keys(state)

    def _is_followed(self) -> bool:
        """Whether the missing results are being computed already."""
        if self._followed is None:
            return False
        job, keys = self._followed
        return not job.ended.is_set() and not job.cancelled.is_set() and keys == self._keys(self.state)

    def _submit(
        self, lane: Lane, work: Callable[[Job], None], text: str, then: Callable[[str], object] = lambda reason: None
    ) -> Job:
        job = Job(work, lambda job: self._ended(job, then), self._reported, self._deliver, text=text)
        self._under_way.append(job)
        self._mistake = ""
        self.status = Status(True, 0.0, text, self._refused)
        lane.submit(job)
        self._let_go()
        return job

    def _let_go(self) -> None:
        """Do what follows from work that was dropped before it began: nobody else tells of its end."""
        for job in [job for job in self._under_way if job.cancelled.is_set() and job.ended.is_set()]:
            job.done(job)

    def _run(self, state: State, on_demand: Stage | None, job: Job) -> None:
        """Run the stages without a result for this state, and one on demand; each gets the results of those before it."""
        results = self.results(state)   # kept here, too: the memory may drop them meanwhile
        missing = self._missing(results)
        first_later = next((stage for stage in missing if stage.later), None)
        for stage in missing if on_demand is None else [*missing, on_demand]:
            if stage is first_later:
                job.rest(LATER)
            key = self._key(stage, state)
            self.runs[stage.name] += 1
            start = time.perf_counter()
            try:
                result = stage.work(state, results, job)
                if result is None:   # which would be taken for a result that is still missing
                    raise WorkbenchError(f"the stage {stage.name!r} returned None: a result must be an object")
            except Cancelled:
                raise
            except Exception as error:
                named = "" if isinstance(error, WorkbenchError) else f"{type(error).__name__}: "
                self._failed[key] = f"{named}{error}"   # else whoever waits for the result would wait forever
                raise
            if self._closed:
                return   # a result kept now would never be released
            if missing and stage is missing[0]:
                self._following.pause = 0.0 if time.perf_counter() - start < QUICK else PAUSE
            results[stage.name] = result
            present = self.state
            self._memory.keep(key, result, needed={self._key(each, present) for each in self.stages.values()})
            job.partial = None
            self.partial.pop(stage.name, None)
            job.deliver(self._news)

    @in_turn
    def _reported(self, job: Job) -> None:
        if job.ended.is_set() or job.cancelled.is_set():
            return
        if (partial := job.partial) is not None:   # the thread of the job may take it away
            self.partial.update(partial)
        self._say(Status(True, job.share, job.text, self._refused))

    @in_turn
    def _hurry(self) -> None:
        """Let no work rest: somebody waits for it."""
        for job in self._under_way:
            job.hurry()

    @in_turn
    def _taken_up(self) -> bool:
        """Do now what follows from work that has ended, if anything: its delivery may be waiting for this very thread."""
        ended = [job for job in self._under_way if job.ended.is_set()]
        for job in ended:
            job.done(job)
        return bool(ended)

    @in_turn
    def _ended(self, job: Job, then: Callable[[str], object]) -> None:
        if job not in self._under_way:
            return   # whoever waited for it has not waited for its delivery
        self._under_way = [other for other in self._under_way if other is not job]
        if self._closed:
            release_memory()   # memory that the job still held when the panel was closed
            return
        if job.cancelled.is_set():   # cancelling has set the status, or newer work is running
            self._follows(functools.partial(then, "cancelled"))
            return
        self.partial.clear()
        if job.error:
            self._mistake = job.error
            self._say(Status(error=job.error))
            self._follows(functools.partial(then, job.error))
            if not self._is_followed():   # else the results may come yet: only what was asked for has failed
                self._tell_awaiting(job.error)
            return
        if self._settle():
            self._news()
        self._follows(functools.partial(then, ""))
        if not self._missing(self.results()):
            self._tell_awaiting("")

    def _tell_awaiting(self, reason: str) -> None:
        awaiting, self._awaiting = self._awaiting, []
        for then in awaiting:
            self._follows(functools.partial(then, reason))

    def _follows(self, then: Callable[[], object]) -> None:
        """Do what follows from work that has ended."""
        try:
            then()
        except Exception as error:   # no cell would show it, since none is running
            log.exception("what follows from the work of a panel failed")
            self._say(Status(error=f"{type(error).__name__}: {error}"))

    def _settle(self) -> bool:
        """Set the status to idle if no work is left."""
        idle = all(job.cancelled.is_set() for job in self._under_way)
        if idle:
            self.status = Status(error=self._refused or self._mistake)
        return idle

    @in_turn
    def _news(self) -> None:
        if not self._closed:
            self.changed()

    def _say(self, status: Status) -> None:
        self.status = status
        self._news()
