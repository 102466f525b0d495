"""Text from files, made safe to show at a terminal.

Names, attributes and messages in a file may be hostile. A terminal obeys escape sequences, line breaks can imitate our
own output, and bidirectional controls reorder the text around them. So every character that is not printable is shown as
its escape. JSON needs none of this: it escapes all but ASCII.
"""

from __future__ import annotations

import unicodedata

HIDDEN = frozenset(["Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"])   # controls, formats, unassigned, surrogates, line ends


def visible(text: str) -> str:
    r"""The text on one line, with an escape for each character that a terminal would obey or hide.

    >>> print(visible("a\x1b[2Jb\nc\u202ed"))
    a\x1b[2Jb\nc\u202ed
    """
    return "".join(map(_shown, text))


def visible_lines(text: str) -> str:
    r"""The same for text that has several lines.

    >>> print(visible_lines("promised\n\x07x"))
    promised
    \x07x
    """
    return "\n".join(map(visible, text.split("\n")))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()
