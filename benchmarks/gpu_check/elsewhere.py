"""Launches on a GPU for code that takes NumPy arrays alone, such as the codec for fields.

The arrays of each launch are copied to the machine, and those that the kernel may write to are copied back. That is no way
to be fast, but the kernels run on the GPU with the arguments that occur, and the code around them needs no change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from workbench import backend


@contextmanager
def launched_on(xp: Any) -> Iterator[None]:
    """The time in which kernels that get NumPy arrays run on the machine of this namespace."""
    plain = backend.kernel

    def kernel(*arguments: Any, **named: Any) -> Any:
        return _Elsewhere(plain(*arguments, **named), xp)

    if xp is np:
        yield
        return
    with mock.patch.object(backend, "kernel", kernel):
        yield


@dataclass(frozen=True)
class _Elsewhere:
    """A kernel that runs on the machine of `xp`, whatever its arrays are."""

    kernel: Any   # a Kernel, or one that is repeated on the CPU
    xp: Any

    def __call__(self, items: int, /, *arguments: Any, **named: Any) -> None:
        inner = getattr(self.kernel, "kernel", self.kernel)
        bundles = [argument for argument in arguments if isinstance(argument, dict)]
        given = inner._in_order((*bundles, named)) if bundles or named else arguments
        copies: dict[Any, Any] = {}   # an array that is given twice is one array there, too
        moved = [
            copies.setdefault((each.ctypes.data, each.shape, each.dtype), self.xp.asarray(each))
            if isinstance(each, np.ndarray) else each
            for each in given
        ]
        self.kernel(items, *moved)
        for parameter, here, there in zip(inner.parameters[1:], given, moved, strict=True):
            if parameter.writable and isinstance(here, np.ndarray):
                here[...] = backend.to_host(there)
