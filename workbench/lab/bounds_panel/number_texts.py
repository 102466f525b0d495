"""Numbers as a reader wants them: few digits, and no exponent where it can be done without."""

from __future__ import annotations

LONGEST = 1e9   # from where on numbers have an exponent


def short(value: float, digits: int = 3) -> str:
    """A number in so many digits, with all those before the point unless it is huge.

    >>> short(8.1234), short(1086.7), short(999.7), short(2.5e7), short(1086.7, 4), short(float("inf"))
    ('8.12', '1,087', '1,000', '25,000,000', '1,087', '∞')
    """
    rounded = f"{value:.{digits}g}"
    if 1000 <= abs(float(rounded)) < LONGEST:
        return f"{value:,.0f}"
    return f"{float(rounded):g}".replace("inf", "∞")


def similarity(value: float) -> str:
    """An SSIM in four digits; what is not quite 1 is not called so.

    >>> similarity(0.997954), similarity(0.99999), similarity(1.0)
    ('0.998', '> 0.9999', '1')
    """
    return "> 0.9999" if 0.99995 <= value < 1 else f"{value:.4g}"
