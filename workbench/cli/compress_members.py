"""`workbench compress` for a dataset: each member within its own bound, in one archive."""

from __future__ import annotations

import argparse
import time
from typing import Any

from workbench.archive import Collection, Dataset, compress
from workbench.cli.bounds import Rules
from workbench.cli.datasets import require_for_datasets
from workbench.cli.members import describe_collection, print_collection
from workbench.cli.progress import Progress
from workbench.codecs import Codec
from workbench.data.readers.address import is_address


def compress_members(
    dataset: Dataset, rules: Rules, codec: str | Codec, options: argparse.Namespace, client: Any, progress: Progress
) -> int:
    """Compress all members, each read in parts where that can be done; write the archive, and print what each costs."""
    require_for_datasets(options)
    start, bounds, sent = time.perf_counter(), rules.for_members(), is_address(options.out)   # type: float, Any, bool
    archive: Any = compress(
        dataset, bounds, codec, progress=progress, out=None if sent else options.out, overwrite=options.overwrite,
        client=client, scratch=options.scratch,
    )
    if sent:
        archive.upload(options.out, options.overwrite)
    seconds = time.perf_counter() - start
    _print(archive, seconds, options)
    return 0


def _print(archive: Collection, seconds: float, options: argparse.Namespace) -> None:
    described = describe_collection(archive)
    outcome = {
        "file": options.file,
        "out": options.out,
        **{name: described[name] for name in ("holds", "original_bytes", "archive_bytes", "ratio")},
        "seconds": round(seconds, 4),
        "megabytes_per_second": archive.original_nbytes / 1e6 / seconds,
        "members": described["members"],
    }
    print_collection(outcome, archive, options)
