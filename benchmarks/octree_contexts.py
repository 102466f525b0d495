"""What an octree of sorted particles takes, by the contexts of its numbers: code lengths, built coders, and MPEG's TMC13.

python benchmarks/octree_contexts.py [--n 64 128] [--data FOLDER] [--tmc13 PROGRAM] [--repeats 3] [--sizes] [--quick]

The code lengths are those of adaptive tables, one for each context and number of particles: what each table learns is
included, headers are not. The built coder `counts` has the fifth context, beta-binomial distributions in place of tables,
and does not code what the first keys of blocks say. TMC13 gets the same lattice, lossless and with duplicates, and no
attributes; `tmc3` is built by `cmake` from its public repository.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import timing
from scipy.special import gammaln

import workbench as wb
from workbench import backend
from workbench.codecs import Tolerance
from workbench.codecs.counts import MOST, CodedCounts
from workbench.codecs.curve import Lattice
from workbench.codecs.together import Pieces

SHARES = (0.01, 0.1, 0.3)    # error bounds, as a share of the linking length
LINKING = 0.2                # in mean spacings
BLOCK = 1024
LEARNING = 0.4               # what each symbol of an adaptive table counts before it has occurred
AXIS = np.uint64(0x1249249249249249)
TMC13 = (
    "--mode=0", "--disableAttributeCoding=1", "--mergeDuplicatedPoints=0", "--positionQuantizationScale=1",
    "--trisoupNodeSizeLog2=0", "--inferredDirectCodingMode=1", "--neighbourAvailBoundaryLog2=8",
)


@dataclass(frozen=True)
class Splits:
    """All halved cells of a tree: how many particles, how many in the low half, and how many beside it on both sides.

    `before` is how many are known on both sides from parts next to the halved one that were halved before it.
    """

    level: np.ndarray
    size: np.ndarray
    low: np.ndarray
    beside: np.ndarray
    before: np.ndarray

    def chosen(self, which: np.ndarray) -> Splits:
        """Some of these."""
        return Splits(*(part[which] for part in (self.level, self.size, self.low, self.beside, self.before)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="*", default=[64, 128], help="particles per axis of the universes")
    parser.add_argument("--data", type=Path, help="the folder of real files (default: shared/data beside the checkout)")
    parser.add_argument("--tmc13", type=Path, help="the program tmc3")
    parser.add_argument("--repeats", type=int, default=3, help="counted runs of each speed (default 3)")
    parser.add_argument("--sizes", action="store_true", help="only what is built: no code lengths")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    load = " ".join(Path("/proc/loadavg").read_text().split()[:3])
    print(f"{timing.machine()}, {backend.threads()} threads, load {load}\n")
    for name, particles in sets([32] if options.quick else options.n, options.data):
        for share in SHARES[1:2] if options.quick else SHARES:
            report(name, particles, share, options)


def sets(sides: list[int], data: Path | None) -> Iterator[tuple[str, wb.Particles]]:
    """Simulated universes, and the galaxies of the folder, if they are there."""
    for n in sides:
        yield f"universe of {n}³", wb.synthetic.cosmic_web(n=n)
    real = (data or Path(__file__).resolve().parents[2] / "shared" / "data") / "corrfunc_mr19" / "gals_Mr19.ff"
    if real.exists():
        yield "galaxies (Mr19)", wb.open(real)


def report(name: str, particles: wb.Particles, share: float, options: argparse.Namespace) -> None:
    """One table: bits per particle."""
    bound = share * LINKING * particles.spacing
    codec = wb.codecs.get("lattice").prepared(particles)   # type: ignore[attr-defined]
    lattice: Lattice = codec.lattice(particles.positions, Tolerance(absolute=bound))
    keys = np.sort(lattice.keys(particles.positions))
    count, bits = len(keys), lattice.key_bits
    rows: list[list[object]] = []
    candidates = {} if options.sizes else {count: "everywhere", BLOCK: f"in blocks of {BLOCK:,}"}
    for block, where in candidates.items():
        splits, alone = tree(keys, bits // 3, block)
        for what, of in lengths(splits):
            rows.append([f"code length, neighbours {where}: {what}", f"{(of + alone) / count:.3f}"])
    pieces = Pieces.of(count, 2**19)
    coded = sum(len(one.to_bytes()) for one in CodedCounts.of_pieces(keys, pieces, BLOCK, 3, bits))
    rows.append(["built, without first keys and frames: counts", f"{8 * coded / count:.3f}"])
    for coder in ("auto", "small"):
        size, there, back = archived(particles, bound, coder, 1 if options.quick else options.repeats)
        speeds = f"{there:.0f} MB/s in, {back:.0f} out"
        rows.append([f"archive, coder {coder!r} ({speeds})", f"{8 * size / count:.3f}"])
    if options.tmc13 is not None:
        size, seconds = peer(options.tmc13, keys)
        rows.append([f"TMC13 ({seconds:.1f} s)", f"{8 * size / count:.3f}"])
    print(f"## {name}, {count:,} particles, bound {share} b\n")
    print(timing.table(["", "bits per particle"], rows))


def tree(keys: np.ndarray, levels: int, block: int) -> tuple[Splits, float]:
    """What is to be coded until particles are alone, and the remaining bits of those that are."""
    owner = np.arange(len(keys)) // block
    found: list[Splits] = []
    alone = 0.0
    for level in range(levels):
        shift = np.uint64(3 * (levels - level))
        cell, digit = keys >> shift, (keys >> (shift - np.uint64(3))) & np.uint64(7)
        start = np.flatnonzero(np.append(True, (cell[1:] != cell[:-1]) | (owner[1:] != owner[:-1])))
        node = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(keys))))
        parts = np.zeros((len(start) + 1, 16), np.int64)   # as in the kernels; the last row is an empty cell
        np.add.at(parts, (node, 8 + digit.astype(np.int64)), 1)
        for part in range(7, 0, -1):
            parts[:, part] = parts[:, 2 * part] + parts[:, 2 * part + 1]
        near = neighbours(cell[start], owner[start], level)
        single = (parts[:-1, 1] == 1) & (parts[near, 1] == 0).all(axis=(1, 2))
        alone += 3 * np.count_nonzero(single)
        for part in range(1, 8):
            which = np.flatnonzero((parts[:-1, part] > 0) & ~single)
            axis = 2 if part == 1 else 1 if part < 4 else 0
            before = known_before(parts, near, which, part, axis)
            size, low = parts[which, part], parts[which, 2 * part]
            found.append(Splits(np.full(len(which), level), size, low, parts[near[which, axis], 1], before))
    names = ("level", "size", "low", "beside", "before")
    return Splits(*(np.concatenate([getattr(one, name) for one in found]) for name in names)), alone


def known_before(parts: np.ndarray, near: np.ndarray, which: np.ndarray, part: int, axis: int) -> np.ndarray:
    """The halves of the parts before this one along the other axes: of the cell itself, or of the cell at its low end."""
    total = np.zeros((len(which), 2), np.int64)
    for other in range(3):
        if other == axis:
            continue
        bit = 1 << (other - axis - 1) if other > axis else 0
        of = which if part & bit else near[which, other, 0]
        total += parts[of, 2 * (part ^ bit) : 2 * (part ^ bit) + 2]
    return total


def neighbours(cell: np.ndarray, owner: np.ndarray, level: int) -> np.ndarray:
    """Which cells of the same block are beside each one: [cell, axis, side], their number where there is none."""
    found = np.full((len(cell), 3, 2), len(cell))
    block = owner.astype(np.uint64) << np.uint64(3 * level)
    place = block | cell
    for axis in range(3):
        mask = (AXIS << np.uint64(axis)) & np.uint64((1 << 3 * level) - 1)
        for side in range(2):
            along = (cell | ~mask) + np.uint64(1 << axis) if side else (cell & mask) - np.uint64(1 << axis)
            at_edge = (cell & mask) == (mask if side else np.uint64(0))
            other = block | (along & mask) | (cell & ~mask)
            at = np.minimum(np.searchsorted(place, other), len(place) - 1)
            found[:, axis, side] = np.where(~at_edge & (place[at] == other), at, len(cell))
    return found


def lengths(splits: Splits) -> Iterator[tuple[str, float]]:
    """The code lengths of all numbers with candidate contexts, in bits."""
    level, single = splits.level, splits.size == 1
    yield "number of particles", adaptive(splits, 0 * level)
    yield "and the level", adaptive(splits, level)
    beside, uneven = poor_side_first(splits, splits.beside)
    yield "and which side has fewer", adaptive(beside, level)
    yield "and how uneven (4 classes)", adaptive(beside, 4 * level + uneven)
    known, uneven = poor_side_first(splits, splits.beside + splits.before)
    context = 4 * level + uneven
    yield "and with the halves known before", adaptive(known, context)
    plain = np.count_nonzero(single)
    yield "the same, single particles as plain bits", adaptive(known.chosen(~single), context[~single]) + plain
    around = np.minimum(np.log2(1 + splits.beside.sum(axis=1) / splits.size).astype(np.int64), 7)
    yield "and the density around (8 classes)", adaptive(known, 8 * context + around)


def poor_side_first(splits: Splits, sides: np.ndarray) -> tuple[Splits, np.ndarray]:
    """The numbers of the side that has fewer, and how uneven the sides are."""
    poor, rich = sides.min(axis=1), sides.max(axis=1)
    everything = rich + poor + splits.size
    uneven = sum((4 * (rich - poor) >= times * everything).astype(np.int64) for times in (1, 2, 3))
    low = np.where(sides[:, 0] < sides[:, 1], splits.low, splits.size - splits.low)
    return Splits(splits.level, splits.size, low, splits.beside, splits.before), np.asarray(uneven)


def adaptive(splits: Splits, context: np.ndarray) -> float:
    """The code length of adaptive tables, one for each context and number; large numbers in ranges, as in the kernels."""
    size, low = splits.size.astype(np.int64), splits.low.astype(np.int64)
    raw = np.where(size > MOST - 1, np.floor(np.log2(np.maximum(size - 1, 1))).astype(np.int64) - 3, 0)
    symbols = np.where(raw > 0, (size - 1 >> raw) + 2, size)
    inner = np.where(low == size, symbols, 1 + (np.maximum(low - 1, 0) >> raw))
    symbol = np.where((raw == 0) | (low == 0), low, inner)
    kind = np.where(raw > 0, np.minimum(raw, 2) * (MOST + 1), 0) + symbols
    table = context * 3 * (MOST + 1) + kind
    counts = np.bincount(table * (MOST + 1) + symbol, minlength=(int(table.max()) + 1) * (MOST + 1)).reshape(-1, MOST + 1)
    used = counts.sum(axis=1) > 0
    entries = np.arange(len(counts))[used] % (MOST + 1) + 1
    total, present = counts[used].sum(axis=1), np.arange(MOST + 1) < entries[:, np.newaxis]
    first = np.where(present, gammaln(counts[used] + LEARNING) - gammaln(LEARNING), 0).sum(axis=1)
    nats = gammaln(total + LEARNING * entries) - gammaln(LEARNING * entries) - first
    plain = raw[(low > 0) & (low < size)].sum()
    return float(nats.sum() / np.log(2) + plain)


def archived(particles: wb.Particles, bound: float, coder: str, repeats: int) -> tuple[int, float, float]:
    """The bytes of the positions in an archive, and MB/s there and back, with everything."""
    codec, megabytes = wb.codecs.get("lattice", coder=coder), particles.positions.nbytes / 1e6
    alone = wb.Particles(particles.positions, particles.box)
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        archive = wb.compress(alone, wb.Absolute(bound), codec, order="free")
        middle = time.perf_counter()
        archive.decompress()
        times.append((middle - start, time.perf_counter() - middle))
    there, back = np.median(times[1:], axis=0)
    return archive.data.nbytes, megabytes / there, megabytes / back


def peer(program: Path, keys: np.ndarray) -> tuple[int, float]:
    """The bytes and the seconds of TMC13 for the same cells."""
    cells = np.zeros((len(keys), 3), "<f4")
    for axis in range(3):
        along = np.zeros(len(keys), np.int64)
        for bit in range(21):
            along |= ((keys >> np.uint64(3 * bit + axis)) & np.uint64(1)).astype(np.int64) << bit
        cells[:, axis] = along
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "in.ply"), Path(folder, "out.bin")
        head = ["ply", "format binary_little_endian 1.0", f"element vertex {len(cells)}"]
        head += [*(f"property float {axis}" for axis in "xyz"), "end_header", ""]
        given.write_bytes("\n".join(head).encode() + cells.tobytes())
        start = time.perf_counter()
        command = [str(program), *TMC13, f"--uncompressedDataPath={given}", f"--compressedStreamPath={made}"]
        subprocess.run(command, check=True, capture_output=True)
        return made.stat().st_size, time.perf_counter() - start


if __name__ == "__main__":
    main()
