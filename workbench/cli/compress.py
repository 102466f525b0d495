"""`workbench compress IN OUT`: compress particles, a field or a dataset; bounds are checked before an archive is written.

A file is opened as a dataset if a bound has a name, or if it holds several arrays and none was chosen by `--name`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

from workbench.archive import Archive, Collection, Dataset, Series, compress
from workbench.archive.recognition import is_archive, require_suffix
from workbench.archive.remote.sending import free_place
from workbench.archive.request import ORDERS
from workbench.cli.archives import describe_archive, print_archive, sizes
from workbench.cli.bounds import Rules, add_bounds, chosen_rules
from workbench.cli.codec_options import add_codec, add_profile, profiled_codec
from workbench.cli.compress_members import compress_members
from workbench.cli.compress_series import add_series, compress_series
from workbench.cli.datasets import dataset_instead, dataset_of, may_hold_dataset
from workbench.cli.keep_options import add_clusters, add_safeguards, chosen_clusters, chosen_safeguards, require_fitting
from workbench.cli.leftovers import clear_leftovers
from workbench.cli.notes import show_notes
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.scale import in_words, scale_of
from workbench.cli.source import add_file, flag, given_options, open_all_frames
from workbench.cli.target import add_target, require_free
from workbench.cli.workers import add_workers, in_chunks, wants_workers, workers_of
from workbench.clusters import KeepClusters
from workbench.data import Trajectory
from workbench.data.readers import left_out
from workbench.data.readers.address import is_address
from workbench.errors import GuaranteeBroken, SeveralArrays, WorkbenchError
from workbench.guarantees import Absolute, Bound, Relative, Safeguard
from workbench.run.chunked_field import ChunkedField

COLUMN_BOUNDS = {
    "abs": "error bound of a further column, or of those like a pattern, in its own unit (default: exact); may be repeated",
    "rel": "error bound of a further column, as a fraction of the range of its values; may be repeated",
}
SHOWN = ("holds", "shape", "dtype", "codec", "bound")   # of the description of an archive


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "compress",
        help="compress particles, a field, a dataset, a trajectory or a series of steps within error bounds",
        description="Compress particles, a field, all frames of a trajectory, or a dataset with a bound for each of its "
        "arrays, or with --series the steps of a run; every value is decoded and checked against its bound first. Weights "
        "of models: workbench compress-model.",
    )
    add_file(parser, "IN")
    add_target(parser, "archive to write: one file if it ends in .zip, a folder if in .zarr or nothing")
    add_bounds(parser)
    add_codec(parser)
    add_profile(parser)
    text = "keep the particle order (default), or free: sort along a curve, which is smaller unless ids number the rows"
    parser.add_argument("--order", choices=ORDERS, default="keep", help=text)
    velocities = parser.add_mutually_exclusive_group()
    text = "error bound of velocities, in their own unit (default: exact)"
    velocities.add_argument("--velocities-abs", type=float, metavar="EB", help=text)
    text = "error bound of velocities, as a fraction of the range of all velocities"
    velocities.add_argument("--velocities-rel", type=float, metavar="EB", help=text)
    for name, text in COLUMN_BOUNDS.items():
        parser.add_argument(f"--column-{name}", action="append", type=_rule, metavar="NAME=EB", help=text)
    text = "codec of velocities and columns that have a bound, such as neighbours (default: --codec, or prequantised)"
    parser.add_argument("--column-codec", metavar="NAME", help=text)
    text = "store the permutation of particles; without it, only the original can identify them"
    parser.add_argument("--store-permutation", action="store_true", help=text)
    text = "of a trajectory: a file that names its atoms, such as .pdb or .gro"
    parser.add_argument("--topology", metavar="FILE", help=text)
    add_clusters(parser)
    add_safeguards(parser)
    add_series(parser)
    add_workers(parser, "IN")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the file, compress it here or on workers, write the archive, print the outcome."""
    rules, velocities, codec = chosen_rules(options), _velocities(options), profiled_codec(options)
    keep: tuple[KeepClusters | Safeguard, ...] = (*chosen_clusters(options), *chosen_safeguards(options))
    if options.series:
        return compress_series(options, rules, {
            "codec": codec, "keep": keep, "order": options.order, "velocities": velocities, "columns": _columns(options),
            "column_codec": options.column_codec,
        })
    if options.every is not None:
        raise WorkbenchError("--every is for series: add --series, or leave it out")
    require_target(options)
    on_workers = wants_workers(options)
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(Progress(options.quiet))
        client = stack.enter_context(workers_of(options, progress)) if on_workers else None
        progress(None, f"reading {options.file}")
        data = stack.enter_context(_opened(options, rules, on_workers))
        if isinstance(data, Dataset):
            return compress_members(data, rules, codec, options, client, progress)
        assert rules.of_all is not None   # as there are no others
        bound, scale = rules.of_all.bound, {}   # type: Bound, dict[str, Any]
        if not on_workers:
            require_fitting(keep, data, options.file)
            bound = bound.for_data(data)
            scale = scale_of(data, bound)
            if not (options.quiet or options.json):
                progress.say(in_words(scale, bound))
        direct = on_workers or (isinstance(data, Trajectory) and not is_address(options.out))
        start = time.perf_counter()
        archive = compress(
            data, bound, codec, keep, options.order, progress, velocities=velocities,
            columns=_columns(options), column_codec=options.column_codec, store_permutation=options.store_permutation,
            client=client, scratch=options.scratch,
            **({"out": options.out, "overwrite": options.overwrite} if direct else {}),
        )
        seconds = time.perf_counter() - start
        if not direct:
            progress(None, f"writing {options.out}")
            (archive.upload if is_address(options.out) else archive.save)(options.out, options.overwrite)
    limit = archive.certificate[archive.data.layout.name].limit
    scale = scale or {"limit": None if limit is None or limit.relative else limit.value}
    outcome = {"file": options.file, "out": options.out, **_outcome(archive, seconds), **scale}
    unread = [] if on_workers else left_out(data)
    show_notes((f"left out: {sentence}" for sentence in unread), options.parser)
    print_archive(outcome | ({"left_out": unread} if options.json and not on_workers else {}), archive, options)
    return 0


