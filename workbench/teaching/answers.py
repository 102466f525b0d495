"""Reading what students write as an answer: numbers with or without a unit, and letters. Nothing raises here."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from workbench.errors import briefly

# What a unit of an answer is worth in the unit that an exercise asks for.
UNITS: dict[str, dict[str, float]] = {
    "bits": {"bit": 1, "bits": 1, "byte": 8, "bytes": 8},
    "share": {"%": 0.01, "percent": 0.01, "per cent": 0.01},
}
NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*(.*?)\s*", re.IGNORECASE)
MOST_READ = 100   # letters of an answer
PER = re.compile(r"\s*(?:/|per|a|each)\s*[^\W\d]\w*$")   # "bits per value", "bits/particle", but not "3/4"


def missing(answer: Any) -> bool:
    """Whether nothing has been answered yet: the dots of the exercise, None, or an empty text."""
    return answer is None or answer is ... or (isinstance(answer, str) and answer.strip() in ("", "..."))


def number(answer: Any, unit: str = "") -> float | str:
    """The number in an answer, in the unit that was asked for; or a sentence that says why there is none.

    >>> number("1.5 bytes", "bits"), number("12,5 %", "share"), number(np.float32(3))
    (12.0, 0.125, 3.0)
    >>> number([1, 2]), number("3/4")
    ('The answer is one number; got [1, 2].', "Give the number alone, without '/4'.")
    """
    if isinstance(answer, str):
        return _written(answer, unit)
    if isinstance(answer, (bool, np.bool_)):
        return f"The answer is one number; got {answer}."
    try:
        value = float(answer.item()) if getattr(answer, "size", 0) == 1 else float(answer)
    except Exception:   # whatever a strange object raises when it is asked to be a number
        return f"The answer is one number; got {described(answer)}."
    return value if math.isfinite(value) else f"The answer is a finite number; got {value}."


def _written(answer: str, unit: str) -> float | str:
    found = NUMBER.fullmatch(answer[:MOST_READ].replace(",", ".").replace("−", "-"))
    if found is None or len(answer) > MOST_READ:
        return f"The answer is one number; got {briefly(answer)}."
    value, named = float(found[1]), found[2].lower()
    known = {unit.lower(): 1.0, "": 1.0, **UNITS.get(unit, {})}
    factor = known.get(named) or known.get(PER.sub("", named))
    if factor is None:
        alone = f"Give the number alone, without {found[2]!r}."
        wanted = "as a share, such as 0.25 or '25 %'" if unit == "share" else f"in {unit}"
        return f"The answer is asked for {wanted}; got {briefly(answer)}." if unit else alone
    return value * factor if math.isfinite(value) else f"The answer is a finite number; got {value}."


def letters(answer: Any, offered: str) -> frozenset[str] | str:
    """The letters of an answer; or a sentence that says why they cannot be read.

    >>> sorted(letters("A, b and d", "abcd")), sorted(letters(["a", "c"], "abcd"))
    (['a', 'b', 'd'], ['a', 'c'])
    >>> letters(3, "abc")
    "Answer with letters out of a, b, c, such as 'ab'; got 3."
    """
    listed = f"Answer with letters out of {', '.join(offered)}, such as {offered[:2]!r}; got {described(answer)}."
    if isinstance(answer, (list, tuple, set, frozenset)) and all(isinstance(part, str) for part in answer):
        answer = " ".join(answer)
    if not isinstance(answer, str):
        return listed
    chosen = frozenset(re.sub(r"\band\b|[\W\d_]", "", answer.lower()))
    return chosen if chosen and chosen <= set(offered) else listed


def described(answer: Any) -> str:
    """An answer on one line, whatever it is."""
    try:
        return briefly(answer)
    except Exception:   # an object whose text cannot be made
        return f"an object of type {type(answer).__name__}"
