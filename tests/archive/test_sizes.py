"""What ratio and bits per value count: the numbers that were given, and of them the valid ones."""

import math
import tracemalloc

import numpy as np
import pytest

import workbench as wb


def test_masked_and_missing_cells_are_no_data():
    values = np.random.default_rng(0).normal(size=(80, 100)).astype(np.float32)
    mask = np.zeros(values.shape, bool)
    mask[:40] = True
    values[50, :10] = np.nan
    archive = wb.compress(wb.Field(values, mask=mask), wb.Absolute(0.01))
    valid = 40 * 100 - 10
    assert archive.original_nbytes == 4 * valid
    assert archive.ratio == 4 * valid / archive.nbytes
    assert archive.bits_per_value == 8 * archive.nbytes / valid


def test_a_run_of_a_sweep_and_its_place_beside_theory_have_the_same_bits():
    field = wb.synthetic.gaussian_field((64, 64), seed=1)
    mask = np.zeros(field.shape, bool)
    mask[:, :20] = True
    limits = wb.rate_distortion(wb.Field(field.values, mask=mask), regions=1)
    point = limits.compare("prequantised", wb.Absolute(0.05)).points[0]
    assert point.bits == pytest.approx(point.run["bits_per_value"])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32"])
def test_the_original_has_the_size_of_its_own_type(dtype):
    values = np.arange(4096, dtype=dtype).reshape(64, 64)
    assert wb.compress(values, wb.Absolute(0)).original_nbytes == values.nbytes


def test_a_field_without_a_valid_value_has_no_ratio():
    archive = wb.compress(wb.Field(np.full(100, np.nan)), wb.Absolute(1))
    assert (archive.ratio, archive.bits_per_value) == (0.0, math.inf)


def test_particles_count_velocities_and_ids():
    particles = wb.Particles(np.random.default_rng(0).random((50, 3)), 1.0, np.zeros((50, 3), "f4"), np.arange(50))
    assert wb.compress(particles, wb.Absolute(0.01)).original_nbytes == 50 * (24 + 12 + 8)


def test_decoding_takes_the_memory_of_what_it_returns():
    archive = wb.compress(np.zeros((64, 128, 128)), wb.Absolute(1e-3), chunk_values=2**16)
    tracemalloc.start()
    field = archive.decompress()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert field.values.nbytes <= peak < 1.6 * field.values.nbytes
