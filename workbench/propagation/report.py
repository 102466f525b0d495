"""Results of propagation as tables of HTML, in the colours of the page."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

LEFT = 'style="text-align: left"'


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], texts: Sequence[int] = (0,)) -> str:
    """A table with a title; the columns `texts` are aligned left. All text is escaped.

    >>> table("a < b", ["site"], [["x"]])[:33]
    '<div><strong>a &lt; b</strong><ta'
    """
    def cell(tag: str, place: int, text: str) -> str:
        return f"<{tag} {LEFT if place in texts else ''}>{html.escape(text)}</{tag}>"

    head = "".join(cell("th", place, text) for place, text in enumerate(heads))
    body = "".join(f"<tr>{''.join(cell('td', place, text) for place, text in enumerate(row))}</tr>" for row in rows)
    inner = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><strong>{html.escape(title)}</strong>{inner}</div>"


def figure(value: float | None, digits: int = 3) -> str:
    """A number for a table; empty for None.

    >>> figure(0.00012345), figure(None)
    ('0.000123', '')
    """
    return "" if value is None else f"{value:.{digits}g}"
