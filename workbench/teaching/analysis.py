"""Lesson 5: errors travel through an analysis, and files made by others are audited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.archive.compress import compress
from workbench.auditing.audit import audit
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, PointwiseRelative
from workbench.propagation import Pipeline
from workbench.teaching.answers import missing
from workbench.teaching.delivery import Delivery
from workbench.teaching.question import Question, near, required, values_of, worst
from workbench.teaching.verdict import Verdict

MEAN = Question(
    "How large is the error of a mean of N values, typically?",
    "Errors of different values have different signs, and mostly cancel. How does a sum of N independent errors grow "
    "with N?",
    "The rms error of one value is ξ divided by the root of 3; that of a mean of N of them is smaller by the root of N.",
)
SQUARE = Question(
    "By how much may x² be wrong, if x is wrong by ξ?",
    "A small error is multiplied by the derivative.",
    "The derivative of x² is 2x.",
)
LOGARITHM = Question(
    "Which bound keeps the logarithm of the density within a tolerance?",
    "log10(ρ + e) - log10(ρ) depends on e / ρ alone. Which kind of bound limits e / ρ?",
    "wb.PointwiseRelative(ε) keeps every value within ε of itself. How large may ε be, if log10(1 + ε) may be the "
    "tolerance?",
    "Values may also be too small: log10(1 - ε) is a little further from 0 than log10(1 + ε).",
)
BUDGET = Question(
    "Which absolute bound of the density leaves each P(k) within one percent?",
    "Compress within a bound, run the pipeline on both, and compare: np.abs(pipeline(decoded) / pipeline(field) - "
    "1).max().",
    "Start with a bound that is surely good enough, and double it until it is not.",
)
TRUSTED = Question(
    "Which files may replace the original?",
    "A figure of all values together, such as the rms error, hardly notices one wrong value, and a picture does not, "
    "either.",
    "wb.audit(field, path, wb.Absolute(bound)) compares every value; print the result.",
)


def mean_error(answer: Any, bound: float, count: int) -> Verdict:
    """The typical (rms) error of a mean of independent errors, which fill ±bound evenly.

    >>> mean_error(0.1, bound=0.1, count=10_000).text
    'That is what the bound guarantees, and only if all errors had the same sign. What is typical?'
    """
    truth = bound / math.sqrt(3 * count)
    mistakes = (
        (near(bound), "That is what the bound guarantees, and only if all errors had the same sign. What is typical?"),
        (near(bound / math.sqrt(count)), "Nearly: the rms error of one value is not ξ (lesson 2)."),
        (near(bound / math.sqrt(3)), "That is the rms error of one value. Those of N values mostly cancel in the mean."),
        *((near(one / count), "Errors do not cancel so well: their sum grows with the root of N, so the mean falls with "
                              "the root of N.") for one in (bound / math.sqrt(3), bound)),
        (near(bound * math.sqrt(count / 3)), "That is the error of the sum. The mean is the sum divided by N."),
    )
    return MEAN.number(answer, near(truth, 0.05), "", mistakes,
        "So means of many values survive bounds that single values would not.")


def square(answer: Any, value: float, bound: float) -> Verdict:
    """The largest error of the square of a value; to first order, or exactly.

    >>> square(4, value=20, bound=0.1)
    ✓ Right. The derivative 2x multiplies the error; ξ² is added to it, which is small.
    """
    first = 2 * abs(value) * bound
    mistakes = (
        (near(bound**2), "That is the square of the error, not the error of the square: expand (x + ξ)²."),
        (near(bound), "That is the error of x itself."),
        (near(abs(value) * bound), "The derivative of x² is 2x."),
        (near(bound / abs(value)), "That is the relative error of x. How large is the error of x²?"),
        (near(2 * bound / abs(value)), "That is the relative error of x², and a good rule. Multiplied by x², how "
                                       "large is it?"),
        (near(2 * bound), "The derivative of x² is 2x, and not 2."),
    )
    return SQUARE.number(answer, (first * 0.99, first + 1.5 * bound**2 + first * 0.005), "", mistakes,
                         "The derivative 2x multiplies the error; ξ² is added to it, which is small.")


def logarithm(answer: Any, field: Field, tolerance: float) -> Verdict:
    """A bound within which log10 of a field stays within a tolerance, with few bits: the field is compressed with it.

    >>> density = Field(np.geomspace(0.01, 100.0, 4096))
    >>> logarithm(PointwiseRelative(0.0225), density, tolerance=0.01).right
    True
    """
    values = values_of(field)
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        return LOGARITHM.wrong("That is a number; give a bound, such as wb.Absolute(0.01) or "
                               "wb.PointwiseRelative(0.01).", answer)
    if not (verdict := _is_bound(LOGARITHM, answer)).right:
        return verdict
    try:
        archive = compress(field, answer)
    except WorkbenchError as refused:
        return LOGARITHM.wrong(str(refused), answer)
    decoded = archive.decompress().values.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = worst(np.log10(decoded) - np.log10(values))
    best = PointwiseRelative(1 - 10**-tolerance)
    if largest > tolerance:
        seen = f"log10 is off by up to {largest:.3g}"
        if math.isinf(largest):
            seen = "some values reach 0 or less, which have no logarithm"
        proportional = isinstance(answer, PointwiseRelative)
        kind = "" if proportional else " Small values suffer most: which kind of bound is finer for them?"
        return LOGARITHM.wrong(f"With {answer!r}, {seen}; allowed is {tolerance:g}.{kind}", answer)
    bits, least = archive.bits_per_value, compress(field, best).bits_per_value
    if isinstance(answer, PointwiseRelative) and largest < 0.85 * tolerance:
        return LOGARITHM.wrong(f"Good enough, but finer than needed: log10 is off by {largest:.3g} at most, and "
                               f"{tolerance:g} is allowed.", answer)
    if not isinstance(answer, PointwiseRelative) and bits > least + 0.1:
        return LOGARITHM.wrong(f"It keeps the tolerance, with {bits:.2f} bits per value. Another kind of bound does "
                               f"so with {least:.2f}.", answer)
    return LOGARITHM.right(f"log10 is off by {largest:.4f} at most, with {bits:.2f} bits per value.")


def _is_bound(question: Question, answer: Any) -> Verdict:
    if answer is None or answer is ...:
        return question.waiting()
    if not isinstance(answer, Bound):
        return question.wrong(f"Give a bound, such as wb.Absolute(0.01); got {type(answer).__name__}.", answer)
    return question.right()


def budget(answer: Any, pipeline: Pipeline, field: Field, tolerance: float = 0.01) -> Verdict:
    """The largest absolute bound of the input with the result within a tolerance: the answer itself is tried."""
    required(pipeline, Pipeline, "the pipeline")
    values_of(field)
    bound = BUDGET.bound(answer)
    if isinstance(bound, Verdict):
        return bound
    try:
        change, larger = _change(pipeline, field, bound.eb), _change(pipeline, field, 2 * bound.eb)
    except WorkbenchError as refused:
        return BUDGET.wrong(str(refused), answer)
    seen = f"Within ξ = {bound.eb:g}, the result changes by up to {change:.2%}"
    if change > tolerance:
        return BUDGET.wrong(f"{seen}; allowed is {tolerance:.0%}.", answer)
    if larger <= tolerance:
        return BUDGET.wrong(f"{seen}, which is good enough; but twice the bound is, too.", answer)
    return BUDGET.right(f"{seen}; with twice the bound, by {larger:.2%}.")


def _change(pipeline: Pipeline, field: Field, eb: float) -> float:
    with np.errstate(all="ignore"):   # a bound larger than everything leaves nothing
        before, after = (np.asarray(pipeline(each)) for each in (field, compress(field, Absolute(eb)).decompress()))
        return worst(after / before - 1)


def trusted(answer: Any, field: Field, files: Sequence[Delivery], bound: float) -> Verdict:
    """Which of the delivered files may replace the original; `wb.audit` is the judge."""
    values_of(field)
    if missing(answer):   # before files are compared
        return TRUSTED.waiting()
    offered = "".join(file.letter for file in required(files, (list, tuple), "the files"))
    good = {file.letter for file in files if audit(field, file.path, Absolute(bound), quick=True).passed}
    reasons = dict.fromkeys(offered, "have all its values been compared with the original, each at its own place?")
    return TRUSTED.choice(answer, "".join(good), reasons,
        "Only these keep the promise for every value, so only they may stand before `rm`.")
