"""The codec of independent blocks: its sizes beside SZ3's, its speed, and what its stages cost beside decoding all.

python benchmarks/staged.py [--side 256] [--repeats 7] [--data FOLDER] [--only operators]

Sizes are of whole fields at a bound of 1e-3 of the range. Times are of the codec alone, without the check of the bound, in
one process in turns: the median of wall-clock times (MB/s of float32), and processor time, which other programs change
less. Statistics are compared with decoding and NumPy: of the same archive, and of what SZ3, ZFP and, if the package blosc2
is installed, its arrays of ZFP blocks make of the field within the same bound. Of these, blosc2 alone reads parts; the
bytes read are those of the chunks that a region touches. The folder of real files is not part of the project; without it,
real fields are left out.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import timing

import workbench as wb
from workbench.codecs import Codec, Tolerance
from workbench.codecs.staged import Staged
from workbench.codecs.staged_statistics import means
from workbench.codecs.staged_stream import Stream
from workbench.slabs import Slices

BOUND = 1e-3          # of the range
LEAST_SHARE = 0.6     # of SZ3's ratio
EXPONENTS = (4.0, 5.0, 5.5, 6.0)   # of the spectra of made-up fields


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=256, help="of made-up fields")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", choices=["operators"], help="leave out the rest")
    options = parser.parse_args()
    print(timing.machine(), f"load {os.getloadavg()[0]:.1f}")
    if options.only is None:
        codecs(options)
    print("\n## Operators\n")
    for exponent in EXPONENTS[1:]:
        operators(made_up(options.side, exponent), f"k^-{exponent}", options.repeats)


def codecs(options: argparse.Namespace) -> None:
    """Sizes and speeds."""
    print(f"\n## Ratios at {BOUND} of the range\n")
    print("| field | staged | deflated | SZ3 | staged / SZ3 | sides of blocks |\n|---|---|---|---|---|---|")
    for name, values in fields(options.side, options.data):
        print(sizes(name, values), flush=True)
    print("\n## Times\n")
    for exponent in EXPONENTS[1:]:
        times(made_up(options.side, exponent), f"k^-{exponent}", options.repeats)
    print("\n## Statistics, beside decoding what others made\n")
    for exponent in EXPONENTS[1:]:
        beside_peers(made_up(options.side, exponent), f"k^-{exponent}", options.repeats)


def made_up(side: int, exponent: float) -> np.ndarray:
    """A Gaussian field with a steep spectrum."""
    def spectrum(k: np.ndarray) -> np.ndarray:
        return np.where(k > 0, np.maximum(k, 1e-30) ** -exponent, 0.0)

    return np.ascontiguousarray(wb.synthetic.gaussian_field((side,) * 3, spectrum, seed=1).values, np.float32)


def fields(side: int, folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Made-up fields, and the real ones that are there."""
    for exponent in EXPONENTS:
        yield f"Gaussian, k^-{exponent}, {side}³", made_up(side, exponent)
    if (folder / "sperr_fields").is_dir():
        raw = {"wmag91.float": (91,) * 3, "vorticity.128_128_41": (41, 128, 128), "vorticity.512_512": (512, 512)}
        for name, shape in raw.items():
            yield name, np.fromfile(folder / "sperr_fields" / name, "<f4").reshape(shape)
    if (folder / "cesm").is_dir():
        import netCDF4

        for file, variable in (("cam-fv.T.3months.nc", "T"), ("ihesp14.TS.12mon.nc", "TS")):
            with netCDF4.Dataset(folder / "cesm" / file) as opened:
                yield f"CESM {variable}", np.ascontiguousarray(np.asarray(opened[variable][:]), np.float32)
    if (folder / "hacc_nyx_toy").is_dir():
        import h5py

        with h5py.File(folder / "hacc_nyx_toy" / "z255_32.h5") as opened:
            yield from ((f"Nyx {name}", values[...]) for name, values in opened["native_fields"].items())


@dataclass(frozen=True)
class Answered:
    """A way to a statistic: it gives the figure, and the bytes that it reads."""

    answer: Callable[[str, Slices | None], tuple[float, int]]
    nbytes: int


STATISTICS = ("mean", "std", "mean of a region")


