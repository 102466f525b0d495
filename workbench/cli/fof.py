"""`workbench fof FILE`: the friends-of-friends groups of a snapshot."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from workbench import backend
from workbench.cli.leftovers import clear_leftovers
from workbench.cli.notes import show_notes
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import KINDS, add_file, add_trust, open_data, print_result
from workbench.cli.target import add_overwrite, new_file, require_free
from workbench.cli.workers import add_workers, in_chunks, wants_workers, workers_of
from workbench.clusters import Groups
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.subdomains.groups import DistributedGroups, friends_of_friends


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "fof",
        help="find friends-of-friends groups",
        description="Find the friends-of-friends groups of a snapshot, exactly.",
    )
    add_file(parser, text=f"{KINDS}; or an archive")
    add_trust(parser)
    parser.add_argument("-b", "--linking-length", type=float, default=0.2, help="linking length (default 0.2)")
    parser.add_argument("--unit", choices=("spacing", "length"), default="spacing", help="unit of the linking length")
    parser.add_argument("-m", "--min-members", type=int, default=20, help="smallest group to count (default 20)")
    parser.add_argument("-o", "--out", metavar="NPZ", help="write labels, group sizes and the linking length to this file")
    add_overwrite(parser)
    add_workers(parser, "FILE")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the file, find groups, print a summary."""
    _require_target(options)
    with Progress(options.quiet) as progress:
        found = _found_by_workers(options, progress) if wants_workers(options) else _found_here(options, progress)
    print_result({"file": options.file, **found}, options.json)
    return 0


def _found_here(options: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """The figures of the groups, found in this process."""
    progress(None, f"reading {options.file}")
    particles = open_data(options)
    if not isinstance(particles, Particles):
        raise WorkbenchError(f"friends of friends needs particles; {options.file} holds a field: {particles}")
    progress(None, "finding groups")
    start = time.perf_counter()
    groups = friends_of_friends(particles, options.linking_length, options.unit)
    elapsed = time.perf_counter() - start
    if options.out is not None:
        _save(groups, options)
    return {**summary(particles, groups, options.min_members), "seconds": round(elapsed, 4)}


def _found_by_workers(options: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """The same figures of groups that workers find in chunks of the file."""
    source = in_chunks(options)
    with workers_of(options, progress) as client:
        progress(None, "finding groups")
        start = time.perf_counter()
        with friends_of_friends(
            source, options.linking_length, options.unit, client, scratch=options.scratch, progress=progress
        ) as groups:
            found = summary_of_chunks(groups, options.min_members)
            elapsed = time.perf_counter() - start
            if options.out is not None:
                _save(groups.gathered(), options)
    return {**found, "subdomains": groups.parts, "ghosts": groups.ghosts, "seconds": round(elapsed, 4)}


def summary(particles: Particles, groups: Groups, min_members: int) -> dict[str, Any]:
    """The figures of these groups that a paper would quote."""
    sizes = backend.to_host(groups.sizes)
    large = np.sort(sizes[sizes >= min_members])[::-1]
    return {
        "particles": len(particles),
        "linking_length": groups.linking_length,
        "linking_length_in_spacings": groups.linking_length / particles.spacing if particles.spacing > 0 else None,
        "groups": len(groups),
        f"groups_of_at_least_{min_members}": len(large),
        "particles_in_them": int(large.sum()),
        "largest": large[:10].tolist(),
    }


def summary_of_chunks(groups: DistributedGroups, min_members: int) -> dict[str, Any]:
    """The same figures of groups on a cluster."""
    counted = groups.summary(min_members)
    return {
        "particles": len(groups.source),
        "linking_length": groups.linking_length,
        "linking_length_in_spacings": groups.linking_length / groups.spacing if groups.spacing > 0 else None,
        "groups": len(groups),
        f"groups_of_at_least_{min_members}": counted.groups,
        "particles_in_them": counted.particles,
        "largest": counted.largest.members.tolist(),
    }


def _require_target(options: argparse.Namespace) -> None:
    """Refuse an output that cannot be written, before any work."""
    if options.out is None:
        if options.overwrite:
            raise WorkbenchError("--overwrite needs --out NPZ, the file to replace")
        return
    target = require_free(options.out, options.overwrite, options.file)
    if Path(options.out).suffix != ".npz":
        raise WorkbenchError(f"--out must end in .npz; got {options.out}")
    show_notes(clear_leftovers(target))


def _save(groups: Groups, options: argparse.Namespace) -> None:
    """Write the groups as a NumPy file."""
    labels, ids, sizes = (backend.to_host(array) for array in (groups.labels, groups.ids, groups.sizes))
    with new_file(options.out, options.overwrite, options.file) as file:
        np.savez(file, labels=labels, ids=ids, sizes=sizes, linking_length=groups.linking_length)
