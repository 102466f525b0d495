"""The shell command `workbench`: everything the library does, for scripts and for people who do not write Python.

Results go to standard output (`--json` for machines), progress and errors to standard error. The exit status is 0 when
done, 1 when a guarantee or check failed, 2 for wrong usage or input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from workbench import __version__
from workbench.cli import demo, doctor, fof, info, lab
from workbench.errors import GuaranteeBroken, WorkbenchError

DONE, BROKEN, WRONG = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is returned."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except GuaranteeBroken as error:
        print(f"workbench: {error}", file=sys.stderr)
        return BROKEN
    except WorkbenchError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return WRONG


def _parser() -> argparse.ArgumentParser:
    about = "Shrink particle and field data without losing the science."
    parser = argparse.ArgumentParser(prog="workbench", description=about)
    parser.add_argument("--version", action="version", version=f"lossbench {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (demo, lab, info, fof, doctor):
        command.add(commands)
    return parser
