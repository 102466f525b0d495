"""A field for tests of codecs."""

import numpy as np

import workbench as wb


def turbulent(shape, dtype=np.float32, seed=1):
    """A field that is smooth in some places and rough in others."""
    values = wb.synthetic.gaussian_field(shape, seed=seed).values
    return (values * np.exp(wb.synthetic.gaussian_field(shape, seed=seed + 1).values)).astype(dtype)
