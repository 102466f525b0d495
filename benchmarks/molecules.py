"""Single frames of molecular dynamics in kept order, within half of XTC's lattice step: bits per atom beside XTC and SZ3.

python benchmarks/molecules.py --data FOLDER [--repeats 3] [--quick]

The folder is `MDAnalysisTests/data` of the package MDAnalysisTests. The first frame of each file is written by GROMACS' XTC
(1000 steps per nm, without a box, with its header), by SZ3 on each coordinate, and by the lattice codec within ±0.0005 nm;
every decoded coordinate of the latter is compared. XTC rounds in float32, so its own errors can be a little larger.

The code lengths are order-0 entropies of what is coded of a bond (offset to an earlier atom, distance, angle), and the
logarithm of the volume that is left. Tables are not included, so the lengths of small systems are too short. The coder
`molecules` learns on the way, and takes dihedral angles into account.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import timing

import workbench as wb
from workbench.codecs import Tolerance
from workbench.codecs.lattice import LatticeCodec

BOUND, PRECISION = 5e-4, 1000.0   # nm, per nm
REACH = 31                        # atoms before an atom that it may be attached to
SYSTEMS = (
    "adk_oplsaa.xtc", "adk_dims.dcd", "cobrotoxin.trr", "lammps/ifabp_apo_100mM.dcd", "Amber/bala.ncdf",
    "Amber/tz2.truncoct.nc", "analysis/YiiP_lipids.xtc", "aux_edr.xtc", "contacts/villin_folded.gro.bz2",
    "gromos11/gromos11_traj_solv.trc.gz", "plength.gro", "martini_dppc_chol_bilayer.gro", "bigbox.gro.bz2",
    "SiN_tric_namd.dcd", "analysis/1k5i_c36.pdb.gz", "2r9r-1b.xyz", "argon_npt_compressed.gro.gz", "6msm.pdb.bz2",
)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder MDAnalysisTests/data")
    parser.add_argument("--repeats", type=int, default=3, help="counted runs of each speed (default 3)")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    import MDAnalysis

    load = " ".join(Path("/proc/loadavg").read_text().split()[:3])
    print(f"{timing.machine()}, MDAnalysis {MDAnalysis.__version__}, load {load}\n", flush=True)
    sizes: list[list[object]] = []
    lengths: list[list[object]] = []
    for name in SYSTEMS[1:2] if options.quick else SYSTEMS:
        positions = first_frame(options.data / name)
        sizes.append([f"{name}, {len(positions):,}", *measured(positions, options.repeats)])
        lengths.append([name, *(f"{bits:.2f}" for bits in code_lengths(positions))])
        print(*sizes[-1], *lengths[-1][1:], flush=True)
    ways = ["XTC", "SZ3", "deltas", "**auto**", "small", "auto / XTC"]
    header = ["first frame of, atoms", *ways, "write, µs an atom", "read"]
    print(f"\nBits per atom; processor time of the codec with `auto`.\n\n{timing.table(header, sizes)}")
    header = ["first frame of", "delta to the last atom", "delta to the nearest of 31", "distance to it", "and angle"]
    print(f"\nCode lengths, bits per atom.\n\n{timing.table(header, lengths)}")


def first_frame(path: Path) -> np.ndarray:
    """Positions in nm."""
    from MDAnalysis.coordinates.core import get_reader_for

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = get_reader_for(str(path))(str(path))
    return np.asarray(read.ts.positions, np.float32) / np.float32(10)


def measured(positions: np.ndarray, repeats: int) -> list[str]:
    """Bits per atom of each way, and microseconds for each atom."""
    aim, count = Tolerance(absolute=BOUND), len(positions)
    codecs = [LatticeCodec(order="keep", coder=coder) for coder in ("context", "pcodec", "auto", "small")]
    coded = [codec.encode(positions, aim) for codec in codecs]
    for codec, data in zip(codecs, coded, strict=True):
        decoded = codec.decode(data, positions.shape, positions.dtype)
        if np.abs(decoded.astype(np.float64) - positions).max() > BOUND:
            raise SystemExit(f"{codec} broke the bound")
    context, pcodec, auto, small = (8 * len(data) / count for data in coded)
    sz3 = 8 * len(wb.codecs.get("columns", codec={"id": "sz3"}).encode(positions, aim)) / count
    xtc = 8 * xtc_bytes(positions) / count
    write = processor_seconds(lambda: codecs[2].encode(positions, aim), repeats)
    read = processor_seconds(lambda: codecs[2].decode(coded[2], positions.shape, positions.dtype), repeats)
    bits = [f"{each:.2f}" for each in (xtc, sz3, min(context, pcodec), auto, small, auto / xtc)]
    return [*bits, *(f"{1e6 * seconds / count:.2f}" for seconds in (write, read))]


def xtc_bytes(positions: np.ndarray) -> int:
    """The size of a file of this frame alone."""
    from MDAnalysis.lib.formats.libmdaxdr import XTCFile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.xtc"
        with XTCFile(str(path), "w") as file:
            file.write(positions, np.zeros((3, 3), np.float32), 1, 1.0, PRECISION)
        return path.stat().st_size


def processor_seconds(run: Callable[[], object], repeats: int) -> float:
    """The least of several runs: others share the machine."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def code_lengths(positions: np.ndarray) -> list[float]:
    """Bits per atom of four ways to code a frame."""
    cells = np.floor(positions.astype(np.float64) / (2 * BOUND))
    offset = np.ones(len(cells), np.int64)
    last = np.diff(cells, axis=0, prepend=cells[:1])
    nearest = np.full(len(cells), np.inf)
    for step in range(1, min(REACH, len(cells) - 1) + 1):
        square = ((cells[step:] - cells[:-step]) ** 2).sum(axis=1)
        closer = square < nearest[step:]
        offset[step:][closer], nearest[step:][closer] = step, square[closer]
    base = np.maximum(np.arange(len(cells)) - offset, 0)
    bond, before = cells - cells[base], cells[base[base]] - cells[base]
    distance = np.linalg.norm(bond, axis=1)
    reach = np.linalg.norm(before, axis=1)
    along = np.rint((bond * before).sum(axis=1) / np.maximum(reach, 1))
    named, chain = entropy(offset), offset * (REACH + 1) + offset[base]
    length = named + entropy(np.rint(distance), offset)
    octave = float(np.log2(np.maximum(distance, 0.5)).mean())
    sphere, circle = np.log2(4 * np.pi) + 2 * octave, np.log2(2 * np.pi) + octave
    return [class_bits(last), named + class_bits(bond), length + sphere, length + entropy(along, chain) + circle]


def entropy(values: np.ndarray, context: np.ndarray | None = None) -> float:
    """The empirical entropy of each value, in bits, given its context."""
    if context is not None:
        return entropy(np.stack([context, values], axis=-1)) - entropy(context)
    _, counts = np.unique(values, axis=0, return_counts=True)
    return float(-(counts / counts.sum() * np.log2(counts / counts.sum())).sum())


def class_bits(steps: np.ndarray) -> float:
    """The bits of the octave of each component, of its sign, and of what is below."""
    octave = np.floor(np.log2(np.maximum(np.abs(steps), 0.5)))
    below = np.maximum(octave, 0) + (steps != 0)
    return sum(entropy(octave[:, axis]) for axis in range(3)) + float(below.sum(axis=1).mean())


if __name__ == "__main__":
    main()
