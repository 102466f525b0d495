"""Frames read by a library in another process, with limits: on forged bytes a decoder may crash, or spoil its memory.

The decoders of MDAnalysis in C do so. The process takes a second or more to start, mostly to import the library, and is
kept for later files. If it ends while it reads a second one, a fresh process tries again: the first may have spoilt it.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import struct
import subprocess
import threading
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from workbench import children
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

PROGRAM = """
from workbench.data.readers.other_process import serve
serve(sys.stdin.buffer, open(int(sys.argv[1]), "wb"))
"""
LENGTH = struct.Struct("<Q")
MEMORY, MEMORY_PER_BYTE = 2**33, 64            # of address space
SECONDS, SECONDS_PER_BYTE = 120, 1 / 2**20     # of processor time

_lock = threading.Lock()
_kept: list[_Process] = []


class _Process:
    """The process, and the ends of the pipes to and from it."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        try:
            self.process = children.start(PROGRAM, writing, stdin=subprocess.PIPE, **quiet)
        finally:
            os.close(writing)
        self._answers = os.fdopen(reading, "rb")

    def asked(self, request: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
        """The arrays that it sends; None if it ends instead."""
        assert self.process.stdin is not None   # it is a pipe
        with contextlib.suppress(BrokenPipeError):   # it has ended: the missing answer says so
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        length = self._answers.read(LENGTH.size)
        data = self._answers.read(LENGTH.unpack(length)[0]) if len(length) == LENGTH.size else b""
        if not data:
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
            return dict(loaded)

    def end(self) -> str:
        """End it; returns how it has ended."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self._answers.close()
        try:
            self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return children.how_it_ended(self.process)


def arrays_of_frame(source: Source, module: str, function: str, frame: int | list[int]) -> dict[str, Any]:
    """What a function of a module returns for a path and the number of a frame, or the ends of some: arrays by name."""
    request = {
        "module": module, "function": function, "path": str(source.path.absolute()), "frame": frame,
        "memory": MEMORY + MEMORY_PER_BYTE * source.size, "seconds": SECONDS + int(source.size * SECONDS_PER_BYTE),
    }
    with _lock:
        found = _answer(request) or _answer(request)   # the second one is a fresh process
    assert found is not None   # a fresh process answers, or says how it has ended
    if "ended" in found:
        raise source.damaged(f"the library that reads it ended with {found['ended']}")
    if "refused" in found:
        raise WorkbenchError(str(found["refused"]))
    if "failed" in found:
        raise WorkbenchError(f"MDAnalysis cannot read {source.name} ({found['failed']}): it may be truncated or damaged")
    source.require_room(f"frame {frame}", found["positions"].nbytes)
    return found


def _answer(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer of the process; None if one that was used before ends instead."""
    used = bool(_kept)
    process = _kept.pop() if used else _Process()
    try:
        found = process.asked(request)
    except BaseException:   # an interrupt: a late answer would be taken for the next one
        process.process.kill()
        process.end()
        raise
    if found is not None:
        _kept.append(process)
        return found
    ended = process.end()
    return None if used else {"ended": ended}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests, one a line, until there are no more."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    for line in requests:
        request = json.loads(line)
        used = resource.getrusage(resource.RUSAGE_SELF)
        until = int(used.ru_utime + used.ru_stime) + 1 + request["seconds"]
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        resource.setrlimit(resource.RLIMIT_AS, (request["memory"] if most < 0 else min(request["memory"], most), most))
        file = io.BytesIO()
        np.savez(file, **_found(request))
        answers.write(LENGTH.pack(file.tell()) + file.getvalue())
        answers.flush()


def _found(request: Mapping[str, Any]) -> dict[str, Any]:
    import importlib

    try:
        function = getattr(importlib.import_module(request["module"]), request["function"])
        return dict(function(request["path"], request["frame"]))
    except WorkbenchError as error:
        return {"refused": str(error)}
    except Exception as error:   # libraries fail on damaged files in too many ways to list
        return {"failed": f"{type(error).__name__}: {error}"}


def end_all() -> None:
    """End the process, if there is one; the next file starts another."""
    while _kept:
        _kept.pop().end()


def _forget() -> None:
    """Leave the process to the parent after a fork: the two would take each other's answers."""
    global _lock
    for kept in _kept:
        kept.process.returncode = 0
    _kept.clear()
    _lock = threading.Lock()


atexit.register(end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
