"""The name of an archive that is being written: where it goes, what it may replace, and how it gets the name in one step.

An existing target is replaced only on request, and only if it is a Lossbench archive: a mistyped path must not destroy a
folder or a file. An empty file or directory counts as absent. If two writers create one archive, the second gets an error.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench import backend
from workbench.archive.recognition import is_archive
from workbench.data.readers.address import is_address
from workbench.errors import WorkbenchError

NO_SECOND_NAMES = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)   # of file systems without hard links
NO_FLUSHING = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)   # of a folder, on network file systems that flush only files


def target_of(path: str | os.PathLike[str]) -> Path:
    """The target with links resolved, in a directory that exists."""
    if is_address(path):
        raise WorkbenchError(
            f"an archive is written to a path of this machine, and then sent by archive.upload({path!r}); got that address"
        )
    try:
        target = Path(path).expanduser().resolve()
        here, fits = target == Path.cwd(), target.name and target.parent.is_dir()
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise WorkbenchError(f"cannot write to {path!r}: {error}") from None
    if here:
        got = repr(os.fspath(path))
        raise WorkbenchError(f"an archive cannot replace the working directory; got {got}: add the archive's name")
    if fits:
        return target
    raise WorkbenchError(f"an archive must be written into a directory that exists; got {path}")


def require_free(target: Path, overwrite: bool) -> None:
    """Refuse to replace anything without `overwrite`, or anything that is not an archive."""
    if not _exists(target):
        return
    if not overwrite:
        raise WorkbenchError(f"{target} exists: choose another name, or pass overwrite=True")
    if target.is_dir() == (target.suffix == ".zip") or not is_archive(target):
        raise WorkbenchError(
            f"only an archive written by lossbench is overwritten; {target} is not: move it away, or choose another name"
        )


def take_name(partial: Path, target: Path, overwrite: bool) -> None:
    """Give the finished archive its name."""
    with on_disk(target):
        require_free(target, overwrite)   # again: writing may have taken hours
        (swap if _exists(target) else _claim)(partial, target)
        flush(target.parent)


def partial_of(target: Path, token: str | None = None) -> Path:
    """A hidden name beside the target, for the unfinished archive; always the same one with the same token."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4) if token is None else token}.partial")


def require_own(partial: Path) -> None:
    """Refuse a folder under the name of our own that is a link, or that another user has made."""
    status = partial.lstat()
    if not stat.S_ISDIR(status.st_mode) or (hasattr(os, "geteuid") and status.st_uid != os.geteuid()):
        raise WorkbenchError(f"{partial} must be a folder of this user, where the archive is written: remove it")


def _claim(partial: Path, target: Path) -> None:
    """Give the archive its name, unless another process has just taken it.

    Renaming a directory replaces at most an empty one, and a hard link to a file replaces nothing: both are atomic.
    """
    try:
        if partial.is_dir():
            if target.is_file() and _is_empty(target):
                target.unlink()
            os.rename(partial, target)
        else:
            _link(partial, target)
    except (FileExistsError, NotADirectoryError):
        raise _taken(target) from None
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise _taken(target) from None
        raise


def _link(partial: Path, target: Path) -> None:
    """Give a file its name if nothing, or only an empty file, has it."""
    if target.is_dir():
        target.rmdir()
    elif os.path.lexists(target) and _is_empty(target):
        target.unlink()
    try:
        os.link(partial, target)
    except OSError as error:
        if error.errno not in NO_SECOND_NAMES:
            raise
        _replace_new(partial, target)   # a file system without hard links
        return
    partial.unlink()


def _replace_new(partial: Path, target: Path) -> None:
    """Reserve the name with an empty file, which fails when there is one, and replace that file by the archive."""
    target.open("xb").close()
    try:
        os.replace(partial, target)
    except BaseException:
        remove(target)
        raise


def _taken(target: Path) -> WorkbenchError:
    return WorkbenchError(f"{target} was written by another process in the meantime: choose another name")


def swap(partial: Path, target: Path, replaceable: Callable[[Path], bool] = is_archive) -> None:
    """Replace an old archive, or another file or directory that is `replaceable`.

    Of a directory there is always either the old or the new one where the system allows it.
    """
    if not partial.is_dir():
        os.replace(partial, target)
        return
    old = _exchange(partial, target, replaceable) or _step_aside(partial, target, replaceable)
    try:
        remove(old)
    except OSError as error:
        raise WorkbenchError(f"{target} is written, but what it replaces remains as {old} ({error}): remove it") from error


def _exchange(partial: Path, target: Path, replaceable: Callable[[Path], bool]) -> Path | None:
    """Exchange the names, if the system can; returns where the old directory is then.

    What another program wrote in the meantime gets its name back, unless it is replaceable.
    """
    if not backend.exchange_names(partial, target):
        return None
    if not replaceable(partial):
        backend.exchange_names(partial, target)
        raise _taken(target)
    return partial


def _step_aside(partial: Path, target: Path, replaceable: Callable[[Path], bool]) -> Path:
    """Rename the old directory first, and give it its name back if the replacement fails; returns its other name."""
    old = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
    os.rename(target, old)
    try:
        if not replaceable(old):
            raise _taken(target)
        os.rename(partial, target)
    except BaseException:
        os.rename(old, target)
        raise
    return old


def _exists(path: Path) -> bool:
    """Whether a file or directory that is not empty has this name."""
    return os.path.lexists(path) and not _is_empty(path)


def _is_empty(path: Path) -> bool:
    """Whether this is an empty file or directory, as an interrupted program may leave behind."""
    if path.is_symlink():
        return False
    return not any(path.iterdir()) if path.is_dir() else path.is_file() and path.stat().st_size == 0


def flush(folder: Path) -> None:
    """Flush the names in a directory to the disk, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_FLUSHING:
            raise
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


@contextmanager
def on_disk(target: Path) -> Iterator[None]:
    """Turn an error of the operating system into one sentence."""
    try:
        yield
    except OSError as error:
        raise WorkbenchError(f"cannot write {target}: {error.strerror or error}") from error
