"""A question of a lesson: judges an answer against the truth, which was computed from the data a moment ago.

A wrong answer that is known as a typical one gets the hint for that mistake. Any other gets general hints, one more with
each different wrong answer. An answer of any type is judged: students write what they like, and no cell of a lesson fails
because of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from workbench.data import Field
from workbench.errors import WorkbenchError, briefly
from workbench.guarantees import Absolute
from workbench.teaching.answers import described, letters, missing, number
from workbench.teaching.verdict import Verdict

Span = tuple[float, float]
Mistakes = Iterable[tuple[Span, str]]

# Factors by which an answer is too large, that say what was forgotten whatever the question was.
FACTORS: tuple[tuple[float, str], ...] = (
    (2, "Exactly twice of what it should be. A bound counts to both sides: ±ξ is an interval of width 2ξ."),
    (1 / 2, "Exactly half of what it should be. A bound counts to both sides: ±ξ is an interval of width 2ξ."),
    (-1, "The size is right, the sign is not."),
    *((10.0**power, "The digits are right, the decimal point is not.") for power in (-3, -2, -1, 1, 2, 3)),
)
BITS: tuple[tuple[float, str], ...] = (
    (8, "Eight times too large: a byte has eight bits. Which of them did you start from?"),
    (1 / 8, "Eight times too small: this is in bytes, and bits were asked for."),
)


def near(truth: float, share: float = 0.02) -> Span:
    """The numbers within a share of the truth.

    >>> near(-100, 0.5)
    (-150.0, -50.0)
    """
    return truth - abs(truth) * share, truth + abs(truth) * share


def about(truth: float, within: float) -> Span:
    """The numbers within a distance of the truth."""
    return truth - within, truth + within


class Question:
    """A question with its general hints, from gentle to plain; it counts wrong answers, each once.

    >>> bits = Question("How many bits are three bytes?", "How many bits has one byte?")
    >>> bits.number(3, near(24), "bits").text
    'Eight times too small: this is in bytes, and bits were asked for.'
    >>> bits.number("3 bytes", near(24), "bits", right="A byte has eight.")
    ✓ Right. A byte has eight.
    """

    def __init__(self, text: str, *hints: str) -> None:
        self.text, self.hints = text, hints
        self._wrong: dict[str, None] = {}

    def number(self, answer: Any, truth: Span, unit: str = "", mistakes: Mistakes = (), right: str = "") -> Verdict:
        """Judge a number: right if it lies in `truth`; `mistakes` are tried in their order, then factors."""
        value = self.value(answer, unit)
        if isinstance(value, Verdict):
            return value
        as_share = value / 100 if unit == "share" and abs(value) > 1 else value   # 12 for 12 percent
        if _in(value, truth) or _in(as_share, truth):
            return self.right(right)
        for span, hint in mistakes:
            if _in(value, span):
                return self.wrong(hint, answer)
        return self.wrong(_by_factor(value, truth, unit), answer)

    def value(self, answer: Any, unit: str = "") -> float | Verdict:
        """The number in an answer, or what is to be said instead."""
        if missing(answer):
            return self.waiting()
        value = number(answer, unit)
        return self.wrong(value, answer) if isinstance(value, str) else value

    def bound(self, answer: Any) -> Absolute | Verdict:
        """The absolute bound in an answer, which may be a number, or what is to be said instead."""
        value = self.value(answer.eb if isinstance(answer, Absolute) else answer)
        if isinstance(value, Verdict):
            return value
        return Absolute(value) if value > 0 else self.wrong(f"A bound is a positive number; got {value:g}.", answer)

    def choice(self, answer: Any, right: str, reasons: Mapping[str, str], praise: str = "") -> Verdict:
        """Judge a choice of letters; `reasons` has what to think about for each letter that is offered."""
        if missing(answer):
            return self.waiting()
        chosen = letters(answer, "".join(reasons))
        if isinstance(chosen, str):
            return self.wrong(chosen, answer)
        doubtful = sorted(chosen ^ set(right))
        if not doubtful:
            return self.right(praise)
        return self.wrong(f"{_count(len(reasons) - len(doubtful))} of {len(reasons)} are judged rightly. "
                          f"Think again about ({doubtful[0]}): {reasons[doubtful[0]]}", answer)

    def call(self, function: Any, *arguments: Any) -> Any:
        """What a student's function returns; or a verdict, if there is nothing to judge."""
        if missing(function):
            return self.waiting()
        if not callable(function):
            return self.wrong(f"Give the function itself, without calling it; got {described(function)}.", function)
        try:
            result = function(*arguments)
        except (Exception, SystemExit) as error:   # anything at all may be written in there
            says = f": {briefly(str(error))[1:-1]}" if str(error) else ""
            return self.wrong(f"Your function ended with {type(error).__name__}{says}")
        if result is ...:
            return self.waiting()
        if result is None:
            return self.wrong("Your function returns nothing: does its last line begin with `return`?")
        return result

    def array(self, function: Any, shape: tuple[int, ...], *arguments: Any) -> np.ndarray | Verdict:
        """The array of numbers that a student's function returns, of the shape that it must have."""
        result = self.call(function, *arguments)
        if isinstance(result, Verdict):
            return result
        try:
            numbers = np.asarray(result, np.float64)
        except Exception:   # whatever cannot be numbers
            return self.wrong(f"An array of numbers is needed; your function returns {type(result).__name__}.")
        if numbers.shape != shape:
            return self.wrong(f"The result must have the shape {shape}; yours has {numbers.shape}.")
        return numbers

    def waiting(self) -> Verdict:
        """There is no answer yet."""
        return Verdict(None, "Waiting for your answer: put it where the dots are, and run this cell again.", self._hint(0))

    def right(self, text: str = "") -> Verdict:
        """The answer is right."""
        self._wrong.clear()
        return Verdict(True, f"Right. {text}".strip())

    def wrong(self, text: str, answer: Any = None) -> Verdict:
        """The answer is wrong, for this reason; the same answer again brings no further hint."""
        try:
            self._wrong[repr(answer)[:1000] if answer is not None else text] = None
        except Exception:   # an object whose text cannot be made
            self._wrong[text] = None
        return Verdict(False, text, self._hint(len(self._wrong) - 1))

    def _hint(self, tries: int) -> str:
        return self.hints[min(tries, len(self.hints) - 1)] if self.hints else ""


