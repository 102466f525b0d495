"""`workbench completion SHELL`: the script that lets a shell complete commands, options and their values.

The script is made from the parsers of the commands, so it knows what they know; it contains words alone and starts no
Python when a key is pressed. Where no word fits, the shell completes the names of files itself, and quotes spaces.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.archive.choice import FREE
from workbench.codecs import available

SHELLS = ("bash", "zsh", "fish")
INTO = {
    "bash": "workbench completion bash > ~/.local/share/bash-completion/completions/workbench",
    "zsh": "echo 'source <(workbench completion zsh)' >> ~/.zshrc   # below compinit",
    "fish": "workbench completion fish > ~/.config/fish/completions/workbench.fish",
}


@dataclass(frozen=True)
class Words:
    """What a command takes: its purpose, its options with their help, and the values of those with a choice."""

    about: str
    options: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]]


def add(commands: Any) -> None:
    """Add this command."""
    about = "print the script that lets a shell complete commands and options"
    epilog = "\n".join(["to install it:", *(f"  {command}" for command in INTO.values())])
    parser = commands.add_parser(
        "completion", help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from workbench.cli import all_commands

    words = {name: _words(name, parser) for name, parser in all_commands().items()}
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](words))
    return 0


def _words(name: str, parser: argparse.ArgumentParser) -> Words:
    options = {flag: action.help or "" for action in parser._actions for flag in action.option_strings}
    values = {
        flag: tuple(map(str, action.choices))
        for action in parser._actions if action.choices for flag in action.option_strings or [name]
    }
    return Words(parser.description or "", options, values | ({"--codec": _codecs()} if "--codec" in options else {}))


def _codecs() -> tuple[str, ...]:
    return (*FREE, *available())


def bash(commands: Mapping[str, Words]) -> str:
    """The script for bash."""
    valued = "\n".join(
        f"        {command}:{flag}) words={shlex.quote(' '.join(values))} ;;"
        for command, words in commands.items() for flag, values in words.values.items()
    )
    options = "\n".join(
        f"            {command}) words={shlex.quote(' '.join(words.options))} ;;" for command, words in commands.items()
    )
    return f"""\
_workbench() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="${{COMP_WORDS[1]}}" words=""
    [ "$previous" != "=" ] || previous="${{COMP_WORDS[COMP_CWORD-2]}}"   # bash takes --codec=sz3 for three words
    [ "$current" != "=" ] || current=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W {shlex.quote(' '.join([*commands, '--version', '--help']))} -- "$current"))
        return
    fi
    case "$command:$previous" in
{valued}
    esac
    if [ -z "$words" ] && [ "${{current#-}}" != "$current" ]; then
        case "$command" in
{options}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _workbench workbench"""


def zsh(commands: Mapping[str, Words]) -> str:
    """The script for zsh, which completes as bash does."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{bash(commands)}"


def fish(commands: Mapping[str, Words]) -> str:
    """The script for fish, which shows the help of each word."""
    lines = [
        f"complete -c workbench -n __fish_use_subcommand -f -a {name} -d {_quoted(words.about)}"
        for name, words in commands.items()
    ]
    for name, words in commands.items():
        for flag, about in words.options.items():
            kind = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            values = f" -x -a {_quoted(' '.join(words.values[flag]))}" if flag in words.values else ""
            within = f"complete -c workbench -n '__fish_seen_subcommand_from {name}'"
            lines.append(f"{within} {kind} -d {_quoted(about)}{values}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    r"""As fish reads it: a backslash before quotes and backslashes.

    >>> print(_quoted("the file's name"))
    'the file\'s name'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
