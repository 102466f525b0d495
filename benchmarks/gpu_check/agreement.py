"""Whether the machine computes the CPU's bits: kernel by kernel, in its results, and in stored results of a CPU.

Where the CPU's build of the kernels is there, each case runs on both machines. Where it is not (no compiler), results are
compared with digests of a CPU's results that are stored beside this file. A digest of the inputs tells other inputs apart
from other results. `python benchmarks/gpu.py --write-stored` stores them anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpu_check.budget import Budget
from gpu_check.cases import BYTES, Case, all_cases
from gpu_check.machine import Machine, missing_package
from gpu_check.shadow import Findings, shadowed
from workbench import backend
from workbench.backend import Array

STORED = Path(__file__).with_name("stored.json")
STORED_COUNT = 1500   # particles
MISSING = "the compiled kernels are missing"   # what the launcher says where the CPU's build is needed and not there


@dataclass
class Agreement:
    """What agrees and what does not."""

    agreed: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)     # cases that raised
    left_out: dict[str, str] = field(default_factory=dict)   # cases for which time, memory or the CPU's kernels are missing
    kernels: Findings = field(default_factory=Findings)

    @property
    def holds(self) -> bool:
        """Whether nothing differs, and something was compared."""
        return bool(self.agreed) and not (self.different or self.failed or self.kernels.differences)

    def ended(self, name: str, error: Exception, machine: Machine, without_cpu: bool = False) -> None:
        """Note the error that ended a case: a fault, or what is missing here."""
        why = f"{type(error).__name__}: {error}"[:300]
        missing = missing_package(error)
        if missing is not None:
            self.left_out[name] = f"{missing} is not installed"
        elif isinstance(error, machine.out_of_memory()) or (without_cpu and MISSING in why):
            self.left_out[name] = why
        else:
            self.failed[name] = why

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the report."""
        return {
            "holds": self.holds, "agreed": len(self.agreed), "different": self.different, "failed": self.failed,
            "left_out": self.left_out,
            "launches_compared": sum(self.kernels.compared.values()),
            "kernel_variants_compared": len(self.kernels.compared),
            "kernels_never_launched": self.kernels.never_launched(),
            "kernel_differences": self.kernels.differences,
        }


def compared_with_cpu(
    machine: Machine, counts: Sequence[int], budget: Budget, cases: Sequence[Case] | None = None
) -> Agreement:
    """Every case on both machines, its kernels one by one in the smallest size, until the time is used up."""
    found = Agreement()
    for number, count in enumerate(counts):
        for case in all_cases() if cases is None else cases:
            name = f"{case.name}, {count:,}"
            if budget.over:
                found.left_out[name] = "no time left"
                continue
            try:
                here = _results(case, np.asarray, count)
            except Exception as error:   # one case that fails must not end the others
                found.ended(name, error, machine)
                continue
            if number == 0:
                with shadowed(found.kernels):
                    there = _on_machine(case, machine, count, found, name)
            else:
                there = _on_machine(case, machine, count, found, name)
            _compare(found, name, here, there)
    return found


def compared_with_stored(
    machine: Machine, budget: Budget, stored: Path = STORED, cases: Sequence[Case] | None = None
) -> Agreement:
    """The cases without the CPU's kernels: their lasting results against those of a CPU, stored as digests."""
    found, expected = Agreement(), json.loads(stored.read_text())
    for case in all_cases() if cases is None else cases:
        if budget.over:
            found.left_out[case.name] = "no time left"
            continue
        inputs = _Digest()
        there = _on_machine(case, machine, STORED_COUNT, found, case.name, inputs)
        whole = case.name not in found.left_out and case.name not in found.failed
        if whole and inputs.text() != expected[case.name]["inputs"]:
            found.left_out[case.name] = "the random numbers of this NumPy differ from the stored ones"
            continue
        of_cpu = expected[case.name]["results"]
        _compare(found, case.name, {name: of_cpu.get(name) for name in there}, {n: _digest(v) for n, v in there.items()})
    return found


def write_stored(stored: Path = STORED) -> None:
    """Store digests of this CPU's results."""
    stored.write_text(json.dumps(digests(), indent=1) + "\n")


def digests() -> dict[str, Any]:
    """Digests of the inputs and lasting results of every case on this CPU."""
    found = {}
    for case in all_cases():
        inputs = _Digest()
        results = _results(case, inputs.noted, STORED_COUNT)
        lasting = {name: _digest(value) for name, value in results.items() if not name.startswith(BYTES)}
        found[case.name] = {"inputs": inputs.text(), "results": lasting}
    return found


def _results(case: Case, move: Any, count: int) -> dict[str, bytes]:
    return {name: _bytes(value) for name, value in case.run(move, count)}


def _on_machine(
    case: Case, machine: Machine, count: int, found: Agreement, name: str, inputs: _Digest | None = None
) -> dict[str, bytes]:
    """The results on the machine, as far as they come; what ends them early is noted."""
    results: dict[str, bytes] = {}

    def move(array: np.ndarray) -> Array:
        return machine.moved(inputs.noted(array) if inputs is not None else array)

    try:
        with machine.in_use():
            for key, value in case.run(move, count):
                if inputs is None or not key.startswith(BYTES):
                    results[key] = _bytes(value)
    except Exception as error:   # one case that fails must not end the others
        found.ended(name, error, machine, without_cpu=inputs is not None)
    return results


def _compare(found: Agreement, name: str, expected: dict[str, Any], got: dict[str, Any]) -> None:
    """Note the results that are there on both sides, by name."""
    for key in got:
        same = expected.get(key) == got[key]
        (found.agreed if same else found.different).append(f"{name}: {key}")


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    array = np.ascontiguousarray(backend.to_host(value))
    return f"{array.dtype.str}{array.shape}".encode() + array.tobytes()


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


class _Digest:
    """A digest of all arrays that pass."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)

    def noted(self, array: np.ndarray) -> np.ndarray:
        """The array, unchanged."""
        if array.size and array.dtype.kind != "V":
            self._hash.update(np.ascontiguousarray(array).tobytes())
        return array

    def text(self) -> str:
        """The digest so far."""
        return self._hash.hexdigest()
