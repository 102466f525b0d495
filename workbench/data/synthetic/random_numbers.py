"""The random number generator of all samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.arguments import whole_number


def generator(seed: Any) -> np.random.Generator:
    """The generator for a seed: Philox, whose stream is the same on every platform."""
    return np.random.Generator(np.random.Philox(whole_number("seed", seed, least=0)))
