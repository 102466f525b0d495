"""Particles in time: bits per particle of steps predicted from earlier ones, beside single steps, LCP, MDZ and XTC.

python benchmarks/series_particles.py [--side 64] [--steps 16] [--data FOLDER ...] [--lcp PROGRAM] [--mdz PROGRAM] [--quick]

The universe is one simulation, at scale factors from 0.5 to 1 in equal steps. Its first step stands alone; each later one
is predicted from the decoded positions of the two before, with or without the decoded velocities of the last, which are
then kept within 1% of their dispersion by `neighbours` (their bits are not counted: whoever keeps them pays for them
anyway). In free order, all particles are sorted along the curve of the first step, and ids are stored once; the single
archives store them with each step.

Folders of trajectories are `MDAnalysisTests/data` of the package MDAnalysisTests, and `md_chemfiles` and `md_freud`. All
frames are written by GROMACS' XTC (1000 steps per nm), and by each codec within ±0.0005 nm: `motion` in batches of about a
million numbers. Each decoded value of ours is compared. `mdz_and_lcp.py` says where the peers come from.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import mdz_and_lcp
import numpy as np
import timing

import workbench as wb
from workbench.codecs import Codec, Tolerance
from workbench.codecs.earlier import Earlier
from workbench.codecs.lattice import LatticeCodec
from workbench.codecs.motion import Motion
from workbench.guarantees import Limit, encode_guarded

LINKING = 0.2                     # of the mean spacing
SHARES = (0.01, 0.1, 0.3)         # of the linking length
OF_VELOCITIES = 0.01              # of their dispersion
BOUND, PRECISION = 5e-4, 1000.0   # nm, per nm
BATCH = 2**20                     # numbers
SYSTEMS = (
    "adk_dims.dcd", "adk_gbis_tmd-fast1_NAMD.dcd", "Amber/bala.ncdf", "Amber/tz2.truncoct.nc", "adk_oplsaa.xtc",
    "cobrotoxin.trr", "analysis/YiiP_lipids.xtc", "aux_edr.xtc", "lammps/ifabp_apo_100mM.dcd", "helium.xyz",
    "polymer.lammpstrj", "XYZ_positions.npy", "rdf_benchmark.gsd",
)
Peers = dict[str, Path | None]   # programs by name


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=64, help="particles along a side of the synthetic universe")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="folders of trajectories")
    parser.add_argument("--lcp", type=Path, help="the program lcp, of https://github.com/LangdaoZhang/LCP")
    parser.add_argument("--mdz", type=Path, help="the program mdz, of https://github.com/szcompressor/SZ3")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    side, count = (16, 4) if options.quick else (options.side, options.steps)
    redshifts = 1 / np.linspace(0.5, 1, count) - 1
    universe = list(wb.synthetic.cosmic_web_series(n=side, redshifts=redshifts.tolist()))
    peers = {"LCP": options.lcp, "MDZ": options.mdz}
    print(f"{timing.machine()}, load {' '.join(Path('/proc/loadavg').read_text().split()[:3])}", flush=True)
    print(f"\n{kept_order(universe, peers)}\n\n{speeds(universe)}\n\n{free_order(universe)}", flush=True)
    if options.data:
        print(f"\n{trajectories(options.data, peers)}", flush=True)


def kept_order(universe: list[wb.Particles], peers: Peers) -> str:
    """Bits per particle and step, of all steps together, and of the last one."""
    rows: list[list[object]] = []
    for share in SHARES:
        bound = share * LINKING * universe[0].spacing
        frames = np.array([step.positions for step in universe])
        single = [len(encoded(LatticeCodec(order="keep", box=universe[0].box), each, bound)[0]) for each in frames]
        ways = [single, in_time(universe, bound, False), in_time(universe, bound, True)]
        sizes = [*map(sum, ways), *(size_by(name, program, frames, bound) for name, program in peers.items())]
        last = [f"{way[-1] / single[-1]:.3f}" for way in ways[1:]]
        rows.append([f"{share} b", *(bits(size, len(frames) * len(universe[0])) for size in sizes), *last])
        print(*rows[-1], flush=True)
    header = ["bound", "single steps", "**in time**", "with velocities", *peers, "last step / single", "with velocities"]
    return f"Kept order, {len(universe)} steps of {len(universe[0]):,} particles.\n\n{timing.table(header, rows)}"


def in_time(universe: list[wb.Particles], bound: float, with_velocities: bool) -> list[int]:
    """The bytes of each step after the decoded ones before."""
    sizes: list[int] = []
    decoded: list[np.ndarray] = []
    for number, step in enumerate(universe):
        codec: Codec = Motion(step.box)
        if decoded:
            times = tuple(float(number - k) for k in range(len(decoded) + 1))
            rates = velocities_of(universe[number - 1], decoded[0]) if with_velocities else None
            codec = codec.following(Earlier(tuple(decoded), times, rates))
        data, positions = encoded(codec, step.positions, bound)
        sizes.append(len(data))
        decoded = [positions, *decoded][:2]
    return sizes


def velocities_of(step: wb.Particles, positions: np.ndarray) -> np.ndarray:
    """Velocities as they would be decoded."""
    velocities = np.asarray(step.velocities)
    codec = wb.codecs.get("neighbours").beside(positions)
    return encoded(codec, velocities, OF_VELOCITIES * float(np.std(velocities)))[1]


def encoded(codec: Codec, values: np.ndarray, bound: float) -> tuple[bytes, np.ndarray]:
    """The bytes of values, and what is decoded of them, which is compared."""
    data = codec.encode(np.ascontiguousarray(values), Tolerance(absolute=bound))
    decoded = codec.decode(data, values.shape, values.dtype)
    if not np.abs(decoded.astype(np.float64) - values).max() <= bound:
        raise SystemExit(f"{codec} broke the bound {bound}")
    return data, decoded


def speeds(universe: list[wb.Particles]) -> str:
    """Megabytes a second of processor time, encoding, decoding, and the whole of a guarded chunk."""
    before, last = universe[-3:-1], universe[-1]
    bound = 0.1 * LINKING * last.spacing
    known = [encoded(Motion(last.box), step.positions, bound)[1] for step in reversed(before)]
    rows: list[list[object]] = []
    for name, rates in (("single", None), ("in time", None), ("in time, with velocities", before[-1].velocities)):
        codec: Codec = LatticeCodec(order="keep", box=last.box)
        if name != "single":
            codec = Motion(last.box).following(Earlier(tuple(known), (2.0, 1.0, 0.0), rates))
        data, _ = encoded(codec, last.positions, bound)
        runs: list[Callable[[], object]] = [
            partial(codec.encode, last.positions, Tolerance(absolute=bound)),
            partial(codec.decode, data, last.positions.shape, "f4"),
            partial(encode_guarded, codec, last.positions, Limit("absolute", bound), period=last.box),
        ]
        rows.append([name, *(f"{last.positions.nbytes / 1e6 / processor_seconds(run):.0f}" for run in runs)])
    header = ["step", "encode, MB/s", "decode, MB/s", "encode, decode and compare, MB/s"]
    return f"Speed on one thread at 0.1 b, of processor time.\n\n{timing.table(header, rows)}"


def free_order(universe: list[wb.Particles]) -> str:
    """Bytes of positions and ids: each step by itself, and all in the order of the first one's curve."""
    rows: list[list[object]] = []
    for share in SHARES:
        bound = share * LINKING * universe[0].spacing
        single = [wb.compress(without_velocities(step), wb.Absolute(bound), order="free") for step in universe]
        order = single[0].permutation(universe[0])
        along = [sorted_by(order, step) for step in universe]
        ids = single[0].arrays["ids"].nbytes
        alone = sum(archive.arrays[name].nbytes for archive in single for name in ("positions", "ids"))
        sizes = [alone, ids + sum(in_time(along, bound, False)), ids + sum(in_time(along, bound, True))]
        rows.append([f"{share} b", *(bits(size, len(universe) * len(universe[0])) for size in sizes)])
    header = ["bound", "single archives", "**in time**", "with velocities"]
    return f"Free order, with ids.\n\n{timing.table(header, rows)}"


