"""The scripts and style sheets for the browser, read from the files beside this one.

Given a path instead of text, anywidget would watch the file and therefore keep every widget and its content alive.
"""

from __future__ import annotations

from pathlib import Path


def front_end(name: str) -> str:
    """The text of a script or style sheet.

    >>> "export default" in front_end("canvas.js")
    True
    """
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
