"""The pool of decoding processes: started when first needed, reused for later requests, ended with this process.

At most as many as there are processors work at once, each for one thread. A process that dies is replaced. A failing
library may have corrupted memory that later requests in the same process use. So a decoder is not used again after a
failure, and if a reused decoder crashes, a fresh one makes another attempt.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import threading
from typing import Any

import numpy as np

from workbench import children
from workbench.codecs.codec import CodecFailed
from workbench.codecs.isolation.exchange import SharedFile, receive, send
from workbench.codecs.isolation.question import Question
from workbench.errors import WorkbenchError

PROGRAM = """
from workbench.codecs.isolation.process import main
main(int(sys.argv[1]))
"""
START_SECONDS = 600   # to start, and to load the library of a codec, which no foreign bytes take part in
GRACE_SECONDS = 30   # after which a process that should have ended itself is ended
KEPT = 2**25         # bytes of a shared file that is kept for the next request: enough for chunks of the usual size

_TOO_LONG = {"signal SIGALRM": "{clock} s", "signal SIGXCPU": "{processor} s of processor time"}
_ADVICE = "open the archive with isolate=False if you trust where it comes from"


class CannotIsolate(WorkbenchError):
    """Decoding in another process is impossible here; the data may be fine."""


class TookTooLong(CodecFailed):
    """A decoder used up its time."""


class Crashed(CodecFailed):
    """A decoder ended without an answer."""


class Decoder:
    """One process that decodes."""

    def __init__(self) -> None:
        self.questions = 0
        self._file: SharedFile | None = None
        self._link, theirs = socket.socketpair()
        with theirs:
            quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            try:
                self._process = children.start(PROGRAM, theirs.fileno(), **quiet)
            except OSError as error:
                self._link.close()
                raise CannotIsolate(f"no process could be started to decode in ({error}): {_ADVICE}") from None
        if self._heard(START_SECONDS) is None:
            raise CannotIsolate(f"the process to decode in ended with {self._end_of_it()} before it began: {_ADVICE}")

    @property
    def alive(self) -> bool:
        """Whether it can take a request."""
        return self._process.poll() is None

    def answer(self, question: Question) -> tuple[dict[str, Any], np.ndarray | None]:
        """Its answer, and the decoded array; if it ends instead, an error that says how."""
        self.questions += 1
        try:
            file = self._asked(question)
            heard = self._heard(START_SECONDS)
            if heard is not None and heard.get("begun"):
                heard = self._heard(question.limits.clock + GRACE_SECONDS)
        except BaseException:   # an interrupt: a late answer would be taken for the next one
            self.end()
            raise
        if heard is None:
            how = self._end_of_it()
            if how in _TOO_LONG:
                raise TookTooLong(f"its decoder took more than {_TOO_LONG[how].format(**vars(question.limits))}")
            raise Crashed(f"its decoder ended with {how}")
        return heard, question.result(file) if heard.get("found") else None

    def end(self) -> None:
        """End it at once: it has no state to save."""
        self._process.kill()
        self._process.wait()
        self._let_go()

    def forget(self) -> None:
        """Leave it to the parent process after a fork."""
        self._process.returncode = 0
        self._let_go()

    def _asked(self, question: Question) -> SharedFile:
        """Ask, and return the file in which the answer will be."""
        known = self._file if self._file is not None and question.size <= self._file.size else None
        file = known or SharedFile.of_size(max(question.size, KEPT))
        keep = file.size <= KEPT
        try:
            question.write(file)
            with contextlib.suppress(OSError):   # it has died: the missing answer will show that
                send(self._link, {**question.described(), "keep": keep}, None if known else file)
        finally:
            if known is None:
                file.close()
        self._file = file if keep else None
        return file

    def _heard(self, seconds: float) -> dict[str, Any] | None:
        """Its next message; None when it has ended, or does not answer in time."""
        self._link.settimeout(seconds)
        try:
            received = receive(self._link)
        except (OSError, ValueError):
            return None
        return None if received is None else received[0]

    def _end_of_it(self) -> str:
        """How it ended; it is killed here if it does not end by itself."""
        self._let_go()
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
        return children.how_it_ended(self._process)

    def _let_go(self) -> None:
        self._file = None
        self._link.close()


class _Pool:
    """All decoders of this process: a list of idle ones, and a semaphore for the number of processors."""

    def __init__(self) -> None:
        self.room = threading.BoundedSemaphore(max(os.cpu_count() or 1, 1))
        self.idle: list[Decoder] = []

    def answer(self, question: Question) -> tuple[dict[str, Any], np.ndarray | None]:
        """The answer of a decoder that no other thread uses."""
        with self.room:
            decoder = self._taken() or Decoder()
            try:
                answer = decoder.answer(question)
            except Crashed:
                if decoder.questions == 1:
                    raise
                decoder = Decoder()
                answer = decoder.answer(question)
            if "found" in answer[0]:
                self.idle.append(decoder)
            else:
                decoder.end()
            return answer

    def _taken(self) -> Decoder | None:
        while self.idle:
            try:
                decoder = self.idle.pop()
            except IndexError:   # another thread took the last one
                return None
            if decoder.alive:
                return decoder
            decoder.end()
        return None

    def end(self) -> None:
        """End all idle decoders."""
        while self.idle:
            self.idle.pop().end()


_pool = _Pool()


def ask(question: Question) -> np.ndarray | None:
    """The result of a decoder: an array, or None.

    Raises `CodecFailed` when it fails or dies, `CannotIsolate` when isolated decoding is impossible, and the codec's own
    error when it refuses its input.
    """
    if os.name != "posix":
        raise CannotIsolate(f"decoding in another process with limits needs Linux or another POSIX system: {_ADVICE}")
    answer, found = _pool.answer(question)
    if "unknown" in answer:
        raise CannotIsolate(f"another process cannot construct the codec ({answer['unknown']}): {_ADVICE}")
    if "refused" in answer:
        raise WorkbenchError(str(answer["refused"]))
    if "failed" in answer:
        raise CodecFailed(str(answer["failed"]))
    return found


def end_all() -> None:
    """End the idle decoders; the next request starts others."""
    _pool.end()


def _after_fork() -> None:
    """A forked process must not share decoders: the two processes would take each other's answers."""
    global _pool
    for decoder in _pool.idle:
        decoder.forget()
    _pool = _Pool()


atexit.register(end_all)
if os.name == "posix":
    os.register_at_fork(after_in_child=_after_fork)
