"""Fields of NetCDF files at two bounds: whole archives beside SZ3 and beside packed integers.

python benchmarks/netcdf_files.py FILES ... [--at-least 10000] [--bounds 1e-3 1e-4] [--codec auto]

For each field of floating-point numbers and each bound, a share of its range: the bytes of SZ3 alone, without mask or
documents, where the field's missing values were filled as for our own codecs; those of packed integers, as scientists
store them (multiples of twice the bound in 16 or 32 bits, shuffled and deflated, missing values as one number); and
those of our codes of the values, and of the whole archive with mask, attributes and checksums. The ratio is that of the
archive to the smaller peer.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import netCDF4
import numpy as np
import timing
from numcodecs import GZip, Shuffle

import workbench as wb
from workbench import codecs
from workbench.codecs.gaps import filled
from workbench.guarantees.bounds import Limit

MOST = 1.02   # times the smaller peer, in every case
GZIP_LEVEL = 4


def main() -> None:
    """Print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--at-least", type=int, default=10_000, help="values of a field (default 10000)")
    parser.add_argument("--bounds", nargs="+", type=float, default=[1e-3, 1e-4], help="shares of the range")
    parser.add_argument("--codec", default="auto")
    options = parser.parse_args()
    ratios: dict[float, list[float]] = {bound: [] for bound in options.bounds}
    for path in options.files:
        for name in names(path, options.at_least):
            field = wb.open(path, name=name)
            for bound in options.bounds:
                start = time.perf_counter()
                archive = wb.compress(field, wb.Relative(bound), codec=options.codec)
                took = time.perf_counter() - start
                limit = wb.Relative(bound).limit(field.values, valid(field))
                peers = sz3(field, limit), packed(field, limit)
                ratios[bound].append(archive.nbytes / min(peers))
                sizes = " | ".join(f"{size:,}" for size in (*peers, archive.data.nbytes, archive.nbytes))
                what = f"{path.stem[:30]} | {name} | {field.values.shape} | {bound:g}"
                print(f"| {what} | {sizes} | {ratios[bound][-1]:.3f} | {archive.data.codec.id} | {took:.1f} |", flush=True)
    rows: list[list[object]] = [
        [f"{bound:g}", f"{math.exp(np.mean(np.log(row))):.3f}", f"{max(row):.3f}", f"at most {MOST}",
         f"{sum(ratio > MOST for ratio in row)} of {len(row)} are larger"]
        for bound, row in ratios.items()
    ]
    print(f"\n{timing.table(['bound', 'mean over the smaller peer', 'worst', 'target', ''], rows)}")


def names(path: Path, least: int) -> list[str]:
    """The fields of the file with so many values of floating-point numbers, once unpacked."""
    with netCDF4.Dataset(path) as file:
        variables = [file[name] for name in file.variables if isinstance(file[name].dtype, np.dtype)]
        real = [one for one in variables if one.dtype.kind == "f" or "scale_factor" in one.ncattrs()]
        return [one.name for one in real if one.size >= least]


def sz3(field: wb.Field, limit: Limit) -> int:
    """The bytes of SZ3 for the values alone."""
    values = np.ascontiguousarray(filled(field.values, valid(field))).squeeze()
    return len(codecs.get("sz3").encode(values, limit.tolerance))


def packed(field: wb.Field, limit: Limit) -> int:
    """The bytes of rounded integers."""
    values, there = np.asarray(field.values, np.float64), valid(field)
    low, high = values[there].min(), values[there].max()
    dtype = np.int16 if (high - low) / (2 * limit.value) < 2**16 - 2 else np.int32
    numbers = np.full(values.shape, np.iinfo(dtype).min, dtype)
    numbers[there] = np.rint((values[there] - (low + high) / 2) / (2 * limit.value))
    return len(GZip(GZIP_LEVEL).encode(Shuffle(np.dtype(dtype).itemsize).encode(numbers)))


def valid(field: wb.Field) -> np.ndarray:
    """Where the values mean something."""
    finite = np.isfinite(field.values)
    return finite if field.mask is None else finite & ~field.mask


if __name__ == "__main__":
    main()
