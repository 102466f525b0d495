"""`workbench caches TEXT.txt`: ways to keep the keys and values of a language model, compared on a text."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from workbench.cli.datasets import print_table
from workbench.cli.progress import Progress, add_quiet
from workbench.cli.source import print_result
from workbench.errors import WorkbenchError
from workbench.propagation import KVCache, baseline_cache, compare_caches, language_model
from workbench.propagation.caches.baselines import BASELINES
from workbench.propagation.caches.blocked import BlockedCache

STEPS = ((1.0, 0.4),)


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "caches",
        help="compare ways to keep keys and values of a language model",
        description="Code the keys and values of a language model in several ways, and measure on a text how many bits "
        "each takes, and what it does to predictions.",
    )
    parser.add_argument("file", metavar="TEXT.txt", help="a text with more tokens than --prompt and --tokens together")
    text = "the model of this GGUF file (by default SmolLM2-135M, if it is installed)"
    parser.add_argument("--model", metavar="FILE.gguf", help=text)
    text = "a cache within bounds with these steps of scores and of values (default 1,0.4); may be given several times"
    parser.add_argument("--steps", type=_steps, action="append", metavar="S,V", help=text)
    text = f"published ones beside it, separated by commas: all (default), none, or some of {', '.join(BASELINES)}"
    parser.add_argument("--published", type=_published, metavar="A[,B...]", default=tuple(BASELINES), help=text)
    parser.add_argument("--prompt", type=int, default=256, metavar="N", help="tokens of the prompt (default 256)")
    parser.add_argument("--tokens", type=int, default=512, metavar="N", help="predictions after it (default 512)")
    text = "latest tokens that stay exact (default 64)"
    parser.add_argument("--recent", type=int, default=64, metavar="N", help=text)
    parser.add_argument("--block", type=int, default=64, metavar="N", help="tokens of a block (default 64)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the text and the model, run each cache, print the table."""
    text = read_text(Path(options.file))
    sizes = {"recent": options.recent, "block": options.block}
    caches: list[BlockedCache] = [KVCache(*steps, **sizes) for steps in options.steps or STEPS]
    caches += [baseline_cache(name, **sizes) for name in options.published]
    with Progress(options.quiet) as progress:
        progress(None, "reading the model")
        model = language_model(options.model)
        found = compare_caches(model, text, caches, prompt=options.prompt, tokens=options.tokens, progress=progress)
    if options.json:
        print_result({"model": model.name, **found.to_dict()}, True)
        return 0
    print_table([dict(zip(found.heads, row, strict=True)) for row in found.rows()])
    print(f"{found.predictions:,} predictions after prompts of {found.prompt} tokens; perplexity of the exact cache "
          f"{found.perplexity:.4g}")
    return 0


def read_text(path: Path) -> str:
    """The text in a file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise WorkbenchError(f"the text must be a file that can be read; {error}") from None
    except UnicodeDecodeError:
        raise WorkbenchError(f"{path} must be a text in UTF-8; it is not: convert it") from None


def _steps(text: str) -> tuple[float, float]:
    try:
        score_step, value_step = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected two numbers such as 1,0.4; got {text!r}") from None
    return score_step, value_step


def _published(text: str) -> tuple[str, ...]:
    if text in ("all", "none"):
        return tuple(BASELINES) if text == "all" else ()
    names = tuple(name.strip() for name in text.split(","))
    if unknown := [name for name in names if name not in BASELINES]:
        raise argparse.ArgumentTypeError(f"expected all, none, or some of {', '.join(BASELINES)}; got {unknown[0]!r}")
    return names
