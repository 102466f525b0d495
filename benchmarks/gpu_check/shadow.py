"""Every launch on the GPU once more on the CPU, with the same arguments, and all arrays compared bit for bit.

Public calls launch the kernels, so each kernel is compared on arguments that occur, in every variant that occurs, and no
list of cases for single kernels can become outdated. Read-only arrays are compared too: a kernel must not write to them.

Two kinds of arrays may differ although all results are right. A union-find forest depends on the order of events, so its
roots are compared. Which pairs of cells are left to a second look, and which links an exemption decides, depends on what
other threads have united meanwhile.
The kernels of k-means lay out their arrays differently on the two machines, so only their results are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from workbench import backend, host_library
from workbench.backend import Kernel


def roots(parent: np.ndarray) -> np.ndarray:
    """The root of every node of a forest.

    >>> roots(np.array([0, 0, 1, 3])).tolist()
    [0, 0, 0, 3]
    """
    while not np.array_equal(above := parent[parent], parent):
        parent = above
    return parent


def nothing(array: np.ndarray) -> np.ndarray:
    """No part of an array that depends on the order of events."""
    return array[:0]


# What of an array is the same on both machines, where that is not all of it.
COMPARED: dict[str, dict[str, Callable[[np.ndarray], np.ndarray]]] = {
    "link": {"parent": roots, "open": nothing},
    "link_alike": {"parent": roots, "open": nothing, "used": nothing},
    "unite_candidates": {"parent": roots},
    "label_particles": {"parent": roots},
    "label_parts": {"parent": roots},
    "name_components": {"parent": roots},
}
OTHER_LAYOUT = {"kmeans"}


@dataclass
class Findings:
    """Which kernels were launched and compared, and where they differed."""

    compared: Counter[str] = field(default_factory=Counter)
    apart: Counter[str] = field(default_factory=Counter)   # launched, but compared by their results alone
    differences: list[str] = field(default_factory=list)

    def never_launched(self) -> list[str]:
        """The kernels that no launch has reached, as file/kernel."""
        return sorted(set(all_kernels()) - {name.rsplit(" ", 1)[0] for name in (*self.compared, *self.apart)})


def all_kernels() -> list[str]:
    """Every kernel that runs on GPUs, as file/kernel."""
    sources = sorted(path.stem for path in host_library.kernel_folder().glob("*.cu"))
    return [f"{source}/{name}" for source in sources for name in backend.declared(source)]


@contextmanager
def shadowed(findings: Findings) -> Iterator[None]:
    """The time in which every launch on a GPU is repeated on the CPU and compared."""
    plain = backend.kernel

    def kernel(*arguments: Any, **named: Any) -> Any:
        return _Twice(plain(*arguments, **named), findings)

    with mock.patch.object(backend, "kernel", kernel):
        yield


@dataclass(frozen=True)
class _Twice:
    """A kernel that runs on the GPU, then on the CPU with copies of what it was given."""

    kernel: Kernel
    findings: Findings

    def __call__(self, items: int, /, *arguments: Any, **named: Any) -> None:
        copies = _Copies()
        given = [copies.of(argument) for argument in arguments]
        given_by_name = {name: copies.of(value) for name, value in named.items()}
        self.kernel(items, *arguments, **named)
        if not copies.pairs:
            return   # a launch on the CPU
        label = f"{self.kernel.source}/{self.kernel.name} {host_library.variant(self.kernel.real, self.kernel.dimensions)}"
        if self.kernel.source in OTHER_LAYOUT:
            self.findings.apart[label] += 1
            return
        self.kernel(items, *given, **given_by_name)
        self.findings.compared[label] += 1
        names = self._names(arguments, named)
        for key, (there, here) in copies.pairs.items():
            self._compare(label, names.get(key, "?"), backend.to_host(there), here)

    def _names(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[int, str]:
        """The parameter that each array was given for."""
        bundles = [argument for argument in arguments if isinstance(argument, Mapping)]
        by_name = {name: value for bundle in (*bundles, named) for name, value in bundle.items()}
        if not by_name:
            by_name = {p.name: value for p, value in zip(self.kernel.parameters[1:], arguments, strict=True)}
        declared = {parameter.name for parameter in self.kernel.parameters}
        return {id(value): name for name, value in by_name.items() if name in declared}

    def _compare(self, label: str, name: str, there: np.ndarray, here: np.ndarray) -> None:
        part = COMPARED.get(self.kernel.name, {}).get(name)
        if part is not None:
            there, here = part(there), part(here)
        if there.tobytes() != here.tobytes():
            wrong = (there.view(np.uint8).reshape(-1) != here.view(np.uint8).reshape(-1)).sum()
            self.findings.differences.append(f"{label}: {name} differs in {int(wrong):,} of {there.nbytes:,} bytes")


class _Copies:
    """Copies of GPU arrays on the host; an array that is given twice is copied once."""

    def __init__(self) -> None:
        self.pairs: dict[int, tuple[Any, np.ndarray]] = {}

    def of(self, value: Any) -> Any:
        """The value with every GPU array in it replaced by a copy on the host."""
        if isinstance(value, Mapping):
            return {name: self.of(each) for name, each in value.items()}
        if not backend.on_device(value):
            return value
        if id(value) not in self.pairs:
            self.pairs[id(value)] = value, np.ascontiguousarray(value.get())
        return self.pairs[id(value)][1]
