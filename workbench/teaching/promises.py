"""Lesson 1: what an error bound promises, and what it costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.archive.compress import compress
from workbench.arguments import positive
from workbench.data import Field
from workbench.guarantees import Absolute
from workbench.teaching.answers import missing
from workbench.teaching.question import Question, about, near, required, values_of, worst
from workbench.teaching.verdict import Verdict

STEPS = Question(
    "How many bits number all steps between the smallest and the largest value?",
    "Every value is replaced by the middle of a step. How wide may a step be, if nothing in it is further than ξ from "
    "its middle?",
    "Range divided by the width of a step is the number of steps. With n bits one can count up to 2 to the power of n.",
    "np.ptp(field.values) is the range, np.log2 the logarithm to base 2.",
)
ROUNDING = Question(
    "A function that rounds values within a bound, with as few different results as possible.",
    "Divide by the width of a step, round to whole numbers, multiply by the width again.",
    "The step is as wide as the whole interval from -ξ to +ξ. np.round rounds to the nearest whole number.",
)
BITS = Question(
    "How many bits for each value has the archive?",
    "archive.nbytes has its size in bytes, field.values.size the number of values.",
    "A byte is eight bits.",
)
HALVING = Question(
    "How many more bits does half of the bound take?",
    "With half of the bound there are twice as many steps in the same range. How many bits does it take to count "
    "twice as far?",
    "Drag the bound in the panel from 0.12 to 0.06, and compare the bits per value.",
)
SAME = Question(
    "Which absolute bound is the same promise?",
    "wb.Relative counts in shares of the range of the field: of the largest value minus the smallest.",
    "np.ptp(field.values) is this range.",
)


def steps(answer: Any, field: Field, bound: float) -> Verdict:
    """Bits that number all steps of a field; whole bits and fractions are both right.

    >>> steps(4, Field(np.linspace(0, 16, 99)), 0.5)   # 16 steps of width 1
    ✓ Right. Each step is 2ξ = 1 wide, so there are 16 of them.
    """
    values, bound = values_of(field), positive("the bound", bound)
    count = float(np.ptp(values)) / (2 * bound)
    least, whole = math.log2(count), math.ceil(math.log2(count))
    mistakes = (
        ((least + 0.98, whole + 1.02), "One bit too many. This counts steps as wide as ξ; but a step may reach ξ to "
                                       "both sides of its middle."),
        (near(count, 0.01), "That is the number of steps. How many bits does it take to number them?"),
        (near(2 * count, 0.01), "That is a number of steps, as wide as ξ. How wide may they be, and how many bits "
                                "number them?"),
        (near(math.log(count), 0.01), "That is the natural logarithm; bits need the logarithm to base 2."),
        (near(math.log10(count), 0.01), "That counts decimal digits; bits need the logarithm to base 2."),
        ((31.9, 32.1), "That is what a value takes now. The promise allows much less."),
    )
    praise = f"Each step is 2ξ = {2 * bound:g} wide, so there are {math.ceil(count)} of them."
    return STEPS.number(answer, (least - 0.02, whole + 0.02), "bits", mistakes, praise)


def rounding(answer: Any, field: Field, bound: float) -> Verdict:
    """A function of values and a bound: whether all results are within the bound, and few different.

    >>> rounding(lambda values, bound: np.round(values / (2 * bound)) * 2 * bound, Field(np.linspace(0, 9, 99)), 0.5).right
    True
    """
    values = values_of(field)
    verdict = _rounded(answer, values, positive("the bound", bound))
    if verdict.right:   # another array and another bound: it must use its arguments
        other = np.random.default_rng(3).normal(-40, 9, 4000)
        again = _rounded(answer, other, 0.7)
        if not again.right:
            seen = f"It works on this field, but not on other values with ξ = 0.7: {again.text}"
            return ROUNDING.wrong(seen)
    return verdict


def _rounded(function: Any, values: np.ndarray, bound: float) -> Verdict:
    rounded = ROUNDING.array(function, values.shape, values.copy(), bound)
    if isinstance(rounded, Verdict):
        return rounded
    return _judged(rounded, values, bound)


def _judged(rounded: np.ndarray, values: np.ndarray, bound: float) -> Verdict:
    """By the largest error, and by the number of different values."""
    largest = worst(rounded - values)
    slack = 4 * float(np.finfo(np.float32).eps * np.abs(values).max())   # round-off of float32
    needed = len(np.unique(np.round(values / (2 * bound))))
    used = len(np.unique(np.round(rounded / (bound / 50))))
    if largest == 0:
        return ROUNDING.wrong("No value has changed: nothing was rounded.")
    if largest <= bound + slack:
        if used <= 1.3 * needed + 2:
            return ROUNDING.right(f"{used} different values are left, and the largest error is {largest:.4g}.")
        return ROUNDING.wrong(f"All values are within ξ, but {used} different values are left, where {needed} would do: "
                              f"{math.log2(used / needed):.1f} bits per value too many. How wide may a step be?")
    if any(np.abs(rounded - np.round(values / width)).max() < 1.01 for width in (bound, 2 * bound)):
        return ROUNDING.wrong("These are the numbers of the steps: multiply by their width.")
    where = int(np.argmax(np.nan_to_num(np.abs(rounded - values), nan=np.inf)))
    seen = f"{values.flat[where]:.7g} becomes {rounded.flat[where]:.7g}, which is {largest:.4g} off, and ξ is {bound:g}."
    if largest <= 2 * bound + slack:
        return ROUNDING.wrong(f"{seen} An error of up to 2ξ is typical of cutting off (floor, //, int) in place of "
                              f"rounding.")
    return ROUNDING.wrong(seen)


def bits_per_value(answer: Any, field: Field, archive: Archive) -> Verdict:
    """The size of an archive in bits for each value.

    >>> field = Field(np.arange(4096.0))
    >>> archive = compress(field, Absolute(0.5))
    >>> bits_per_value(archive.nbytes / 4096, field, archive).text
    'Eight times too small: this is in bytes, and bits were asked for.'
    """
    values = values_of(field)
    nbytes = required(archive, Archive, "the archive").nbytes
    truth, before = 8 * nbytes / values.size, 8 * field.values.itemsize
    mistakes = (
        (near(before / truth), f"That is how many times smaller it is. One value had {before} bits."),
        (near(nbytes, 0.001), "That is the size of the whole archive. How much of it is one value's share?"),
        (near(8 * nbytes, 0.001), "Those are the bits of the whole archive. How many of them are one value's share?"),
        (near(truth / before), "That is the share that is left of the size."),
    )
    return BITS.number(answer, near(truth, 0.02), "bits", mistakes, f"It took {before} before.")


def halving(answer: Any, field: Field, bound: float) -> Verdict:
    """How many bits for each value half of a bound costs, measured on the field.

    >>> halving("twice", Field(np.arange(4096.0)), 0.5).text
    "The answer is one number; got 'twice'."
    """
    size, bound = values_of(field).size, positive("the bound", bound)
    if missing(answer):   # before anything is compressed
        return HALVING.waiting()
    whole, half = (8 * compress(field, Absolute(eb)).nbytes / size for eb in (bound, bound / 2))
    mistakes = (
        (about(half, 0.15), "That is what half of the bound takes in all. How many more bits is this than before?"),
        (about(half / whole, 0.02), "That is a ratio of two sizes. How many bits are added?"),
        (about(2, 0.1), "Twice as many steps do not take twice as many bits, nor two bits more."),
        (about(0.5, 0.1), "Half a bit is enough for 1.4 times as many steps. How many more steps are there?"),
    )
    right = f"Measured on this field: {whole:.2f} bits at ξ = {bound:g}, {half:.2f} at {bound / 2:g}."
    return HALVING.number(answer, about(half - whole, 0.15), "bits", mistakes, right)


def same_promise(answer: Any, field: Field, share: float) -> Verdict:
    """The absolute bound that is the same as a relative one.

    >>> same_promise(10.0, Field(np.linspace(270.0, 280.0, 99)), 1e-3).text
    'That is the range. Which part of it is the bound?'
    """
    values = values_of(field)
    spread = float(np.ptp(values))
    mistakes = (
        (near(spread * share / 2), "That is half of it. wb.Relative takes the share of the whole range; the error may "
                                   "have this size to either side."),
        (near(share * float(np.abs(values).max()), 0.005),
         "That is a share of the largest value. If the same field were in °C, would the promise change?"),
        (near(share * float(values.mean()), 0.005), "That is a share of the mean. wb.Relative counts in shares of the "
                                                    "range."),
        (near(share * float(values.std())), "That is a share of the standard deviation."),
        (near(share), "That is the share itself. Of how many kelvin is it the share?"),
        (near(spread), "That is the range. Which part of it is the bound?"),
    )
    return SAME.number(answer, near(spread * share), "K", mistakes,
        "A relative bound has no unit; an absolute one has that of the data.")
