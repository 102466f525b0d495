"""The time that simulated universes take, beside the limits that keep them usable in demos and tests.

python benchmarks/synthetic.py [--repeats 3] [--quick]
"""

from __future__ import annotations

import argparse
import time

import timing

from workbench import backend, friends_of_friends
from workbench.data.particles import Particles
from workbench.data.synthetic import cosmic_web

TARGETS = {64: 4.0, 128: 40.0}   # seconds on two cores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each size, of which the best counts (default 3)")
    parser.add_argument("--quick", action="store_true", help="only the smaller size")
    options = parser.parse_args()
    print(f"{timing.machine()}, {backend.threads()} threads\n")
    print("| n | particles | seconds | target | in halos of 20 or more | largest halo |")
    print("|---|---|---|---|---|---|")
    for n, target in list(TARGETS.items())[: 1 if options.quick else None]:
        best, universe = fastest(n, options.repeats)
        sizes = friends_of_friends(universe).sizes
        in_halos = sizes[sizes >= 20].sum() / len(universe)
        print(f"| {n} | {n**3:,} | {best:.2f} | {target:g} | {in_halos:.1%} | {sizes.max():,} |", flush=True)


def fastest(n: int, repeats: int) -> tuple[float, Particles]:
    """The shortest time of several runs, and the result."""
    seconds = []
    for _ in range(max(1, repeats)):
        start = time.perf_counter()
        universe = cosmic_web(n=n)
        seconds.append(time.perf_counter() - start)
    return min(seconds), universe


if __name__ == "__main__":
    main()
