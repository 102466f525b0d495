"""What a notebook shows of data: one line that opens into a table. It has the colours of the page, so it suits every theme.

Text comes from files, so all of it is escaped; long text and long lists are cut. Nothing is computed here.
"""

from __future__ import annotations

import html
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

MOST_ENTRIES = 60   # of the metadata; a header may have hundreds

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 160
_short.maxlist = _short.maxtuple = _short.maxarray = _short.maxdict = _short.maxset = 8

LEFT = 'style="text-align: left; vertical-align: top"'


def summary(line: str, rows: Mapping[str, str], metadata: Mapping[str, Any] | None = None, below: str = "") -> str:
    """A line that opens into rows of names and values, then metadata, then `below`, which is HTML already.

    >>> shown = summary("Field(3, float32)", {"range": "0 to 1 < 2"}, {"units": {"length": "m"}})
    >>> "0 to 1 &lt; 2" in shown, "units.length" in shown
    (True, True)
    """
    inner = _table({name: text for name, text in rows.items() if text})
    if metadata:
        entries = dict(_flat(metadata))
        names = list(entries)
        shown = {name: entries[name] for name in names[:MOST_ENTRIES]}
        rest = f"<p>and {len(names) - MOST_ENTRIES:,} more</p>" if len(names) > MOST_ENTRIES else ""
        inner += _details(f"metadata ({len(names):,})", _table(shown) + rest)
    return f"<div>{_details(f'<code>{html.escape(line)}</code>', inner + below)}</div>"


def size(nbytes: int) -> str:
    """A number of bytes for people.

    >>> size(12), size(3_200_000)
    ('12 bytes', '3.2 MB (3,200,000 bytes)')
    """
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name} ({nbytes:,} bytes)"
    return f"{nbytes:,} bytes"


def _flat(metadata: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Names and values; those of a mapping inside have its name in front."""
    for key, value in metadata.items():
        name = f"{before}{key}"[:80]
        if isinstance(value, Mapping) and not before:
            yield from _flat(value, f"{name}.")
        else:
            yield name, value[:160] if isinstance(value, str) else _short.repr(value)


def _details(line: str, inner: str) -> str:
    body = f'<div style="margin-left: 1.2em">{inner}</div>'
    return f'<details><summary style="cursor: pointer">{line}</summary>{body}</details>'


def _table(rows: Mapping[str, str]) -> str:
    escaped = ((html.escape(name), html.escape(text)) for name, text in rows.items())
    cells = (f"<tr><th {LEFT}>{name}</th><td {LEFT}>{text}</td></tr>" for name, text in escaped)
    return f"<table><tbody>{''.join(cells)}</tbody></table>"
