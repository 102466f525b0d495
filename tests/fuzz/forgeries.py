"""Forged archives by the thousand: is each refused with a sentence, or decoded to something that can be verified?

    cd tests; python -m fuzz.forgeries --cases 10000 --seed 0                 everything from case 0 on, in one process
    python -m fuzz.forgeries --cases 1000000 --processes 2                    shared out among processes
    python -m fuzz.forgeries --cases 10000 --sanitised                        with a host library that checks every access
    python -m fuzz.forgeries --seed 0 --first 1234 --cases 1                  one case again

A case depends on the seed and its number alone. Cases run in child processes, so that a crash is a finding with a number
like any other, and the rest goes on. The exit status is 1 when there are findings.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from fuzz.mutations import NoForgery, forged
from fuzz.uses import Finding, used
from fuzz.victims import Victim, victims
from workbench import backend, host_library
from workbench.errors import WorkbenchError

MOST_SECONDS = 20        # for one case, before it is interrupted
MOST_SILENCE = 90        # before a child that does not even answer to that is killed
MOST_MEMORY = 2**30      # beyond what the process had


@dataclass
class Result:
    """What came of some cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[int, str, str, Finding]] = field(default_factory=list)   # case, victim, forger

    def add(self, other: Result) -> None:
        """The result of these and other cases."""
        self.outcomes += other.outcomes
        self.findings += other.findings


def run_case(made: list[Victim], seed: int, case: int) -> tuple[str, str, str, list[Finding]]:
    """The victim, the forger, the outcome and the findings of one case."""
    random = Random(f"{seed}:{case}")
    try:
        victim, forger, parts = forged(made, random)
    except (NoForgery, WorkbenchError):   # the change makes no sense, or the archive's own writer refuses it
        return "", "", "no forgery", []
    return (victim.name, forger, *used(victim, parts))


def run_here(seed: int, first: int, cases: int, foreign: bool = False) -> Result:
    """Some cases in this process."""
    result, made = Result(), victims(foreign)
    for case in range(first, first + cases):
        with backend.using_threads(1):
            victim, forger, outcome, findings = run_case(made, seed, case)
        result.outcomes[outcome] += 1
        result.findings += [(case, victim, forger, found) for found in findings]
    return result


# The child: announces each case, then tells what came of it.

def child(seed: int, first: int, cases: int, foreign: bool, limited: bool) -> None:
    """Run cases, one line of JSON for the number of each and one for its result."""
    warnings.simplefilter("ignore")   # of arithmetic on made-up numbers
    backend.set_threads(1)            # to start others would take longer than these small archives do
    made = victims(foreign)
    signal.signal(signal.SIGALRM, _too_slow)
    if limited:
        _limit_memory()
    before = _peak()
    for case in range(first, first + cases):
        _tell(case)
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        try:
            victim, forger, outcome, findings = run_case(made, seed, case)
        except TimeoutError as error:
            victim, forger, outcome, findings = "", "", "too slow", [Finding("any", str(error), "time", "")]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if (grown := _peak() - before) > MOST_MEMORY:
            findings = [*findings, Finding("any", f"took {grown / 2**20:.0f} MB", "memory", "")]
            before = _peak()
        _tell([case, victim, forger, outcome, [asdict(found) for found in findings]])


def _too_slow(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"took more than {MOST_SECONDS} seconds")


def _limit_memory() -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY, resource.RLIM_INFINITY))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _tell(message: object) -> None:
    os.write(1, (json.dumps(message) + "\n").encode())


# The parent.

def run(seed: int, first: int, cases: int, foreign: bool = False, sanitised: bool = False) -> Result:
    """Some cases in child processes, one after the other: a new one after each crash."""
    result, environment = Result(), _sanitised_environment() if sanitised else dict(os.environ)
    at, end = first, first + cases
    while at < end:
        arguments = ["--child", f"--seed={seed}", f"--first={at}", f"--cases={end - at}"]
        flags = [*(["--foreign"] if foreign else []), *(["--sanitised"] if sanitised else [])]
        command = [sys.executable, "-m", "fuzz.forgeries", *arguments, *flags]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        at = _follow(process, at, end, result)
    return result


