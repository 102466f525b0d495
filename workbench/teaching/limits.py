"""Lesson 3: how small data can get: entropy, rate against distortion, and why noise cannot be compressed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.arguments import positive
from workbench.teaching.answers import number
from workbench.teaching.question import Question, about, near, required
from workbench.teaching.verdict import Verdict

ENTROPY = Question(
    "A function that returns the entropy of an array of whole numbers, in bits per number.",
    "np.unique(numbers, return_counts=True) counts how often each number occurs. Divided by their sum, counts are "
    "probabilities p.",
    "The entropy is the sum of -p · log2(p) over the different numbers.",
)
NOISE = Question(
    "How many bits per value does rounded noise need at least?",
    "The rounded noise is an array of whole numbers. You have just written a function for it.",
    "entropy(numbers)",
)
RATE = Question(
    "How many bits per value does theory allow for this noise and this rms error?",
    "R(D) = ½ log2(σ² / D), where D is the mean square error.",
    "np.log2 is the logarithm to base 2. With ½ before it, squares become roots.",
)
PRICE = Question(
    "How many bits per value is rounding above the bound of theory?",
    "Both are bits per value: the entropy of the rounded noise, and R(D) at the mean square error that rounding causes.",
    "Errors of rounding fill the interval from -ξ to ξ evenly: their mean square is ξ² / 3.",
)
SAVED = Question(
    "How many bits per value does it save to code differences of neighbours?",
    "np.diff(numbers, axis=1) has the differences along a row.",
    "Compare the entropy of the numbers with that of their differences.",
)
CASES = (
    ([7, 7, 7, 7], "one number that never changes"),
    ([0, 1, 0, 1], "two numbers, equally frequent"),
    ([1, 2, 3, 4, 1, 2, 3, 4], "four numbers, equally frequent"),
    ([0, 0, 0, 1], "0, 0, 0, 1"),
    ([[5, -5], [9, 5]], "5, -5, 9, 5 in two rows"),
)


def entropy(numbers: Any) -> float:
    """The entropy of whole numbers, in bits per number.

    >>> entropy([0, 1, 0, 1])
    1.0
    """
    _, counts = np.unique(np.asarray(numbers), return_counts=True)
    share = counts / counts.sum()
    return float(abs((share * np.log2(share)).sum()))


def entropy_function(answer: Any) -> Verdict:
    """A function that returns the entropy of whole numbers, tried on small arrays.

    >>> entropy_function(lambda numbers: len(np.unique(numbers))).text
    'For one number that never changes your function returns 1. How uncertain is the next number there?'
    """
    for numbers, name in CASES:
        result = ENTROPY.call(answer, np.array(numbers))
        if isinstance(result, Verdict):
            return result
        got = number(result)
        if isinstance(got, str) or abs(got - entropy(numbers)) > 1e-6:
            return ENTROPY.wrong(_about_entropy(result, np.array(numbers), name))
    return ENTROPY.right("It agrees on five small arrays.")


def _about_entropy(result: Any, numbers: np.ndarray, name: str) -> str:
    """What a wrong entropy looks like."""
    try:
        got = float(result)
    except Exception:   # whatever the student's function returned
        return f"The entropy is one number; for {name} your function returns {type(result).__name__}."
    truth = entropy(numbers)
    seen = f"For {name} your function returns {got:.6g}."
    if math.isnan(got):
        return f"{seen} A logarithm of 0? Count only numbers that occur."
    if truth == 0:
        return f"{seen} How uncertain is the next number there?" if got else "Not yet."
    ratio = got / truth
    known = (
        (math.log(2), "That is in natural units: bits need the logarithm to base 2."),
        (math.log10(2), "That is in decimal digits: bits need the logarithm to base 2."),
        (-1.0, "Logarithms of shares are negative: where is the minus?"),
        (float(numbers.size), "That is the entropy of all numbers together: divide the counts by their sum."),
    )
    return next((f"{seen} {hint}" for factor, hint in known if abs(ratio / factor - 1) < 1e-3),
                f"{seen} Sum -p · log2(p) over the different numbers, with p their share.")


def noise_bits(answer: Any, numbers: Any) -> Verdict:
    """The entropy of rounded noise.

    >>> noise_bits(2, np.array([0, 0, 0, 1, 2, 3])).text
    'That would be needed if all 4 numbers were equally frequent. They are not.'
    """
    numbers = required(numbers, np.ndarray, "the rounded noise")
    truth, different = entropy(numbers), len(np.unique(numbers))
    mistakes = (
        (about(math.log2(different), 0.02), f"That would be needed if all {different} numbers were equally frequent. "
                                            f"They are not."),
        (near(truth * math.log(2), 0.01), "That is in natural units: bits need the logarithm to base 2."),
        (about(math.ceil(truth), 0.001), "Fractions count: many numbers together do not need whole bits each."),
    )
    return NOISE.number(answer, about(truth, 0.02), "bits", mistakes,
        "No lossless code needs fewer on average, if values do not depend on each other.")


def rate(answer: Any, sigma: float, rms: float) -> Verdict:
    """Shannon's rate of Gaussian noise with a standard deviation, at an rms error.

    >>> rate(4, sigma=1.0, rms=0.25).text
    'Twice too many: either ½ is missing, or the squares are squared once more.'
    """
    truth = math.log2(sigma / rms)
    mistakes = (
        (near(truth * math.log(2), 0.01), "That is in natural units: bits need the logarithm to base 2."),
        (near(truth * math.log10(2), 0.01), "That is in decimal digits: bits need the logarithm to base 2."),
        (near(2 * truth, 0.01), "Twice too many: either ½ is missing, or the squares are squared once more."),
        (near(truth / 2, 0.01), "Half of it: D is the mean square error, the rms error squared."),
        (near(-truth, 0.01), "The size is right, the sign is not: which of the two is larger?"),
    )
    return RATE.number(answer, about(truth, 0.02), "bits", mistakes, "It does not matter which codec, now or ever.")


def price(answer: Any, numbers: Any, sigma: float, bound: float) -> Verdict:
    """The bits per value by which rounded noise is above Shannon's rate at the same mean square error."""
    rms = positive("the bound", bound) / math.sqrt(3)
    truth = entropy(required(numbers, np.ndarray, "the rounded noise")) - math.log2(sigma / rms)
    mistakes = (
        (about(truth + math.log2(math.sqrt(3)), 0.03),
         "That takes ξ for the rms error. The rms error is smaller: ξ divided by the root of 3."),
        (about(truth - 1, 0.03), "That takes ξ² / 12 for the mean square error: it belongs to steps as wide as ξ, and "
                                 "these are 2ξ wide."),
        (about(-truth, 0.03), "The other way round: rounding needs more than theory."),
    )
    return PRICE.number(answer, about(truth, 0.03), "bits", mistakes,
        "It is the same for all such noise and every small ξ: the price of a bound for each value.")


def saved(answer: Any, numbers: Any) -> Verdict:
    """The bits per value that differences of neighbours in a row save.

    >>> saved(2, np.array([[1, 2, 3, 4]])).right
    True
    """
    numbers = required(numbers, np.ndarray, "the rounded field")
    alone, differences = entropy(numbers), entropy(np.diff(numbers, axis=-1))
    truth = alone - differences
    mistakes = (
        (about(differences, 0.03), "That is what differences need. How much less is it?"),
        (about(alone, 0.03), "That is what the numbers themselves need. How much less do differences need?"),
        (about(-truth, 0.05), "The other way round: how much less do differences need?"),
        (about(alone - entropy(np.diff(numbers, axis=0)), 0.03),
         "That is along the columns; take the differences along the rows (axis=1)."),
        (about(alone - entropy(np.diff(numbers.ravel())), 1e-9),
         "That also takes differences from the end of a row to the beginning of the next one."),
    )
    return SAVED.number(answer, about(truth, 0.05), "bits", mistakes,
        "A neighbour tells most of a value; only what is new must be coded.")
