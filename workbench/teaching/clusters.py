"""Lesson 4: keeping clusters: distances, projection, equal partitions, and what is promised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.teaching.question import Question, near, required, worst
from workbench.teaching.verdict import Verdict

DISTANCE = Question(
    "By how much can the distance of two particles change, if each coordinate may move by ξ?",
    "Both particles move. How far apart do they get along one axis?",
    "Along each of the three axes the difference changes by 2ξ at most. What is the length of a vector with three "
    "such components?",
)
PROJECTION = Question(
    "A function that moves positions back into what the bound allows.",
    "Each coordinate may lie between its original value minus ξ and its original value plus ξ, and only coordinates "
    "beyond that are moved.",
    "np.clip(values, low, high) takes arrays for low and high.",
)
GROUPS = Question(
    "A function that says whether two arrays of labels describe the same groups.",
    "Labels are names: [0, 0, 1] and [5, 5, 2] are the same groups. What must hold for each pair of particles?",
    "Groups are the same if each label of the first array always meets the same label of the second, and the other "
    "way round.",
    "Count the different pairs (label in the first, label in the second): np.unique(np.stack([first, second]), axis=1).",
)
PRICE = Question(
    "How many bits per particle do the halos cost?",
    "archive.bits_per_particle has them, of both archives.",
    "Take the difference.",
)
PROMISED = Question(
    "What is exactly as in the original?",
    "Promised are the groups at one linking length, particle for particle; positions are within ξ, as always.",
)


def distance(answer: Any, bound: float) -> Verdict:
    """The largest possible change of the distance of two particles in three dimensions.

    >>> distance(0.02, bound=0.01).text
    'That is one axis. In three dimensions all three components may change so much.'
    """
    mistakes = (
        (near(bound), "That is how far one coordinate of one particle may move."),
        (near(2 * bound), "That is one axis. In three dimensions all three components may change so much."),
        (near(math.sqrt(3) * bound), "That moves one of the two particles. Both may move, in opposite directions."),
        (near(2 * math.sqrt(2) * bound), "That is right in two dimensions."),
        (near(6 * bound), "Components do not simply add up: the length is the root of the sum of their squares."),
    )
    return DISTANCE.number(answer, near(2 * math.sqrt(3) * bound), "", mistakes,
        "A pair within this of the linking length may change sides.")


def projection(answer: Any) -> Verdict:
    """A function of (moved, original, bound): each coordinate ends within the bound, as near as possible to where it was.

    >>> projection(lambda moved, original, bound: np.clip(moved, -bound, bound)).text
    'This limits positions to ±ξ around 0; they must stay within ±ξ of the original positions.'
    """
    random = np.random.default_rng(11)
    original, bound = random.uniform(2, 8, (200, 3)), 0.25
    moved = original + random.normal(0, 0.3, original.shape)
    got = PROJECTION.array(answer, moved.shape, moved.copy(), original.copy(), bound)
    if isinstance(got, Verdict):
        return got
    if np.allclose(got, np.clip(moved, original - bound, original + bound), atol=1e-9):
        return PROJECTION.right("Coordinates within their interval stay, the others end at its border.")
    seen = _about_projection(got, moved, original, bound)
    return PROJECTION.wrong(seen)


def _about_projection(got: np.ndarray, moved: np.ndarray, original: np.ndarray, bound: float) -> str:
    """Which of the known wrong projections this is."""
    shift = moved - original
    length = np.linalg.norm(shift, axis=1, keepdims=True)
    inside = (np.abs(shift) <= bound).all(axis=1, keepdims=True)
    known = (
        (np.clip(moved, -bound, bound), "This limits positions to ±ξ around 0; they must stay within ±ξ of the "
                                        "original positions."),
        (np.clip(shift, -bound, bound), "These are the shifts, well limited: add them to the original positions."),
        (moved, "Nothing was moved back."),
        (original, "Everything was moved back to the original; only what is beyond the bound has to move."),
        (original + shift * np.minimum(1, bound / length),
         "This limits the length of each shift. The promise is for each coordinate: a corner of the box is allowed, "
         "and further away."),
        (np.where(np.abs(shift) <= bound, moved, original),
         "Coordinates beyond the bound go back to the original here; the nearest allowed place is the border."),
        (np.where(inside, moved, original), "A particle with one coordinate beyond the bound goes back here; only "
                                            "that coordinate has to move, to the border."),
    )
    for wrong, hint in known:
        if np.allclose(got, wrong, atol=1e-9):
            return hint
    largest = worst(got - original)
    if largest > bound * (1 + 1e-9):
        return f"A coordinate is {largest:.3g} from its original, and ξ is {bound:g}."
    return "All are within the bound, but not each is as near as possible to where it was."


def same_groups(answer: Any) -> Verdict:
    """A function of two arrays of labels: whether they are the same partition.

    >>> same_groups(lambda one, other: np.array_equal(one, other)).text
    'Called different: [0 0 1 2] and [5 5 2 7]. Groups keep their members if only the names of groups change.'
    """
    for one, other, same, hint in PARTITIONS:
        first, second = np.array(one), np.array(other)
        result = GROUPS.call(answer, first.copy(), second.copy())
        if isinstance(result, Verdict):
            return result
        try:
            said = bool(result)
        except Exception:   # an array, or anything else without a truth of its own
            return GROUPS.wrong(f"The answer is True or False; your function returns {type(result).__name__}.")
        if said is not same:
            return GROUPS.wrong(f"Called {'the same' if said else 'different'}: {first} and {second}. {hint}")
    return GROUPS.right("It finds every split and every merger, and names do not matter.")


PARTITIONS = (
    ([0, 0, 1, 1], [0, 0, 1, 1], True, "They are equal."),
    ([0, 0, 1, 2], [5, 5, 2, 7], True, "Groups keep their members if only the names of groups change."),
    ([0, 0, 1, 1], [1, 1, 0, 0], True, "Here two names were exchanged."),
    ([0, 0, 0, 1], [0, 0, 2, 1], False, "One group was split: a check of one direction does not notice."),
    ([0, 0, 2, 1], [0, 0, 0, 1], False, "Two groups were merged: a check of one direction does not notice."),
    ([0, 0, 1, 1], [0, 1, 0, 1], False, "There are as many groups of the same sizes, but with other members."),
    ([0, 0, 0, 1, 1, 2], [4, 4, 3, 3, 3, 9], False, "One particle has changed its group."),
    ([0, 1, 2, 3], [0, 0, 0, 0], False, "All were merged into one."),
    ([2, 1, 2, 1], [6, 3, 6, 3], True, "The second names are three times the first: names have no meaning."),
)


def overhead(answer: Any, archive: Archive, kept: Archive) -> Verdict:
    """What keeping the halos costs, in bits per particle."""
    without = required(archive, Archive, "the archive").bits_per_particle
    having = required(kept, Archive, "the archive with halos kept").bits_per_particle
    truth = having - without
    mistakes = (
        (near(having, 0.005), "That is all of the positions, with halos kept. How much of it is for the halos?"),
        (near(without, 0.005), "That is what the positions take without the promise."),
        (near(having / without - 1, 0.03), "That is the share by which it grew. How many bits is this per particle?"),
        (near(having / without, 0.001), "That is a ratio. How many bits is this per particle?"),
    )
    right = f"{without:.2f} bits without the promise, {having:.2f} with it, and 96 before compression."
    return PRICE.number(answer, (truth - 0.006, truth + 0.006), "bits", mistakes, right)


def promised(answer: Any) -> Verdict:
    """What an archive with halos kept has exactly as the original: (a) to (e) of the lesson."""
    reasons = {
        "a": "each halo has the same particles as before.",
        "b": "if each halo has the same particles, how many are there of each size?",
        "c": "a centre is a mean of positions, and positions have moved within ξ.",
        "d": "the promise is for one linking length. Another one looks at other pairs of particles.",
        "e": "how far apart the outermost members are is a distance, and distances have changed.",
    }
    return PROMISED.choice(answer, "ab", reasons,
        "Promised are members, and what follows from them. Centres are within ξ, and not exact.")