@contextlib.contextmanager
def _opened(options: argparse.Namespace, rules: Rules, on_workers: bool) -> Iterator[Any]:
    """The input: a dataset if rules have names, or if the file holds several arrays of which none was chosen."""
    if rules.of_members:
        with dataset_of(options) as dataset:
            yield dataset
        return
    try:
        data = _source(options) if on_workers else _data(options)
    except GuaranteeBroken:
        raise
    except WorkbenchError as error:
        if not (isinstance(error, SeveralArrays) or (on_workers and may_hold_dataset(options.file))):
            raise
        with dataset_instead(options, error) as dataset:
            yield dataset
        return
    yield data


def _source(options: argparse.Namespace) -> Any:
    """The input, of which workers read parts."""
    return ChunkedField(options.file) if _is_field(options) else in_chunks(options)


def _is_field(options: argparse.Namespace) -> bool:
    """Whether the input is said to be a field."""
    if options.kind != "field":
        return False
    options.kind = None
    if given := given_options(options):
        raise WorkbenchError(f"{flag(given[0])} is for input in one process: leave out --workers and --scheduler")
    return True


def _data(options: argparse.Namespace) -> Any:
    data = open_all_frames(options, options.topology)
    if isinstance(data, Archive | Collection):
        raise WorkbenchError(f"{options.file} is an archive: compress the original it was made from")
    if isinstance(data, Series):
        raise WorkbenchError(f"{options.file} is a series of {len(data)} steps: compress the originals it was made from")
    return data


def _velocities(options: argparse.Namespace) -> Bound | None:
    if options.velocities_rel is not None:
        return Relative(options.velocities_rel)
    return None if options.velocities_abs is None else Absolute(options.velocities_abs)


def _columns(options: argparse.Namespace) -> dict[str, Bound]:
    """The bounds of further columns, by name or pattern."""
    given = [(name, kind(eb)) for kind, rules in ((Absolute, options.column_abs), (Relative, options.column_rel))
             for name, eb in rules or ()]
    rules = dict(given)
    if len(rules) < len(given):
        twice = next(name for name in rules if sum(name == other for other, _ in given) > 1)
        raise WorkbenchError(f"a column must have one bound; got two for {twice!r}")
    return rules


def _rule(text: str) -> tuple[str, float]:
    """The name or pattern of a column, and its bound."""
    name, _, eb = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"expected NAME=EB, as in Potential=0.001; got {text!r}")
    return name, float(eb)


def require_target(options: argparse.Namespace) -> None:
    """Refuse an output that cannot be written, before any work."""
    if is_address(options.out):
        if wants_workers(options):
            raise WorkbenchError(f"workers write to a path that all of them see; got {options.out}: send it afterwards")
        free_place(options.out, options.overwrite)
        return
    target = require_free(options.out, options.overwrite, options.file)
    if os.path.lexists(target) and not is_archive(target):
        raise WorkbenchError(f"--overwrite replaces only archives; {options.out} is none: move it, or choose another name")
    require_suffix(target)
    show_notes(clear_leftovers(target))


def _outcome(archive: Archive, seconds: float) -> dict[str, Any]:
    described = describe_archive(archive)
    return {
        **{name: described[name] for name in SHOWN},
        **sizes(archive),
        "seconds": round(seconds, 4),
        "megabytes_per_second": archive.original_nbytes / 1e6 / seconds,
        "certificate": described["certificate"],
    }
