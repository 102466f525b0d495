"""Translate the library's keywords into options of the shell: `name=...` becomes `--name`.

Error messages come from the library and name Python keywords. Shell users have options instead, which differ between
commands. Every message is translated here, and only into options that the command has.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass

# Options whose names differ from the keywords that they set.
CALLED = {"unit": "cluster_unit", "linking_length": "keep_clusters", "velocities": "velocities_abs"}
VALUE = r"""\([^()]*\)|\[[^][]*\]|\.\.\.|'[^']*'|"[^"]*"|[A-Za-z0-9_.+-]*[A-Za-z0-9_]|"""
ASSIGNED = re.compile(rf"(?<![\w.(\[-])([a-z_]+)=({VALUE})")
DEMANDED = re.compile(r"^([a-z_]+)(?= must | makes no sense)")
QUOTED = re.compile(r"'([a-z_]+)'(?= (?:makes no sense|is not an option))")
PYTHON_ALONE = re.compile(
    r"open it with damaged=True, or (?=run `workbench salvage`)|import [\w.]+ first, or (?=pass codecs=)"
)
RULE_FOR_ONE = re.compile(r"""(['"])([^'"]+)\1: wb\.Absolute\(\.\.\.\)""")   # of the rules for a dataset
RULE_FOR_OTHERS = re.compile(r"""(['"])\*\1: wb\.Exact\(\)""")
TAKEN = re.compile(r"(?<=: it takes )[a-z_, ]+$")


@dataclass(frozen=True)
class Option:
    """An option of a command; one without a value is a switch."""

    flag: str
    switch: bool

    def with_value(self, value: str) -> str:
        """The option as typed in a shell, for a value as written in Python; `...` stands for any value.

        >>> Option("--shape", False).with_value("(nz, ny, nx)"), Option("--box", False).with_value("None")
        ('--shape nz,ny,nx', '--box open')
        """
        text = value.strip("()[]").replace(", ", ",").strip("'\"")
        if self.switch or text in ("", "..."):
            return self.flag
        return f"{self.flag} {'open' if (self.flag, text) == ('--box', 'None') else text}"


def options_of(parser: argparse.ArgumentParser) -> dict[str, Option]:
    """The options of a command, by the keyword of the library that each sets.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--particle-type")
    >>> options_of(parser)["particle_type"]
    Option(flag='--particle-type', switch=False)
    """
    found = {
        action.dest: Option(max(action.option_strings, key=len), action.nargs == 0)
        for action in parser._actions
        if action.option_strings
    }
    return found | {keyword: found[name] for keyword, name in CALLED.items() if name in found}


def in_options(sentence: str, options: Mapping[str, Option]) -> str:
    """The sentence with options for keywords, where there are such options.

    >>> options = {"name": Option("--name", False), "overwrite": Option("--overwrite", True)}
    >>> in_options("choose one by name=...; it has a, b", options)
    'choose one by --name; it has a, b'
    >>> in_options("a.zip exists: say overwrite=True, or give scaled=True", options)
    'a.zip exists: say --overwrite, or give scaled=True'
    """
    def flag(found: re.Match[str]) -> str:
        return options[found[1]].flag if found[1] in options else found[0]

    def assigned(found: re.Match[str]) -> str:
        return options[found[1]].with_value(found[2]) if found[1] in options else found[0]

    def taken(found: re.Match[str]) -> str:
        flags = [options[word].flag for word in found[0].split(", ") if word in options]
        return ", ".join(flags) or "no options"

    sentence = PYTHON_ALONE.sub("", sentence)
    if "rules" in options:
        sentence = RULE_FOR_OTHERS.sub("--exact '*'", RULE_FOR_ONE.sub(r"--abs '\2=EB'", sentence))
    for pattern, translate in ((ASSIGNED, assigned), (DEMANDED, flag), (QUOTED, flag), (TAKEN, taken)):
        sentence = pattern.sub(translate, sentence)
    return sentence
