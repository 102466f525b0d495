"""Failures by script: what happens to the process that runs an item of a step, the first time or always.

A script is a folder. The file `find-groups-2` in it says what happens at item 2 of the step find-groups; the first word is
a name of ACTIONS, and `always` after it keeps the file. Deterministic, unlike workers that die at random times.
"""

import ctypes
import errno
import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from workbench.run.executors import OnDask


def out_of_memory() -> None:
    """Take memory until the nanny, which looks ten times a second, ends this process."""
    taken = []
    for _ in range(400):
        if sum(map(len, taken)) < 1000 * 2**20:   # of the limit of 1 GiB, so that the machine is not harmed
            taken.append(bytearray(os.urandom(2**20)) * 50)
        time.sleep(0.05)
    raise AssertionError("no nanny ended this process")


def fault() -> None:
    ctypes.string_at(0)


def once() -> None:
    raise ArithmeticError("a cosmic ray")


def full_disk() -> AbstractContextManager[Any]:
    """No scratch file can be written, as on a full disk."""
    return mock.patch("pathlib.Path.replace", side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


ACTIONS: dict[str, Callable[[], Any]] = {
    "exit": lambda: os._exit(1),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": fault,
    "memory": out_of_memory,
    "raise": once,
    "disk": full_disk,
    "sleep": lambda: time.sleep(3),
}


@dataclass(frozen=True)
class Scripted:
    """A step that follows a script, and counts how often each item was begun."""

    name: str
    step: Callable[..., Any]
    folder: Path

    def __call__(self, *shared_and_item: Any) -> Any:
        item = shared_and_item[-1]
        (self.folder / f"begun-{self.name}-{item}-{os.getpid()}-{time.monotonic_ns()}").touch()
        mark, around = self.folder / f"{self.name}-{item}", nullcontext()
        if mark.exists():
            action, *always = mark.read_text().split()
            if not always:
                mark.unlink()
            around = ACTIONS[action]() or around
        with around:
            return self.step(*shared_and_item)


@dataclass(frozen=True)
class ScriptedCluster(OnDask):
    """A cluster whose steps follow a script."""

    script: Path = Path()

    def map(
        self, name: str, step: Any, items: Any, each: str = "item", on_gpu: bool = False, shared: Any = None,
        together: bool = False,
    ) -> list[Any]:
        return super().map(name, Scripted(name, step, self.script), items, each, on_gpu, shared)

    def begun(self, name: str, item: int) -> int:
        """How often an item of a step was begun."""
        return len(list(self.script.glob(f"begun-{name}-{item}-*")))
