"""`workbench compress --series IN OUT`: the snapshots of a pattern, one after the other, as a series in a folder."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Mapping
from typing import Any

from workbench.archive import Series
from workbench.archive.compress import single
from workbench.cli.bounds import Rules
from workbench.cli.progress import Progress
from workbench.cli.series import describe_series, print_series
from workbench.cli.source import OPEN, given_options
from workbench.cli.workers import wants_workers, workers_of
from workbench.data.readers import open_series
from workbench.data.readers.address import is_address
from workbench.data.readers.series import SnapshotSeries
from workbench.errors import SeveralArrays, WorkbenchError


def add_series(parser: argparse.ArgumentParser) -> None:
    """Add the choice of a series."""
    text = (
        "IN is a pattern or a folder of snapshots, and OUT a series: a folder with an archive for each, predicted from "
        "those before it; one that is there is gone on with"
    )
    parser.add_argument("--series", action="store_true", help=text)
    text = "with --series, a step that needs no other after every N (default 16 to 32, fewer where prediction fails)"
    parser.add_argument("--every", type=int, metavar="N", help=text)


def compress_series(options: argparse.Namespace, rules: Rules, requested: Mapping[str, Any]) -> int:
    """Append the snapshots to a series, and print it. Those whose times are in it already are left out."""
    if is_address(options.out) or options.overwrite or options.store_permutation:
        raise WorkbenchError(
            "a series is a folder of this machine that grows: leave out --overwrite and --store-permutation; ids say which "
            "particle is which"
        )
    snapshots = open_series(options.file, **_opening(options))
    bound = rules.for_members() if rules.of_members or rules.of_all is None else rules.of_all.bound
    series, start = Series(options.out, bound, every=options.every, **requested), time.perf_counter()
    known = set(series.times)
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(Progress(options.quiet))
        client = stack.enter_context(workers_of(options, progress)) if wants_workers(options) else None
        for number, name in enumerate(snapshots.names):
            progress(number / len(snapshots), f"compressing {name}")
            data = _snapshot(snapshots, number, bool(rules.of_members))
            if _time_of(data) in known:
                continue
            series.append(data, client=client, scratch=options.scratch)
    outcome = {"file": options.file, "out": options.out, **describe_series(series)}
    print_series({**outcome, "seconds": round(time.perf_counter() - start, 4)}, series, options)
    return 0


def _snapshot(snapshots: SnapshotSeries, number: int, members: bool) -> Any:
    """A snapshot; the path of a dataset."""
    place = snapshots.places[number]
    if members:
        return place
    try:
        data = snapshots[number] if snapshots.options else single(place)
    except SeveralArrays:
        return place
    return place if data is None else data


def _time_of(data: Any) -> float | None:
    """The time that a snapshot states."""
    when = getattr(data, "metadata", {}).get("time")
    return when if isinstance(when, int | float) else None


def _opening(options: argparse.Namespace) -> dict[str, Any]:
    given = {option: getattr(options, option) for option in given_options(options)}
    if given.get("box") == OPEN:
        given["box"] = None
    return given
