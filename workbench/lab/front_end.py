"""The scripts and style sheets for the browser, read from the files beside this one.

Given a path instead of text, anywidget would watch the file and therefore keep every widget and its content alive. Every
script is completed by `listening.js`, so that a widget that loads slowly hears Python all the same.
"""

from __future__ import annotations

from pathlib import Path


def front_end(*names: str) -> str:
    """The text of a script or style sheet; several files become one, and only the last script has exports.

    >>> front_end("chart_saving.js", "chart.js").count("export default")
    1
    """
    text = "\n".join(_text(name) for name in names)
    return text.replace("export default", "const widget =") + _text("listening.js") if "export default" in text else text


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
