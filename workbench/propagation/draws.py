"""Random numbers of a trial, from its number alone.

A counter-based generator keyed by the seed and the trial needs no state from other trials, so every trial is a pure
function: the same in any order and on any number of workers.
"""

from __future__ import annotations

import numpy as np

from workbench.arguments import whole_number

MOST = 2**64 - 1


def draws_of(seed: int, trial: int, number: int = 0) -> np.random.Generator:
    """The generator of one trial; `number` tells several perturbations of a trial apart.

    >>> draws_of(0, 7).integers(1000) == draws_of(0, 7).integers(1000)
    np.True_
    """
    key = [whole_number("seed", seed, 0, MOST), whole_number("trial", trial, 0, MOST)]
    counter = [0, 0, 0, whole_number("number", number, 0, MOST)]
    return np.random.Generator(np.random.Philox(counter=np.array(counter, np.uint64), key=np.array(key, np.uint64)))
