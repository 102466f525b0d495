"""Tables for notebooks: rows as HTML in the colours of the page, and as a pandas DataFrame."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.errors import WorkbenchError

LEFT, SCOPE = ' style="text-align: left"', ' scope="col"'


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: Sequence[int] = (0,), title: str = "") -> str:
    """A table, below its title if it has one. The columns `texts` are aligned left. All text is escaped.

    >>> html_table(["site", "ratio"], [["a < b", "2"]]).partition("</thead>")[2]
    '<tbody><tr><td style="text-align: left">a &lt; b</td><td>2</td></tr></tbody></table>'
    """
    def row(tag: str, cells: Sequence[str], scope: str = "") -> str:
        starts = (f"<{tag}{scope}{LEFT if place in texts else ''}>" for place in range(len(cells)))
        shown = (f"{start}{html.escape(cell)}</{tag}>" for start, cell in zip(starts, cells, strict=True))
        return f"<tr>{''.join(shown)}</tr>"

    body = "".join(row("td", cells) for cells in rows)
    table = f"<table><thead>{row('th', heads, SCOPE)}</thead><tbody>{body}</tbody></table>"
    return f"<div><strong>{html.escape(title)}</strong>{table}</div>" if title else table


def data_frame(content: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> Any:
    """Rows, or columns by name, as a pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise WorkbenchError("to_dataframe needs pandas, which is not installed: pip install 'lossbench[lab]'") from None
    return pandas.DataFrame(content)
