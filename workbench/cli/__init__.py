"""The shell command `workbench`: everything the library does, for scripts and for people who do not write Python.

Results go to standard output (`--json` for machines), progress and errors to standard error. The exit status is 0 when
done, 1 when a guarantee or check failed or something is damaged, 2 for wrong usage or input, 70 for an error in Lossbench
itself, and 128 plus the number of the signal that ended it: 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence

from workbench import __version__
from workbench.cli.ending import ended_by_signals
from workbench.cli.failure import UNHEARD, WRONG, Parser, failed

COMMANDS = (
    "demo", "lab", "info", "fof", "compress", "decompress", "convert", "verify", "audit", "stats", "combine", "salvage",
    "tune", "train", "inject", "caches", "compress-model", "page", "clean", "doctor", "completion",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(given)
    except BrokenPipeError:   # the reader of the output, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())   # so that the final flush succeeds
        return UNHEARD


def _run(given: list[str]) -> int:
    if not given:
        _parser(COMMANDS).print_help(sys.stderr)
        return WRONG
    options = argparse.Namespace(json="--json" in given, debug="--debug" in given)   # until they are parsed
    try:
        with ended_by_signals():
            options = _options(given)
            status = int(options.run(options))
            sys.stdout.flush()
            return status
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        return failed(error, options)


def _options(arguments: list[str]) -> argparse.Namespace:
    first = arguments[0]
    if not first.startswith("-") and first not in COMMANDS:
        meant = _meant([first], COMMANDS) or "."
        _parser([]).error(f"there is no command {first!r}{meant} There are {', '.join(COMMANDS)}")
    parser = _parser([first] if first in COMMANDS else [] if first == "--version" else COMMANDS)
    options, rest = parser.parse_known_args(arguments)
    if len(rest) == 1 and not rest[0].startswith("-") and getattr(options, "file", "") is None:
        options.file = rest.pop()   # `verify A --json B`: Python 3.11 looks for optional files before options only
    if rest:
        files = not any(one.startswith("-") for one in rest)
        hint = "; a pattern of files has to be quoted, as in 'snap_*.hdf5'" if files else ""
        flags = [flag for action in options.parser._actions for flag in action.option_strings]
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}{_meant(rest, flags) or hint}")
    return options


def _meant(given: Sequence[str], known: Sequence[str]) -> str:
    """The known names that are like those given, as a question.

    >>> _meant(["--abss", "0.1"], ["--abs", "--rel"])
    ': did you mean --abs?'
    """
    near = [found[0] for word in given if (found := difflib.get_close_matches(word.partition("=")[0], known, 1))]
    return f": did you mean {', '.join(near)}?" if near else ""


def all_commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands, by name."""
    actions = _parser(COMMANDS)._actions
    return next(dict(each.choices) for each in actions if isinstance(each, argparse._SubParsersAction))


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """The command line of these commands; each imports what it needs, so the others are not imported for one of them."""
    about = "Shrink particle and field data without losing the science."
    parser = Parser(prog="workbench", description=about)
    parser.add_argument("--version", action="version", version=f"lossbench {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in names:
        importlib.import_module(f"workbench.cli.{name.replace('-', '_')}").add(commands)
    for command in commands.choices.values():
        about = "show the traceback of an error (as LOSSBENCH_DEBUG=1 does)"
        command.add_argument("--debug", action="store_true", help=about)
        command.set_defaults(parser=command)
    return parser
