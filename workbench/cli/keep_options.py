"""`--keep-clusters` and `--safeguard`: what an archive must preserve besides the error bound."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any, get_args

from workbench.archive.content.registry import content_of
from workbench.clusters import KeepClusters
from workbench.clusters.friends import Unit
from workbench.clusters.keep.promise import Solver
from workbench.errors import WorkbenchError
from workbench.guarantees import Safeguard

SAFEGUARD = "--safeguard"
LENGTHS = "--keep-clusters"
DETAILS = {"cluster_unit": "unit", "min_members": "min_members", "solver": "solver"}   # option: keyword of KeepClusters


def add_clusters(parser: argparse.ArgumentParser) -> None:
    """Add the choice of clusters to keep, and its options."""
    group = parser.add_argument_group("keeping clusters of particles")
    text = "keep the friends-of-friends groups exactly, at this linking length or at several separated by commas"
    group.add_argument(LENGTHS, type=_lengths, metavar="B[,B...]", help=text)
    text = "unit of the linking length: the mean particle spacing, or the unit of the positions (default spacing)"
    group.add_argument("--cluster-unit", choices=get_args(Unit), help=text)
    text = "keep only groups with at least N particles (default 1)"
    group.add_argument("-m", "--min-members", type=int, metavar="N", help=text)
    text = "method that computes the corrected positions (default auto)"
    group.add_argument("--solver", choices=get_args(Solver), help=text)


def chosen_clusters(options: argparse.Namespace) -> tuple[KeepClusters, ...]:
    """The clusters to keep, if any."""
    given = {name: value for option, name in DETAILS.items() if (value := getattr(options, option)) is not None}
    if options.keep_clusters is not None:
        return (KeepClusters(options.keep_clusters, **given),)
    for option in DETAILS:
        if getattr(options, option) is not None:
            raise WorkbenchError(f"--{option.replace('_', '-')} needs {LENGTHS} B, the linking length of the groups")
    return ()


def add_safeguards(parser: argparse.ArgumentParser) -> None:
    """Add the choice of safeguards."""
    text = (
        "preserve this of a field, too: `sign`, or any safeguard of the library compression-safeguards as JSON, such as "
        """'{"kind": "qoi_eb_pw", "qoi": "log10(x)", "type": "abs", "eb": 0.01}'; may be given several times"""
    )
    parser.add_argument(SAFEGUARD, dest="safeguards", action="append", default=[], metavar="KIND", help=text)


def chosen_safeguards(options: argparse.Namespace) -> tuple[Safeguard, ...]:
    """The requested safeguards."""
    return tuple(map(_safeguard, options.safeguards))


def require_fitting(keep: Sequence[KeepClusters | Safeguard], data: Any, file: str) -> None:
    """Refuse clusters of a field, which has none, and safeguards of particles."""
    content = content_of(data)
    for kept in keep:
        if kept.content != content.kind:
            option = f"{LENGTHS} is for particles" if isinstance(kept, KeepClusters) else f"{SAFEGUARD} is for fields"
            raise WorkbenchError(f"{option}; {file} holds {content.words}: leave it out")


def _safeguard(text: str) -> Safeguard:
    if not text.startswith("{"):
        return Safeguard(text)
    try:
        described = json.loads(text)
        return Safeguard(described.pop("kind"), **described)
    except (ValueError, KeyError) as error:
        if isinstance(error, WorkbenchError):
            raise
        raise WorkbenchError(f"{SAFEGUARD} must be a kind, or JSON with a kind and its options; got {text!r}") from None


def _lengths(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a length, or lengths separated by commas; got {text!r}") from None
