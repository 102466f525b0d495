"""What each stage of a public call moves through the memory of a card, and the least time that takes.

The stand-in for CuPy tells which arrays a kernel is given. Each counts once, as read or as written, and twice where the
kernel changes it in place. Reads and writes at random places count the sectors of 32 bytes that they touch. What the cache
saves, and what kernels read again, is left out. So the time is that of a copy of as many bytes: a floor, not an estimate.
What grows from one size to the next is divided by the particles that are added, so tables of a fixed size are left out.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import timing

import workbench as wb
from gpu_check.machine import Machine
from workbench import backend
from workbench.guarantees import Limit, check

Call = Callable[[], object]
CHUNKS = 64   # of an archive, where the calls that have several are counted
IN_PLACE = {("join_words", "key"), ("split_words", "word")}
# Arrays with one read or write at a random place for each particle: bytes of a particle there, and of the sectors touched.
SCATTERED = {("gather_rows", "table"): 64, ("label_particles", "label"): 32}


def calls(cupy: Any, along: int) -> dict[str, Call]:
    """Every public call that docs/gpu.md lists, on particles that are on the GPU."""
    made = wb.synthetic.cosmic_web(n=along)
    particles = wb.Particles(cupy.asarray(made.positions), made.box)
    positions, bound = particles.positions, 0.02 * made.spacing
    aim = wb.codecs.Tolerance(absolute=bound)
    found: dict[str, Call] = {}
    for order in ("free", "keep"):
        for coder in ("packed", "context", "auto"):
            codec = wb.codecs.get("lattice", order=order, coder=coder, box=particles.box)
            data = codec.encode(positions, aim)
            found[f"encode, {order}, {coder}"] = functools.partial(codec.encode, positions, aim)
            found[f"decode, {order}, {coder}"] = functools.partial(
                codec.decode, data, positions.shape, positions.dtype, cupy
            )
            found[f"compress, {order}, {coder}, {CHUNKS} chunks"] = functools.partial(
                wb.compress, particles, wb.Absolute(bound), wb.codecs.get("lattice", coder=coder), order=order,
                chunk_values=3 * along**3 // CHUNKS,
            )
        found[f"compress, {order}"] = functools.partial(wb.compress, particles, wb.Absolute(bound), order=order)
    decoded: backend.Array = found["decode, keep, packed"]()
    return {
        "Particles": lambda: wb.Particles(positions, made.box),
        "friends_of_friends": lambda: wb.friends_of_friends(particles),
        "check": lambda: check(positions, decoded, Limit("absolute", bound), particles.box),
        "keep clusters": lambda: wb.clusters.correct(particles, decoded, wb.Absolute(bound)),
        **found,
    }


@dataclass(frozen=True)
class Stage:
    """A kernel or one of CuPy's operations within a call, and the bytes that it moves for each particle."""

    name: str
    moved: float


def stages(small: Call, large: Call, added: int) -> list[Stage]:
    """The stages of a call, those that move most first; the large one has so many particles more than the small one."""
    before, after = moved_by(small), moved_by(large)
    found = [Stage(name, (size - before[name]) / added) for name, size in after.items()]
    return sorted(found, key=lambda stage: -stage.moved)


def moved_by(call: Call) -> Counter[str]:
    """The bytes that each stage of a call moves, on the stand-in."""
    fake = sys.modules["fake_cupy"]
    moved, plain = Counter[str](), backend.Kernel._run_on_device

    def run(kernel: backend.Kernel, given: tuple[Any, ...]) -> None:
        for parameter, value in zip(kernel.parameters, given, strict=True):
            if parameter.pointer:
                moved[kernel.name] += bytes_of(kernel.name, parameter.name, value)
        plain(kernel, given)

    call()   # so that what is made once is not counted
    fake.moved.clear()
    with mock.patch.object(backend.Kernel, "_run_on_device", run):
        call()
    moved.update({f"CuPy: {name}": size for name, size in fake.moved.items()})
    return moved


def bytes_of(kernel: str, name: str, array: Any) -> int:
    """The bytes of an argument that pass through memory.

    >>> import numpy as np
    >>> bytes_of("join_words", "key", np.zeros(10, np.uint64)), bytes_of("gather_rows", "table", np.zeros((10, 3)))
    (160, 640)
    """
    if (kernel, name) in SCATTERED:
        return SCATTERED[kernel, name] * len(array)
    return int(array.nbytes) * (2 if (kernel, name) in IN_PLACE else 1)


def printed(along: int, bandwidth: float) -> str:
    """All calls, as they grow up to along**3 particles: bytes a particle, and the least time for 10^8 at this bandwidth."""
    there = Machine.stand_in()
    rows: list[list[object]] = []
    with there.in_use():
        small, large = calls(there.xp, along // 2), calls(there.xp, along)
        for name in large:
            found = stages(small[name], large[name], along**3 - (along // 2) ** 3)
            rows.append([f"**{name}**", *in_words(sum(stage.moved for stage in found), bandwidth)])
            rows += [[stage.name, *in_words(stage.moved, bandwidth)] for stage in found if stage.moved >= 1]
    return timing.table(["call, and its stages", "bytes a particle", "ms for 10^8 particles"], rows)


def in_words(moved: float, bandwidth: float) -> tuple[str, str]:
    """The bytes of one particle, and the milliseconds of 10^8.

    >>> in_words(8, 3.2e12)
    ('8', '0.25')
    """
    return f"{moved:.0f}", f"{moved * 1e8 / bandwidth * 1e3:.2f}"
