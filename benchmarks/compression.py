"""Every codec at equal bounds: size and speed, on a clustered snapshot and on real files; what checking and regions cost.

python benchmarks/compression.py [--n 128] [--repeats 5] [--data FOLDER] [--quick]

Speed is that of `wb.compress` and `Archive.decompress`, with everything: sorting, coding, decoding again, checking values.
The folder of real files is not part of the project; missing files are left out.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import timing

import workbench as wb
from workbench import backend
from workbench.guarantees import check
from workbench.guarantees.bounds import Bound

SHARES = (0.01, 0.1, 0.3)   # error bounds, as a share of the linking length
LINKING = 0.2               # in mean spacings
PARTICLE_CODECS = ("lattice", "draco", "sz3", "zfp", "prequantised", "fpzip", "bitround", "pcodec")
FIELD_CODECS = ("sz3", "sperr", "zfp", "prequantised", "fpzip", "bitround", "pcodec")
REAL_PARTICLES: dict[str, tuple[str, dict[str, Any]]] = {
    "galaxies (Mr19)": ("corrfunc_mr19/gals_Mr19.ff", {}),
    "halos (disperse)": ("disperse_32/disperse_simu_32_id.gad", {}),
    "early universe (HACC)": ("hacc_nyx_toy/m000.full.mpicosmo.50", {}),
    "fluid (freud)": ("md_freud/rdf_benchmark.gsd", {"frame": 0}),
}
REAL_FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    "temperature (CESM)": ("cesm/cam-fv.T.3months.nc", {"name": "T"}),
    "vorticity 3-D (SPERR)": ("sperr_fields/vorticity.128_128_41", {"shape": (41, 128, 128)}),
    "|vorticity| 91³ (SPERR)": ("sperr_fields/wmag91.float", {"shape": (91, 91, 91)}),
    "baryons 32³ (Nyx)": ("hacc_nyx_toy/z255_32.h5", {"name": "native_fields/baryon_density"}),
}


@dataclass(frozen=True)
class Run:
    """One codec on one file of positions or values; a call gives bytes, and the seconds there and back."""

    path: Path
    box: tuple[float, ...] | None
    particles: bool
    codec: str
    order: str
    bound: Bound

    def __call__(self) -> tuple[int, float, float]:
        """After one round that is not counted."""
        values = np.load(self.path)
        data = wb.Particles(values, self.box) if self.particles else wb.Field(values)
        for _ in range(2):
            start = time.perf_counter()
            archive = wb.compress(data, self.bound, codec=self.codec, order=self.order)
            middle = time.perf_counter()
            archive.decompress()
            end = time.perf_counter()
        return archive.data.nbytes, middle - start, end - middle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=128, help="particles per axis of the clustered snapshot (default 128)")
    parser.add_argument("--repeats", type=int, default=5, help="counted runs of each codec (default 5)")
    parser.add_argument("--data", type=Path, help="the folder of real files (default: shared/data beside the checkout)")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    n, repeats = (32, 1) if options.quick else (options.n, options.repeats)
    folder = options.data or Path(__file__).resolve().parents[2] / "shared" / "data"
    print(f"{timing.machine()}, {backend.threads()} threads\n")
    snapshot = wb.synthetic.cosmic_web(n=n)
    with tempfile.TemporaryDirectory() as scratch:
        clustered(snapshot, Path(scratch), repeats)
        codecs_alone(snapshot, repeats)
        real_particles(folder, Path(scratch))
        real_fields(folder, Path(scratch), repeats)
    cost_of_the_guarantee(snapshot, repeats)
    cost_of_a_region(snapshot, repeats)


def clustered(snapshot: wb.Particles, scratch: Path, repeats: int) -> None:
    """Bits per particle at three bounds, and the speed at the middle one."""
    print(f"## Clustered snapshot, {len(snapshot):,} particles, float32; error bound ξ, linking length b\n")
    path = saved(snapshot.positions, scratch)
    megabytes = snapshot.positions.nbytes / 1e6
    bounds = [wb.Absolute(share * LINKING * snapshot.spacing) for share in SHARES]
    rows: list[list[object]] = []
    for order in ("free", "keep"):
        for codec in available(PARTICLE_CODECS):
            runs = [Run(path, snapshot.box, True, codec, order, bound) for bound in bounds]
            sizes = [timing.in_fresh_process(run)[0] * 8 / len(snapshot) for run in runs]
            there, back = speeds(runs[1], repeats, megabytes)
            rows.append([codec, order, *(f"{size:.2f}" for size in sizes), f"{there:.0f}", f"{back:.0f}"])
    header = ["codec", "order", *(f"ξ = {share} b" for share in SHARES), "compress, MB/s", "decompress, MB/s"]
    print("Bits per particle; speeds at ξ = 0.1 b.\n")
    print(timing.table(header, rows))


def codecs_alone(snapshot: wb.Particles, repeats: int) -> None:
    """The built-in codec with each of its coders, and SZ3 on each coordinate: all positions at once, nothing checked."""
    print("## Codecs alone, all positions at once, without the check: bits per particle, and MB/s at ξ = 0.1 b\n")
    positions = snapshot.positions
    rows: list[list[object]] = []
    options = [(order, coder) for order in ("free", "keep") for coder in ("context", "pcodec", "packed")]
    alone = {f"lattice, {o}, {c}": wb.codecs.get("lattice", order=o, coder=c, box=snapshot.box) for o, c in options}
    for name, codec in {**alone, "sz3, keep": wb.codecs.get("columns", codec={"id": "sz3"})}.items():
        aims = [wb.codecs.Tolerance(absolute=share * LINKING * snapshot.spacing) for share in SHARES]
        encoded = [codec.encode(positions, aim) for aim in aims]
        there = timing.seconds(partial(codec.encode, positions, aims[1]), repeats)
        back = timing.seconds(partial(codec.decode, encoded[1], positions.shape, positions.dtype), repeats)
        sizes = [f"{8 * len(data) / len(positions):.2f}" for data in encoded]
        rows.append([name, *sizes, *(f"{positions.nbytes / 1e6 / seconds:.0f}" for seconds in (there, back))])
    print(timing.table(["codec", *(f"ξ = {share} b" for share in SHARES), "encode, MB/s", "decode, MB/s"], rows))


def real_particles(folder: Path, scratch: Path) -> None:
    """Bits per particle at ξ = 0.1 b."""
    opened = list(existing(REAL_PARTICLES, folder))
    if not opened:
        return
    print("## Real particles, ξ = 0.1 b: bits per particle\n")
    rows: list[list[object]] = []
    for order in ("free", "keep"):
        for codec in available(PARTICLE_CODECS):
            row: list[object] = [codec, order]
            for _, particles in opened:
                bound = wb.Absolute(0.1 * LINKING * particles.spacing)
                run = Run(saved(particles.positions, scratch), particles.box, True, codec, order, bound)
                row.append(f"{run()[0] * 8 / len(particles):.2f}")
            rows.append(row)
    header = ["codec", "order", *(f"{name}, {len(particles):,}, {particles.positions.dtype}" for name, particles in opened)]
    print(timing.table(header, rows))


def real_fields(folder: Path, scratch: Path, repeats: int) -> None:
    """Bits per value at two bounds relative to the range, and the speed on the first field."""
    opened = list(existing(REAL_FIELDS, folder))
    if not opened:
        return
    print("## Real fields: bits per value\n")
    rows: list[list[object]] = []
    for codec in available(FIELD_CODECS):
        row: list[object] = [codec]
        for _, field in opened:
            path = saved(field.values, scratch)
            runs = [Run(path, None, False, codec, "keep", wb.Relative(eb)) for eb in (1e-3, 1e-5)]
            row.append(" / ".join(f"{run()[0] * 8 / field.values.size:.2f}" for run in runs))
        first = opened[0][1].values
        run = Run(saved(first, scratch), None, False, codec, "keep", wb.Relative(1e-3))
        there, back = speeds(run, repeats, first.nbytes / 1e6)
        rows.append([*row, f"{there:.0f}", f"{back:.0f}"])
    print("At 1e-3 and 1e-5 of the range; speeds on the first field, at 1e-3.\n")
    print(timing.table(["codec", *(name for name, _ in opened), "compress, MB/s", "decompress, MB/s"], rows))


def cost_of_the_guarantee(snapshot: wb.Particles, repeats: int) -> None:
    """The time of checking (and correcting), compared with the time that SZ3 takes to compress the same values."""
    print("## What the check costs\n")
    sz3 = wb.codecs.get("sz3")
    fields = {
        "x of the clustered snapshot": np.ascontiguousarray(snapshot.positions[:, 0]),
        "random field": wb.synthetic.gaussian_field((snapshot.positions.shape[0] // 128**2 or 1, 128, 128), seed=1).values,
    }
    rows: list[list[object]] = []
    for name, values in fields.items():
        limit = wb.Relative(1e-3).limit(values)
        aim = wb.codecs.Tolerance(absolute=limit.value)
        decoded = sz3.decode(sz3.encode(values, aim), values.shape, values.dtype)
        encoding = timing.seconds(partial(sz3.encode, values, aim), repeats)
        decoding = timing.seconds(partial(sz3.decode, sz3.encode(values, aim), values.shape, values.dtype), repeats)
        checking = timing.seconds(partial(check, values, decoded, limit), repeats)
        whole = timing.seconds(partial(wb.compress, wb.Field(values), wb.Absolute(limit.value), codec="sz3"), repeats)
        rows.append([name, f"{checking / encoding:.1%}", f"{decoding / encoding:.0%}", f"{whole / encoding:.2f} x"])
    header = ["values", "check / SZ3 encode (target: at most 30%)", "SZ3 decode / encode", "wb.compress, all in all"]
    print(timing.table(header, rows))


def cost_of_a_region(snapshot: wb.Particles, repeats: int) -> None:
    """Positions in cubes of 1% of the volume at random places, against decoding all positions; both from a file."""
    print("## What a region of 1% of the volume costs\n")
    assert snapshot.box is not None
    length = snapshot.box[0]
    snapshot = wb.Particles(snapshot.positions, length)
    side = 0.01 ** (1 / 3) * length
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        archive = wb.compress(snapshot, wb.Absolute(0.1 * LINKING * snapshot.spacing), order="free")
        path = archive.save(Path(folder) / "snapshot.zip")
        stored = wb.Archive.open(path)
        corners = [random.random(3) * (length - side) for _ in range(20)]
        regions = [[(low, low + side) for low in corner] for corner in corners]
        for count in sorted({1, backend.threads()}):
            with backend.using_threads(count):
                everything = timing.seconds(stored.decompress, repeats)
                times = [timing.seconds(partial(stored.read, region), repeats) for region in regions]
            share, worst = statistics.mean(times) / everything, max(times) / everything
            print(f"With {count} CPU threads {share:.1%} of a full decode on average (target: 5%), at worst {worst:.1%}.\n")


def existing(files: Mapping[str, tuple[str, Mapping[str, Any]]], folder: Path) -> Iterator[tuple[str, Any]]:
    """The files that are there."""
    for name, (place, options) in files.items():
        if (folder / place).exists():
            yield name, wb.open(folder / place, **options)


def available(names: tuple[str, ...]) -> list[str]:
    """The installed ones of these codecs."""
    installed = wb.codecs.available()
    return [name for name in names if name in installed]


def saved(values: np.ndarray, scratch: Path) -> Path:
    """A file from which another process can load the values."""
    path = scratch / f"{id(values)}.npy"
    if not path.exists():
        np.save(path, values)
    return path


def speeds(run: Run, repeats: int, megabytes: float) -> tuple[float, float]:
    """Median MB/s of compressing and decompressing, each time in a process of its own."""
    times = [timing.in_fresh_process(run)[1:] for _ in range(repeats)]
    there, back = (statistics.median(column) for column in zip(*times, strict=True))
    return megabytes / there, megabytes / back


if __name__ == "__main__":
    main()
