"""Fresh Python interpreters, for work that must not harm this one.

A library that crashes ends a process, and OpenMP hangs after a fork. So such work runs in an interpreter of its own. It is
started by its own command instead of by `multiprocessing`, which would import the caller's script again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

# An interrupt from the keyboard goes to all processes of a terminal; only the parent should answer it.
PREPARE = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[2])
"""


def start(program: str, file: int, **streams: Any) -> subprocess.Popen:
    r"""A process that imports what this one can import and runs `program`, with the number of a file in `sys.argv[1]`.

    >>> process = start("print(sys.argv[1])", 2, stdout=subprocess.PIPE, text=True)
    >>> process.communicate()[0]
    '2\n'
    """
    command: Sequence[str] = [sys.executable, "-P", "-c", PREPARE + program, str(file), json.dumps(sys.path)]
    return subprocess.Popen(command, pass_fds=[file], env={**os.environ, **ONE_THREAD}, **streams)


def how_it_ended(process: subprocess.Popen) -> str:
    """What ended a process, after waiting for it.

    >>> how_it_ended(start("sys.exit(3)", 2))
    'exit status 3'
    """
    status = process.wait()
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