def sorted_by(order: np.ndarray, step: wb.Particles) -> wb.Particles:
    return wb.Particles(step.positions[order], step.box, velocities=np.asarray(step.velocities)[order])


def without_velocities(step: wb.Particles) -> wb.Particles:
    return wb.Particles(step.positions, step.box, ids=step.ids)


def trajectories(folders: list[Path], peers: Peers) -> str:
    """Bits per atom and frame."""
    rows: list[list[object]] = []
    for name in SYSTEMS:
        path = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if path is None:
            continue
        frames = frames_of(path)
        count = frames.shape[0] * frames.shape[1]
        batch = max(BATCH // frames[0].size, 1)
        batches = [frames[first : first + batch] for first in range(0, len(frames), batch)]
        codec = Motion()
        coded = [encoded(codec, each, BOUND)[0] for each in batches]
        space = [encoded(LatticeCodec(order="keep"), frame, BOUND)[0] for frame in frames]
        written = sum(map(len, coded))
        seconds = processor_seconds(partial(codec.encode, batches[0], Tolerance(absolute=BOUND)))
        sizes = [xtc_bytes(frames), sum(map(len, space)), written]
        others = [size_by(peer, program, frames, BOUND) for peer, program in peers.items()]
        remark = codec.remark(coded[0], batches[0].shape, frames.dtype)
        row = [f"{name}, {len(frames)} x {frames.shape[1]:,}", *(bits(size, count) for size in sizes + others)]
        rows.append([*row, remark, f"{batches[0].nbytes / 1e6 / seconds:.0f}"])
        print(*rows[-1], flush=True)
    header = ["frames x atoms", "XTC", "single frames", "**motion**", *peers, "the first batch is", "encode, MB/s"]
    return f"Trajectories within 0.0005 nm, bits per atom and frame.\n\n{timing.table(header, rows)}"


def frames_of(path: Path) -> np.ndarray:
    """Positions in nm, (frames, atoms, 3)."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".gsd":
        import gsd.hoomd

        with gsd.hoomd.open(str(path)) as file:
            return np.array([frame.particles.position for frame in file])
    from MDAnalysis.coordinates.core import get_reader_for

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = get_reader_for(str(path))(str(path))
        return np.array([step.positions for step in read], np.float32) / np.float32(10)


def xtc_bytes(frames: np.ndarray) -> int:
    """The size of a file of these frames."""
    from MDAnalysis.lib.formats.libmdaxdr import XTCFile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.xtc"
        with XTCFile(str(path), "w") as file:
            for number, frame in enumerate(frames):
                file.write(frame, np.zeros((3, 3), np.float32), number, float(number), PRECISION)
        return path.stat().st_size


def size_by(name: str, program: Path | None, frames: np.ndarray, bound: float) -> int | None:
    """The bytes that a peer makes of these frames; None without it, or where it fails."""
    try:
        return None if program is None else {"LCP": mdz_and_lcp.lcp, "MDZ": mdz_and_lcp.mdz}[name](program, frames, bound)
    except mdz_and_lcp.Failed as reason:
        print(reason, flush=True)
        return None


def bits(size: int | None, count: int) -> str:
    """Bits for each of so many."""
    return "-" if size is None else f"{8 * size / count:.2f}"


def processor_seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """The least of several runs: others share the machine."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
