"""Linear theory against closed forms and published values."""

import numpy as np
import pytest

import workbench as wb
from workbench.data.synthetic import Cosmology


def test_matter_alone_grows_with_the_scale_factor():
    einstein_de_sitter = Cosmology(omega_m=1.0)
    for a in (0.01, 0.1, 0.5, 1.0):
        assert einstein_de_sitter.growth(a) == pytest.approx(a, rel=1e-6)
        assert einstein_de_sitter.growth_rate(a) == pytest.approx(1, rel=1e-6)


def test_growth_matches_the_fit_of_carroll_press_and_turner():
    cosmology = Cosmology()
    matter, vacuum = 0.3, 0.7
    suppression = 2.5 * matter / (matter ** (4 / 7) - vacuum + (1 + matter / 2) * (1 + vacuum / 70))
    assert cosmology.growth(0.001) == pytest.approx(0.001 / suppression, rel=0.01)
    assert cosmology.growth_rate(1.0) == pytest.approx(0.3**0.55, rel=0.01)


def test_growth_rate_is_the_slope_of_growth():
    cosmology, step = Cosmology(), 1e-4
    slope = np.log(cosmology.growth(0.5 * (1 + step)) / cosmology.growth(0.5 * (1 - step))) / (2 * step)
    assert cosmology.growth_rate(0.5) == pytest.approx(slope, rel=1e-5)


def test_amplitude_on_8_mpc():
    assert Cosmology(sigma8=0.83).sigma(8.0) == pytest.approx(0.83)


def test_power_turns_over_near_equality():
    k = np.geomspace(1e-4, 10, 2000)
    power = Cosmology().power(k)
    assert 0.01 < k[power.argmax()] < 0.03
    assert np.polyfit(np.log(k[:100]), np.log(power[:100]), 1)[0] == pytest.approx(0.96, abs=0.02)


@pytest.mark.parametrize(("name", "value"), [
    ("omega_m", 0), ("omega_m", float("nan")), ("omega_b", 0.5), ("h", -0.7), ("sigma8", 0),
])
def test_impossible_universes_are_refused(name: str, value: float):
    with pytest.raises(wb.WorkbenchError, match=f"{name} must lie in .* got {value}"):
        Cosmology(**{name: value})
