"""The power spectrum of an archive: that of the original is within the ends in each shell, whatever the errors are."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from archive.samples import CODECS
from workbench.errors import WorkbenchError
from workbench.metrics import field_spectrum

NAMES = [codec for codec in ("staged", "interpolation", "zfp", "pcodec") if codec in CODECS]


def case(seed: int) -> tuple[wb.Field, object, str]:
    rng = np.random.default_rng(seed)
    shape = [(64,), (7,), (12, 20), (9, 10, 11), (2, 6, 5, 8)][int(rng.integers(5))]
    values = np.cumsum(rng.normal(size=shape), axis=-1) * 10.0 ** rng.uniform(-3, 3)
    dtype = (np.float32, np.float64)[int(rng.integers(2))]
    if rng.random() < 0.1 and dtype is np.float64:
        values *= 1e250
    if rng.random() < 0.3:
        values[rng.random(shape) < 0.1] = np.nan
    share = 10.0 ** rng.uniform(-6, -0.5)
    bounds = [wb.Relative(share), wb.PointwiseRelative(share), wb.Exact()]
    bounds += [wb.PerSlice(wb.Relative(share), 0)] * (len(shape) > 1)
    bound, codec = bounds[int(rng.integers(len(bounds)))], NAMES[int(rng.integers(len(NAMES)))]
    return wb.Field(values.astype(dtype), spacing=rng.uniform(0.1, 10)), bound, codec


def test_the_power_of_the_original_is_between_the_ends():
    for seed in range(60):
        field, bound, codec = case(seed)
        spectrum, true = wb.compress(field, bound, codec).power_spectrum(), field_spectrum(field)
        power = true.whole_power
        if np.isfinite(power).all():
            slack = 1e-10 * power.max()   # the transform of the oracle is rounded, too
            assert ((spectrum.low <= power + slack) & (power - slack <= spectrum.high)).all(), seed
        assert ((spectrum.low <= spectrum.power) & (spectrum.power <= spectrum.high)).all(), seed


def test_errors_that_are_one_wave_reach_the_end_of_the_interval():
    """The bound is sharp: all errors can be in one shell."""
    wave = np.sign(np.cos(np.pi * np.arange(64) + 0.1))   # +1, -1: the Nyquist wave, the strongest for its largest value
    smooth = 40 * np.cos(2 * np.pi * np.arange(64) / 64)
    archive = wb.compress(np.round(smooth), wb.Absolute(1.0), "pcodec")
    spectrum, moved = archive.power_spectrum(), field_spectrum(np.round(smooth) + wave)
    assert moved.power[-1] <= spectrum.high[-1] < 1.3 * moved.power[-1]


def test_how_far_it_is_known():
    field = wb.synthetic.gaussian_field((32,) * 3, lambda k: np.where(k > 0, np.maximum(k, 1e-9) ** -3.0, 0), seed=1)
    known = [wb.compress(field, wb.Relative(eb), "staged").power_spectrum().known_up_to() for eb in (1e-2, 1e-3, 1e-6)]
    assert known[0] < known[1] < known[2] <= np.pi


def test_what_has_no_spectrum_is_refused():
    particles = wb.synthetic.cosmic_web(n=8, seed=0)
    for data, words in ((np.zeros((4, 4), np.int32), "floating-point"), (particles, "count_particles")):
        with pytest.raises(WorkbenchError, match=words):
            wb.compress(data, wb.Absolute(0.1)).power_spectrum()
