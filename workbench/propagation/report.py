"""Numbers of propagation in tables and in words."""

from __future__ import annotations


def figure(value: float | None, digits: int = 3) -> str:
    """A number for a table; empty for None.

    >>> figure(0.00012345), figure(None)
    ('0.000123', '')
    """
    return "" if value is None else f"{value:.{digits}g}"


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "input"), counted(2000, "input")
    ('1 input', '2,000 inputs')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
