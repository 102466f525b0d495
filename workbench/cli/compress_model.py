"""`workbench compress-model MODEL OUT --budget 0.01`: the weights of a model, as far as its predictions allow."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from workbench.archive.collection.model import ModelArchive
from workbench.archive.compress import compress
from workbench.cli.caches import read_text
from workbench.cli.decoded_files import tensors_of
from workbench.cli.notes import show_notes
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import print_result
from workbench.cli.target import add_target, require_free
from workbench.cli.visible import visible
from workbench.errors import WorkbenchError
from workbench.propagation import language_model
from workbench.propagation.weights import KL, compress_model, write_safetensors
from workbench.propagation.weights.bounding import codec_of
from workbench.propagation.weights.groups import chosen_names
from workbench.propagation.weights.pruning import pruned_tensors
from workbench.propagation.weights.sensitivity import bound_of
from workbench.propagation.weights.sources import Tensors

TEXT = (
    "The library opens at nine. Whoever borrows a book signs a card, and returns it within four weeks. In spring the river "
    "rises, and the fields beside it turn green; in autumn the mills grind what they have grown. To find the area of a "
    "circle, multiply the square of its radius by 3.14159. def mean(values): return sum(values) / len(values). The "
    "committee met on 12 May 1987 and decided, after a long debate, to postpone the vote until all members had read the "
    "report."
)   # what a model reads, unless another text is given


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "compress-model",
        help="compress the weights of a model",
        description="Compress the weights of a model. Of a language model in a GGUF file, the budget is how far the "
        "probabilities of its next tokens may diverge on a text; bounds are then chosen by measured sensitivity. Any other "
        "file needs a bound.",
    )
    parser.add_argument("file", metavar="MODEL", help="a GGUF or safetensors file")
    add_target(parser, "the archive to write: a name that ends in .zip, in .zarr, or has no suffix (a folder)")
    limit = parser.add_mutually_exclusive_group(required=True)
    text = "the divergence (Kullback-Leibler, in nats, mean over the tokens) that the decoded model keeps; 0.01 is little"
    limit.add_argument("--budget", type=float, metavar="NATS", help=text)
    text = "instead, one bound for all tensors, in units of the root mean square of each; no quality is measured"
    limit.add_argument("--rms", type=float, metavar="SHARE", help=text)
    parser.add_argument("--text", metavar="TEXT.txt", help="what the model reads (default: a paragraph of the package)")
    parser.add_argument("--prune", type=float, metavar="SHARE", help="set all but this share of each matrix to zero before")
    text = "tensors that are kept exactly, by name or pattern (default with --budget: all vectors)"
    parser.add_argument("--exact", nargs="+", metavar="NAME", help=text)
    parser.add_argument("--codec", default="auto", help="the codec (default: the built-in one for weights)")
    parser.add_argument("--decoded", metavar="FILE", help="also write the decoded tensors as a safetensors file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the model, compress it, print the outcome."""
    require_free(options.out, options.overwrite, options.file)
    if options.decoded is not None:
        require_free(options.decoded, options.overwrite, options.file)
    with Progress(options.quiet) as progress:
        progress(None, "reading the model")
        given = Tensors.of(options.file)
        archive = _within_budget(options, given, progress) if options.rms is None else _bounded(options, given, progress)
    if options.decoded is not None:
        write_safetensors(options.decoded, tensors_of(archive))
    outcome = {
        "file": options.file, "out": options.out, "tensors": len(archive), "original_bytes": archive.original_nbytes,
        "file_bytes": given.nbytes, "archive_bytes": archive.nbytes, "ratio": archive.ratio,
        "ratio_to_file": given.nbytes / archive.nbytes,
    }
    if isinstance(archive, ModelArchive):
        said = archive.certificate.to_dict()
        outcome |= {name: said[name] for name in ("quality", "inputs", "loss", "budget", "additivity", "assessments")}
        if not options.json:
            print(visible(f"{archive.certificate}\n"))
    if archive.nbytes > given.nbytes:
        show_notes([
            f"the archive is larger than {options.file}, whose weights are quantised already: allow more, or compress the "
            "weights from before"
        ])
    print_result(outcome, options.json)
    return 0


def _within_budget(options: argparse.Namespace, given: Tensors, progress: Any) -> ModelArchive:
    with Path(options.file).open("rb") as start:
        if start.read(4) != b"GGUF":
            raise WorkbenchError(
                f"what the tensors of {options.file} compute is not in the file, so its quality cannot be measured here: "
                "give --rms 0.05, a bound, or call wb.compress_model in Python with a function that measures it"
            )
    try:
        model = language_model(options.file)
    except WorkbenchError as error:
        raise WorkbenchError(f"{error}; a model that cannot run here can have one bound, --rms 0.05") from None
    quality = KL(model, TEXT if options.text is None else read_text(Path(options.text)))
    return compress_model(
        given, quality, options.budget, options.codec, options.prune, exact=options.exact, out=options.out,
        overwrite=options.overwrite, progress=progress,
    )


def _bounded(options: argparse.Namespace, given: Tensors, progress: Any) -> Any:
    """One bound for all tensors, in units of each."""
    if not options.rms > 0:
        raise WorkbenchError(f"--rms must be positive; got {options.rms}")
    if options.text is not None:
        raise WorkbenchError("--text is what --budget is measured on: leave it out with --rms")
    codec = codec_of(options.codec)
    base = {**given.arrays, **pruned_tensors(given.arrays, options.prune, codec)}
    exact = chosen_names("--exact", options.exact or [], base)
    rules: Any = {name: bound_of(each, 0.0 if name in exact else options.rms) for name, each in base.items()}
    return compress(base, rules, codec=codec, out=options.out, overwrite=options.overwrite, progress=progress)
