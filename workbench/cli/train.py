"""`workbench train FILES --rel 1e-3 --out MODEL`: a model that makes the archives of `workbench compress` smaller."""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.cli.notes import show_notes
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import add_file, open_source, print_result
from workbench.cli.target import add_overwrite, new_file, require_free
from workbench.codecs import Model, train
from workbench.codecs.interpolation_training import STEPS
from workbench.data import Field
from workbench.errors import WorkbenchError


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "train",
        help="train a model that makes fields smaller",
        description="Train a model on fields, for others like them: earlier steps of a simulation for the later ones. The "
        "codec interpolation uses it where it saves room, and the archive carries it.",
    )
    add_file(parser, several=True, text="fields with as many axes, such as earlier steps; archives are decoded")
    parser.add_argument("-o", "--out", required=True, metavar="MODEL", help="the model to write")
    add_overwrite(parser)
    bounds = parser.add_argument_group("the error bounds (one kind, one or more bounds)").add_mutually_exclusive_group(
        required=True
    )
    bounds.add_argument("--abs", type=float, nargs="+", metavar="EB", help="bounds in the unit of the values")
    bounds.add_argument("--rel", type=float, nargs="+", metavar="EB", help="bounds as shares of the range of each field")
    text = f"steps of a round (default {STEPS:,}); training stops earlier when they help no more"
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help=text)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers (default 0)")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the files, train, write the model, print the outcome."""
    for file in options.files:
        require_free(options.out, options.overwrite, file)
    start = time.perf_counter()
    with Progress(options.quiet) as progress, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        fields = []
        for number, file in enumerate(options.files):
            progress(number / len(options.files), f"reading {file}")
            fields.append(_field(options, file))
        model = train(
            fields, options.rel or options.abs, relative=options.rel is not None, steps=options.steps, seed=options.seed,
            progress=progress,
        )
        with new_file(options.out, options.overwrite) as out:
            out.write(f"{model.text}\n".encode())
    show_notes(str(each.message) for each in warned)
    print_result(_outcome(options, model, time.perf_counter() - start), options.json)
    return 0


def _field(options: argparse.Namespace, file: str) -> Field:
    """A field, opened with the options that were given."""
    own = copy.copy(options)
    own.file = file
    found = open_source(own)
    data = found.decompress() if isinstance(found, Archive) else found
    if not isinstance(data, Field):
        raise WorkbenchError(f"a model is trained on fields; {file} holds particles")
    if data.values.dtype.kind in "iu":
        raise WorkbenchError(f"a model is trained on fields of floats; {file} holds {np.dtype(data.values.dtype)}")
    return data


def _outcome(options: argparse.Namespace, model: Model, seconds: float) -> dict[str, Any]:
    return {
        "files": options.files, "out": options.out, "axes": model.dimensions, "frozen": list(model.frozen),
        "weights": model.weights, "learned": model.learned, "nbytes": len(model.text), "seconds": round(seconds, 2),
    }
