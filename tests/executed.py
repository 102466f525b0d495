"""The code of a card, run here: what NVRTC makes of kernels, in place of the CPU's build, on the stand-in for CuPy.

The variable LOSSBENCH_DEVICE_CODE chooses it for all tests of a process: `executed`; `checked`, which looks at every
access; or `interleaved`, which also lets threads take turns by chance. LOSSBENCH_SEED chooses their order, and
LOSSBENCH_ARCHITECTURE the card.
"""

import functools
import os
from pathlib import Path

from device_code.counting import Counting
from device_code.device import Device
from device_code.kernel import Checks, Kernel
from device_code.nvrtc import Nvrtc

FOLDER = Path(__file__).resolve().parents[1] / "build" / "device_code"   # what was compiled, by what it was made from
ARCHITECTURE = os.environ.get("LOSSBENCH_ARCHITECTURE", "90")
SEED = int(os.environ.get("LOSSBENCH_SEED", "0"))
MODES = {
    "executed": None, "checked": Checks(), "interleaved": Checks(together=48, seed=SEED), "counted": Counting(),
}
CHOSEN = os.environ.get("LOSSBENCH_DEVICE_CODE", "")


@functools.cache
def device(mode: str = CHOSEN or "executed") -> Device:
    """The compiler and what it has made."""
    nvrtc = Nvrtc.installed()
    if nvrtc is None:
        raise RuntimeError("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
    return Device(nvrtc, FOLDER, MODES[mode])


def kernel(code: str, options: tuple[str, ...], symbol: str) -> Kernel:
    """The kernel that this text has, as a card of the chosen architecture would be given it."""
    wanted = tuple(option for option in options if not option.startswith("-arch="))
    return device().module(code, (*wanted, f"-arch=compute_{ARCHITECTURE}")).kernel(symbol)
