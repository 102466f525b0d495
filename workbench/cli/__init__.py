"""The shell command `workbench`: everything the library does, for scripts and for people who do not write Python.

Results go to standard output (`--json` for machines), progress and errors to standard error. The exit status is 0 when
done, 1 when a guarantee or check failed, 2 for wrong usage or input, and 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from workbench import __version__
from workbench.cli import compress, decompress, demo, doctor, fof, info, lab, verify
from workbench.errors import GuaranteeBroken, WorkbenchError

DONE, BROKEN, WRONG, INTERRUPTED, UNHEARD = 0, 1, 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is returned."""
    options = _options(arguments)
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except GuaranteeBroken as error:
        return _failed(BROKEN, str(error))
    except WorkbenchError as error:
        return _failed(WRONG, str(error))
    except MemoryError as error:
        return _failed(WRONG, f"there is not enough memory ({str(error) or 'no more could be had'})")
    except KeyboardInterrupt:
        return _failed(INTERRUPTED, "interrupted")
    except BrokenPipeError:   # whoever read the output, `head` for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())   # for what is still to be flushed at the end
        return UNHEARD


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if len(rest) == 1 and not rest[0].startswith("-") and getattr(options, "file", "") is None:
        options.file = rest.pop()   # `verify A --json B`: Python 3.11 looks for optional files before options only
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def _failed(status: int, reason: str) -> int:
    print(f"workbench: {reason}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    about = "Shrink particle and field data without losing the science."
    parser = argparse.ArgumentParser(prog="workbench", description=about)
    parser.add_argument("--version", action="version", version=f"lossbench {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (demo, lab, info, fof, compress, decompress, verify, doctor):
        command.add(commands)
    return parser
