"""`--safeguard`: properties of a field that an archive must preserve besides the error bound."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from workbench.cli.cluster_options import LENGTHS
from workbench.clusters import KeepClusters
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Safeguard

SAFEGUARD = "--safeguard"


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


def require_fitting(keep: Sequence[KeepClusters | Safeguard], data: Particles | Field, file: str) -> None:
    """Refuse clusters of a field, which has none, and safeguards of particles."""
    for kept in keep:
        if isinstance(kept, KeepClusters) and not isinstance(data, Particles):
            raise WorkbenchError(f"{LENGTHS} is for particles; {file} holds a field: leave it out")
        if isinstance(kept, Safeguard) and not isinstance(data, Field):
            raise WorkbenchError(f"{SAFEGUARD} is for fields; {file} holds particles: leave it out")


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
