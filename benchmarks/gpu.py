"""One command that proves the kernels on a GPU and measures them, from a bare checkout.

    python benchmarks/gpu.py                    all of it, in less than 8 minutes
    python benchmarks/gpu.py --cpu --sizes 400  the same on the stand-in for CuPy: no GPU is used
    LOSSBENCH_DEVICE_CODE=executed python benchmarks/gpu.py --cpu ...   there, with the code that a card would be given
    python benchmarks/gpu.py --model --sizes 32768   the bytes that each stage moves, counted on the stand-in
    python benchmarks/gpu.py --wheels FOLDER    with packages from wheels: pcodec, pytest, hypothesis

It needs Python 3.11, a driver, CuPy and NumPy. Without a C++ compiler it compares with stored results of a CPU. First
every case of `gpu_check/cases.py` runs on both machines, each kernel launch is repeated on the CPU, and all bits are
compared. Then follow the tests marked `gpu`, compute-sanitizer, measurements, and peers. A JSON and a Markdown file go to
`benchmarks/results/`, or to a temporary folder where that cannot be written to. The exit status is 1 when anything differs
or fails, 2 without a usable GPU, 130 after Ctrl-C; what has been found until then is reported.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

if sys.version_info < (3, 11) or importlib.util.find_spec("numpy") is None:
    sys.exit(f"this needs Python 3.11 or newer with NumPy and CuPy; got Python {sys.version.split()[0]} in {sys.prefix}")

import gpu_check
from gpu_check import agreement, machine, model, peers, programs, speed
from gpu_check.budget import Budget
from gpu_check.machine import HostKernels, Machine
from gpu_check.report import Report

from workbench.errors import WorkbenchError

MINUTES = 7.5
# Seconds for each part, at most; together they fit into MINUTES.
COMPILING, COMPARING, TESTING, SANITISING, MEASURING, PEERS = 60, 100, 80, 50, 120, 40
SIZES = (10**6, 10**7, 10**8)
COMPARED = (1500, 40_000)
BANDWIDTH = 3000   # GB/s that a copy within the memory of an H100 reads and writes
PARTS = ("compare", "tests", "sanitise", "speed", "peers")


def main() -> int:
    options = parsed()
    if options.wheels:
        install(options.wheels)
    if options.write_stored:
        agreement.write_stored()
        return 0
    if options.model:
        print(model.printed(round(min(64**3, *options.sizes) ** (1 / 3)), 1e9 * options.model))
        return 0
    if options.peer:
        print(json.dumps(peers.run_peer(options.peer, options.sizes[0])))
        return 0
    try:
        there = Machine.stand_in() if options.cpu else Machine.card()
    except WorkbenchError as error:
        print(error, file=sys.stderr)
        return 2
    if options.bare_cases:
        return bare_cases(there)
    signal.signal(signal.SIGTERM, signal.default_int_handler)   # a time limit from outside is treated as Ctrl-C
    faulthandler.enable()   # a crash tells in which case
    try:
        return run(there, options)
    except KeyboardInterrupt:
        print("interrupted before anything was compared", file=sys.stderr)
        return 130


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true", help="the stand-in for CuPy instead of a GPU")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of particles to measure")
    parser.add_argument("--compared", type=int, nargs="+", help="numbers of particles whose results are compared")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for the whole run")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path, help="where the results go; by default benchmarks/results for a GPU")
    parser.add_argument("--wheels", type=Path, help="a folder of wheels of the packages that are missing")
    parser.add_argument("--write-stored", action="store_true", help="store results of this CPU, for use without a compiler")
    parser.add_argument(
        "--model", type=float, nargs="?", const=BANDWIDTH, metavar="GB/S",
        help=f"only count what each stage moves, and divide by the bandwidth of a copy (default {BANDWIDTH}); needs no GPU",
    )
    parser.add_argument("--bare-cases", action="store_true", help=argparse.SUPPRESS)   # what compute-sanitizer runs
    parser.add_argument("--peer", choices=peers.PEERS, help=argparse.SUPPRESS)         # one peer, in this process
    return parser.parse_args()


def run(there: Machine, options: argparse.Namespace) -> int:
    """All parts in order, each within its time; the report is written after each."""
    whole, host = Budget(60 * options.minutes), machine.host_kernels()
    if not there.real:
        print(f"The stand-in for CuPy: no GPU is used. It launches {there.kernels}.\n")
        if not host.present:
            print(f"--cpu needs the kernels compiled for the CPU: {host.told}", file=sys.stderr)
            return 2
    report = Report(there.description(), host.told)
    steps: dict[str, Callable[[], object]] = {
        "compile": lambda: report.compiled_in(machine.compile_all(whole.part(COMPILING))),
        "compare": lambda: compare(report, there, host, options, whole.part(COMPARING * max(options.minutes / MINUTES, 1))),
        "tests": lambda: report.programs.append(programs.gpu_tests(whole.part(TESTING)).to_dict()),
        "sanitise": lambda: sanitise(report, whole.part(SANITISING)),
        "speed": lambda: measure(report, there, host, options, whole.part(MEASURING)),
        "peers": lambda: report.rows.extend(peers.peer_rows(min(10**7, max(options.sizes)), whole.part(PEERS))),
    }
    asked = [name for name in steps if name in options.parts or name == "compile"]
    possible = asked if there.real else [name for name in asked if name in ("compare", "speed")]
    report.not_compared = "compare" not in possible
    for name in possible:
        if not attempt(name, steps[name], report, whole, folder(options, there)):
            break
    print(report.markdown())
    if not there.real:
        print(f"No GPU was used, but {there.kernels}.")
    return 130 if report.interrupted else 0 if report.holds else 1


def attempt(name: str, step: Callable[[], object], report: Report, whole: Budget, out: Path | None) -> bool:
    """Do one part and write the report; what ends it is noted there. Whether to go on."""
    print(f"{name}, {whole.used():.0f} s ...", file=sys.stderr, flush=True)
    report.interrupted = name   # what the file says if a kernel makes the process crash
    if out is not None:
        report.write(out)
    try:
        if whole.over:
            report.left_out.append(name)
        else:
            step()
        report.interrupted = ""
    except KeyboardInterrupt:
        print(f"interrupted in the part {name}", file=sys.stderr)
    except Exception as error:   # one part that fails must not take the others with it
        report.failed[name], report.interrupted = machine.told(error), ""
    report.seconds = whole.used()
    if out is not None:
        print(f"written: {report.write(out)[-1]}", file=sys.stderr)
    return not report.interrupted


def folder(options: argparse.Namespace, there: Machine) -> Path | None:
    """Where the results go: as asked, for a GPU the folder of results, or one that can be written to."""
    wanted: Path | None = options.out or (gpu_check.ROOT / "benchmarks" / "results" if there.real else None)
    if wanted is not None and not machine.writable(wanted):
        options.out = Path(tempfile.mkdtemp(prefix="gpu-check-"))
        print(f"{wanted} cannot be written to, so results go to {options.out}", file=sys.stderr)
        return options.out
    return wanted


def compare(report: Report, there: Machine, host: HostKernels, options: argparse.Namespace, budget: Budget) -> None:
    """Bits of both machines, or of this machine and stored ones."""
    if host.present:
        counts = options.compared or (COMPARED if there.real else COMPARED[:1])
        found = agreement.compared_with_cpu(there, counts, budget)
    else:
        found = agreement.compared_with_stored(there, budget)
    report.agreement = found.to_dict()


def sanitise(report: Report, budget: Budget) -> None:
    """Each tool of compute-sanitizer on small cases."""
    for tool in programs.TOOLS:
        report.programs.append(programs.sanitised(tool, budget.part(SANITISING / len(programs.TOOLS))).to_dict())


def measure(report: Report, there: Machine, host: HostKernels, options: argparse.Namespace, budget: Budget) -> None:
    """The bandwidth of a copy, then all measurements."""
    with there.in_use():
        along = max(round(min(options.sizes) ** (1 / 3)), 4)
        bench = speed.Bench.on(there, host, along)
        report.copy_bandwidth, report.snapshot = bench.bandwidth, bench.source
        report.rows.extend(speed.measured(bench, options.sizes, budget))   # row by row, so that none is lost


def bare_cases(there: Machine) -> int:
    """Small cases and nothing else, without the memory pool, so that compute-sanitizer sees every array's ends."""
    if there.real:
        there.xp.cuda.set_allocator(None)
    found = agreement.compared_with_stored(there, Budget(SANITISING))
    print(f"{len(found.agreed):,} results agree, {len(found.different)} differ")
    return 1 if found.different else 0


def install(wheels: Path) -> None:
    """Make the wheels of a folder importable, here and in the processes that are started."""
    target = tempfile.mkdtemp(prefix="gpu-check-")
    files = sorted(map(str, wheels.glob("*.whl")))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", target, *files]
    if not files or subprocess.run(command).returncode:
        raise SystemExit(f"--wheels needs a folder of wheels that pip can install here; got {wheels}")
    sys.path.insert(0, target)


if __name__ == "__main__":
    sys.exit(main())
