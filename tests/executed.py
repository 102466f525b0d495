"""The code of a card, run here: what NVRTC makes of kernels, in place of the CPU's build, on the stand-in for CuPy.

The variable LOSSBENCH_DEVICE_CODE chooses it for all tests of a process: `executed`; `checked`, which looks at every
access; `interleaved`, which also lets threads take turns by chance; or `counted`, which counts. LOSSBENCH_SEED chooses
their order, LOSSBENCH_ARCHITECTURE the card, and LOSSBENCH_UNWRITTEN the byte that new memory has.
"""

import functools
import os
from pathlib import Path

from device_code.counting import Counting
from device_code.device import Device, missing
from device_code.kernel import Checks, Kernel
from device_code.nvrtc import Nvrtc

FOLDER = Path(__file__).resolve().parents[1] / "build" / "device_code"   # what was compiled, by what it was made from
ARCHITECTURE = os.environ.get("LOSSBENCH_ARCHITECTURE", "90")
SEED = int(os.environ.get("LOSSBENCH_SEED", "0"))
UNWRITTEN = int(os.environ.get("LOSSBENCH_UNWRITTEN", str(0xA5)))   # the byte of new memory, of the card and of threads
MODES = {
    "executed": None, "checked": Checks(nothing=UNWRITTEN), "counted": Counting(),
    "interleaved": Checks(together=48, seed=SEED, nothing=UNWRITTEN),
}
CHOSEN = os.environ.get("LOSSBENCH_DEVICE_CODE", "")


@functools.cache
def device(mode: str = CHOSEN or "executed") -> Device:
    """The compiler and what it has made."""
    if mode not in MODES:
        raise RuntimeError(f"LOSSBENCH_DEVICE_CODE must be one of {', '.join(MODES)}; got {mode!r}")
    if reason := missing():
        raise RuntimeError(reason)
    return Device(Nvrtc.installed(), FOLDER, MODES[mode])


def kernel(code: str, options: tuple[str, ...], symbol: str) -> Kernel:
    """The kernel that this text has, as a card of the chosen architecture would be given it."""
    wanted = tuple(option for option in options if not option.startswith("-arch="))
    return device().module(code, (*wanted, f"-arch=compute_{ARCHITECTURE}")).kernel(symbol)
