"""Figures, tables and notes as HTML: the same pieces on the page, in a saved report and in a notebook without a kernel.

No script is needed: the explanation of a figure appears when its name is pointed at, tapped or reached by the keyboard. All
names are one stop of the Tab key; on the page, arrow keys go from each to the next (`front/buttons.js`).
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from workbench.lab.description import Fact, Table

SIGNS = {"good": "✓ ", "bad": "✗ ", "": ""}   # since some readers cannot see the colours

STYLE = (Path(__file__).parent / "front/markup.css").read_text(encoding="utf-8")   # of reports, too

_numbers = itertools.count()   # one for each set of figures, so that ids on a page differ


def facts(given: Iterable[Fact], prefix: str = "") -> str:
    """Figures with their names, group by group; the `prefix` of ids is a new one by default.

    >>> facts([Fact("ratio", "8.1", unit="x")]).count("<b>8.1</b> <small>x</small>")
    1
    """
    prefix = prefix or f"wb-tip-{next(_numbers)}"
    numbered = list(enumerate(given))
    first = next((number for number, fact in numbered if fact.meaning), 0)   # the stop of the Tab key
    groups = itertools.groupby(numbered, key=lambda pair: pair[1].group)
    return f'<div class="wb-facts">{"".join(_group(name, members, prefix, first) for name, members in groups)}</div>'


def answer(given: Sequence[str | Fact], prefix: str = "") -> str:
    """A sentence of words and figures; the meanings of figures are tooltips. Without figures there is none.

    >>> answer(["costs", Fact("ratio", "8.1", "good", unit="x")])
    '<p class="wb-answer">costs <span class="wb-fact good"><b>✓ 8.1</b> <small>x</small></span></p>'
    """
    prefix = prefix or f"wb-tip-{next(_numbers)}"
    parts = enumerate(given)
    said = " ".join(html.escape(part) if isinstance(part, str) else _figure(part, f"{prefix}-{at}") for at, part in parts)
    return f'<p class="wb-answer">{said}</p>' if given else ""


def _figure(fact: Fact, tip: str) -> str:
    """A figure within a sentence."""
    kind = " ".join(filter(None, ("wb-fact", fact.verdict)))
    unit = f" <small>{html.escape(fact.unit)}</small>" if fact.unit else ""
    value = f"<b>{SIGNS[fact.verdict]}{html.escape(fact.value)}</b>{unit}"
    if not fact.meaning:
        return f'<span class="{kind}">{value}</span>'
    return (f'<span class="{kind}" tabindex="-1" aria-describedby="{tip}">{value}</span>'
            f'<span class="wb-tip" role="tooltip" id="{tip}">{html.escape(fact.meaning)}</span>')


def _group(name: str, members: Iterable[tuple[int, Fact]], prefix: str, first: int) -> str:
    """The figures of a group; a unit that all of them have stands beside its name."""
    found = list(members)
    units = {fact.unit for _, fact in found}
    shared = units.pop() if name and len(found) > 2 and len(units) == 1 else ""
    entries = "".join(_fact(fact, f"{prefix}-{number}", shared, number == first) for number, fact in found)
    said = html.escape(f"{name}, {shared}" if shared else name)
    head = f'<div class="wb-group-name" aria-hidden="true">{said}</div>' if name else ""
    return f'<div class="wb-group" role="group" aria-label="{said or "figures"}">{head}<dl>{entries}</dl></div>'


def _fact(fact: Fact, tip: str, shared: str, reached: bool) -> str:
    name = html.escape(fact.name)
    term = f"<span>{name}</span>"
    if fact.meaning:
        stop = "" if reached else ' tabindex="-1"'
        term = (f'<button type="button" class="wb-term"{stop} aria-describedby="{tip}"><span>{name}</span></button>'
                f'<span class="wb-tip" role="tooltip" id="{tip}">{html.escape(fact.meaning)}</span>')
    unit = f" <small>{html.escape(fact.unit)}</small>" if fact.unit != shared else ""
    kind = " ".join(filter(None, ("wb-fact", fact.verdict)))
    value = f"<b>{SIGNS[fact.verdict]}{html.escape(fact.value)}</b>{unit}"
    return f'<div class="{kind}"><dt>{term}</dt><dd>{value}</dd></div>'


def table(given: Table) -> str:
    """A table; columns of numbers are aligned on the right.

    >>> table(Table(("codec", "ratio", "remarks"), (("sz3", "8.1", "exact"),))).count('<td class="number">')
    1
    """
    classes = [' class="number"' if numeric else "" for numeric in numeric_columns(given)]
    head = "".join(
        f'<th scope="col"{kind}>{html.escape(name)}</th>' for name, kind in zip(given.columns, classes, strict=True)
    )
    rows = [
        f"<tr{' class=chosen' if number == given.chosen else ''}>"
        + "".join(f"<td{kind}>{html.escape(cell)}</td>" for cell, kind in zip(row, classes, strict=True)) + "</tr>"
        for number, row in enumerate(given.rows)
    ]
    cells = "".join(f"<td{kind}>{html.escape(cell)}</td>" for cell, kind in zip(given.foot, classes, strict=False))
    foot = f"<tfoot><tr>{cells}</tr></tfoot>" if given.foot else ""
    return f'<table class="wb-table"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>{foot}</table>'


def numeric_columns(given: Table) -> list[bool]:
    """For each column, whether all its texts are numbers. In a table of two columns, values stand beside their names.

    >>> numeric_columns(Table(("codec", "bits", "ratio"), (("sz3", "1,024", "8.1"), ("zfp", "12", ""))))
    [False, True, True]
    """
    if len(given.columns) <= 2:
        return [False] * len(given.columns)
    rows = (*given.rows, *filter(None, [given.foot]))
    columns = zip(*rows, strict=True) if rows else [()] * len(given.columns)
    return [any(cells) and all(map(_is_number, filter(None, cells))) for cells in columns]


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "").replace("∞", "inf").rstrip("% "))
    except ValueError:
        return False
    return True


def tables(given: Mapping[str, Table]) -> str:
    """Tables, each below its name; those without rows are left out."""
    return "".join(
        f'<h3>{html.escape(name)} ({content.extent})</h3><div class="wb-wide">{table(content)}</div>'
        for name, content in given.items() if content.rows
    )


def note(text: str) -> str:
    """A sentence in small letters."""
    return f'<div class="wb-note">{html.escape(text)}</div>' if text else ""