def required(value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """What a lesson hands to a checker beside the answer; raises if a variable of the lesson was overwritten."""
    if not isinstance(value, kind):
        raise WorkbenchError(f"{what} must be as the lesson makes it; got {briefly(value)}: run the cells above again")
    return value


def values_of(field: Any) -> np.ndarray:
    """The values of the field of a lesson, as float64; raises unless they are finite and differ.

    >>> values_of(Field([1, 2]))
    array([1., 2.])
    """
    values = required(field, Field, "the field").values.astype(np.float64)
    if not np.isfinite(values).all() or np.ptp(values) == 0:
        raise WorkbenchError("the field of a lesson must have finite values that differ: choose another part of it")
    return values


def worst(errors: np.ndarray) -> float:
    """The largest error; infinite if any is no number.

    >>> worst(np.array([-2.0, 1.0])), worst(np.array([np.nan, 1.0]))
    (2.0, inf)
    """
    sizes = np.abs(errors)
    return float(np.where(np.isfinite(sizes), sizes, np.inf).max())


def _in(value: float, span: Span) -> bool:
    return span[0] <= value <= span[1]


def _by_factor(value: float, truth: Span, unit: str) -> str:
    """What a factor between the answer and the truth says; otherwise no more than how far off it is."""
    for factor, hint in (*(BITS if unit == "bits" else ()), *FACTORS):
        if _in(value / factor, truth):
            return hint
    middle = sum(truth) / 2
    if not value or not middle or value * middle < 0:
        return "Not yet."
    decades = math.log10(abs(value / middle))
    if abs(decades) < 0.5:
        return "Not yet, but not far."
    return f"Not yet: it is much too {'large' if decades > 0 else 'small'}."


def _count(number: int) -> str:
    return "None" if number == 0 else str(number)
