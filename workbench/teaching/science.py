"""Lesson 2: what a bound does to the science: typical errors, gradients, spectra, halos."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.archive.compress import compress
from workbench.arguments import positive
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute
from workbench.metrics import field_spectrum, match_halos, worst_deviation
from workbench.teaching.answers import missing
from workbench.teaching.question import Question, near, required, values_of
from workbench.teaching.verdict import Verdict

TOLERANCE = 0.01   # of the power spectrum
TYPICAL = Question(
    "How large is the rms error, if errors fill the interval from -ξ to ξ evenly?",
    "The rms error is the root of the mean of the squared errors. It is smaller than the largest error.",
    "The mean of e² over the interval from -ξ to ξ is an integral: ∫ e² de / (2ξ).",
    "Or measure it: archive.decompress().values has the decoded values.",
)
GRADIENT = Question(
    "By how much may a difference of neighbours, divided by the spacing, be wrong?",
    "Each of the two values may be wrong by ξ. In which directions is it worst?",
    "Then divide by the spacing.",
)
GUARANTEED = Question(
    "What is off by ξ at most, whatever the codec does within its bound?",
    "For each of them, think of an error within ξ that does as much harm as possible: +ξ everywhere, or +ξ here and "
    "-ξ there.",
)
SPECTRUM = Question(
    "Which bound leaves the spectrum within one percent?",
    "Try bounds in a loop, or drag the panel: the chart of power has the ratio at every wave number.",
    "Ten times larger or smaller first, then closer: the largest bound that is good enough is wanted, within a factor "
    "of 1.5.",
)
BROKEN = Question(
    "What share of the halos is broken?",
    "match.broken has a True or False for each halo.",
    "The mean of an array of True and False is the share of True.",
)


def typical_error(answer: Any, field: Field, archive: Archive, bound: float) -> Verdict:
    """The rms error of an archive, which is nearly that of errors which fill the interval evenly.

    >>> noise = Field(np.random.default_rng(1).normal(size=(64, 64)))
    >>> typical_error(0.1 / 2, noise, compress(noise, Absolute(0.1)), bound=0.1).text
    'That is the mean of |e|. The rms weighs large errors more.'
    """
    original, bound = values_of(field), positive("the bound", bound)
    decoded = required(archive, Archive, "the archive").decompress().values
    truth = float(np.sqrt(np.mean((decoded - original) ** 2)))
    mistakes = (
        (near(bound), "That is the largest error. Most values are closer."),
        (near(bound / 2), "That is the mean of |e|. The rms weighs large errors more."),
        (near(bound / math.sqrt(12)), "That is the formula for steps as wide as ξ; here they are 2ξ wide."),
        (near(bound**2 / 3), "That is the mean of the squares; take its root."),
        (near(bound / math.sqrt(2), 0.01), "That is the rms of a sine wave with amplitude ξ. Here all errors from -ξ "
                                           "to ξ are equally frequent."),
    )
    return TYPICAL.number(answer, near(truth, 0.04), "", mistakes,
        f"Measured {truth:.5f}: the bound divided by the root of 3, nearly.")


def gradient(answer: Any, bound: float, spacing: float) -> Verdict:
    """The largest possible error of (f[i+1] - f[i]) / spacing.

    >>> gradient(0.1, bound=0.1, spacing=1.0).text
    'That lets one of the two values be wrong. Both may be, in opposite directions.'
    """
    bound, spacing = positive("the bound", bound), positive("the spacing", spacing)
    truth = 2 * bound / spacing
    mistakes = (
        (near(bound / spacing), "That lets one of the two values be wrong. Both may be, in opposite directions."),
        (near(2 * bound), "That is how far the difference may be off. The gradient is the difference divided by the "
                          "spacing."),
        (near(bound), "That is the error of one value; a gradient is made of two, and divided by the spacing."),
        (near(2 * bound * spacing), "Divide by the spacing, rather than multiply."),
        (near(math.sqrt(2) * bound / spacing), "That is how independent errors add up typically. What is the worst case?"),
    )
    return GRADIENT.number(answer, near(truth), "", mistakes,
        "The finer the grid, the worse: a codec that leaves values alone may spoil slopes.")


def guaranteed(answer: Any) -> Verdict:
    """Which figures of a field are off by the bound at most: (a) to (e) of the lesson."""
    reasons = {
        "a": "the largest value cannot grow by more than ξ, nor can the largest decoded value be more than ξ below it.",
        "b": "add ξ to every value: what does that do to the mean?",
        "c": "add ξ to every one of N values: what does that do to the sum?",
        "d": "two places are nearly equally high, a thousand points apart. Which of them is higher after an error of ξ?",
        "e": "one neighbour is ξ too high, the other ξ too low.",
    }
    return GUARANTEED.choice(answer, "ab", reasons,
        "Extremes and means inherit the bound; sums, differences and places do not.")


def spectrum_bound(answer: Any, field: Field) -> Verdict:
    """The largest bound with the spectrum within 1% up to half of the Nyquist wave number: the answer itself is tried.

    >>> spectrum_bound(-1, Field(np.random.default_rng(1).normal(size=(32, 32)))).text
    'A bound is a positive number; got -1.'
    """
    values_of(field)
    bound = SPECTRUM.bound(answer)
    if isinstance(bound, Verdict):
        return bound
    try:
        change, larger = worst_ratio(field, bound.eb), worst_ratio(field, 1.5 * bound.eb)
    except WorkbenchError as refused:
        return SPECTRUM.wrong(str(refused), answer)
    seen = f"With ξ = {bound.eb:g} the power is wrong by up to {change:.2%}"
    if change > TOLERANCE:
        return SPECTRUM.wrong(f"{seen}: more than 1%. A smaller bound is needed.", answer)
    if larger <= TOLERANCE:
        return SPECTRUM.wrong(f"{seen}, which is good enough. But so is a bound 1.5 times as large, with fewer "
                              f"bits.", answer)
    return SPECTRUM.right(f"{seen}; with 1.5 times the bound, by {larger:.2%}.")


def worst_ratio(field: Field, eb: float) -> float:
    """The largest |P'/P - 1| up to half of the Nyquist wave number, of the field compressed within a bound."""
    before = field_spectrum(field)
    after = field_spectrum(compress(field, Absolute(eb)).decompress())
    change = worst_deviation(before, after, before.nyquist / 2)
    return math.inf if math.isnan(change) else change


def broken(answer: Any, snapshot: Particles, archive: Archive) -> Verdict:
    """The share of halos that an archive has broken."""
    required(snapshot, Particles, "the snapshot")
    if missing(answer):   # before halos are found
        return BROKEN.waiting()
    order = required(archive, Archive, "the archive").permutation(snapshot)
    match = match_halos(snapshot, archive.decompress(), order=order)
    truth = float(match.broken.mean())
    mistakes = (
        (near(1 - truth, 0.01), "That is the share of halos that are whole."),
        (near(float(match.split.mean()), 0.005), "Those are the split ones; merged halos are broken, too."),
        (near(float(match.merged.mean()), 0.005), "Those are the merged ones; split halos are broken, too."),
        (near(float(match.broken.sum()), 0.001), f"That is how many are broken. What share of {len(match)} is that?"),
    )
    praise = f"{match.broken.sum()} of {len(match)} are broken, though no coordinate is wrong by more than the bound."
    return BROKEN.number(answer, (truth - 0.006, truth + 0.006), "share", mistakes, praise)
