"""`workbench tune FILE --psnr 60`: the bound and the codec with which a target is met, and the archive, if wanted."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from workbench.archive import Archive, Collection, Dataset
from workbench.archive.request import ORDERS
from workbench.bounds import PSNR, SSIM, All, Found, KeepMassFunction, KeepSpectrum, Ratio, Target, find_bound, find_bounds
from workbench.bounds.tuning.find import KINDS, MOST_RUNS
from workbench.cli.codec_options import add_codec, chosen_codec
from workbench.cli.compress import require_target
from workbench.cli.datasets import dataset_instead
from workbench.cli.keep_options import add_clusters, chosen_clusters
from workbench.cli.notes import show_notes
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import add_file, open_source, print_result
from workbench.cli.target import add_overwrite
from workbench.cli.visible import visible, visible_lines
from workbench.clusters import KeepClusters
from workbench.codecs import Codec
from workbench.errors import SeveralArrays, WorkbenchError

NOT_MET = 1


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "tune",
        help="find the error bound that meets a target",
        description="Find the error bound, and the codec, with which the decoded data meet a target. Every bound that "
        "is tried compresses all data; the answer is one of these. The exit status is 1 if no bound meets the target.",
    )
    add_file(parser)
    group = parser.add_argument_group("the target (one or more, each as often as wanted, which must all be met)")


    def target(option: str, kind: Callable[[str], Any], metavar: str, text: str) -> None:
        group.add_argument(option, action="append", default=[], type=kind, metavar=metavar, help=text)

    target("--ratio", float, "R", "at least R times smaller, with the smallest error; of several arrays, all together")
    target("--psnr", float, "DB", "a peak signal-to-noise ratio of at least DB decibels")
    target("--ssim", float, "S", "a structural similarity of at least S")
    target("--spectrum", _share, "SHARE", "power in every shell within this share of the original, such as 1%% or 0.01")
    text = "up to this wave number 2 pi / wavelength (default: half the Nyquist wave number), one for each --spectrum"
    target("--kmax", float, "K", text)
    text = "number of halos in every bin of size within this share of the original, or within its error (poisson)"
    target("--mass-function", _share_or_poisson, "SHARE", text)
    add_clusters(parser)
    group = parser.add_argument_group("compression")
    add_codec(parser)
    group.add_argument("--bound", choices=tuple(KINDS), default="absolute", help="kind of bound (default absolute)")
    group.add_argument("--order", choices=ORDERS, default="keep", help="keep the particle order (default), or free")
    text = f"compress at most N times (default {MOST_RUNS})"
    group.add_argument("--most-runs", type=int, default=MOST_RUNS, metavar="N", help=text)
    group.add_argument("-o", "--out", metavar="ARCHIVE", help="write the archive that meets the target")
    add_overwrite(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the file, search, write the archive, print the outcome."""
    target, codec = _target(options), chosen_codec(options)
    if options.out is not None:
        require_target(options)
    with Progress(options.quiet) as progress:
        progress(None, f"reading {options.file}")
        try:
            data = open_source(options)
        except SeveralArrays as error:
            with dataset_instead(options, error) as dataset:
                return _tune_dataset(dataset, target, codec, options, progress)
        if isinstance(data, Archive | Collection):
            raise WorkbenchError(f"{options.file} is an archive: tune the original it was made from")
        found = find_bound(
            data, target, codec, kind=options.bound, order=options.order, most_runs=options.most_runs, progress=progress
        )
        if found.met and options.out is not None:
            progress(None, f"writing {options.out}")
            found.archive.save(options.out, options.overwrite)
    _print(found, options)
    return 0 if found.met else NOT_MET


def _tune_dataset(
    dataset: Dataset, target: All, codec: str | Codec, options: argparse.Namespace, progress: Progress
) -> int:
    """Find a bound for each variable, so that each meets the targets, and all together have the ratio."""
    if options.order != "keep" or options.bound != "absolute":
        raise WorkbenchError("--order and --bound are for one array: leave them out, or choose one by --name")
    found = find_bounds(dataset, target, codec, most_runs=options.most_runs, progress=progress)
    if found.met and options.out is not None:
        progress(None, f"writing {options.out}")
        found.archive.save(options.out, options.overwrite)
    if options.json:
        print_result({"file": options.file, "out": options.out if found.met else None, **found.to_dict()}, True)
    else:
        print(visible_lines(f"{found!r}\n{found.code()}"))
    return 0 if found.met else NOT_MET


def _target(options: argparse.Namespace) -> All:
    """All targets that were given."""
    if options.kmax and len(options.kmax) != len(options.spectrum):
        raise WorkbenchError(
            "--kmax needs --spectrum SHARE, the allowed change of the power: give one for each, in the same order; got "
            f"{len(options.kmax)} --kmax and {len(options.spectrum)} --spectrum"
        )
    kinds: dict[str, Callable[[float], Target]] = {"ratio": Ratio, "psnr": PSNR, "ssim": SSIM}
    given: list[Target | KeepClusters] = [
        kind(value) for name, kind in kinds.items() for value in getattr(options, name)
    ]
    ends = options.kmax or [None] * len(options.spectrum)
    given.extend(KeepSpectrum(share, k_max) for share, k_max in zip(options.spectrum, ends, strict=True))
    given.extend(map(KeepMassFunction, options.mass_function))
    given.extend(chosen_clusters(options))
    if not given:
        names = "--ratio, --psnr, --ssim, --spectrum, --mass-function or --keep-clusters"
        raise WorkbenchError(f"tune needs a target: give {names}")
    return All(*given)


def _print(found: Found, options: argparse.Namespace) -> None:
    """The answer, one line for each compression, and the code."""
    show_notes(found.notes, options.parser)
    if options.json:
        print_result({"file": options.file, "out": options.out if found.met else None, **found.to_dict()}, True)
        return
    print(visible(found.sentence))
    if found.table:
        print(visible_lines(found.table))
    for run in found.runs:
        ratio = "" if "ratio" in found.target.names else f"ratio {run['ratio']:.4g}"
        figures = filter(None, (f"{run['nbytes']:,} bytes", ratio, found.target.reached(run.figures)))
        print(visible(f"  {run}: {', '.join(figures)}"))
    if found.met and options.out is not None:
        print(visible(f"written to {options.out}"))


def _share_or_poisson(text: str) -> Any:
    """A share, or the word "poisson"."""
    return text if text == "poisson" else _share(text)


def _share(text: str) -> float:
    """A share as a number or in percent."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a share such as 1% or 0.01; got {text!r}")
    return value
