"""What a GPU would have to do for each public call, counted on the stand-in for CuPy and held to the table of docs/gpu.md.

Times cannot be had without a card, but launches, waits of the host and bytes over the bus can. Two sizes show what grows.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import fake_cupy
import workbench as wb
from workbench.guarantees import Limit, check

ROOT = Path(__file__).resolve().parents[1]
COUNTED = "launches", "array operations", "synchronisations", "bytes to the host", "bytes to the GPU"
ALONG = 16, 32   # particles
CHUNKS = 64
Call = Callable[[], object]


def calls(cupy: ModuleType, along: int) -> dict[str, Call]:
    """Every public call that docs/gpu.md lists, on particles that are on the GPU."""
    made = wb.synthetic.cosmic_web(n=along)
    particles = wb.Particles(cupy.asarray(made.positions), made.box)
    positions, bound = particles.positions, 0.02 * made.spacing
    aim, found = wb.codecs.Tolerance(absolute=bound), {}
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
    decoded = found["decode, keep, packed"]()
    return {
        "Particles": lambda: wb.Particles(positions, made.box),
        "friends_of_friends": lambda: wb.friends_of_friends(particles),
        "check": lambda: check(positions, decoded, Limit("absolute", bound), particles.box),
        "keep clusters": lambda: wb.clusters.correct(particles, decoded, wb.Absolute(bound)),
        **found,
    }


def counts(call: Call) -> dict[str, int]:
    call()   # so that what is made once is not counted
    fake_cupy.counted.clear()
    call()
    return {name: fake_cupy.counted[name] for name in COUNTED}


@functools.cache
def limits() -> dict[str, dict[str, tuple[int, int]]]:
    """For each call and counted thing: the limits at both sizes, which are written once where they are equal."""
    text = (ROOT / "docs" / "gpu.md").read_text()
    rows = re.findall(r"^\| `([^`/]+)` \|((?: [\d,]+(?: / [\d,]+)? \|){5})$", text, re.M)
    return {name: dict(zip(COUNTED, map(both, cells.split("|")), strict=False)) for name, cells in rows}


def both(cell: str) -> tuple[int, int]:
    numbers = [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", cell)]
    return numbers[0], numbers[-1]


@pytest.mark.parametrize("size", range(len(ALONG)), ids=map(str, ALONG))
def test_no_call_does_more_on_a_gpu_than_is_documented(stand_in: ModuleType, size: int) -> None:
    found = {name: counts(call) for name, call in calls(stand_in, ALONG[size]).items()}
    assert set(found) == set(limits())
    over = [
        f"`{name}`: {got[what]} {what}, of {most[size]} allowed"
        for name, got in found.items()
        for what, most in limits()[name].items()
        if got[what] > most[size]
    ]
    assert over == []
    loose = [name for name, got in found.items() if got["launches"] < limits()[name]["launches"][size]]
    assert loose == [], "fewer launches than docs/gpu.md says: lower its limits"


def test_the_stand_in_counts_what_a_gpu_would_do(stand_in: ModuleType) -> None:
    array = stand_in.asarray([3.0, 1.0, 2.0])
    assert fake_cupy.counted == {"copies to the GPU": 1, "bytes to the GPU": 24}
    fake_cupy.counted.clear()
    assert bool((array + 1).max() > 3)
    assert fake_cupy.counted == {"array operations": 3, "synchronisations": 1, "bytes to the host": 1}
    fake_cupy.counted.clear()
    _ = array[1:].reshape(2, 1), array[array > 1], array.get()
    assert fake_cupy.counted == {"array operations": 2, "synchronisations": 2, "bytes to the host": 24}
