"""Merger trees at a bound, without and with kept clusters: links that break, main branches that stay whole, and the time.

python benchmarks/descent.py [--n 64] [--steps 16]

A simulated universe from redshift 1 to 0, each step within the bound, in kept order. The descent of halos of 20 particles
is compared with that of the originals. Sizes are those of positions with ids; times are processor time for each step.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import workbench as wb

SHARES = 0.01, 0.1, 0.3   # of the linking length
LENGTH = 0.2              # mean spacings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--steps", type=int, default=16)
    given = parser.parse_args()
    times = np.linspace(0.5, 1, given.steps)
    snapshots = [
        wb.Particles(one.positions, one.box, ids=one.ids, metadata=one.metadata)
        for one in wb.synthetic.cosmic_web_series(given.n, (1 / times - 1).tolist(), seed=1, steps=4 * (given.steps - 1))
    ]
    began = time.process_time()
    groups = [wb.friends_of_friends(one, LENGTH) for one in snapshots]
    found = time.process_time()
    original = wb.descent(groups, snapshots, times.tolist())
    followed = time.process_time()
    print(f"{original}\n")
    print(f"each step: groups {(found - began) / given.steps:.3f} s, descent {(followed - found) / given.steps:.3f} s\n")
    heads = "bound", "promise", "MB", "links", "kept", "no counterpart", "leads elsewhere", "other rank", "added"
    print(f"| {' | '.join(heads)} | whole main branches |\n|{10 * '---|'}")
    for share in SHARES:
        for keep in ((), (wb.KeepClusters(LENGTH),)):
            print(row(snapshots, original, share, keep))


def row(snapshots: list[wb.Particles], original: wb.Descent, share: float, keep: tuple[wb.KeepClusters, ...]) -> str:
    """One series, and what has become of the links of the original."""
    with tempfile.TemporaryDirectory() as folder:
        series = wb.Series(Path(folder) / "series", wb.Absolute(share * LENGTH * snapshots[0].spacing), keep=keep)
        for snapshot in snapshots:
            series.append(snapshot)
        found = original.differences(series.descent(linking_length=LENGTH))
        cells = [f"{share:g} b", "clusters" if keep else "", f"{series.nbytes / 1e6:.2f}"]
        cells += [f"{count:,}" for count in found.counts.values()]
        return f"| {' | '.join(cells)} | {found.whole_branches:,} of {found.branches:,} |"


if __name__ == "__main__":
    main()
