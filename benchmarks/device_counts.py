"""What the kernels of a call do on a card, counted without one: instructions, divergence, bytes, and sectors of memory.

    python benchmarks/device_counts.py                          a search, an archive in both orders, kept clusters, at 64^3
    python benchmarks/device_counts.py --along 32 check         other calls of docs/gpu.md, on fewer particles
    python benchmarks/device_counts.py --lines link             the lines of a kernel that move and do most
    python benchmarks/device_counts.py fields                   the codec of independent blocks, on a field of 64^3

NVRTC compiles the kernels as for a card; their PTX runs on this CPU, in a build that counts (`tests/device_code`). Per
particle or value: instructions of all threads; the share of lanes that wait while their warp works; bytes that threads load
and store; bytes of all sectors of 32 bytes that warps touch, with nothing in a cache; local memory; atomics. The bytes
beside the sectors show what is wasted: one thread that reads 4 bytes alone moves 32.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import sys
from pathlib import Path
from typing import Any

os.environ["LOSSBENCH_DEVICE_CODE"] = "counted"   # before the stand-in for CuPy is imported
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np
import timing
from gpu_check import model
from gpu_check.machine import Machine

import workbench as wb
from device_code.counting import Total
from workbench.codecs.staged import Staged

USUAL = (
    "friends_of_friends", "encode, keep, packed", "encode, free, context", "decode, free, context", "check",
    "keep clusters",
)
FIELDS = "fields"   # stands for the calls of `field_calls`
EXPONENT, BOUND = 5.0, 1e-3   # of the spectrum of the field; of its range

FIGURES = ("instructions", "lanes that wait", "loaded", "stored", "in sectors", "local", "atomics")
MOST_LINES = 25
ISSUED = 132 * 4 * 1.7e9   # instructions of warps per second: an H100 has 132 multiprocessors of 4 schedulers
COPIED = 3.0e12            # bytes per second, as docs/gpu.md has it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", nargs="*", default=USUAL, help="as docs/gpu.md lists them")
    parser.add_argument("--along", type=int, default=64, help="the cube root of the number of particles")
    parser.add_argument("--lines", metavar="KERNEL", help="the lines of this kernel, in place of all kernels")
    options = parser.parse_args()
    there, counting = Machine.stand_in(), importlib.import_module("executed").device().watch
    with there.in_use():
        calls = field_calls(there.xp, options.along) if options.calls == [FIELDS] else model.calls(there.xp, options.along)
        options.calls = list(calls) if options.calls == [FIELDS] else options.calls
        if unknown := sorted(set(options.calls) - set(calls)):
            raise SystemExit(f"there is no call {unknown[0]!r}; there are: {'; '.join(calls)}")
        for name in options.calls:
            counting.clear()
            calls[name]()
            totals = {plain(each.name): each for each in counting.totals() if each.instructions}
            if options.lines:
                if options.lines in totals:
                    found = counting.lines(totals[options.lines].name)
                    lines = sorted(found, key=lambda each: -each.instructions - each.moved)
                    print(f"\n{name}\n\n{table('line', lines[:MOST_LINES], options.along**3)}", flush=True)
                else:
                    print(f"\n{name} has no kernel {options.lines!r}; it has {', '.join(sorted(totals))}")
            else:
                print(f"\n{name}\n\n{table('kernel', list(totals.values()), options.along**3)}")
                print(f"\n{estimate(list(totals.values()), options.along**3)}", flush=True)


def field_calls(cupy: Any, along: int) -> dict[str, model.Call]:
    """Both directions of the codec `staged` and the comparison of its sums, on a field that is on the GPU."""
    def spectrum(k: np.ndarray) -> np.ndarray:
        return np.where(k > 0, np.maximum(k, 1e-30) ** -EXPONENT, 0.0)

    made = wb.synthetic.gaussian_field((along,) * 3, spectrum, seed=1).values.astype(np.float32)
    values, aim = cupy.asarray(made), wb.codecs.Tolerance(absolute=BOUND * float(np.ptp(made)))
    every, calls = cupy.ones(made.shape, bool), dict[str, model.Call]()
    for sides in ((8, 8, 8), (16, 16, 16)):   # as given, so that no trial is counted
        codec = Staged(sides)
        data = codec.encode(values, aim)
        decoded = codec.decode(data, made.shape, made.dtype, cupy)
        given, made_of_it = made.nbytes / made.size, len(data) / made.size
        print(f"bytes a value: {given:.0f}, and {made_of_it:.2f} in blocks of {sides}; {given + made_of_it:.2f} together")
        calls |= {
            f"encode, staged {sides[0]}": functools.partial(codec.encode, values, aim),
            f"decode, staged {sides[0]}": functools.partial(codec.decode, data, made.shape, made.dtype, cupy),
            f"compare sums, staged {sides[0]}": functools.partial(codec.contradiction, data, decoded, every, every),
        }
    return calls


def plain(symbol: str) -> str:
    """The name of a kernel without its variant."""
    return symbol.rpartition("_f")[0]


def table(of: str, totals: list[Total], particles: int) -> str:
    """Kernels or lines, those that move most first, per particle."""
    rows: list[list[object]] = [
        [
            f"`{plain(each.name) if of == 'kernel' else each.name}`", f"{each.instructions / particles:,.0f}",
            f"{each.divergence:.0%}", amount(each.loaded / particles), amount(each.stored / particles),
            f"{each.moved / particles:,.0f}", f"{each.local / particles:,.0f}", f"{each.atomics / particles:.2f}",
        ]
        for each in sorted(totals, key=lambda each: -each.moved)
    ]
    return timing.table([of, *FIGURES], rows)


def amount(number: float) -> str:
    """A number with two decimals where it is small."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2f}"


def estimate(totals: list[Total], particles: int) -> str:
    """What an H100 would need for the kernels of a call, if it did nothing but issue instructions, or move sectors."""
    issued, moved = (sum(getattr(each, name) for each in totals) / particles for name in ("issued", "moved"))
    issue_ms, copy_ms = 1e11 * issued / ISSUED, 1e11 * moved / COPIED
    return (
        f"All kernels: {issued:,.0f} instructions of warps and {moved:,.0f} bytes in sectors a particle. For 1e8 "
        f"particles, an H100 issues them in {issue_ms:,.0f} ms, and copies as many bytes in {copy_ms:,.0f} ms."
    )


if __name__ == "__main__":
    main()
