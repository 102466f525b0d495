"""Regions are found where they are, and only where there are any; what does not vary is set apart exactly."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import label
from scipy.optimize import linear_sum_assignment

from combinations import in_pairs
from workbench.data import Field
from workbench.data.synthetic import Region, gaussian_field, piecewise_field
from workbench.errors import WorkbenchError
from workbench.limits import segmentation, texture
from workbench.limits.regions import FEWEST, Regions, segment

MODELS = {
    "twice the deviation, smooth": [Region(1, 0.95), Region(0.5, 0.95)],
    "twice the deviation, white": [Region(1, 0), Region(2, 0)],
    "twice the deviation": [Region(1, 0.5), Region(2, 0.5)],
    "correlation 0.95 and 0.5": [Region(1, 0.95), Region(1, 0.5)],
    "correlation 0.9 and 0": [Region(1, 0.9), Region(1, 0)],
    "levels, smooth": [Region(1, 0.95, 0), Region(1, 0.95, 5)],
    "levels": [Region(1, 0.5, 0), Region(1, 0.5, 5)],
    "levels, white": [Region(1, 0, 0), Region(1, 0, 4)],
    "levels far from 0": [Region(1, 0.9, 100), Region(1, 0.9, 108)],
    "three": [Region(1, 0.95), Region(0.3, 0.95), Region(1, 0.3)],
    "four": [Region(1, 0.9), Region(4, 0.9), Region(1, 0), Region(0.2, 0.5)],
}
HOMOGENEOUS = {
    "smooth recursion": lambda shape, seed: piecewise_field(shape, [Region(1, 0.95)], seed),
    "rough recursion": lambda shape, seed: piecewise_field(shape, [Region(1, 0.5)], seed),
    "white noise": lambda shape, seed: gaussian_field(shape, 0.0, seed),
    "power law 2": lambda shape, seed: gaussian_field(shape, 2.0, seed),
    "power law 3": lambda shape, seed: gaussian_field(shape, 3.0, seed),
}


def share_right(found: Regions, truth: np.ndarray) -> float:
    """The share of cells in the right region, for the best way to name the regions."""
    names = max(found.count, truth.max() + 1)
    table = np.bincount((np.maximum(found.labels, 0) * names + truth).ravel(), minlength=names**2).reshape(names, names)
    return table[linear_sum_assignment(-table)].sum() / truth.size


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "layout"), in_pairs(list(MODELS), ["split", "blocks", "discs"]))
def test_regions_of_a_plane_are_found_to_about_a_cell(name, layout):
    field = piecewise_field((256, 256), MODELS[name], seed=2, layout=layout)
    found = segment(field)
    assert found.count == len(MODELS[name])
    assert share_right(found, field.metadata["regions"]) > (0.98 if layout == "split" else 0.95)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.long] * (number % 2)) for number, name in enumerate(MODELS)
])
def test_halves_of_a_cube_are_found(name):
    field = piecewise_field((64, 64, 64), MODELS[name], seed=1)
    found = segment(field)
    assert found.count == len(MODELS[name])
    assert share_right(found, field.metadata["regions"]) > 0.97


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["twice the deviation, smooth", "correlation 0.9 and 0", "levels, smooth", "four"])
def test_cubes_in_a_cube_are_found(name):
    field = piecewise_field((64, 64, 64), MODELS[name], seed=1, layout="blocks", block=32)
    found = segment(field)
    assert found.count == len(MODELS[name])
    assert share_right(found, field.metadata["regions"]) > 0.96


@pytest.mark.parametrize("name", MODELS)
def test_stretches_of_a_line_are_found(name):
    field = piecewise_field(8192, MODELS[name], seed=1, layout="blocks")
    found = segment(field)
    assert found.count == len(MODELS[name])
    assert share_right(found, field.metadata["regions"]) > 0.97


def test_halves_in_four_dimensions_are_found():
    field = piecewise_field((20, 20, 20, 20), MODELS["correlation 0.95 and 0.5"], seed=1)
    found = segment(field)
    assert found.count == 2
    assert share_right(found, field.metadata["regions"]) > 0.97


@pytest.mark.few(5)
@pytest.mark.parametrize("shape", [(256, 256), (64, 64, 64), (8192,), (20, 20, 20, 20)], ids=str)
@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_a_homogeneous_field_is_one_region(name, shape):
    assert [segment(HOMOGENEOUS[name](shape, seed)).count for seed in range(3)] == [1, 1, 1]


def test_a_slope_is_one_region():
    across, down = np.mgrid[:200, :200]
    noise = np.random.default_rng(1).standard_normal((200, 200))
    assert segment(Field(across + 0.5 * down + noise)).count == 1


@pytest.mark.parametrize("layout", ["split", "blocks", "discs"])
def test_constant_regions_are_found_exactly(layout):
    field = piecewise_field((64, 64, 64), [Region(1, 0.9), Region(0, 0.9, 7.0)], seed=1, layout=layout)
    found = segment(field)
    assert found.count == 2
    assert share_right(found, field.metadata["regions"]) == 1


def test_each_fill_value_is_a_region_and_does_not_disturb_the_others():
    field = piecewise_field((256, 256), MODELS["correlation 0.95 and 0.5"], seed=1)
    values, truth = field.values.copy(), field.metadata["regions"].copy()
    values[:30], truth[:30] = 1e20, 2
    values[100:140, 100:140], truth[100:140, 100:140] = 0.0, 3
    found = segment(Field(values))
    assert found.count == 4
    assert share_right(found, truth) > 0.985
    for name in (2, 3):
        assert len(np.unique(found.labels[truth == name])) == 1
        assert (truth[found.labels == found.labels[truth == name][0]] == name).all()


def test_places_without_a_value_are_in_no_region():
    field = piecewise_field((256, 256), MODELS["correlation 0.95 and 0.5"], seed=3)
    truth = field.metadata["regions"]
    random = np.random.default_rng(0)
    values, mask = field.values.copy(), np.zeros(field.shape, bool)
    values[random.random(field.shape) < 0.002] = np.nan
    values[7, 7], values[60:90, 60:90] = np.inf, np.nan
    mask[200:, :40] = True
    damaged = Field(values, mask=mask)
    found = segment(damaged)
    assert np.array_equal(found.labels >= 0, damaged.valid)
    assert found.count == 2
    kept = found.labels >= 0
    wrong = np.mean(found.labels[kept] != truth[kept])
    assert min(wrong, 1 - wrong) < 0.03


@pytest.mark.long
def test_no_more_regions_are_found_than_asked_for():
    field = piecewise_field((256, 256), MODELS["four"], seed=1)
    assert [segment(field, most=most).count for most in (1, 2, 3, 4, 5)] == [1, 2, 3, 4, 4]
    values = field.values.copy()
    values[:64] = 0
    assert [segment(Field(values), most=most).count for most in (1, 2, 3)] == [1, 2, 3]


def test_what_is_tiny_belongs_to_what_is_around_it():
    layout = np.zeros((256, 256), int)
    layout[100:107, 100:107] = 1
    assert segment(piecewise_field((256, 256), [Region(1, 0.9), Region(4, 0)], seed=1, layout=layout)).count == 1


def test_the_largest_region_comes_first():
    layout = np.repeat([0, 1, 2], [40, 80, 136]) * np.ones((256, 1), int)
    found = segment(piecewise_field((256, 256), MODELS["three"], seed=1, layout=layout))
    assert found.count == 3
    assert (np.diff(found.sizes) < 0).all()
    assert share_right(found, layout) > 0.98


def test_units_and_kinds_of_numbers_do_not_matter():
    field = piecewise_field((128, 128), MODELS["correlation 0.95 and 0.5"], seed=1, layout="blocks")
    found = segment(field)
    for values in (field.values.astype(np.float64), field.values * np.float32(2.0**-40), field.values * -(2.0**30)):
        assert np.array_equal(segment(Field(values)).labels, found.labels)


def test_it_is_the_same_map_every_time_and_whatever_is_looked_at_together(monkeypatch):
    field = piecewise_field((256, 128), MODELS["three"], seed=1, layout="blocks")
    found = segment(field)
    assert np.array_equal(segment(field).labels, found.labels)
    monkeypatch.setattr(segmentation, "SLAB", 50 * 128)
    monkeypatch.setattr(texture, "SLAB", 20 * 128)
    assert np.array_equal(segment(field).labels, found.labels)


@pytest.mark.few(1)
@pytest.mark.parametrize(("shape", "block"), [((256, 256), 64), ((64, 64, 64), 32)])
def test_large_fields_are_looked_at_once(monkeypatch, shape, block):
    monkeypatch.setattr(segmentation, "LARGE", 0)
    for name in ("correlation 0.9 and 0", "twice the deviation"):
        field = piecewise_field(shape, MODELS[name], seed=1, layout="blocks", block=block)
        found = segment(field)
        assert found.count == 2
        assert share_right(found, field.metadata["regions"]) > 0.95


@pytest.mark.parametrize(
    "shape", [(1,), (2,), (3,), (1, 1), (1, 300), (300, 1), (2, 300), (5, 5), (1, 1, 1), (3, 1, 90), (2, 2, 2, 2)], ids=str
)
def test_small_and_thin_fields_are_no_problem(shape):
    for values in (np.zeros(shape), np.random.default_rng(0).standard_normal(shape)):
        found = segment(Field(values))
        assert found.count == 1
        assert not found.labels.any()


def test_axes_of_one_value_say_nothing():
    values = piecewise_field((128, 128), MODELS["correlation 0.9 and 0"], seed=1).values
    found = segment(Field(values))
    assert found.count == 2
    for axis in (0, 1, 2):
        assert np.array_equal(segment(Field(np.expand_dims(values, axis))).labels, np.expand_dims(found.labels, axis))


@st.composite
def strange_fields(draw: st.DrawFn) -> Field:
    """Noise, trends and plateaus, of wild scales, with holes."""
    shape = tuple(draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = random.standard_normal(shape)
    for _ in range(draw(st.integers(0, 3))):
        box = tuple(slice(*sorted(random.integers(0, length + 1, 2))) for length in shape)
        kind = draw(st.sampled_from(["plateau", "loud", "trend", "hole"]))
        if kind == "plateau":
            values[box] = random.choice([0.0, 1e30, -5.0])
        elif kind == "loud":
            values[box] *= 10.0 ** random.integers(-20, 20)
        elif kind == "trend":
            values[box] += np.linspace(0, 1e6, values.shape[-1])[box[-1]]
        else:
            values[box] = random.choice([np.nan, np.inf])
    return Field(values.astype(draw(st.sampled_from([np.float32, np.float64]))))


@settings(max_examples=60)
@given(strange_fields(), st.integers(1, 7))
def test_a_map_is_complete_and_its_regions_are_not_tiny(field, most):
    if not field.valid.any():
        with pytest.raises(WorkbenchError, match="at least one value"):
            segment(field, most)
        return
    found = segment(field, most)
    assert found.labels.dtype == np.int32
    assert found.labels.shape == field.shape
    assert np.array_equal(found.labels >= 0, field.valid)
    assert found.labels.max() == found.count - 1 < most
    assert (np.diff(found.sizes) <= 0).all()
    assert found.sizes.sum() == np.count_nonzero(field.valid)
    if found.count > 1:
        assert found.sizes[-2] >= max(FEWEST, 0.01 * found.sizes.sum())   # around fill values, less may be left over


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("file", "shape"),
    [("vorticity.512_512", (512, 512)), ("wmag91.float", (91, 91, 91)), ("vorticity.128_128_41", (41, 128, 128))],
)
def test_turbulence_is_not_torn_to_pieces(shared_data, file, shape):
    found = segment(Field(np.fromfile(shared_data / "sperr_fields" / file, "<f4").reshape(shape)))
    assert found.count <= 6
    assert borders(found.labels) < 0.06


def test_the_sea_has_a_surface_of_another_character_than_the_land(shared_data):
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(shared_data / "cesm" / "cam-fv.T.3months.nc") as file:
        lowest = np.asarray(file["T"][0, -1])
    found = segment(Field(lowest))
    assert 2 <= found.count <= 6
    assert borders(found.labels) < 0.06
    pacific, indian, atlantic = found.labels[95:100, 160:200], found.labels[70:80, 60:70], found.labels[110:120, 256:262]
    africa, asia = found.labels[105:120, 0:25], found.labels[140:155, 60:100]
    assert len(np.unique(np.concatenate([part.ravel() for part in (pacific, indian, atlantic)]))) == 1
    for land in (africa, asia):
        assert np.mean(land == pacific[0, 0]) < 0.2
    pieces = sum(label(found.labels == name)[1] for name in range(found.count))
    assert pieces < 60


def borders(labels: np.ndarray) -> float:
    """The share of neighbours that are in different regions."""
    return float(np.mean([np.mean(np.diff(labels, axis=axis) != 0) for axis in range(labels.ndim)]))


def test_a_given_map_is_renumbered_and_kept():
    field = Field(np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]]), mask=np.array([[True, False, False], [False] * 3]))
    found = Regions.given(np.array([[9, 9, 9], [-5, 4, 9]], np.int8), field)
    assert found.labels.tolist() == [[-1, 1, -1], [-1, 0, 1]]
    assert found.count == 2
    assert found.sizes.tolist() == [1, 2]
    assert found.names() == ["region 1 (33.3%)", "region 2 (66.7%)"]
    with pytest.raises(ValueError, match="read-only"):
        found.labels[0, 0] = 1
    parts = np.arange(6).reshape(2, 3) % 2 == 0
    assert np.array_equal(Regions.given(parts, Field(np.ones((2, 3)))).labels, parts)


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (np.zeros((3, 2), int), r"in the shape of the field, \(2, 3\); got int64 of shape \(3, 2\)"),
        (np.zeros((2, 3)), "whole numbers .* got float64"),
        (np.full((2, 3), -1), "must contain a valid value"),
        ([["a"] * 3] * 2, "whole numbers"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(labels, complaint):
    with pytest.raises(WorkbenchError, match=complaint):
        Regions.given(labels, Field(np.ones((2, 3))))


@pytest.mark.parametrize("most", [0, -1, 1.5, None])
def test_a_number_of_regions_that_is_none_is_refused(most):
    with pytest.raises(WorkbenchError, match="most must be a whole number, at least 1"):
        segment(Field(np.ones(5)), most)


def test_a_field_without_values_is_refused():
    with pytest.raises(WorkbenchError, match="at least one value"):
        segment(Field(np.full((5, 5), np.nan)))


@pytest.mark.parametrize("shape", [(20,), (7, 9), (5, 6, 3), (3, 3, 4, 4)])
def test_corners_are_another_way_to_write_a_cube(shape):
    values = np.random.default_rng(0).standard_normal(shape)
    parts = texture.corners(values)
    reach = texture.REACH[len(shape)]
    cells = [values[tuple(slice(step, length - reach + step) for step, length in zip(steps, shape, strict=True))].ravel()
             for steps in product(range(reach + 1), repeat=len(shape))]
    basis, others = np.array(cells).T, np.array(cells[:-1]).T
    for part in parts[:-1]:   # all but the last are made without the last cell
        assert np.linalg.norm(others @ np.linalg.lstsq(others, part.ravel())[0] - part.ravel()) < 1e-10
    assert np.allclose(np.linalg.lstsq(basis, parts[-1].ravel())[0][-1], 1)
    assert np.linalg.matrix_rank(np.array([part.ravel() for part in parts]).T) == min(len(parts), parts[0].size)


@pytest.mark.parametrize("shape", [(300,), (30, 21), (11, 9, 14), (7, 5, 8, 6)])
def test_moments_fit_and_price_textures_as_the_cubes_themselves_would(shape):
    random = np.random.default_rng(0)
    values = random.standard_normal(shape).astype(np.float32).cumsum(axis=-1)
    known = random.random(shape) > 0.02
    sums = texture.moments(values, known)
    whole = texture.inside(known)
    cubes = np.array([np.ones(whole.sum()), *(part[whole] for part in texture.corners(values))]).T
    assert np.allclose(sums.sum(axis=tuple(range(len(shape)))), cubes.T @ cubes, rtol=1e-5, atol=1e-3)

    found = texture.Textures.of(sums.sum(axis=tuple(range(len(shape))))[None])
    slopes, left, *_ = np.linalg.lstsq(cubes[:, :-1], cubes[:, -1])
    assert np.allclose(found.weights[0], [*-slopes, 1], atol=1e-3)
    assert np.allclose(found.variance, left / len(cubes), rtol=1e-4)
    assert np.allclose([found.level[0], found.spread[0]], [cubes[:, 1].mean(), cubes[:, 1].var()], rtol=1e-4)

    size = sums.shape[-1]
    given, alone = found.price_blocks(sums.reshape(-1, size, size))
    assert np.isclose(given.sum(), found.price_cubes(values)[0][whole].sum(), rtol=1e-4)
    box = (slice(2 * texture.REACH[len(shape)]),) * len(shape)
    block = texture.moments(values[box], np.ones_like(known[box])).reshape(1, size, size)
    first = (slice(texture.REACH[len(shape)]),) * len(shape)   # the first corners of its cubes
    assert np.isclose(found.price_blocks(block)[1][0, 0], found.price_values(values)[0][first].mean(), rtol=1e-4)
    assert alone.shape == given.shape


def test_only_uneven_fields_are_uneven():
    def unevenness(field):
        values = (field.values / field.values.std()).astype(np.float32)
        return texture.unevenness(texture.moments(values, np.ones(field.shape, bool)))

    assert unevenness(gaussian_field((256, 256), 0.0, seed=1)) < 1.15
    assert unevenness(piecewise_field((256, 256), MODELS["three"], layout="blocks")) < 1.6   # most neighbours are alike
    assert unevenness(gaussian_field((256, 256), 5.0, seed=1)) > 2
