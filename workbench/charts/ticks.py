"""The ticks of all charts: a few round values with short texts, the same in an SVG and in a live chart that is zoomed.

A browser zooms without Python, so the two functions also stand in `ticks.js`, for Bokeh and for pictures. Bokeh's own ticks
of logarithmic axes run together in narrow charts, or are a single one. `tests/browser/test_charts.py` compares the forms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

MOST = 6                                   # ticks of an axis, or one more
FACTORS = (1, 2, 5), (1, 3), (1,)          # within a decade of a logarithmic axis, the first that are few enough
PLAIN = 1e-4, 1e6                          # sizes that are written without a power of ten
MINUS = "\N{MINUS SIGN}"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def ticks(low: float, high: float, logarithmic: bool = False) -> list[float]:
    """Round values between the ends of an axis.

    >>> ticks(-1.0, 11.0), ticks(0.3, 1500.0, True), ticks(2.0, 3.0, True)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [1.0, 10.0, 100.0, 1000.0], [2.0, 2.2, 2.4, 2.6, 2.8, 3.0])
    """
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.floor(math.log10(high)) + 1
        every = math.ceil((last - first) / MOST)
        for factors in FACTORS:
            decades = [power for power in range(first, last + 1) if len(factors) > 1 or power % every == 0]
            marks = [float(f"{factor}e{power}") for power in decades for factor in factors]
            marks = [mark for mark in marks if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]
            if len(marks) <= MOST:
                break
        if len(marks) > 2:
            return marks
    rough = (high - low) / MOST
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [float(f"{number * step:.15g}") for number in numbers]


def texts(marks: Sequence[float]) -> list[str]:
    """The texts of successive ticks: as many digits as tell them apart, and powers of ten for very small and large ones.

    >>> texts([0.0, 0.05, 0.1]), texts([1e-6, 1e-3, 1.0]), texts([0.0, 2e7])
    (['0', '0.05', '0.1'], ['10⁻⁶', '10⁻³', '10⁰'], ['0', '2 · 10⁷'])
    """
    sizes = [abs(mark) for mark in marks if mark]
    steps = [abs(b - a) for a, b in itertools.pairwise(marks) if a != b]
    least = math.floor(math.log10(min([*steps, *sizes] if steps else [size / 1000 for size in sizes] or [1.0])) + 1e-9)
    plain = all(PLAIN[0] <= size < PLAIN[1] for size in sizes)
    return [_plain(mark, max(-least, 0)) if plain or not mark else _raised(mark, least) for mark in marks]


def _plain(mark: float, decimals: int) -> str:
    text = f"{mark:.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if decimals else text).replace("-", MINUS)


def _raised(mark: float, least: int) -> str:
    power = math.floor(math.log10(abs(mark)) + 1e-9)
    factor = _plain(mark / 10.0**power, min(max(power - least, 0), 14))
    return {"1": "", f"{MINUS}1": MINUS}.get(factor, f"{factor} · ") + f"10{str(power).translate(RAISED)}"


# Bokeh takes the bodies of functions: `cb_data.range` has the ends, LOGARITHMIC stands for true or false.
IN_BROWSER = Path(__file__).with_suffix(".js")
_functions = IN_BROWSER.read_text(encoding="utf-8").replace("export ", "")
TICKS_IN_BROWSER = _functions + """
const { start, end } = cb_data.range;
return ticksBetween(Math.min(start, end), Math.max(start, end), LOGARITHMIC);
"""
TEXTS_IN_BROWSER = _functions + "return textOf(tick, ticks);"
