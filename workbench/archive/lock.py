"""One run at a time writes a draft that can be continued.

The lock is a file in the hidden folder of the draft. It names the machine and the process, and gets a new time while that
process lives. A lock of a process of this machine that has ended, or one without a new time for a while, is taken over.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.archive.placing import NO_SECOND_NAMES, on_disk
from workbench.errors import WorkbenchError
from workbench.run.owner import lives, this_process

LOCK = ".lock"
BEAT_SECONDS = 20.0     # between new times,
STALE_SECONDS = 300.0   # and without one until a lock of another machine is taken over


@contextmanager
def held(folder: Path, target: Path) -> Iterator[None]:
    """Hold the lock of a draft; refused while another run holds it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, held(Path(folder), Path("a.zarr")):
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['.lock']
    """
    place, ours = folder / LOCK, this_process()
    _take(place, target, ours)
    over = threading.Event()
    beats = threading.Thread(target=_beat, args=(place, over), daemon=True)
    beats.start()
    try:
        yield
    finally:
        over.set()
        beats.join()
        if _text(place) == ours:
            place.unlink()


def _take(place: Path, target: Path, ours: str) -> None:
    """Write the lock, unless another run that may be alive has."""
    written = place.with_name(f"{LOCK}.{secrets.token_hex(8)}")
    try:
        with on_disk(target):
            written.write_text(ours)
        for _ in range(2):
            with on_disk(target), contextlib.suppress(FileExistsError):
                _give_name(written, place)
                return
            theirs = _text(place)
            if _alive(place, theirs):
                break
            _remove(place, theirs)
    finally:
        written.unlink(missing_ok=True)
    raise WorkbenchError(
        f"{target} must be written by one run at a time; another writes it now ({_text(place)}): wait until it ends. If it "
        f"has ended on another machine, call again after {STALE_SECONDS / 60:.0f} minutes, or delete {place}"
    )


def _remove(place: Path, theirs: str) -> None:
    """Remove a lock with this text, but not one that another run has written in its place meanwhile."""
    away = place.with_name(f"{LOCK}.{secrets.token_hex(8)}")
    with contextlib.suppress(FileNotFoundError):
        place.rename(away)
        if _text(away) != theirs:
            with contextlib.suppress(FileExistsError):
                _give_name(away, place)
        away.unlink()


def _give_name(written: Path, place: Path) -> None:
    """Give a file a second name that is free: with its text in one step, if the file system has second names."""
    try:
        os.link(written, place)
    except OSError as error:
        if error.errno not in NO_SECOND_NAMES:
            raise
        with place.open("x") as file:   # without its text for a moment, as a damaged lock: that of a run that lives
            file.write(written.read_text())


def _alive(place: Path, theirs: str) -> bool:
    """Whether the run that wrote a lock with this text may go on; a damaged lock is that of a run until it is old."""
    if (known := lives(theirs)) is not None:
        return known
    try:
        return time.time() - place.stat().st_mtime < STALE_SECONDS
    except FileNotFoundError:
        return False


def _beat(place: Path, over: threading.Event) -> None:
    while not over.wait(BEAT_SECONDS):
        with contextlib.suppress(OSError):   # a file system that is away for a moment; a lock that was taken over
            os.utime(place)


def _text(place: Path) -> str:
    try:
        return place.read_text(errors="replace")
    except FileNotFoundError:
        return ""
