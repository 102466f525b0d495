"""`workbench convert IN OUT`: an archive as another archive, or its decoded values as a file of another format.

OUT decides: a file of NumPy, NetCDF, HDF5 or Zarr is what `decompress` writes; an archive is encoded anew, and keeps its
promise. A folder that ends in .zarr is one of plain Zarr, unless a codec or a profile is asked for.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from workbench.archive import Archive, Collection, convert
from workbench.cli import decompress
from workbench.cli.archives import describe_archive, print_archive, sizes
from workbench.cli.codec_options import add_codec, add_profile, profiled_codec
from workbench.cli.compress import SHOWN, require_target
from workbench.cli.decoded_files import SUFFIXES
from workbench.cli.members import chosen_member, describe_collection, print_collection
from workbench.cli.progress import Progress
from workbench.cli.source import open_archive
from workbench.data.readers.address import is_address
from workbench.errors import WorkbenchError

ARCHIVES = (".zip", ".zarr", "")


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "convert",
        help="write an archive as another archive, or as a file of NetCDF, HDF5, Zarr or NumPy",
        description="Write an archive anew by another codec, keeping its promise and its history; or, where OUT ends in "
        ".nc, .hdf5, .zarr, .npy or .npz, its decoded values, as decompress does.",
    )
    decompress.add_arguments(parser)
    add_codec(parser)
    add_profile(parser)
    text = "let a lossy codec add this share of the bound, and promise the sum (default: 0, the same values bit for bit)"
    parser.add_argument("--extra", type=float, default=0.0, metavar="X", help=text)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Decode into a file, or encode anew."""
    anew = options.codec != "auto" or options.profile != "own" or options.model is not None or options.extra != 0
    suffix = Path(options.out).suffix
    if suffix in SUFFIXES and not (anew and suffix == ".zarr"):
        if anew:
            raise WorkbenchError(f"--codec, --profile, --model and --extra are for archives; got OUT {options.out}")
        return decompress.run(options)
    if suffix not in ARCHIVES and not is_address(options.out):
        raise WorkbenchError(
            f"OUT must end in {', '.join(SUFFIXES)} (decoded values), or in .zip or without a suffix (an archive); "
            f"got {options.out}"
        )
    if options.region is not None or options.compression is not None:
        raise WorkbenchError("--region and --compression are for decoded values: let OUT end in .nc, .zarr, .hdf5 or .npy")
    codec = profiled_codec(options)
    require_target(argparse.Namespace(file=options.archive, out=options.out, overwrite=options.overwrite))
    archive = chosen_member(open_archive(options), options, options.archive)
    start = time.perf_counter()
    with Progress(options.quiet) as progress:
        made = convert(archive, codec, extra=options.extra, progress=progress)
        (made.upload if is_address(options.out) else made.save)(options.out, options.overwrite)
    _print(archive, made, round(time.perf_counter() - start, 4), options)
    return 0


def _print(old: Archive | Collection, made: Any, seconds: float, options: argparse.Namespace) -> None:
    before = {"file": options.archive, "out": options.out, "bytes_before": old.nbytes, "seconds": seconds}
    if isinstance(made, Collection):
        described = describe_collection(made)
        shown = {name: described[name] for name in ("holds", "original_bytes", "archive_bytes", "ratio", "members")}
        print_collection(before | shown, made, options)
        return
    described = describe_archive(made)
    shown = {name: described[name] for name in SHOWN} | sizes(made) | {"certificate": described["certificate"]}
    print_archive(before | shown, made, options)
