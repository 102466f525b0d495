"""`--abs`, `--rel`, `--pointwise` and `--exact`: the error bound of all values, or rules for members by their names."""

from __future__ import annotations

import argparse
import contextlib
import functools
from dataclasses import dataclass

from workbench.data.unit_grammar import number_and_unit
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Exact, PointwiseRelative, Relative

ALL = "*"
EXACT = "exact"
BOUNDS: dict[str, tuple[type[Bound], str]] = {
    "abs": (Absolute, "every value stays within EB of the original, in the unit that `workbench info` shows, or in "
            'one of its own, as in "10 kpc/h", if the file states its unit'),
    "rel": (Relative, "every value stays within EB times the range of all values"),
    "pointwise": (PointwiseRelative, "every value stays within EB times its own size"),
}


@dataclass(frozen=True)
class Rule:
    """A bound as it was given: for the members of this name, group or pattern, or for all numbers that need one."""

    kind: str
    name: str | None
    amount: float | str

    @property
    def bound(self) -> Bound:
        """The bound itself."""
        return Exact() if self.kind == EXACT else BOUNDS[self.kind][0](self.amount)   # type: ignore[arg-type]

    def __str__(self) -> str:
        if self.kind == EXACT:
            return f"--exact {self.name}"
        amount = self.amount if isinstance(self.amount, str) else f"{self.amount:g}"
        return f"--{self.kind} {'' if self.name is None else f'{self.name}='}{amount}"


@dataclass(frozen=True)
class Rules:
    """All bounds of a call: that without a name, if there is one, and those for members."""

    of_all: Rule | None
    of_members: tuple[Rule, ...]

    def for_members(self) -> dict[str, Bound]:
        """The rules that `wb.compress` takes for a dataset; that for all others is the last.

        >>> Rules(Rule("rel", None, 1e-3), (Rule("abs", "T", "0.01 K"), Rule("exact", "lat", 0.0))).for_members()
        {'T': Absolute('0.01 K'), 'lat': Exact(), '*': Relative(eb=0.001)}
        """
        given = sorted(self.of_members, key=lambda rule: rule.name == ALL)
        named = {rule.name: rule.bound for rule in given if rule.name is not None}
        return named if self.of_all is None else {**named, ALL: self.of_all.bound}


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """Add the choice of bounds."""
    text = (
        "one for all values; or NAME=EB for members of a dataset, where NAME is a name, a group or a pattern in quotes. "
        "Each may be given several times; names count before patterns. EB without a name is for all other numbers but "
        "integers and coordinates, which stay as they are. 0 means lossless"
    )
    group = parser.add_argument_group("the error bound", text)
    for kind, (_, meaning) in BOUNDS.items():
        rule = functools.partial(_rule, kind)
        group.add_argument(f"--{kind}", dest="rules", action="append", type=rule, metavar="[NAME=]EB", help=meaning)
    text = "members of a dataset that stay as they are, bit for bit"
    group.add_argument(f"--{EXACT}", dest="rules", action="append", type=_exact, metavar="NAME", help=text)


def chosen_rules(options: argparse.Namespace) -> Rules:
    """The bounds that were given; at least one, and no two for the same."""
    rules: list[Rule] = options.rules or []
    if not rules:
        kinds = " ".join(f"--{kind}" for kind in (*BOUNDS, EXACT))
        options.parser.error(
            f"one of the arguments {kinds} is required; `workbench info` says a bound to begin with"
        )
    known: dict[str, Rule] = {}
    for rule in rules:
        name = ALL if rule.name is None else rule.name
        other = known.setdefault(name, rule)
        if other is rule:
            continue
        if rule.name is None and other.name is None and rule.kind != other.kind:
            options.parser.error(f"argument --{rule.kind}: not allowed with argument --{other.kind}")
        raise WorkbenchError(f"{name!r} must have one bound; got {other} and {rule}: leave one out")
    plain = next((rule for rule in rules if rule.name is None), None)
    return Rules(plain, tuple(rule for rule in rules if rule.name is not None))


def _rule(kind: str, text: str) -> Rule:
    name, equals, amount = text.rpartition("=")
    if equals and not name:
        raise argparse.ArgumentTypeError(f"expected a name before the =, as in T=0.01; got {text!r}")
    try:
        return Rule(kind, name if equals else None, _amount(kind, amount))
    except ValueError:
        number = 'a number, or one with a unit such as "10 pc"' if kind == "abs" else "a number such as 0.001"
        wanted = f"{number}, after the name" if equals else f"{number}; for a member of a dataset, NAME=EB"
        raise argparse.ArgumentTypeError(f"expected {wanted}; got {text!r}") from None


def _amount(kind: str, text: str) -> float | str:
    """A number, or a quantity as it stands: a number and a unit."""
    if kind != "abs":
        return float(text)
    with contextlib.suppress(ValueError):
        return float(text)
    number_and_unit(text)
    return text


def _exact(text: str) -> Rule:
    if not text or "=" in text:
        raise argparse.ArgumentTypeError(f"expected the name of a member, without a number; got {text!r}")
    return Rule(EXACT, text, 0.0)
