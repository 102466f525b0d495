"""`--keep-clusters` and its options: the groups of particles that an archive must keep."""

from __future__ import annotations

import argparse
from typing import get_args

from workbench.clusters import KeepClusters
from workbench.clusters.friends import Unit
from workbench.clusters.keep.promise import Solver
from workbench.errors import WorkbenchError

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


def _lengths(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a length, or lengths separated by commas; got {text!r}") from None
