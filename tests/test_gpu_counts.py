"""What a GPU would have to do for each public call, counted on the stand-in for CuPy and held to the table of docs/gpu.md.

Times cannot be had without a card, but launches, waits of the host and bytes over the bus can. Two sizes show what grows.
"""

import functools
import re
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest

import fake_cupy
import workbench as wb

ROOT = Path(__file__).resolve().parents[1]
with mock.patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):   # as in test_gpu_check.py
    from gpu_check.model import Call, calls, stages

COUNTED = "launches", "array operations", "synchronisations", "bytes to the host", "bytes to the GPU"
ALONG = 16, 32   # particles
QUICK = "Particles", "friends_of_friends", "check", "encode, keep, packed", "decode, free, packed"


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


@pytest.mark.long_with("32")
@pytest.mark.parametrize("size", range(len(ALONG)), ids=map(str, ALONG))
def test_no_call_does_more_on_a_gpu_than_is_documented(stand_in: ModuleType, size: int) -> None:
    found = {name: counts(call) for name, call in calls(stand_in, ALONG[size]).items()}
    assert set(found) == set(limits())
    assert len(KEEPING) > 1
    over = [
        f"`{name}`: {got[what]} {what}, of {most[size]} allowed"
        for name, got in found.items()
        for what, most in limits()[name].items()
        if got[what] > most[size]
    ]
    assert not over, "\n".join(over)
    loose = [name for name, got in found.items() if got["launches"] < limits()[name]["launches"][size]]
    assert loose == [], "fewer launches than docs/gpu.md says: lower its limits"


KEEPING = re.findall(r"^\| (0\.\d+) \| (\d+) \| (\d+) \| (\d+) \|$", (ROOT / "docs" / "gpu.md").read_text(), re.M)


@pytest.mark.few(1)
@pytest.mark.parametrize(("share", "attempts", "descents", "waits"), KEEPING)
def test_keeping_clusters_waits_and_sorts_as_documented(
    stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch, share: str, attempts: str, descents: str, waits: str
) -> None:
    made, sizes, sort = wb.synthetic.cosmic_web(n=32), [], fake_cupy.ndarray.sort
    particles = wb.Particles(stand_in.asarray(made.positions), made.box)
    bound = float(share) * 0.2 * made.spacing
    codec = wb.codecs.get("lattice", order="keep", coder="packed", box=made.box)
    aim = wb.codecs.Tolerance(absolute=bound)
    decoded = codec.decode(codec.encode(particles.positions, aim), made.positions.shape, made.positions.dtype, stand_in)
    fake_cupy.counted.clear()
    monkeypatch.setattr(fake_cupy.ndarray, "sort", lambda array: (sizes.append(len(array)), sort(array))[1])
    kept = wb.clusters.correct(particles, decoded, wb.Absolute(bound))
    assert kept.attempts == int(attempts)
    assert sum(step.number == 0 for step in kept.descent) == int(descents)
    assert fake_cupy.counted["synchronisations"] == int(waits)
    assert sizes.count(32**3) == 3
    assert max(size for size in sizes if size < 32**3) < 0.15 * 32**3


@functools.cache
def documented_bytes() -> dict[str, float]:
    text = (ROOT / "docs" / "gpu.md").read_text()
    return {name: float(moved) for name, moved in re.findall(r"^\| `([^`/]+)` \| (\d+) \| [\d.]+ \|$", text, re.M)}


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_documented_bytes_are_those_of_the_model(stand_in: ModuleType, quick: bool) -> None:
    small, large = (calls(stand_in, along) for along in ALONG)
    assert set(documented_bytes()) == set(large)
    for name in QUICK if quick else large:
        moved = sum(stage.moved for stage in stages(small[name], large[name], ALONG[1] ** 3 - ALONG[0] ** 3))
        assert moved == pytest.approx(documented_bytes()[name], rel=0.03, abs=1), name


def test_a_kernel_that_reads_twice_as_much_is_seen(stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (calls(stand_in, along)["Particles"] for along in (8, 16))
    before = {stage.name: stage.moved for stage in stages(small, large, 16**3 - 8**3)}
    monkeypatch.setattr("gpu_check.model.IN_PLACE", {("extent", "position")})
    after = {stage.name: stage.moved for stage in stages(small, large, 16**3 - 8**3)}
    assert after["extent"] == pytest.approx(before["extent"] + 12)


def test_the_stand_in_counts_what_a_gpu_would_do(stand_in: ModuleType) -> None:
    array = stand_in.asarray([3.0, 1.0, 2.0])
    assert fake_cupy.counted == {"copies to the GPU": 1, "bytes to the GPU": 24}
    fake_cupy.counted.clear()
    assert bool((array + 1).max() > 3)
    assert fake_cupy.counted == {"array operations": 3, "synchronisations": 1, "bytes to the host": 1}
    fake_cupy.counted.clear()
    _ = array[1:].reshape(2, 1), array[array > 1], array.get()
    assert fake_cupy.counted == {"array operations": 2, "synchronisations": 2, "bytes to the host": 24}
