"""Bounds with units: converted to the unit of the data, or refused in words."""

import dataclasses

import numpy as np
import pytest

import workbench as wb
from workbench.data.unit_grammar import factor_between, number_and_unit

TEMPERATURE = wb.Field(280 + np.random.default_rng(0).random(500), metadata={"units": "K"})
POSITIONS = np.random.default_rng(0).random((300, 3))


@pytest.mark.parametrize(
    ("unit", "other", "factor"),
    [
        ("pc", "kpc", 1e-3), ("kpc/h", "Mpc/h", 1e-3), ("hPa", "Pa", 100), ("mbar", "hPa", 1), ("km/s", "m s-1", 1000),
        ("kg m-2 s-1", "g m-2 s-1", 1000), ("kg/m^2/s", "kg m**-2 s-1", 1), ("nm", "angstrom", 10), ("mK", "K", 1e-3),
        ("Mpc", "3.0856775814913673e24 cm", 1), ("%", "1", 0.01), ("day", "s", 86400),
        ("degC", "K", 1), ("degrees Celsius", "°C", 1), ("degree_C", "celsius", 1), ("degF", "kelvin", 5 / 9),
        ("PSU", "psu", 1),
        ("millibars", "hPa", 1), ("Kelvin/day", "degC s-1", 1 / 86400), ("days since 2000-01-01 00:00", "hours", 24),
        ("kg/(m2 s)", "kg m-2 s-1", 1), ("(m/s)^2", "m2.s-2", 1), ("km / s ** 2", "m·s⁻²", 1000), ("m/s*kg", "kg m s-1", 1),
        ("J kg**-1 K**-1", "J/(kg K)", 1), ("1/s", "Hz", 1), ("10^3 m", "kilometers", 1), ("g kg-1", "1e-3", 1),
        ("1e10 Msun/h", "Msun h-1", 1e10), ("degrees_north", "radian", np.pi / 180), ("m s\u22121", "m/s", 1),
        ("℃", "K", 1), ("kilocalorie/mole", "J/mol", 4184), ("widgets/s", "widgets s-1", 1),
    ],
)
def test_factors(unit, other, factor):
    assert factor_between(unit, other) == pytest.approx(factor, rel=1e-11)
    assert factor_between(other, unit) == pytest.approx(1 / factor, rel=1e-11)


@pytest.mark.parametrize(
    ("unit", "other"),
    [
        ("pc", "K"), ("Mpc", "Mpc/h"), ("furlong", "m"), ("m", "not a unit"), ("", "m"), ("J/kg K", "J kg-1 K-1"),
        ("m" + "(" * 9, "m"), ("m)", "m"), ("(m", "s"), ("m^9999", "s"), ("1e400 m", "m"), ("m$", "m"),
        ("mm/day", "kg m-2 s-1"), ("1 hour", "h"),
        ("m^0.5", "0.5"), ("m(1/2)", "0.5 m"), ("(m/s)^1.5", "m/s"), ("m2.5", "m2"),
    ],
)
def test_what_does_not_fit_is_refused(unit, other):
    with pytest.raises(wb.WorkbenchError):
        factor_between(unit, other)


def test_an_unknown_unit_fits_itself_and_is_named_otherwise():
    assert factor_between("practical widgets [sic]", "practical  widgets [sic]") == 1
    with pytest.raises(wb.WorkbenchError, match="'furlong' is not known"):
        factor_between("furlong", "m")


@pytest.mark.parametrize("text", ["pc", "10", "ten pc", ""])
def test_text_that_is_no_quantity_is_refused(text):
    with pytest.raises(wb.WorkbenchError, match="a number and a unit"):
        number_and_unit(text)


def test_an_archive_states_the_bound_in_the_unit_of_the_data():
    archive = wb.compress(TEMPERATURE, wb.Absolute("10 mK"), "prequantised")
    assert archive.certificate["values"].bound == wb.Absolute(0.01)
    assert wb.sweep(TEMPERATURE, "prequantised", wb.Absolute("10 mK"), workers=1)[0]["limit"] == 0.01
    assert wb.predict(TEMPERATURE, "prequantised", wb.Absolute("10 mK"))[0].bound == wb.Absolute(0.01)


@pytest.mark.parametrize(
    ("units", "eb"), [("Mpc/h, km/s", 0.01), ({"length": "kpc/h"}, 10.0), ({"positions": "comoving Mpc/h"}, 0.01)]
)
def test_positions_have_the_unit_that_their_file_states(units, eb):
    particles = wb.Particles(POSITIONS, metadata={"units": units})
    assert wb.compress(particles, wb.Absolute("10 kpc/h")).certificate["positions"].bound == wb.Absolute(eb)


def test_units_of_simulations_are_in_cgs():
    for units in ({"UnitLength_in_cm": 3.0856776e21}, {"Unit length in cgs (U_L)": [3.0856776e21]}):
        bound = wb.Absolute("10 pc").for_data(wb.Particles(POSITIONS, metadata={"units": units}))
        assert bound.eb == pytest.approx(0.01, rel=1e-6)


@dataclasses.dataclass
class OfAstropy:
    value: float
    unit: str


@dataclasses.dataclass
class OfUnyt:
    value: np.ndarray
    units: str


@pytest.mark.parametrize("quantity", [OfAstropy(10.0, "mK"), OfUnyt(np.array(10.0), "mK")])
def test_quantities_of_other_packages(quantity):
    assert wb.Absolute(quantity).for_data(TEMPERATURE) == wb.Absolute(0.01)


def test_units_that_do_not_fit_are_refused_before_any_work():
    with pytest.raises(wb.WorkbenchError, match="measure different things"):
        wb.compress(TEMPERATURE, wb.Absolute("10 pc"))
    with pytest.raises(wb.WorkbenchError, match="states none"):
        wb.compress(wb.Particles(POSITIONS), wb.Absolute("10 pc"))
    with pytest.raises(wb.WorkbenchError, match="without a unit"):
        wb.Relative("10 pc")
    with pytest.raises(wb.WorkbenchError, match="for_data"):
        wb.Absolute("10 pc").limit(POSITIONS)
    with pytest.raises(wb.WorkbenchError, match="not negative"):
        wb.Absolute("-1 pc")
    assert wb.Absolute(1.0) != wb.Absolute("1 pc")
