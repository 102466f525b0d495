"""Velocities within 1% of their dispersion, in archives sorted along a curve: bits per particle, and megabytes a second.

python benchmarks/velocities.py [--side 64] [--repeats 3] [FILE ...]

Each codec encodes what the archive encodes: velocities in the order of the curve, in its chunks. `neighbours` knows
the decoded positions, whose bound is a tenth of the mean spacing; all others see the velocities alone.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import timing

import workbench as wb

CODECS = ("sz3", "prequantised", "interpolation", "neighbours")
SHARE = 0.01   # of the dispersion


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="snapshots with velocities")
    parser.add_argument("--side", type=int, default=64, help="particles along a side of the synthetic universe")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(timing.machine(), flush=True)
    rows: list[list[object]] = []
    for name, particles in _snapshots(options.side, options.files):
        for codec in CODECS:
            if codec in wb.codecs.available() or codec == "neighbours":
                rows.append([f"{name}, {len(particles):,}", codec, *_measured(particles, codec, options.repeats)])
                print(*rows[-1], flush=True)
    print(f"\n{timing.table(['particles', 'codec', 'bits per particle', 'write, MB/s', 'read, MB/s'], rows)}")


def _snapshots(side: int, files: list[str]) -> Iterator[tuple[str, wb.Particles]]:
    yield f"universe of {side}³", wb.synthetic.cosmic_web(n=side, seed=3)
    for file in files:
        yield file.rsplit("/", 1)[-1], wb.open(file)


def _measured(particles: wb.Particles, codec: str, repeats: int) -> tuple[str, str, str]:
    """Bits per particle of the velocities; the speed of writing them, checked, and of reading them."""
    velocities, spacing = np.asarray(particles.velocities), wb.Absolute(0.1 * particles.spacing)
    positions = wb.Particles(particles.positions, particles.box)
    both = wb.Particles(particles.positions, particles.box, velocities=velocities)
    bound = wb.Absolute(SHARE * float(np.std(velocities)))

    def write() -> wb.Archive:
        return wb.compress(both, spacing, order="free", velocities=bound, column_codec=codec)

    alone = timing.seconds(lambda: wb.compress(positions, spacing, order="free"), repeats)
    together, stored = timing.seconds(write, repeats), write().arrays["velocities"]
    megabytes, read = velocities.nbytes / 1e6, timing.seconds(stored.values, repeats)
    bits = 8 * stored.nbytes / len(particles)
    return f"{bits:.2f}", f"{megabytes / max(together - alone, 1e-3):.0f}", f"{megabytes / read:.0f}"


if __name__ == "__main__":
    main()
