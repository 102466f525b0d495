"""Figures with their names, the same in all panels: meanings are those of the glossary, dots stand for what is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workbench.lab.description import Fact, Severity
from workbench.lab.glossary import meaning

COMING = "…"   # in place of a figure that is still being computed


def figure(
    name: str, value: float | str | None, unit: str = "", form: str = ".3g", verdict: Severity = "", about: str = "",
    more: str = "",
) -> Fact:
    """A figure; a number in the given form, None while it is computed. `about` is its word in the glossary if not its name.

    `more` is added to the explanation.

    >>> figure("ratio", 8.1234, "x").value, figure("ratio", None, "x").value, figure("ratio", "none").value
    ('8.12', '…', 'none')
    """
    text = COMING if value is None else value if isinstance(value, str) else format(value, form)
    return Fact(name, text, verdict, meaning(about or name) + more, unit)


def group(title: str, figures: Iterable[Fact]) -> tuple[Fact, ...]:
    """Figures that stand together under a title.

    >>> [each.group for each in group("size", [figure("ratio", 8.0, "x")])]
    ['size']
    """
    return tuple(replace(each, group=title) for each in figures)
