"""What runs in the browser, read from the files beside this one.

Given a path, anywidget would watch the file, and for that keep every widget ever made, with all it shows.
"""

from __future__ import annotations

from pathlib import Path


def front_end(name: str) -> str:
    """The text of a script or style sheet.

    >>> "export default" in front_end("canvas.js")
    True
    """
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
