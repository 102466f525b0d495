"""MDZ and LCP, two peers for series of particles that come as programs: their sizes within a bound.

MDZ (Zhao and others, 2022) takes one coordinate after the other, in batches of frames; the smaller of batches of ten and of
all frames counts. Its source is `tools/mdz` of https://github.com/szcompressor/SZ3. In the version of 2026 the tool
overlooks the size that is returned, and counts its room instead: four lines of `mdz.hpp` must read
`compressed_size = sz->compress(...)`. LCP (https://github.com/LangdaoZhang/LCP, 2025) takes all coordinates, and may sort
the particles of a batch of sixteen frames. Both decode what they wrote and print the largest error, which is compared.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

ROUNDING = 1e-2   # of the bound: they print few digits
BATCHES = (0, 10)


class Failed(Exception):
    """A program has failed, or has broken its bound."""


def mdz(program: Path, frames: np.ndarray, bound: float) -> int:
    """The bytes of frames (steps, particles, 3)."""
    return min(sum(_axis(program, frames[:, :, axis], bound, batch) for axis in range(3)) for batch in BATCHES)


def _axis(program: Path, values: np.ndarray, bound: float, batch: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "values")
        np.ascontiguousarray(values, np.float32).tofile(path)
        said = run(program, str(path), "-2", *map(str, values.shape), "-a", f"{bound:.9g}", str(batch), "-1", folder=folder)
    _check("MDZ", said, bound)
    ratio = float(re.search(r"Compression ratio=([.\d]+)", said).group(1))   # type: ignore[union-attr]
    return round(4 * values.size / ratio)


def lcp(program: Path, frames: np.ndarray, bound: float) -> int:
    """The bytes of frames (steps, particles, 3)."""
    with tempfile.TemporaryDirectory() as folder:
        for axis, name in enumerate("xyz"):
            np.ascontiguousarray(frames[:, :, axis], np.float32).tofile(Path(folder, name))
        shape, aim = ("-2", *map(str, frames.shape[:2])), ("-eb", f"{bound:.9g}", "-bt", "16", "-a")
        said = run(program, "-i", *"xyz", "-z", "packed", "-osn", *shape, *aim, folder=folder)
        _check("LCP", said, bound)
        return Path(folder, "packed").stat().st_size


def _check(name: str, said: str, bound: float) -> None:
    errors = [float(number) for number in re.findall(r"Max absolute error = ([-+.\deE]+)", said)]
    if not errors or not max(errors) <= bound * (1 + ROUNDING):
        raise Failed(f"{name} broke its bound {bound}: {errors}")


def run(program: Path, *arguments: str, folder: str) -> str:
    """What the program prints."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise Failed(f"{program} failed with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout
