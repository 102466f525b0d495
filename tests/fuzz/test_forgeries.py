"""Forged archives are refused or decode to what can be verified; and the search for others sees what it looks for."""

import os
import subprocess
import sys

import pytest

from conftest import ROOT
from fuzz import forgeries
from fuzz.forgeries import Result, report, run, run_here
from fuzz.victims import victims
from workbench import host_library
from workbench.archive import Archive


@pytest.mark.filterwarnings("ignore::RuntimeWarning")   # arithmetic on made-up numbers
def test_a_few_forgeries_find_nothing():
    result = run_here(seed=1, first=0, cases=150)
    assert not result.findings, report(result, 1, "")
    assert sum(result.outcomes.values()) == 150
    assert {"refused", "confirmed", "contradicted"} <= set(result.outcomes)


@pytest.mark.long
def test_many_forgeries_find_nothing_with_sanitisers(monkeypatch):
    """Five thousand, against kernels that stop at any access outside an array and at undefined arithmetic."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))
    result = run(seed=0, first=0, cases=5000, sanitised=True)
    assert not result.findings, report(result, 0, " --sanitised")
    assert sum(result.outcomes.values()) == 5000


def test_a_case_depends_on_its_number_and_the_seed_alone():
    made = victims()

    def parts(seed: int, case: int) -> object:
        try:
            return forgeries.forged(made, forgeries.Random(f"{seed}:{case}"))[1:]
        except forgeries.NoForgery:
            return None

    assert [parts(0, case) for case in range(30)] == [parts(0, case) for case in range(30)]
    assert [parts(0, case) for case in range(30)] != [parts(1, case) for case in range(30)]


def test_victims_decode_and_are_confirmed_before_anything_is_forged():
    for victim in victims():
        assert victim.opened(victim.entries).verify(victim.original).passed, victim.name


def test_other_errors_than_refusals_are_findings(monkeypatch):
    monkeypatch.setattr(Archive, "damage", lambda self: 1 / 0)
    result = run_here(seed=0, first=0, cases=20)
    found = {(case[3].use, case[3].error) for case in result.findings}
    assert ("damage", "ZeroDivisionError: division by zero") in found
    assert {error for _, error in found} == {"ZeroDivisionError: division by zero"}
    assert "again: python -m fuzz.forgeries --seed 0 --first" in report(result, 0, "")


CHILD = """
import os, signal, time
print('3\\n[3, "free", "raw", "refused", []]', flush=True)
print(4, flush=True)
{ending}
"""


@pytest.mark.parametrize(
    ("ending", "status"),
    [("os.kill(os.getpid(), signal.SIGSEGV)", "-11"), ("time.sleep(60)", "-9"), ("raise SystemExit(7)", "7")],
)
def test_a_child_that_crashes_or_hangs_is_a_finding_with_its_case(monkeypatch, ending, status):
    monkeypatch.setattr(forgeries, "MOST_SILENCE", 2)
    command = [sys.executable, "-c", CHILD.format(ending=ending)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    result = Result()
    assert forgeries._follow(process, at=3, end=10, result=result) == 5
    assert [(case, found.error) for case, _, _, found in result.findings] == [(4, f"ended with status {status}")]
    assert result.outcomes == {"refused": 1, "crash": 1}


@pytest.mark.long
def test_the_sanitised_library_stops_at_an_access_outside_an_array(monkeypatch):
    """A kernel that is lied to about its arrays, past the checks of the launcher."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))
    lie = """
import ctypes, numpy as np
from workbench import backend
function = backend.kernel("ordering", "gather_rows")._host_function
table, order, out = np.zeros((4, 3), np.float32), np.array([0, 10**6], np.int32), np.zeros((2, 3), np.float32)
function(2, table.ctypes.data, order.ctypes.data, out.ctypes.data)
"""
    run = subprocess.run(
        [sys.executable, "-c", lie], env=forgeries._sanitised_environment(), capture_output=True, text=True, check=False
    )
    assert run.returncode != 0
    assert "AddressSanitizer" in run.stderr


def test_a_library_named_by_the_environment_must_be_of_these_sources(tmp_path):
    foreign = tmp_path / "_host_other.so"
    foreign.write_bytes(host_library.LIBRARY.read_bytes())
    code = "from workbench import backend; print(backend.threads() > 0)"

    def answer(library: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LOSSBENCH_HOST_LIBRARY": str(library), "PYTHONPATH": str(ROOT)}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)

    assert answer(foreign).stdout == "True\n"
    known = host_library.source_hash(host_library.kernel_folder()).encode()
    foreign.write_bytes(foreign.read_bytes().replace(known, bytes(reversed(known))))
    assert "older than their sources" in answer(foreign).stderr
    assert "the compiled kernels are missing (none.so)" in answer(tmp_path / "none.so").stderr
