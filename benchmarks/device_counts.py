"""What the kernels of a call do on a card, counted without one: instructions, divergence, bytes, and sectors of memory.

    python benchmarks/device_counts.py                          a search, an archive in both orders, kept clusters, at 64^3
    python benchmarks/device_counts.py --along 32 check         other calls of docs/gpu.md, on fewer particles

NVRTC compiles the kernels as for a card; their PTX runs on this CPU, in a build that counts (`tests/device_code`). Per
particle: instructions of all threads; the share of lanes that wait while their warp works; bytes that threads load and
store; bytes of all sectors of 32 bytes that warps touch, with nothing in a cache; local memory; atomics. The bytes beside
the sectors show what is wasted: one thread that reads 4 bytes alone moves 32.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

os.environ["LOSSBENCH_DEVICE_CODE"] = "counted"   # before the stand-in for CuPy is imported
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import timing
from gpu_check import model
from gpu_check.machine import Machine

USUAL = (
    "friends_of_friends", "encode, keep, packed", "encode, free, context", "decode, free, context", "check",
    "keep clusters",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", nargs="*", default=USUAL, help="as docs/gpu.md lists them")
    parser.add_argument("--along", type=int, default=64, help="the cube root of the number of particles")
    options = parser.parse_args()
    there, counting = Machine.stand_in(), importlib.import_module("executed").device().watch
    with there.in_use():
        calls = model.calls(there.xp, options.along)
        if unknown := sorted(set(options.calls) - set(calls)):
            raise SystemExit(f"there is no call {unknown[0]!r}; there are: {'; '.join(calls)}")
        for name in options.calls:
            counting.clear()
            calls[name]()
            print(f"\n{name}\n\n{table(counting, options.along**3)}", flush=True)


def table(counting: object, particles: int) -> str:
    """The kernels of a call, those that move most first."""
    totals = [each for each in counting.totals() if each.instructions]   # type: ignore[attr-defined]
    rows: list[list[object]] = [
        [
            f"`{each.name.rpartition('_f')[0]}`", f"{each.instructions / particles:,.0f}", f"{each.divergence:.0%}",
            f"{each.loaded / particles:,.0f}", f"{each.stored / particles:,.0f}", f"{each.moved / particles:,.0f}",
            f"{each.local / particles:,.0f}", f"{each.atomics / particles:.2f}",
        ]
        for each in sorted(totals, key=lambda each: -each.moved)
    ]
    heads = ["kernel", "instructions", "lanes that wait", "loaded", "stored", "in sectors", "local", "atomics"]
    return timing.table(heads, rows)


if __name__ == "__main__":
    main()
