"""Which process made a file or a folder that is for its own run, and whether that process lives."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
from pathlib import Path

UNKNOWN = "-1"          # when a process began, if that cannot be known
MOST_PROCESSES = 2**22   # of Linux, on machines of 64 bits
OWNER = ".owner"        # the file of a scratch folder that names its process
BOOT, PIDS = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")   # of Linux


def this_process() -> str:
    """Names the machine, the process, and when it began, so that a later process with the same number is another one.

    >>> lives(this_process())
    True
    """
    return json.dumps({**_machine(), "pid": os.getpid(), "started": started(os.getpid())})


def remove_owned(folder: Path) -> None:
    """Remove a folder as far as possible, and the name of its process last: if this is killed, it is known what is left.

    >>> remove_owned(Path("there is none"))
    """
    with contextlib.suppress(OSError):
        for place in [place for place in folder.iterdir() if place.name != OWNER]:
            with contextlib.suppress(OSError):
                shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
        shutil.rmtree(folder, ignore_errors=True)


def lives(text: str) -> bool | None:
    """Whether the process lives that such a text names; None where that cannot be known, as of other machines.

    Machines and containers may share a name: those that also state the run of the kernel, and the numbering of processes,
    must agree in these, too.

    >>> lives("damaged")
    """
    try:
        owner = json.loads(text)
        host, pid, began = owner["host"], int(owner["pid"]), owner["started"]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    here = _machine()
    elsewhere = host != here["host"] or any(owner.get(name, own) != own for name, own in here.items())
    if elsewhere or not 0 < pid < MOST_PROCESSES:
        return None
    now = started(pid)
    return None if now is not None and UNKNOWN in (now, began) else now == began


def _machine() -> dict[str, str]:
    """What tells this machine, and the processes that this one sees, from others."""
    machine = {"host": socket.gethostname()}
    with contextlib.suppress(OSError):   # no Linux
        machine |= {"boot": BOOT.read_text().strip(), "pids": os.readlink(PIDS)}
    return machine


def started(pid: int) -> str | None:
    """When a process of this machine began, as Linux counts it; None if there is none.

    UNKNOWN where that cannot be known, as of processes of other users.
    """
    try:
        os.kill(pid, 0)
        state, *others = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state in "ZX" else others[18]   # one that has ended may wait for its parent to notice
    except ProcessLookupError:
        return None
    except OSError:
        return UNKNOWN
