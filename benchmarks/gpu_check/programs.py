"""Other programs that judge the kernels on a card: the tests marked `gpu`, and compute-sanitizer."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu_check import ROOT
from gpu_check.budget import Budget

SANITISER = "compute-sanitizer"
TOOLS = ("memcheck", "initcheck")
FAULTY = 99   # the exit status that compute-sanitizer is asked for


@dataclass(frozen=True)
class Verdict:
    """The end of a program: `passed` is None where it could not run."""

    name: str
    passed: bool | None
    told: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the report."""
        return asdict(self)


def gpu_tests(budget: Budget, folder: Path = ROOT / "tests") -> Verdict:
    """The tests that need a GPU, in a process of their own."""
    name = "tests marked gpu"
    if missing := [package for package in ("pytest", "hypothesis") if importlib.util.find_spec(package) is None]:
        return Verdict(name, None, f"{' and '.join(missing)} missing: name a folder of wheels with --wheels")
    files = [str(path) for path in sorted(folder.rglob("test_*.py")) if "mark.gpu" in path.read_text()]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", *files]
    ended = _run(command, budget)
    if ended is None:
        return Verdict(name, None, f"stopped after {budget.seconds:.0f} s")
    counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", ended.stdout)
    told = ", ".join(counts) or last_line(ended.stdout + ended.stderr)
    return Verdict(name, ended.returncode == 0 and "passed" in told, told)


def sanitised(tool: str, budget: Budget, program: str | None = None) -> Verdict:
    """Small cases under one tool of compute-sanitizer, without CuPy's memory pool, which would hide wrong accesses."""
    name = f"{SANITISER} {tool}"
    found = program or shutil.which(SANITISER) or shutil.which(f"/usr/local/cuda/bin/{SANITISER}")
    if found is None:
        return Verdict(name, None, "not installed")
    command = [found, "--tool", tool, "--error-exitcode", str(FAULTY), "--print-limit", "3"]
    ended = _run([*command, sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--bare-cases"], budget)
    if ended is None:
        return Verdict(name, None, f"stopped after {budget.seconds:.0f} s")
    summary = re.findall(r"ERROR SUMMARY: .*", ended.stdout + ended.stderr)
    told = summary[-1] if summary else last_line(ended.stdout + ended.stderr)
    if ended.returncode not in (0, FAULTY):
        return Verdict(name, None, told)   # the tool does not run on this machine
    return Verdict(name, ended.returncode == 0, told)


def _run(command: list[str], budget: Budget) -> subprocess.CompletedProcess[str] | None:
    """The ended program; None where the time ran out."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=max(budget.left(), 1), env=environment, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return None


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no output")[:200]