def beside_peers(values: np.ndarray, name: str, repeats: int) -> None:
    """The time, the bytes read and the error of statistics of all libraries, in turns."""
    tolerance = tolerance_of(values)
    region = tuple(slice(n // 4, n // 2) for n in values.shape)
    found: dict[tuple[str, str], list[tuple[float, float, int]]] = {}
    errors: dict[tuple[str, str], float] = {}
    ways = dict(answering(values, tolerance))
    for _ in range(repeats):
        for statistic in STATISTICS:
            part = region if "region" in statistic else None
            for library, way in ways.items():
                begin, used = time.perf_counter(), time.process_time()
                figure, read = way.answer(statistic.split()[0], part)
                spent = time.perf_counter() - begin, time.process_time() - used
                error = abs(figure - of(values if part is None else values[part], statistic.split()[0]))
                found.setdefault((statistic, library), []).append((*spent, read))
                errors[statistic, library] = error / tolerance.value
    print(f"\n{name}: load {os.getloadavg()[0]:.1f}; errors in units of the bound\n")
    print("| statistic | of | size, MB | read, MB | ms | processor ms | error |\n|---|---|---|---|---|---|---|")
    for (statistic, library), runs in found.items():
        wall, processor = (1e3 * statistics.median(run[k] for run in runs) for k in range(2))
        sizes = f"{ways[library].nbytes / 1e6:.2f} | {runs[0][2] / 1e6:.3f}"
        print(f"| {statistic} | {library} | {sizes} | {wall:.1f} | {processor:.1f} | {errors[statistic, library]:.1e} |")


def of(values: np.ndarray, statistic: str) -> float:
    """The mean or the standard deviation."""
    return float(getattr(values, statistic)(dtype=np.float64))


def answering(values: np.ndarray, tolerance: Tolerance) -> Iterator[tuple[str, Answered]]:
    """`staged` and its peers, by name."""
    shape, dtype = values.shape, values.dtype
    archive = wb.compress(values, wb.Absolute(tolerance.value), codec="staged")

    def stated(statistic: str, part: Slices | None) -> tuple[float, int]:
        found = getattr(archive, statistic)(None if part is None else [(one.start, one.stop) for one in part])
        return found.value, found.bytes_read

    yield "staged, its sums", Answered(stated, archive.nbytes)
    for name in ("staged", "sz3", "zfp"):
        if name in wb.codecs.available():
            codec = wb.codecs.get(name)
            data = codec.encode(values, tolerance)

            def decoded(statistic: str, part: Slices | None, codec: Codec = codec, data: bytes = data) -> tuple[float, int]:
                whole = codec.decode(data, shape, dtype)
                return of(whole if part is None else whole[part], statistic), len(data)

            yield f"{name}, decoded", Answered(decoded, len(data))
    if importlib.util.find_spec("blosc2"):
        yield "blosc2 with ZFP", blosc2_array(values, tolerance)


def blosc2_array(values: np.ndarray, tolerance: Tolerance) -> Answered:
    """An array of blosc2 in chunks of 64 along each axis; its tolerances are powers of ten, here the next lower one."""
    import blosc2

    meta = math.floor(math.log10(tolerance.value)) % 256   # a signed byte
    chosen = {"codec": blosc2.Codec.ZFP_ACC, "codec_meta": meta, "filters": [blosc2.Filter.NOFILTER], "nthreads": 2}
    array = blosc2.asarray(values, chunks=(64,) * 3, blocks=(16,) * 3, cparams=chosen, dparams={"nthreads": 2})
    sizes = {tuple(each.coords): len(array.schunk.get_chunk(each.nchunk)) for each in array.iterchunks_info()}

    def answer(statistic: str, part: Slices | None) -> tuple[float, int]:
        if part is None:
            return of(array[...], statistic), sum(sizes.values())
        ends = [(one.start // 64, -(-one.stop // 64)) for one in part]
        touched = (size for at, size in sizes.items() if all(a <= n < b for n, (a, b) in zip(at, ends, strict=True)))
        return of(array[part], statistic), sum(touched)

    return Answered(answer, sum(sizes.values()))


def tolerance_of(values: np.ndarray) -> Tolerance:
    """The bound as an absolute one."""
    return Tolerance(absolute=BOUND * (float(values.max()) - float(values.min())))


def sizes(name: str, values: np.ndarray) -> str:
    """A row of the first table."""
    tolerance = tolerance_of(values)
    codec = Staged().tuned(values, tolerance)
    plain, deflated = (len(Staged(deflate=each).encode(values, tolerance)) for each in (False, True))
    peer = len(wb.codecs.get("sz3").encode(values, tolerance))
    found = "" if peer / plain >= LEAST_SHARE else f" (below {LEAST_SHARE})"
    sides = "x".join(map(str, codec.sides or ()))
    ratios = " | ".join(f"{values.nbytes / size:.2f}" for size in (plain, deflated, peer))
    return f"| {name} | {ratios} | {peer / plain:.2f}{found} | {sides} |"


def times(values: np.ndarray, name: str, repeats: int) -> None:
    """The speed of both directions, and of statistics beside decoding."""
    tolerance, shape, dtype = tolerance_of(values), values.shape, values.dtype
    codec = Staged()
    data = codec.encode(values, tolerance)
    archive = wb.compress(values, wb.Absolute(tolerance.value), codec=codec)
    small, peer = Staged((8, 8, 8), deflate=True), wb.codecs.get("prequantised")
    deflated = small.encode(values, tolerance)
    part = tuple(slice(n // 2, n // 2 + 32) for n in shape)

    edges, high = np.linspace(float(values.min()), float(values.max()), 21), float(np.quantile(values, 0.99))

    def stage() -> Stream:
        return Stream.from_bytes(data, shape, dtype)

    runs: Mapping[str, Callable[[], object]] = {
        "encode": lambda: codec.encode(values, tolerance), "decode": lambda: codec.decode(data, shape, dtype),
        "encode, blocks of 512, deflated": lambda: small.encode(values, tolerance),
        "decode, blocks of 512, deflated": lambda: codec.decode(deflated, shape, dtype),
        "encode, prequantised": lambda: peer.encode(values, tolerance),
        "decode and mean": lambda: codec.decode(data, shape, dtype).mean(dtype=np.float64),
        "mean": archive.mean,
        "decode and std": lambda: codec.decode(data, shape, dtype).std(dtype=np.float64),
        "std": archive.std,
        "decode and median": lambda: np.median(codec.decode(data, shape, dtype)),
        "median": archive.median,
        "decode and histogram": lambda: np.histogram(codec.decode(data, shape, dtype), edges),
        "histogram": lambda: archive.histogram(edges),
        "decode and count": lambda: (codec.decode(data, shape, dtype) > high).sum(),
        "count above the 99th percentile": lambda: archive.count(above=high),
        "decode and mean along axis 0": lambda: codec.decode(data, shape, dtype).mean(axis=0, dtype=np.float64),
        "mean along axis 0": lambda: archive.mean(axis=0),
        "means of blocks": lambda: means(stage()),
        "a part of 32³": lambda: codec.part(data, shape, dtype, part),
    }
    wall, processor = timed(runs, repeats)
    print(f"\n{name}: {values.nbytes / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}\n")
    print("| run | ms | MB/s | MB/s, best | processor ms |\n|---|---|---|---|---|")
    for each, found in wall.items():
        middle = statistics.median(found)
        rates = f"{values.nbytes / middle / 1e6:.0f} | {values.nbytes / min(found) / 1e6:.0f}"
        print(f"| {each} | {1e3 * middle:.1f} | {rates} | {1e3 * statistics.median(processor[each]):.1f} |")


def operators(values: np.ndarray, name: str, repeats: int) -> None:
    """Operators of an archive beside those of the same values after decoding: the archive, and its codec alone."""
    tolerance, shape, dtype = tolerance_of(values), values.shape, values.dtype
    archive = wb.compress(values, wb.Absolute(tolerance.value), codec="staged")
    codec = archive.codec
    data = codec.encode(values, tolerance)

    def reduced(decoded: np.ndarray) -> np.ndarray:
        edges = archive.block_means().edges
        for axis, each in enumerate(edges):
            decoded = np.add.reduceat(decoded, each[:-1], axis=axis, dtype=np.float64)
        return decoded / np.multiply.outer(np.multiply.outer(np.diff(edges[0]), np.diff(edges[1])), np.diff(edges[2]))

    after: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
        **{f"derivative {axis}": functools.partial(np.gradient, axis=axis) for axis in range(3)},
        "laplacian": laplacian, "block means": reduced,
    }
    runs: dict[str, Callable[[], object]] = {
        **{f"derivative {axis}": functools.partial(archive.derivative, axis) for axis in range(3)},
        "laplacian": archive.laplacian, "block means": archive.block_means,
    }
    def decompressed(function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return function(archive.decompress().values)

    def decoded(function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return function(codec.decode(data, shape, dtype))

    for each, function in after.items():
        runs[f"{each}, decompress"] = functools.partial(decompressed, function)
        runs[f"{each}, decode"] = functools.partial(decoded, function)
    wall, processor = timed(runs, repeats)
    print(f"\n{name}: {values.nbytes / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}; medians\n")
    print("| operator | ms | decompress, then NumPy | times | codec alone, then NumPy | times | processor times |")
    print("|---|---|---|---|---|---|---|")
    for each in after:
        own, whole, bare = (statistics.median(wall[f"{each}{rest}"]) for rest in ("", ", decompress", ", decode"))
        used = [statistics.median(processor[f"{each}{rest}"]) for rest in ("", ", decompress", ", decode")]
        print(
            f"| {each} | {1e3 * own:.1f} | {1e3 * whole:.1f} | {whole / own:.2f} | {1e3 * bare:.1f} | {bare / own:.2f} | "
            f"{used[1] / used[0]:.2f}, {used[2] / used[0]:.2f} |"
        )


def laplacian(values: np.ndarray) -> np.ndarray:
    """The Laplacian by slices, with the second differences beside at the ends."""
    total = np.zeros_like(values)
    for axis in range(values.ndim):
        along, into = np.moveaxis(values, axis, 0), np.moveaxis(total, axis, 0)
        second = along[2:] - 2 * along[1:-1] + along[:-2]
        into[1:-1] += second
        into[0] += second[0]
        into[-1] += second[-1]
    return total


def timed(runs: Mapping[str, Callable[[], object]], repeats: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Wall-clock and processor times of runs, in turns."""
    wall: dict[str, list[float]] = {each: [] for each in runs}
    processor: dict[str, list[float]] = {each: [] for each in runs}
    for _ in range(repeats):
        for each, run in runs.items():
            begin, used = time.perf_counter(), time.process_time()
            run()
            wall[each].append(time.perf_counter() - begin)
            processor[each].append(time.process_time() - used)
    return wall, processor


if __name__ == "__main__":
    main()
