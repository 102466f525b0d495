"""Trials in processes of their own: stages that end the interpreter, never end, or cannot be sent."""

import ctypes
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import workbench as wb
from workbench.propagation import BitFlip, CampaignPlan, Pipeline, campaign, derivatives, strata
from workbench.propagation.isolation import CannotIsolate, Isolated

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

SIGN = BitFlip("input", bit="sign", index=0)   # makes the first value negative
LOW = BitFlip("input", bit=0, index=1)


def waits(x):
    if x[0] < 0:
        time.sleep(10**6)
    return x.sum()


def kills(x):
    if x[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return x.sum()


def greedy(x):
    kept = []
    while x[0] < 0:
        kept.append(np.empty(2**27))   # a gigabyte, which is not used
    return x.sum()


def leaves(x):
    raise SystemExit("enough")


def loops(x):
    while True:
        pass


ENDS = [   # what a negative value at this place makes a stage do, and what is said of it
    (loops, "the process took more than 0.5 s of processor time"),
    (lambda x: ctypes.string_at(0), "the process ended with signal SIGSEGV"),
    (lambda x: os.kill(os.getpid(), signal.SIGKILL), "the process ended with signal SIGKILL"),
    (lambda x: os.abort(), "the process ended with signal SIGABRT"),
    (lambda x: os._exit(0), "the process ended with exit status 0"),
    (leaves, "the process ended with exit status 1"),
]


def ends(x):
    for place, (end, _) in enumerate(ENDS):
        if x[place] < 0:
            end(x)
    return x.sum()


def tried(stage, isolate=0.5, until=6, **options):
    pipeline, x = Pipeline([("one", stage)]), np.arange(1.0, 9.0)
    return campaign(pipeline, x, [SIGN, LOW], until=until, isolate=isolate, workers=1, **options)


def test_what_ends_a_process_is_a_crash_with_its_reason_and_ends_nothing_else():
    faults = [BitFlip("input", bit="sign", index=place) for place in range(len(ENDS))]
    found = campaign(
        Pipeline([("one", ends)]), np.arange(1.0, 9.0), [*faults, LOW], until=2 * len(faults) + 2, isolate=0.5, workers=1
    )
    assert found.complete
    said = [reason for _, reason in ENDS]
    assert [trial.reason for trial in found.trials] == 2 * [*said, None]
    assert [trial.outcome for trial in found.trials] == 2 * [*["crash"] * len(ENDS), "masked"]
    assert found.reasons("crash") == dict.fromkeys(said, 2)


@pytest.mark.long
@pytest.mark.parametrize(("stage", "reason"), [(waits, "7 s, waiting"), (greedy, "raised MemoryError")])
def test_waiting_and_memory_without_end_are_crashes(stage, reason):
    found = tried(stage, isolate=0.5 if stage is waits else 60, until=2)
    assert found.trials[0].outcome == "crash"
    assert reason in (found.trials[0].reason or "")
    assert found.trials[1].outcome == "masked"


@pytest.mark.long
def test_outcomes_are_those_of_threads_for_any_number_of_workers():
    field = wb.synthetic.gaussian_field((12, 12), seed=1)
    pipeline = derivatives(field)
    faults = strata(pipeline, field)
    plain = campaign(pipeline, field, faults, seed=2, until=60)
    assert campaign(pipeline, field, faults, seed=2, until=60, workers=2, isolate=20).trials == plain.trials


def test_functions_of_a_notebook_are_sent_too():
    pytest.importorskip("cloudpickle")
    limit = 3.0
    found = tried(lambda x: os.abort() if x[0] < 0 else x.sum() * limit, until=2)
    assert found.trials[0].reason == "the process ended with signal SIGABRT"


def test_a_campaign_goes_on_after_crashes(tmp_path):
    path = tmp_path / "trials.jsonl"
    first = tried(kills, until=4, path=path)
    whole = tried(kills, until=8, path=path)
    assert whole.trials[:4] == first.trials
    assert [trial.outcome for trial in whole.trials] == ["crash", "masked"] * 4


@pytest.mark.long
def test_processes_end_with_the_campaign():
    plan = CampaignPlan(Pipeline([("one", kills)]), np.ones(4), [SIGN, LOW])
    with Isolated(plan.experiment, 5.0) as trials:
        assert [each.outcome for each in trials.outcomes([0, 1])] == ["crash", "masked"]
        (runner,) = trials._idle
        again = pickle.loads(pickle.dumps(trials))
        assert again.outcomes([0]) == trials.outcomes([0])
    for each in (runner, *again._idle):
        each._process.poll()
    assert runner._process.returncode == -signal.SIGKILL


def test_what_cannot_be_isolated_is_refused_with_a_reason():
    lock = threading.Lock()
    with pytest.raises(CannotIsolate, match="must be sent to another process; TypeError: cannot pickle"):
        tried(lambda x: x.sum() if lock else x)
    with pytest.raises(wb.WorkbenchError, match="isolate, seconds of processor time for a trial, must be positive"):
        tried(kills, isolate=0)
    here = os.getpid()
    with pytest.raises(CannotIsolate, match="there, StageFailed: stage 'one' raised ValueError: elsewhere"):
        tried(_only_in(here))
    with pytest.raises(CannotIsolate, match=r"there, the run without an error took more than 0\.2 s of processor time"):
        tried(_slow, isolate=0.2)


def _slow(x):
    end = time.process_time() + 0.6
    while time.process_time() < end:
        pass
    return x.sum()


def _only_in(process):
    def stage(x):
        if os.getpid() != process:
            raise ValueError("elsewhere")
        return x.sum()

    return stage
