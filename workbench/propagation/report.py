"""Numbers of propagation in tables."""

from __future__ import annotations


def figure(value: float | None, digits: int = 3) -> str:
    """A number for a table; empty for None.

    >>> figure(0.00012345), figure(None)
    ('0.000123', '')
    """
    return "" if value is None else f"{value:.{digits}g}"
