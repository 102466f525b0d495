"""Rounding in proofs: its largest share, and fractions as floats on a chosen side, so that bounds stay proven."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

UNIT = 2.0**-53         # the largest error of a rounding to float64, as a share of the result
ABOVE = 1 + 2.0**-40    # a few rounded products and sums of numbers that are not negative, times this, are above the exact


def rounded_outwards(exact: Fraction, towards: float = math.inf) -> float:
    """A float that is not nearer than this number to one end of the line.

    >>> rounded_outwards(Fraction(1, 3)) > Fraction(1, 3) > rounded_outwards(Fraction(1, 3), -math.inf)
    True
    """
    try:
        nearest = float(exact)
    except OverflowError:
        return math.copysign(math.inf if (exact > 0) == (towards > 0) else sys.float_info.max, 1 if exact > 0 else -1)
    wrong = Fraction(nearest) < exact if towards > 0 else Fraction(nearest) > exact
    return math.nextafter(nearest, towards) if wrong else nearest
