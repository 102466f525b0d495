"""The error of coded keys and values beside the fewest bits that any code needs for it.

Errors are weighed as they matter: those of keys by the queries of their channel, those of values by the size of the token.
The bound is that of independent Gaussian numbers with the variance of each channel in each block. It leaves out what a code
must say about these variances, and what it could save by knowing how channels and tokens depend on each other.
"""

from __future__ import annotations

import numpy as np

from workbench.limits import Spectrum


class Distortion:
    """Adds up the errors of the blocks of one kind, keys or values.

    >>> found = Distortion()
    >>> found.add(np.random.default_rng(0).normal(size=(1, 64, 8)), np.zeros((1, 64, 8)), block=64)
    >>> found.fewest_bits < 0.02
    True
    """

    def __init__(self) -> None:
        self._squares, self._count = 0.0, 0
        self._variances: list[np.ndarray] = []

    def add(self, weighed: np.ndarray, decoded: np.ndarray, block: int) -> None:
        """Weighed numbers (heads, tokens, width) of whole blocks, and what is decoded of them."""
        heads, tokens, width = weighed.shape
        self._squares += float(((weighed - decoded) ** 2).sum())
        self._count += weighed.size
        self._variances.append(weighed.reshape(heads, tokens // block, block, width).var(axis=2).reshape(-1))

    @property
    def mean_square(self) -> float:
        """The mean square error, weighed."""
        return self._squares / self._count if self._count else float("nan")

    @property
    def fewest_bits(self) -> float:
        """The rate-distortion function of the model at this error, in bits per number."""
        if not self._count:
            return float("nan")
        error = max(self.mean_square, 1e-12)
        return Spectrum.of(np.concatenate(self._variances)).rate(error)
