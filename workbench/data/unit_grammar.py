"""Units as people and files write them: products of powers of known units, in the spellings of UDUNITS, astropy and pint.

A bound such as 10 pc means nothing to data in Mpc/h until both are factors of the same base units. Names that are not known
stand for themselves: 3 counts/s fit data in counts s-1, and nothing else. h, the Hubble constant over 100 km/s/Mpc, counts
as a base unit: kpc/h become Mpc/h, but not Mpc. Units are those of differences, so a degree Celsius is a kelvin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.errors import WorkbenchError

Base = dict[str, int]

# What each unit is, in powers of m, kg, s, K, A, mol, rad, h and PSU (practical salinity, which is no fraction of mass).
_KNOWN: dict[str, tuple[float, Base]] = {
    **{name: (1.0, {name: 1}) for name in ("m", "s", "K", "A", "mol", "rad", "h", "PSU")},
    "g": (1e-3, {"kg": 1}), "%": (0.01, {}), "percent": (0.01, {}), "ppm": (1e-6, {}), "ppb": (1e-9, {}),
    "degC": (1.0, {"K": 1}), "degF": (5 / 9, {"K": 1}), "degree": (math.pi / 180, {"rad": 1}),
    "pc": (3.0856775814913673e16, {"m": 1}), "AU": (1.495978707e11, {"m": 1}), "ly": (9.4607304725808e15, {"m": 1}),
    "angstrom": (1e-10, {"m": 1}), "micron": (1e-6, {"m": 1}), "bohr": (5.29177210544e-11, {"m": 1}),
    "L": (1e-3, {"m": 3}), "Msun": (1.988409870698051e30, {"kg": 1}), "Da": (1.66053906892e-27, {"kg": 1}),
    "N": (1.0, {"kg": 1, "m": 1, "s": -2}), "dyn": (1e-5, {"kg": 1, "m": 1, "s": -2}),
    "J": (1.0, {"kg": 1, "m": 2, "s": -2}), "W": (1.0, {"kg": 1, "m": 2, "s": -3}),
    "erg": (1e-7, {"kg": 1, "m": 2, "s": -2}), "cal": (4.184, {"kg": 1, "m": 2, "s": -2}),
    "eV": (1.602176634e-19, {"kg": 1, "m": 2, "s": -2}),
    "Pa": (1.0, {"kg": 1, "m": -1, "s": -2}), "bar": (1e5, {"kg": 1, "m": -1, "s": -2}),
    "atm": (101325.0, {"kg": 1, "m": -1, "s": -2}),
    "C": (1.0, {"A": 1, "s": 1}), "V": (1.0, {"kg": 1, "m": 2, "s": -3, "A": -1}), "T": (1.0, {"kg": 1, "s": -2, "A": -1}),
    "Gauss": (1e-4, {"kg": 1, "s": -2, "A": -1}), "Hz": (1.0, {"s": -1}), "knot": (1852 / 3600, {"m": 1, "s": -1}),
    "min": (60.0, {"s": 1}), "hour": (3600.0, {"s": 1}), "day": (86400.0, {"s": 1}), "yr": (31557600.0, {"s": 1}),
}
_SPELLINGS = {   # in small letters, for words of more than three; plurals are understood, too
    "meter": "m", "metre": "m", "gram": "g", "second": "s", "sec": "s", "kelvin": "K", "celsius": "degC", "ampere": "A",
    "fahrenheit": "degF", "pascal": "Pa", "newton": "N", "joule": "J", "watt": "W", "volt": "V", "tesla": "T",
    "hertz": "Hz", "coulomb": "C", "mole": "mol", "parsec": "pc", "radian": "rad", "liter": "L",
    "litre": "L", "l": "L", "Å": "angstrom",
    "Angstrom": "angstrom", "dalton": "Da", "psu": "PSU", "minute": "min", "hr": "hour", "d": "day", "gauss": "Gauss",
    "mb": "mbar", "M_sun": "Msun", "solMass": "Msun", "Bohr": "bohr", "au": "AU", "electronvolt": "eV", "bar": "bar",
    "hrs": "hour", "calorie": "cal", "centigrade": "degC",
}
_PREFIXES = {"f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1, "h": 1e2,
             "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_WORDS = {"femto": "f", "pico": "p", "nano": "n", "micro": "u", "milli": "m", "centi": "c", "deci": "d", "hecto": "h",
          "kilo": "k", "mega": "M", "giga": "G", "tera": "T"}
_PREFIXED = ("m", "g", "s", "K", "A", "pc", "N", "J", "W", "V", "C", "T", "Pa", "bar", "yr", "mol", "L", "Hz", "eV",
             "cal", "rad")
_TEMPERATURE = re.compile(r"(?:[°º]|\bdeg(?:ree)?s?[ _]?)\s?(C|K|F)(?:elsius|elvin|ahrenheit)?(?![A-Za-z])", re.IGNORECASE)
_DEGREES = re.compile(r"°|º|\bdeg(?:ree)?s?(?:_(?:north|east|south|west|true|N|E|S|W))?(?![A-Za-z])")
_SIGNS = str.maketrans(dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻\u2212·℃", [*"0123456789--*", "°C"], strict=True)))
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)$")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[^\W\d]+|%)|(?P<sign>[()/*.]))"
    r"(?:\s*\^\s*(?P<raised>[-+]?\d+)|(?<=[^\W\d%])(?P<power>[-+]?\d+))?"
)
_AFTER = re.compile(r"\s*\^?\s*([-+]?\d+)")
_BROKEN = re.compile(r"\.\d|\(")   # after a power or a name: a power that is no whole number, such as m^0.5 or m(1/2)


@dataclass
class Measure:
    """A unit: its size in base units, their powers, and the names that are not known."""

    size: float = 1.0
    base: Base = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def times(self, other: Measure, power: int) -> None:
        """Multiply by a power of another unit."""
        self.size *= other.size**power
        for name, each in other.base.items():
            self.base[name] = self.base.get(name, 0) + each * power
        self.unknown += other.unknown

    @property
    def powers(self) -> Base:
        """The powers that are not zero."""
        return {name: power for name, power in self.base.items() if power}


def number_and_unit(text: str) -> tuple[float, str]:
    """The number and the unit of a quantity as it is written.

    >>> number_and_unit("10 kpc/h")
    (10.0, 'kpc/h')
    """
    found = _NUMBER.match(text)
    if found is None or not found[2].strip():
        raise WorkbenchError(f'a quantity is a number and a unit, such as "10 pc"; got {text!r}')
    return float(found[1]), found[2].strip()


def factor_between(unit: str, other: str) -> float:
    """How many of the other unit one of this is.

    >>> factor_between("kpc/h", "Mpc/h"), factor_between("hPa", "kg m-1 s-2"), factor_between("degrees_C", "kelvin")
    (0.001, 100.0, 1.0)
    """
    if unit.split() == other.split():
        return 1.0
    here, there = measure(unit), measure(other)
    if here.powers != there.powers:
        if strange := [f"{name!r}" for name in dict.fromkeys((*here.unknown, *there.unknown))]:
            raise WorkbenchError(
                f"{unit} cannot be converted to {other}: {' and '.join(strange)} {'is' if len(strange) == 1 else 'are'} "
                "not known; give a number in the unit of the data"
            )
        raise WorkbenchError(f"{unit} and {other} measure different things: give the bound in a unit like {other}")
    return float(f"{here.size / there.size:.12g}")


def measure(unit: str) -> Measure:
    """A unit in base units.

    >>> measure("W m-2").powers, measure("1e10 Msun/h").powers
    ({'kg': 1, 's': -3}, {'kg': 1, 'h': -1})
    """
    text = unit.partition(" since ")[0].replace("**", "^").translate(_SIGNS)
    text = _TEMPERATURE.sub(lambda found: "K" if found[1] in "kK" else f"deg{found[1].upper()}", text)
    text = _DEGREES.sub(lambda found: "degree", text).strip()
    try:
        found, end = _product(text, 0, depth=0)
        if end != len(text):
            raise ValueError(text[end:])
        if not 0 < found.size < math.inf:
            raise ValueError(f"a size of {found.size}")
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        raise WorkbenchError(
            f"the unit {unit!r:.80} is not understood at {str(error)!r:.40}: write it like kg m-2 s-1 or W/m^2, or give a "
            "number in the unit of the data"
        ) from None
    return found


def _product(text: str, at: int, depth: int) -> tuple[Measure, int]:
    """The product that begins here, and where it ends: at the end of the text, or at a closing parenthesis."""
    total, sign, divided, joined = Measure(), 1, False, ""
    while at < len(text) and text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(text[at:])
        if found["sign"] and found["sign"] != "(":
            if found["sign"] == ")":
                return total, at
            at, joined = found.end("sign"), found["sign"]
            sign = -1 if joined == "/" else 1
            continue
        if divided and joined not in ("/", "*"):   # a/b c is (a/b) c to UDUNITS, and a/(b c) to most who write it
            raise ValueError(f"{text[at:].strip()} after a division")
        divided = divided or joined == "/"
        factor, power, at = _factor(text, found, depth)
        if not found["number"] and _BROKEN.match(text, at):
            raise ValueError(f"{text[at:].strip()}: powers must be whole numbers")
        total.times(factor, sign * power)
        sign, joined = 1, ""
    return total, len(text)


def _factor(text: str, found: re.Match[str], depth: int) -> tuple[Measure, int, int]:
    """A number, a unit or a product in parentheses; its power, and where it ends."""
    power = _power(found["raised"] or found["power"] or "1")
    if found["number"]:
        return Measure(float(found["number"])), power, found.end()
    if found["name"]:
        return _named(found["name"]), power, found.end()
    if depth == 8:
        raise ValueError("more than 8 parentheses")
    inner, end = _product(text, found.end("sign"), depth + 1)
    closing = text.find(")", end)
    if closing < 0:
        raise ValueError("a parenthesis that is not closed")
    after = _AFTER.match(text, closing + 1)
    return inner, _power(after[1]) if after else 1, after.end() if after else closing + 1


def _power(text: str) -> int:
    if len(text) > 3:
        raise ValueError(text)
    return int(text)


def _named(name: str) -> Measure:
    """A unit with or without a prefix; a name that is not known stands for itself."""
    for spelling in dict.fromkeys((name, name.lower()) if len(name) > 3 else (name,)):
        for single in (spelling, spelling.removesuffix("s") if len(spelling) > 3 else spelling):
            if known := _one(single):
                return Measure(known[0], dict(known[1]))
    return Measure(1.0, {name: 1}, (name,))


def _one(name: str) -> tuple[float, Base] | None:
    symbol: str = _SPELLINGS.get(name, name)
    if symbol in _KNOWN:
        return _KNOWN[symbol]
    if word := next((word for word in _WORDS if name.startswith(word) and name[len(word) :] in _SPELLINGS), None):
        symbol = _WORDS[word] + _SPELLINGS[name[len(word) :]]
    return _prefixed(symbol, _KNOWN)


def _prefixed(symbol: str, known: Mapping[str, tuple[float, Base]]) -> tuple[float, Base] | None:
    prefix, rest = symbol[:1], symbol[1:]
    if prefix in _PREFIXES and rest in _PREFIXED:
        return _PREFIXES[prefix] * known[rest][0], known[rest][1]
    return None
