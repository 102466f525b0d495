"""What coded keys and values can do to the attention of a query, at most.

If no score changes by more than s, the total variation of the softmax (half of the sum of its changes) is at most
tanh(s / 2). So the result moves by no more than the error of the values, and by this share of their range, in exact
arithmetic: the rounding of scores and sums in float32 comes on top.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

MOST_SHIFT = 0.5   # of attention: a larger bound of it says next to nothing
UNINFORMATIVE = ", which says next to nothing: rely on the measured divergence, or take a finer score_step"


@dataclass(frozen=True)
class Certificate:
    """What was checked of a cache: every coded key and value against its bound, and the scores of all queries so far.

    `key_error` and `value_error` are the largest errors in units of their bounds, so at most 1. `score_bound` is the
    largest change of a score that the bounds allow for any query that was seen; `attention_bound` the share of the values'
    range by which attention may then move, beside the error of the values.
    """

    checked: int
    key_error: float
    value_error: float
    score_bound: float

    @property
    def attention_bound(self) -> float:
        """The largest total variation of a softmax."""
        return math.tanh(self.score_bound / 2)

    @property
    def informative(self) -> bool:
        """Whether the bound says anything: from a half on, most of the attention may move to other tokens."""
        return self.attention_bound < MOST_SHIFT

    def __str__(self) -> str:
        return (
            f"{self.checked:,} keys and values within their bounds (the largest errors are {self.key_error:.3f} and "
            f"{self.value_error:.3f} of them); no score moves by more than {self.score_bound:.3g}, no softmax by "
            f"more than {self.attention_bound:.3g} in total variation{'' if self.informative else UNINFORMATIVE}"
        )


def score_bounds(queries: np.ndarray, key_limits: np.ndarray) -> np.ndarray:
    """The largest change of any score of each query (heads, queries), if keys are within limits for each head and channel.

    >>> score_bounds(np.array([[[3.0, -1.0, 0.0, 0.0]]]), np.full((1, 4), 0.5)).tolist()
    [[1.0]]
    """
    reach: np.ndarray = np.einsum("hqc,hc->hq", np.abs(queries), key_limits) / math.sqrt(queries.shape[-1])
    return reach


def attention_bounds(reach: np.ndarray, value_limit: float, least: np.ndarray, most: np.ndarray) -> np.ndarray:
    """The largest change of the attention of each query in each channel, given the ends (heads, width) of decoded values.

    >>> attention_bounds(np.zeros((1, 1)), 0.25, np.zeros((1, 2)), np.ones((1, 2))).tolist()
    [[[0.25, 0.25]]]
    """
    return value_limit + np.tanh(reach / 2)[..., None] * (most - least)[:, None, :]
