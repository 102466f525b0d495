"""`--workers` and `--scheduler`: work on many processes, for data that do not fit into memory."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench.arguments import whole_number
from workbench.cli.progress import Progress
from workbench.cli.source import OPEN, given_options
from workbench.data.chunked import ChunkedParticles
from workbench.data.readers import open_chunked
from workbench.errors import WorkbenchError
from workbench.run.local import connected

WORKERS = "workers"


def add_workers(parser: argparse.ArgumentParser, metavar: str) -> None:
    """Add the choice of workers."""
    group = parser.add_argument_group("data that do not fit into memory, on a Dask cluster")
    text = f"read {metavar}, a file or a pattern in quotes, in chunks, on N new processes; with --scheduler, wait for N"
    group.add_argument("--workers", type=int, metavar="N", help=text)
    group.add_argument("--scheduler", metavar="ADDRESS", help="use the workers of the Dask scheduler at this address")
    text = "folder for temporary files, about as large as the data, that all workers see (default: one of this machine)"
    group.add_argument("--scratch", metavar="FOLDER", help=text)


def wants_workers(options: argparse.Namespace) -> bool:
    """Whether the work is for workers; refuses what makes no sense without them."""
    if options.workers is not None:
        whole_number(WORKERS, options.workers, least=1)
    if options.workers is None and options.scheduler is None:
        if options.scratch is not None:
            raise WorkbenchError("--scratch needs --workers N or --scheduler ADDRESS")
        return False
    return True


@contextmanager
def workers_of(options: argparse.Namespace, progress: Progress) -> Iterator[Any]:
    """A client of the chosen workers; new ones end with the command."""
    progress(None, "starting workers" if options.scheduler is None else f"connecting to {options.scheduler}")
    with connected(options.workers, options.scheduler) as client:
        if not options.json and client.dashboard_link:
            progress.say(f"dashboard: {client.dashboard_link}")
        yield client


def in_chunks(options: argparse.Namespace) -> ChunkedParticles:
    """The particles of the input, a file or a pattern, which nobody has read yet."""
    given = {option: getattr(options, option) for option in given_options(options)}
    if given.get("box") == OPEN:
        given["box"] = None
    return open_chunked(options.file, **given)
