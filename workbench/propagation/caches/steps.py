"""Steps of quantisation as small whole numbers, and what is a multiple of a step.

A step is a power of two in eighths of an octave, so that it takes a few bits, and nobody has to store the queries or the
values that it was derived from. Which step it is hardly matters; that encoder and decoder have the same one does.
"""

from __future__ import annotations

import numpy as np

from workbench.errors import WorkbenchError

FINE = 8                      # steps of an octave
MOST_NUMBER = 2**15 - 1       # steps from zero: beyond it, rounding to float32 would show in the bound
ROUNDING = 1 + 2**-8          # half a step, and what float32 may add to it up to that number
LEAST_QUERY = 1 / 16          # of the root mean square of a head's queries: a channel with less counts as if it had this
_LEAST, _MOST = -100 * FINE, 100 * FINE
_POWERS = 2.0 ** (np.arange(FINE) / FINE)


def step_codes(size: np.ndarray) -> np.ndarray:
    """The numbers (int16) of the steps that are closest to these sizes.

    >>> step_codes(np.array([1.0, 2.0, 0.9])).tolist()
    [0, 8, -1]
    """
    with np.errstate(divide="ignore"):
        codes = np.rint(FINE * np.log2(size.astype(np.float64)))
    return np.clip(codes, _LEAST, _MOST).astype(np.int16)


def steps_of(codes: np.ndarray) -> np.ndarray:
    """The steps (float64) with these numbers.

    >>> steps_of(np.int16([8, -8])).tolist()
    [2.0, 0.5]
    """
    octaves, rest = np.divmod(codes.astype(np.int32), FINE)
    return np.ldexp(_POWERS[rest], octaves)


def query_sizes(query_squares: np.ndarray) -> np.ndarray:
    """The root mean square of queries in each channel of each head, given its square; never much less than in others."""
    size = np.sqrt(query_squares)
    size = np.maximum(size, LEAST_QUERY * np.sqrt(np.mean(query_squares, axis=-1, keepdims=True)))
    return np.where(size > 0, size, 1.0)


def token_sizes(values: np.ndarray) -> np.ndarray:
    """The root mean square of each token of values (heads, tokens, width); 1 where all are zero."""
    size = np.sqrt(np.mean(values.astype(np.float64) ** 2, axis=(0, 2)))
    return np.where(size > 0, size, 1.0)


def key_codes(share: float, query_squares: np.ndarray) -> np.ndarray:
    """Steps for keys: `share` over the root mean square of the queries in each channel of each head, given its square.

    A score is a sum over channels of query times key. With these steps, the errors of all channels contribute alike to it.
    """
    return step_codes(share / query_sizes(query_squares))


def value_codes(share: float, values: np.ndarray) -> np.ndarray:
    """Steps for values (heads, tokens, width): `share` of the root mean square of each token's values."""
    return step_codes(share * token_sizes(values))


def multiples(values: np.ndarray, steps: np.ndarray, what: str) -> np.ndarray:
    """The whole numbers (int32) of steps that are closest to values, if float32 can tell them apart."""
    found = np.rint(values / steps)
    if found.size and not np.abs(found).max() <= MOST_NUMBER:
        raise WorkbenchError(
            f"{what} must be at most {MOST_NUMBER:,} steps of their quantiser from zero; got {np.abs(found).max():.3g}: "
            "allow a larger error"
        )
    return found.astype(np.int32)


def restored(numbers: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The values (float32) that these multiples of steps stand for."""
    return (numbers * steps).astype(np.float32)


def limits(steps: np.ndarray) -> np.ndarray:
    """The largest error of a value with this step: half of it, and what float32 adds."""
    return steps * (ROUNDING / 2)
