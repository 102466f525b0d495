"""Figures, tables and notes as HTML: the same pieces on the page, in a saved report and in a notebook without a kernel.

No script is needed: the explanation of a figure appears when its name is pointed at, tapped or reached by the keyboard.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Mapping

from workbench.lab.description import Fact, Table

SIGNS = {"good": "✓ ", "bad": "✗ ", "": ""}   # since some readers cannot see the colours

STYLE = """
.wb-panel, .wb-report, .wb-last { --wb-text: var(--jp-ui-font-color1, #222); --wb-quiet: #5a5a5a; --wb-good: #0b6b58;
  --wb-bad: #a3470b; --wb-line: rgba(128, 128, 128, .5); --wb-lift: var(--jp-layout-color1, #fff); }
body[data-jp-theme-light="false"] .wb-panel, body[data-jp-theme-light="false"] .wb-last { --wb-quiet: #b9b9b9;
  --wb-good: #4fd0b0; --wb-bad: #ff9d5c; }
.wb-facts { position: relative; display: flex; flex-wrap: wrap; gap: 5px 24px; margin: 3px 0; color: var(--wb-text); }
.wb-group { display: flex; gap: 10px; min-width: 0; }
.wb-group-name { flex: none; display: flex; align-items: center; max-width: 112px; padding-right: 8px; font-size: 12px;
  line-height: 1.25; color: var(--wb-quiet); border-right: 2px solid var(--wb-line); }
.wb-group dl { display: flex; flex-wrap: wrap; gap: 1px 15px; margin: 0; min-width: 0; }
.wb-fact { line-height: 1.25; }
.wb-fact dt, .wb-fact dd { margin: 0; padding: 0; font-weight: normal; float: none; width: auto; }
.wb-term { all: unset; cursor: help; font-size: 12px; color: var(--wb-quiet); white-space: nowrap; }
.wb-term:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.wb-fact b { font-size: 14.5px; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wb-fact small { font-size: 12px; color: var(--wb-quiet); white-space: nowrap; }
.wb-fact.good b { color: var(--wb-good); } .wb-fact.bad b { color: var(--wb-bad); }
.wb-tip { display: none; position: absolute; z-index: 20; top: 100%; left: 0; max-width: 100%; box-sizing: border-box;
  padding: 3px 8px; font-size: 12.5px; line-height: 1.4; color: var(--wb-text); background: var(--wb-lift);
  border: 1px solid var(--wb-line); border-radius: 3px; box-shadow: 0 2px 6px rgba(0, 0, 0, .25); }
.wb-term:hover + .wb-tip, .wb-term:focus + .wb-tip { display: block; }
.wb-table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; margin: 4px 0;
  color: var(--wb-text); }
.wb-table th, .wb-table td { padding: 2px 14px 2px 0; text-align: left; vertical-align: top; }
.wb-table .number { text-align: right; white-space: nowrap; }
.wb-table td { overflow-wrap: anywhere; max-width: 60ch; }
.wb-table tfoot td { border-top: 1px solid var(--wb-line); font-weight: 600; }
.wb-table th { border-bottom: 1px solid var(--wb-line); font-weight: 600; }
.wb-table tr.chosen td { font-weight: 700; background: rgba(47, 127, 193, .18); }
.wb-note { font-size: 12.5px; line-height: 1.35; color: var(--wb-quiet); margin: 2px 0; }
.wb-error { color: var(--wb-bad); font-weight: 600; }
"""

_numbers = itertools.count()   # one for each set of figures, so that ids on a page differ


def facts(given: Iterable[Fact], prefix: str = "") -> str:
    """Figures with their names, group by group; the `prefix` of ids is a new one by default.

    >>> facts([Fact("ratio", "8.1", unit="x")]).count("<b>8.1</b> <small>x</small>")
    1
    """
    prefix = prefix or f"wb-tip-{next(_numbers)}"
    numbered = enumerate(given)
    groups = itertools.groupby(numbered, key=lambda pair: pair[1].group)
    return f'<div class="wb-facts">{"".join(_group(name, members, prefix) for name, members in groups)}</div>'


def _group(name: str, members: Iterable[tuple[int, Fact]], prefix: str) -> str:
    """The figures of a group; a unit that all of them have stands beside its name."""
    found = list(members)
    units = {fact.unit for _, fact in found}
    shared = units.pop() if name and len(found) > 2 and len(units) == 1 else ""
    entries = "".join(_fact(fact, f"{prefix}-{number}", shared) for number, fact in found)
    said = html.escape(f"{name}, {shared}" if shared else name)
    head = f'<div class="wb-group-name" aria-hidden="true">{said}</div>' if name else ""
    return f'<div class="wb-group" role="group" aria-label="{said or "figures"}">{head}<dl>{entries}</dl></div>'


def _fact(fact: Fact, tip: str, shared: str) -> str:
    name = html.escape(fact.name)
    term = f"<span>{name}</span>"
    if fact.meaning:
        term = (f'<button type="button" class="wb-term" aria-describedby="{tip}"><span>{name}</span></button>'
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
