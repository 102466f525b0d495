"""How a command fails: an exit status, one sentence on standard error and, with `--json`, one object on standard output."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

from workbench.cli.ending import Ended
from workbench.cli.visible import visible
from workbench.cli.words import in_options, options_of
from workbench.errors import GuaranteeBroken, WorkbenchError

DONE, BROKEN, WRONG, UNEXPECTED, INTERRUPTED, UNHEARD = 0, 1, 2, 70, 130, 141
SIGNALLED = 128   # plus the number of the signal, as in shells
DEBUG = "LOSSBENCH_DEBUG"


class WrongUsage(WorkbenchError):
    """Invalid arguments of a command."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """A parser that raises errors, which `failed` reports."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and exiting."""
        raise WrongUsage(message, self.short_usage())

    def short_usage(self) -> str:
        """The usage without the options that may be left out, which fill a screen for some commands, and how to see them.

        >>> parser = Parser(prog="workbench info")
        >>> _, _ = parser.add_argument("file"), parser.add_argument("--json")
        >>> _ = parser.add_argument("-o", required=True)
        >>> print(parser.short_usage(), end="")
        usage: workbench info [options] -o O file
        help: workbench info --help
        """
        formatter = self._get_formatter()
        formatter.add_usage(None, [each for each in self._actions if each.required or not each.option_strings], [])
        usage = formatter.format_help().rstrip().replace(self.prog, f"{self.prog} [options]", 1)
        return f"{usage}\nhelp: {self.prog} --help\n"


def failed(error: BaseException, options: argparse.Namespace, described: Mapping[str, Any] | None = None) -> int:
    """Report why a command failed and return its exit status. `described` are further entries of the JSON object."""
    error = interruption_behind(error) or error
    status, reason = status_of(error), reason_for(error)
    if "parser" in options:
        reason = in_options(reason, options_of(options.parser))
    if isinstance(error, WrongUsage):
        print(error.usage, end="", file=sys.stderr)
    if getattr(options, "debug", False) or os.environ.get(DEBUG):
        traceback.print_exception(error, file=sys.stderr)
    print(f"workbench: {visible(reason)}", file=sys.stderr)
    if getattr(options, "json", False):
        print(json.dumps({**(described or {}), "error": reason, "status": status}, allow_nan=False), flush=True)
    return status


def interruption_behind(error: BaseException) -> KeyboardInterrupt | None:
    """The Ctrl-C that caused this error: Python wraps whatever happens in `__set_name__` in a RuntimeError."""
    cause = error.__cause__
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__
    return cause


def status_of(error: BaseException) -> int:
    """The exit status that says what kind of failure this is.

    >>> status_of(GuaranteeBroken()), status_of(WorkbenchError()), status_of(KeyError()), status_of(KeyboardInterrupt())
    (1, 2, 70, 130)
    """
    if isinstance(error, Ended):
        return SIGNALLED + error.number
    kinds = ((GuaranteeBroken, BROKEN), ((WorkbenchError, MemoryError, OSError), WRONG), (KeyboardInterrupt, INTERRUPTED))
    return next((status for kind, status in kinds if isinstance(error, kind)), UNEXPECTED)


def reason_for(error: BaseException) -> str:
    """The failure in one sentence.

    >>> reason_for(KeyError("x"))
    "unexpected error, KeyError: 'x': please report it, with the traceback that --debug shows"
    """
    if isinstance(error, WorkbenchError | Ended):
        return str(error)
    if isinstance(error, MemoryError):
        return f"not enough memory ({str(error) or 'an allocation failed'})"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError):
        return f"the operating system reports an error: {error}"
    return f"unexpected error, {type(error).__name__}: {error}: please report it, with the traceback that --debug shows"
