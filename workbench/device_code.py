"""Compiles a kernel file for the card at hand, once, and keeps the code on disk beside CuPy's own.

CuPy's RawModule adds `-ftz=true` behind all options, so its kernels take each subnormal number in single precision for
zero. The CPU does not, and a bound may be as small as such a number. So the text goes to NVRTC, the compiler that CuPy has
loaded, with our options alone, and RawModule loads the file.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

CACHE = "CUPY_CACHE_DIR"   # the variable that tells CuPy where to keep compiled kernels


def code_on_disk(cupy: Any, text: str, options: tuple[str, ...], capability: int) -> Path:
    """The file of code for cards of this capability, compiled from this text unless it is there."""
    nvrtc = cupy.cuda.nvrtc
    made_from = repr((text, options, capability, nvrtc.getVersion()))
    name = f"lossbench-{hashlib.sha256(made_from.encode()).hexdigest()[:32]}.code"
    folder = Path(os.environ.get(CACHE, "~/.cupy/kernel_cache")).expanduser()
    if not (folder / name).exists():
        return _written(folder, name, _compiled(nvrtc, text, options, capability))
    return folder / name


def _compiled(nvrtc: Any, text: str, options: tuple[str, ...], capability: int) -> bytes:
    """The machine code for a card; for one that is newer than the compiler, PTX, which the driver translates."""
    newest = max(nvrtc.getSupportedArchs())
    target = f"-arch=sm_{capability}" if capability <= newest else f"-arch=compute_{newest}"
    program = nvrtc.createProgram(text, "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*options, target))
        return bytes(nvrtc.getCUBIN(program) if capability <= newest else nvrtc.getPTX(program))
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise RuntimeError(f"NVRTC cannot compile a kernel file with {target}: {log or error}") from error
    finally:
        nvrtc.destroyProgram(program)


def _written(folder: Path, name: str, code: bytes) -> Path:
    """The file with this code, complete as soon as it is there; elsewhere if this folder cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=folder, prefix=name)
    except OSError:
        return _written(Path(tempfile.mkdtemp(prefix="lossbench-")), name, code)
    with open(handle, "wb") as file:
        file.write(code)
    return Path(part).replace(folder / name)
