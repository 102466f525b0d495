"""HPEZ, a peer for fields that comes as a program, not as a package: the smallest file of its levels at a bound.

Its levels 1 to 4 are QoZ and three of HPEZ; which one is smallest depends on the field, so all are run, each tuned for
size. Every file is decoded again by the same program, and a value out of bounds is an error. Sources:
https://github.com/JLiu-1/HPEZ; say where the program `hpez` is by `--hpez`.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

LEVELS = (1, 2, 3, 4)
ROUNDING = 1e-6   # of the bound: it compares in single precision


def smallest(program: Path, values: np.ndarray, bound: float) -> int:
    """The bytes of the smallest file that keeps the bound."""
    return min(encoded(program, values, bound, level) for level in LEVELS)


def encoded(program: Path, values: np.ndarray, bound: float, level: int) -> int:
    """The bytes of one level's file, after it was decoded and compared."""
    kind = {"f4": "-f", "f8": "-d"}[values.dtype.str[1:]]
    shape = [f"-{values.ndim}", *(str(n) for n in reversed(values.shape))]
    with tempfile.TemporaryDirectory() as folder:
        original, packed, decoded = (Path(folder, name) for name in ("original", "packed", "decoded"))
        values.tofile(original)
        options = [kind, *shape, "-M", "ABS", f"{bound:.17g}", "-q", str(level), "-T", "CR"]
        run(program, "-i", str(original), "-z", str(packed), *options)
        run(program, "-z", str(packed), "-o", str(decoded), *options)
        error = np.abs(np.fromfile(decoded, values.dtype).reshape(values.shape).astype(np.float64) - values).max()
        if not error <= bound * (1 + ROUNDING):
            raise SystemExit(f"HPEZ broke its bound: level {level}, {error} of {bound}")
        return packed.stat().st_size


def run(program: Path, *arguments: str) -> None:
    """Runs the program, silently unless it fails."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program} failed with {done.returncode}: {done.stderr or done.stdout}")
