"""`workbench compress IN OUT`: particles or a field into an archive, with a bound that was checked before it is written."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

from workbench.archive import Archive, compress
from workbench.archive.recognition import is_archive
from workbench.archive.request import ORDERS
from workbench.cli.archives import describe_archive, print_archive, sizes
from workbench.cli.cluster_options import add_clusters, chosen_clusters, require_particles
from workbench.cli.codec_options import add_codec, chosen_codec
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import add_file, open_source
from workbench.cli.target import add_target, require_free
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, PointwiseRelative, Relative

BOUNDS: dict[str, tuple[type[Bound], str]] = {
    "abs": (Absolute, "every value stays within EB of the original, in its own unit"),
    "rel": (Relative, "every value stays within EB times the range of all values"),
    "pointwise": (PointwiseRelative, "every value stays within EB times its own size"),
}
SHOWN = ("holds", "shape", "dtype", "codec", "bound")   # of the description of an archive


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "compress",
        help="compress particles or a field within an error bound",
        description="Compress particles or a field; every value is decoded and checked against the bound first.",
    )
    add_file(parser, "IN")
    add_target(parser, "archive to write: one file when it ends in .zip, else a folder (call it something.zarr)")
    bounds = parser.add_argument_group("the bound (one of these; 0 asks for the same bits)")
    exclusive = bounds.add_mutually_exclusive_group(required=True)
    for name, (_, text) in BOUNDS.items():
        exclusive.add_argument(f"--{name}", type=float, metavar="EB", help=text)
    add_codec(parser)
    text = "whether particles keep their order, or may come back sorted along a curve, which is smaller (default keep)"
    parser.add_argument("--order", choices=ORDERS, default="keep", help=text)
    text = "error bound of velocities, in their own unit (default: exact)"
    parser.add_argument("--velocities-abs", type=float, metavar="EB", help=text)
    text = "store which particle is which; without it, that follows from the original"
    parser.add_argument("--store-permutation", action="store_true", help=text)
    add_clusters(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the file, compress it, write the archive, print what came out."""
    bound, codec, keep = _bound(options), chosen_codec(options), chosen_clusters(options)
    velocities = None if options.velocities_abs is None else Absolute(options.velocities_abs)
    _require_target(options)
    with Progress(options.quiet) as progress:
        progress(None, f"reading {options.file}")
        data = open_source(options)
        if isinstance(data, Archive):
            raise WorkbenchError(f"{options.file} is an archive: compress the original it was made from")
        require_particles(keep, data, options.file)
        start = time.perf_counter()
        archive = compress(
            data, bound, codec, keep, options.order, progress, velocities=velocities,
            store_permutation=options.store_permutation,
        )
        seconds = time.perf_counter() - start
        progress(None, f"writing {options.out}")
        archive.save(options.out, options.overwrite)
    print_archive({"file": options.file, "out": options.out, **_outcome(archive, seconds)}, archive, options.json)
    return 0


def _bound(options: argparse.Namespace) -> Bound:
    return next(kind(eb) for name, (kind, _) in BOUNDS.items() if (eb := getattr(options, name)) is not None)


def _require_target(options: argparse.Namespace) -> None:
    """Refuse now what could not be written in the end."""
    target: Path = require_free(options.out, options.overwrite)
    if os.path.lexists(target) and not is_archive(target):
        raise WorkbenchError(f"only an archive is overwritten; {options.out} is none: move it away, or choose another name")


def _outcome(archive: Archive, seconds: float) -> dict[str, Any]:
    described = describe_archive(archive)
    return {
        **{name: described[name] for name in SHOWN},
        **sizes(archive),
        "seconds": round(seconds, 4),
        "megabytes_per_second": archive.original_nbytes / 1e6 / seconds,
        "certificate": described["certificate"],
    }