def _follow(process: subprocess.Popen[bytes], at: int, end: int, result: Result) -> int:
    """Take down what a child tells; returns the case to go on with when it has ended."""
    with process, ThreadPoolExecutor(1) as pool:
        assert process.stdout
        assert process.stderr
        complaints = pool.submit(process.stderr.read)
        running = None
        for line in _lines(process):
            match json.loads(line):
                case int(case):
                    running = case
                case [int(case), victim, forger, outcome, findings]:
                    running, at = None, case + 1
                    result.outcomes[outcome] += 1
                    result.findings += [(case, victim, forger, Finding(**found)) for found in findings]
        process.kill()
        status, said = process.wait(), complaints.result().decode(errors="replace")
    if at < end:
        result.outcomes["crash"] += 1
        error = f"ended with status {status}" + ("" if running is not None else " before a case had begun")
        result.findings.append((at, "", "", Finding("any", error, "crash", said[:6000])))
        at = end if running is None else running + 1   # where not even the start succeeds, nothing else will
    return at


def _lines(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """The lines that a child writes, until it ends or falls silent for too long."""
    assert process.stdout
    kept = b""
    while select.select([process.stdout], [], [], MOST_SILENCE)[0]:
        if not (data := os.read(process.stdout.fileno(), 2**16)):
            return
        *whole, kept = (kept + data).split(b"\n")
        yield from whole


def _sanitised_environment() -> dict[str, str]:
    """What a process needs to load a library with address sanitiser and undefined behaviour sanitiser in it."""
    library = host_library.build_sanitised()
    return {
        **os.environ, "LOSSBENCH_HOST_LIBRARY": str(library), "LD_PRELOAD": host_library.sanitiser_runtime(),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def shared_out(seed: int, first: int, cases: int, processes: int, foreign: bool, sanitised: bool) -> Result:
    """All cases, in so many processes at once."""
    step = -(-cases // (4 * processes))
    starts = range(first, first + cases, max(step, 1))
    result = Result()
    with ThreadPoolExecutor(processes) as pool:
        parts = [pool.submit(run, seed, at, min(step, first + cases - at), foreign, sanitised) for at in starts]
        for part in parts:
            result.add(part.result())
    return result


def report(result: Result, seed: int, flags: str) -> str:
    """The outcomes, and each kind of finding with its first case and how to see it again."""
    lines = [", ".join(f"{count:,} {outcome}" for outcome, count in result.outcomes.most_common())]
    kinds: dict[tuple[str, str], list[tuple[int, str, str, Finding]]] = {}
    for found in sorted(result.findings, key=lambda entry: entry[0]):
        kinds.setdefault((found[3].where, found[3].error.split(":")[0]), []).append(found)
    for (where, _), cases in sorted(kinds.items(), key=lambda entry: -len(entry[1])):
        case, victim, forger, finding = cases[0]
        first = f"first in case {case} ({victim}, {forger}), {finding.use}: {finding.error}"
        lines.append(f"\n{len(cases)} times at {where}; {first}")
        lines.append(f"  again: python -m fuzz.forgeries --seed {seed} --first {case} --cases 1{flags}")
        lines += [f"  {line}" for line in finding.trace.splitlines()[-40:]]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command that the module's docstring shows."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.forgeries", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of all random choices")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--processes", type=int, default=1, help="how many run at once")
    parser.add_argument("--foreign", action="store_true", help="also forge archives of other people's codecs")
    parser.add_argument("--sanitised", action="store_true", help="use a host library that checks every access")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        child(given.seed, given.first, given.cases, given.foreign, limited=not given.sanitised)
        return 0
    begin = time.perf_counter()
    result = shared_out(given.seed, given.first, given.cases, given.processes, given.foreign, given.sanitised)
    flags = (" --foreign" if given.foreign else "") + (" --sanitised" if given.sanitised else "")
    print(report(result, given.seed, flags))
    print(f"\n{given.cases:,} cases in {time.perf_counter() - begin:.0f} s, {len(result.findings):,} findings")
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
