"""`workbench decompress IN OUT`: decode an archive, or a region of it, into a NumPy file."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from workbench.archive.content.content import Ends
from workbench.cli.numpy_files import add_numpy_target, require_numpy_target, what_is_written, write_arrays
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import add_archive, open_archive, print_result


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "decompress",
        help="decode an archive into a NumPy file",
        description="Decode an archive, or a region of it, and write it as a NumPy file.",
    )
    add_archive(parser, "IN")
    add_numpy_target(parser)
    text = (
        "decode only this region, lower <= x < upper, in space for particles and in grid points for a field; ends may be "
        "omitted; write --region=-1:1,... if it begins with a minus sign"
    )
    parser.add_argument("--region", type=_region, metavar="X0:X1,Y0:Y1,Z0:Z1", help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the archive, decode it, write the file, print a summary."""
    require_numpy_target(options)
    archive = open_archive(options)
    with Progress(options.quiet) as progress:
        progress(None, f"decoding {options.archive}")
        start = time.perf_counter()
        data = archive.decompress() if options.region is None else archive.read(archive.content.region(options.region))
        seconds = time.perf_counter() - start
        progress(None, f"writing {options.out}")
        written = write_arrays(archive, data, options)
    region = options.region and [list(ends) for ends in options.region]
    size = Path(options.out).stat().st_size
    own = {"region": region, "bytes": size, "seconds": round(seconds, 4)}
    print_result({**what_is_written(archive, data, options), **own, **written}, options.json)
    return 0


def _region(text: str) -> Ends:
    """The ends along each axis; some may be omitted, as in `0:10,:,5:`."""
    try:
        pairs = [[float(end) if end.strip() else None for end in part.split(":")] for part in text.split(",")]
        return tuple((low, high) for low, high in pairs)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected x0:x1,y0:y1,z0:z1; got {text!r}") from None
