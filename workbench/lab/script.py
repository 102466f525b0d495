"""The Python that a panel shows for copying: a script of public names that reproduces what is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def script(lines: Iterable[str]) -> str:
    """A script of these lines.

    >>> print(script(["field = wb.open('waves.nc')"]))
    import workbench as wb
    <BLANKLINE>
    field = wb.open('waves.nc')
    """
    return "\n".join(["import workbench as wb", "", *lines])


def call(function: str, *arguments: str, **options: Any) -> str:
    """A call with arguments that are Python already and options that are values; options of None are left out.

    >>> call("wb.rate_distortion", "field", regions=2, seed=None)
    'wb.rate_distortion(field, regions=2)'
    """
    named = [f"{name}={value!r}" for name, value in options.items() if value is not None]
    return f"{function}({', '.join([*arguments, *named])})"
