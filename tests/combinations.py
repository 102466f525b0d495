"""Combinations of parameters: few that are tested each time, and all the others by `make test-long`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest


def in_pairs(*choices: Sequence[Any]) -> list[Any]:
    """All combinations, as parameters; without those that are `long`, any two choices meet (of two lists, each occurs).

    >>> usual = [each.values for each in in_pairs("ab", "cd", "ef") if not each.marks]
    >>> usual
    [('a', 'c', 'e'), ('a', 'd', 'f'), ('b', 'c', 'f'), ('b', 'd', 'e')]
    """
    places = list(itertools.product(*(range(len(each)) for each in choices)))
    usual = set(next(
        chosen for step in range(max(map(len, choices)), 0, -1)
        if _met(chosen := [each for each in places if sum(each) % step == 0]) == _met(places)
    ))
    return [
        pytest.param(*map(list.__getitem__, map(list, choices), place), marks=[pytest.mark.long] * (place not in usual))
        for place in places
    ]


def evenly_spread(ids: Sequence[str], number: int) -> list[str]:
    """So many of the ids, the first among them.

    >>> evenly_spread(["a", "b", "c", "d", "e"], 2), evenly_spread(["a"], 2)
    (['a', 'c'], ['a'])
    """
    return [ids[i * len(ids) // number] for i in range(number)] if number < len(ids) else list(ids)


def with_each_part(ids: Sequence[str]) -> list[str]:
    """Few ids in which each part of all ids occurs at its place.

    >>> with_each_part(["a-x-1", "a-y-1", "b-x-1", "b-y-2"])
    ['a-x-1', 'b-y-2']
    """
    missing = {part for each in ids for part in enumerate(each.split("-"))}
    chosen = []
    while missing:
        chosen.append(max(ids, key=lambda each: len(missing.intersection(enumerate(each.split("-"))))))
        missing.difference_update(enumerate(chosen[-1].split("-")))
    return chosen


def _met(places: list[tuple[int, ...]]) -> set[tuple[Any, ...]]:
    """Which choices meet, as pairs of (list, number); of two lists, which occur."""
    most = min(2, len(places[0]) - 1)
    return {some for place in places for some in itertools.combinations(enumerate(place), most)}
