"""What a student is told about an answer: in a notebook as a small box, elsewhere as text."""

from __future__ import annotations

import html
from dataclasses import dataclass

SIGNS = {True: "✓", False: "✗", None: "✎"}
COLOURS = {True: "#2a9d58", False: "#d1603d", None: "#7b8794"}   # visible on light and dark pages


@dataclass(frozen=True, repr=False)
class Verdict:
    """Whether an answer is right (None while there is none), in words, and a hint that readers unfold.

    >>> Verdict(False, "Too large.", "How wide is an interval of ±1?")
    ✗ Too large.
    Hint: How wide is an interval of ±1?
    """

    right: bool | None
    text: str
    hint: str = ""

    def __repr__(self) -> str:
        hint = f"\nHint: {self.hint}" if self.hint else ""
        return f"{SIGNS[self.right]} {self.text}{hint}"

    def _repr_html_(self) -> str:
        """The same for notebooks; the hint is folded, so that nobody reads it before thinking."""
        colour = COLOURS[self.right]
        fold = f"<details><summary>a hint</summary>{html.escape(self.hint)}</details>" if self.hint else ""
        box = f"border-left: 5px solid {colour}; padding: 2px 12px; margin: 4px 0; max-width: 46em"
        sign = f'<b style="color: {colour}">{SIGNS[self.right]}</b>'
        return f'<div style="{box}" role="status">{sign} {html.escape(self.text)}{fold}</div>'
