"""Frequencies of symbols that need no training and no bytes: discrete Gaussians.

The coder of a cache says how widely the numbers of a channel spread, in classes of half an octave. Given this, they are so
nearly Gaussian that a table fitted to them would save about one hundredth of a bit, and cost more to send. So one
table serves all layers and all models, from the first block on, and no block's bytes depend on what comes later.

A number becomes a symbol by its distance from the centre: 0, 1, -1, 2, -2 ... Centres are whole or half numbers. What is
too far away is an escape, whose number is stored as it is.
"""

from __future__ import annotations

import functools

import numpy as np

from workbench.codecs.entropy import frequencies

SYMBOLS = 64
ESCAPE = SYMBOLS - 1
WIDEST = 11           # the class whose spread is 4; wider ones are scaled to it or the one before
FIRST_SPREAD = 7      # the class of spread 1, expected of a channel of which nothing is known
FAR = 6.0             # spreads from the centre where a symbol still has a frequency

# The contexts: of changes of the class, of changes of the mean by class, of numbers by class and centre.
CLASS_CHANGE = 0                            # in the first block of a cache, and in others
MEAN_CHANGE = 2
NUMBER = MEAN_CHANGE + 2 * (WIDEST + 1)
CONTEXTS = NUMBER + 2 * (WIDEST + 1)

_CHANGES_OF_CLASS = 2.0, 0.65               # the spread of changes: from what is expected at first, and later
_CHANGES_OF_MEAN = 6.0, 1.0                 # the same in half spreads
_LEAST_CHANGE = 0.35


def spread_of(spread_class: int) -> float:
    """The standard deviation that a class stands for; class 0 has none.

    >>> spread_of(7), spread_of(11)
    (1.0, 4.0)
    """
    return 2.0 ** ((spread_class - FIRST_SPREAD) / 2) if spread_class else 0.0


def symbols_of(numbers: np.ndarray) -> np.ndarray:
    """The symbol of each number, if it is no escape.

    >>> symbols_of(np.array([0, 1, -1, 2])).tolist()
    [0, 1, 2, 3]
    """
    return 2 * np.abs(numbers) - (numbers > 0)


def numbers_of(symbols: np.ndarray) -> np.ndarray:
    """The number of each symbol that is no escape.

    >>> numbers_of(np.arange(4)).tolist()
    [0, 1, -1, 2]
    """
    symbols = symbols.astype(np.int64)
    return np.where(symbols % 2 == 1, (symbols + 1) // 2, -(symbols // 2))


@functools.cache
def frequency_table() -> np.ndarray:
    """The frequencies (uint32) of all symbols in all contexts; 0 where a symbol must be escaped."""
    rows = [_gaussian(spread, 0.0) for spread in _CHANGES_OF_CLASS]
    for factor in _CHANGES_OF_MEAN:
        rows += [_gaussian(max(factor * spread_of(each), _LEAST_CHANGE), 0.0) for each in range(WIDEST + 1)]
    for centre in (0.0, 0.5):
        rows += [_gaussian(spread_of(each), centre) for each in range(WIDEST + 1)]
    return frequencies(np.array(rows))


def _gaussian(spread: float, centre: float) -> np.ndarray:
    """Counts that a discrete Gaussian would have: whole numbers whose variance around the centre is that of the spread."""
    distance = np.abs(numbers_of(np.arange(ESCAPE)) - centre)
    low, high = -8.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        shares = _shares(distance, 2.0**middle)
        low, high = (middle, high) if (shares * distance**2).sum() < spread**2 else (low, middle)
    near = distance <= max(FAR * spread, 1.0 if spread else centre)
    counts = np.where(near, np.maximum(np.rint(_shares(distance, 2.0**high) * 2.0**24), 1), 0)
    if not spread and not centre:
        return np.append(counts, 0).astype(np.int64)   # a channel that does not vary costs nothing
    return np.append(counts, 1).astype(np.int64)


def _shares(distance: np.ndarray, width: float) -> np.ndarray:
    with np.errstate(under="ignore"):
        weights = np.exp(-(distance**2 - distance.min() ** 2) / (2 * width * width))
    return weights / weights.sum()
