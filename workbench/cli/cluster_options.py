"""`--keep-clusters` and what belongs to it: which groups of particles an archive shall keep, from the shell."""

from __future__ import annotations

import argparse
from typing import get_args

from workbench.clusters import KeepClusters
from workbench.clusters.friends import Unit
from workbench.clusters.keep.promise import Solver
from workbench.errors import WorkbenchError

LENGTHS = "--keep-clusters"
DETAILS = {"cluster_unit": "unit", "min_members": "min_members", "solver": "solver"}   # options, as KeepClusters has them


def add_clusters(parser: argparse.ArgumentParser) -> None:
    """Add the choice of clusters to keep, and its options."""
    group = parser.add_argument_group("keeping clusters of particles")
    text = "keep the friends-of-friends groups at this linking length, or at several, separated by commas, exactly"
    group.add_argument(LENGTHS, type=_lengths, metavar="B[,B...]", help=text)
    text = "of the linking length: of the mean spacing of particles, or that of positions (default spacing)"
    group.add_argument("--cluster-unit", choices=get_args(Unit), help=text)
    text = "keep only groups of at least so many particles (default 1)"
    group.add_argument("-m", "--min-members", type=int, metavar="N", help=text)
    text = "how particles that have to move find their places (default auto)"
    group.add_argument("--solver", choices=get_args(Solver), help=text)


def chosen_clusters(options: argparse.Namespace) -> tuple[KeepClusters, ...]:
    """What is to be kept: clusters, or nothing."""
    given = {name: value for option, name in DETAILS.items() if (value := getattr(options, option)) is not None}
    if options.keep_clusters is not None:
        return (KeepClusters(options.keep_clusters, **given),)
    for option in DETAILS:
        if getattr(options, option) is not None:
            raise WorkbenchError(f"--{option.replace('_', '-')} needs {LENGTHS} B, to say at which linking length")
    return ()


def _lengths(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a length, or lengths separated by commas; got {text!r}") from None
