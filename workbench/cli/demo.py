"""`workbench demo`: the whole workbench on a small simulated universe, without a browser or a download."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

from workbench.bounds import KeepSpectrum, find_bound
from workbench.cli.demo_comparison import HEADER, SHARE, Comparison, compare_ways
from workbench.cli.demo_page import page
from workbench.cli.demo_propagation import dose_table, doses
from workbench.cli.leftovers import clear_leftovers
from workbench.cli.notes import show_notes
from workbench.cli.target import add_overwrite, new_file, require_free
from workbench.cli.visible import visible
from workbench.clusters import Catalogue, Groups, catalogue, friends_of_friends
from workbench.data import Particles, synthetic

LINKING_LENGTH = 0.2
MIN_MEMBERS = 20


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "demo",
        help="show what the workbench does, on a simulated universe",
        description=(
            "Simulate a small universe, find its halos, compress it with and without them kept, see what error bounds do "
            "to their mass function, find the bound that keeps the power spectrum, write a page."
        ),
    )
    parser.add_argument("-n", type=int, default=64, help="particles per axis (default 64)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default 0)")
    parser.add_argument("-o", "--out", default="demo.html", help="HTML page to write (default demo.html)")
    add_overwrite(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Simulate, find groups, compress, print three tables, write the page."""
    show_notes(clear_leftovers(require_free(options.out, options.overwrite)))
    _say(f"simulating {options.n}^3 particles ...")
    start = time.perf_counter()
    particles = synthetic.cosmic_web(n=options.n, seed=options.seed)
    simulated = time.perf_counter() - start
    groups = friends_of_friends(particles, LINKING_LENGTH)   # the first call also loads the kernels
    searched = _median_seconds(particles)
    halos = catalogue(particles, groups, MIN_MEMBERS)
    print(_table(particles, groups, halos, simulated, searched))
    _say("compressing, with and without the clusters kept ...")
    comparison = compare_ways(particles, groups, MIN_MEMBERS)
    print(_comparison_table(comparison))
    print(dose_table(doses(particles, LINKING_LENGTH, MIN_MEMBERS)))
    _say("searching the bound that keeps the power spectrum within 1% ...")
    print(f"\n{found_line(particles)}")
    with new_file(options.out, options.overwrite) as file:
        file.write(page(particles, groups, halos, searched, comparison).encode())
    _say(f"wrote {visible(options.out)}: open it in a browser")
    return 0


def _median_seconds(particles: Particles, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        friends_of_friends(particles, LINKING_LENGTH)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def found_line(particles: Particles) -> str:
    """The bound that keeps the power spectrum, in one sentence."""
    return find_bound(Particles(particles.positions, particles.box), KeepSpectrum(0.01), order="free").sentence


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _table(particles: Particles, groups: Groups, halos: Catalogue, simulated: float, searched: float) -> str:
    speed = len(particles) / searched / 1e6
    lines = [
        f"{len(particles):,} particles in a box of {particles.lengths[0]:g} Mpc/h, simulated in {simulated:.1f} s",
        f"friends of friends at b = {LINKING_LENGTH}: {searched * 1e3:.0f} ms, {speed:.1f} million particles/s",
        f"{len(halos):,} halos of at least {MIN_MEMBERS} particles hold {halos.members.sum() / len(particles):.1%} of all",
        "",
        f"{'halo':>4} {'particles':>10} {'radius':>8}   centre [Mpc/h]",
    ]
    largest = zip(halos.members[:10], halos.radii, halos.centres, strict=False)
    for number, (members, radius, (x, y, z)) in enumerate(largest, start=1):
        lines.append(f"{number:>4} {members:>10,} {radius:>8.3f}   {x:7.2f} {y:7.2f} {z:7.2f}")
    return "\n".join(lines)


def _comparison_table(comparison: Comparison) -> str:
    title = f"compressed within {comparison.bound:.3g} Mpc/h, {SHARE:g} of the linking length (96 bits/particle before):"
    rows = [HEADER, *(way.cells() for way in comparison.ways)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([f"{name:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))])
        for name, *cells in rows
    ]
    return "\n".join(["", title, *lines])
