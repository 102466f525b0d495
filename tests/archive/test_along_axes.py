"""Statistics along axes and weighted ones: the exact figure of the original is in every interval."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import workbench as wb
from archive.statistics_cases import every_codec, field, made_up, regions_of
from workbench.archive.statistics import METADATA, VALUES
from workbench.errors import WorkbenchError

NAMES = ("mean", "sum", "std", "min", "max")


def exact(name: str, values: list[Fraction], weights: list[Fraction]) -> Fraction:
    """The figure in exact arithmetic; of the standard deviation, its square."""
    if name in ("min", "max"):
        return min(values) if name == "min" else max(values)
    total, weight = sum((w * x for w, x in zip(weights, values, strict=True)), Fraction(0)), sum(weights)
    if name == "sum":
        return total
    mean = total / weight
    spread = sum((w * (x - mean) ** 2 for w, x in zip(weights, values, strict=True)), Fraction(0)) / weight
    return mean if name == "mean" else spread


def holds(name: str, value: float, bound: float, true: Fraction) -> bool:
    if bound == math.inf:
        return True
    low, high = Fraction(value) - Fraction(bound), Fraction(value) + Fraction(bound)
    if name == "std":
        return (low <= 0 or low * low <= true) and true <= high * high
    return low <= true <= high


def weights_for(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, np.ndarray]:
    """Weights as a user gives them, and as an array of the field's shape."""
    if rng.random() < 0.4:
        given = rng.random(shape) * (rng.random(shape) < 0.8)
        return given, given
    axes = rng.permutation(len(shape))[: rng.integers(1, len(shape) + 1)].tolist()
    factors, whole = {axis: rng.random(shape[axis]) for axis in axes}, np.ones(shape)
    for axis, factor in factors.items():
        whole = whole * factor.reshape([-1 if each == axis else 1 for each in range(len(shape))])
    return factors, whole


def case(seed: int) -> int:
    """One random archive, its statistics along some axes of some regions; returns how many intervals were checked."""
    rng = np.random.default_rng(seed)
    archive, values, mask = made_up(rng)
    valid, checked = np.isfinite(values) if mask is None else np.isfinite(values) & ~mask, 0
    for region in regions_of(rng, values.shape):
        place = (slice(None),) * values.ndim if region is None else tuple(slice(*ends) for ends in region)
        axes = tuple(sorted(rng.permutation(values.ndim)[: rng.integers(1, values.ndim + 1)].tolist()))
        name = NAMES[int(rng.integers(len(NAMES)))]
        given, whole = weights_for(rng, values.shape) if rng.random() < 0.5 else (None, np.ones(values.shape))
        options = {} if given is None or name in ("min", "max") else {"weights": given}
        found = getattr(archive, name)(region, axis=axes, **options)
        inside = [array[place] for array in (values, valid, whole if options else np.ones(values.shape))]
        kept = [size for axis, size in enumerate(inside[0].shape) if axis not in axes]
        assert found.values.shape == tuple(kept)
        for at in itertools.islice(itertools.product(*map(range, kept)), 60):
            index = iter(at)
            cell = tuple(slice(None) if axis in axes else next(index) for axis in range(values.ndim))
            x, there, w = (array[cell] for array in inside)
            used = there & (w > 0) if name not in ("min", "max") else there
            if not used.any():
                assert np.isnan(found.values[at])
                continue
            true = exact(name, *(list(map(Fraction, array[used].tolist())) for array in (x, w)))
            assert holds(name, found.values[at].item(), found.bound[at].item(), true), (name, axes, region, at, options)
            checked += 1
    return checked


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in (1, 2))])
def test_the_exact_figures_are_in_every_interval(part):
    assert sum(case(seed) for seed in range(2000 * part, 2000 * part + 20)) > 200


@every_codec
def test_the_interval_is_about_as_wide_as_the_bound(codec):
    values = field(np.random.default_rng(3), (40, 41, 42), np.float32, "offset")
    archive = wb.compress(values, wb.Absolute(1e-1), codec)
    for name in ("mean", "std", "min", "max"):
        assert getattr(archive, name)(axis=(0, 2)).bound.max() <= 1.01e-1
    assert archive.mean(weights={1: np.arange(41.0)}).bound <= 1.01e-1


def test_blocks_of_one_place_answer_from_metadata():
    values = field(np.random.default_rng(3), (12, 64, 64), np.float32, "smooth")
    archive = wb.compress(values, wb.Absolute(1e-3), wb.codecs.get("staged", sides=(1, 16, 32)))
    for name in NAMES:
        found = getattr(archive, name)(axis=(1, 2))
        assert found.stage == METADATA
        assert found.bytes_read < 0.3 * found.bytes_stored
        assert (abs(found.values - getattr(values.astype(float), name)(axis=(1, 2))) <= found.bound).all()
    assert archive.mean(axis=0).stage == VALUES


@pytest.mark.parametrize("name", ["mean", "sum", "std"])
@pytest.mark.parametrize(("values", "weights"), [
    ([-5e-324, 1e-323, 2e-323], None),                  # the result is rounded to one of the smallest numbers
    ([-5e-324, 1e-323, 2e-323], [1.0, 0.5, 0.0]),
    ([5e-324, 2.0**-1022, 0.0, 1.0], [1e300, 1e300, 1e300, 0.0]),   # the mean square is below all numbers
    ([1e-300, 1.0, -3.0], None),                        # squares are beyond all numbers, beside those of the first chunk
])
def test_results_at_both_ends_of_the_numbers_have_a_bound_that_holds(name, values, weights):
    for chunk in (1, 10):
        archive = wb.compress(np.array(values), wb.Absolute(0.0), "prequantised", chunk_values=chunk)
        found = getattr(archive, name)(axis=0, weights=None if weights is None else np.array(weights))
        value, bound = found.values.item(), np.max(found.bound).item()
        true = exact(name, list(map(Fraction, values)), list(map(Fraction, weights or [1] * len(values))))
        if bound == math.inf:
            assert abs(max(values)) == 1
            continue
        low, high = Fraction(value) - Fraction(bound), Fraction(value) + Fraction(bound)
        if name == "std":
            low, high = max(low, Fraction(0)) ** 2, high**2
        assert low <= true <= high, found


@pytest.mark.parametrize("name", ["mean", "sum", "std"])
@pytest.mark.parametrize("bound", [wb.Absolute(0.0), wb.PointwiseRelative(1e-6)])
def test_chunks_of_far_larger_values_are_as_exact_as_the_first(name, bound):
    rng = np.random.default_rng(5)
    values = rng.normal(size=(4, 64)) * np.array([0.0, 1e-250, 1.0, 1e250])[:, None]
    for order in ([0, 1, 2, 3], [1, 3, 2, 0], [3, 0, 1, 2]):
        given = values[order]
        archive = wb.compress(given, bound, "prequantised", chunks=(1, 64))
        for axis in (0, 1, (0, 1)):
            found = getattr(archive, name)(axis=axis)
            rows = given.T if axis == 0 else given if axis == 1 else given.reshape(1, -1)
            for value, width, row in zip(found.values.flat, np.broadcast_to(found.bound, found.values.shape).flat, rows,
                                         strict=True):
                true = exact(name, list(map(Fraction, row.tolist())), [Fraction(1)] * row.size)
                assert holds(name, value.item(), width.item(), true)
                if abs(row).max() == abs(values).max():
                    assert width <= 64 * 1e-5 * abs(row).max()


def test_names_of_dimensions_and_areas(tmp_path):
    xarray = pytest.importorskip("xarray")
    latitude = np.linspace(-90, 90, 19)
    values = field(np.random.default_rng(3), (5, 19, 30), np.float64, "noise")
    array = xarray.DataArray(values, {"lat": latitude}, ("time", "lat", "lon"), name="T")
    areas = np.cos(np.deg2rad(latitude)).clip(min=0)
    true = np.average(values.mean(axis=(0, 2)), weights=areas)
    whole = wb.compress({"T": array.to_dataset()}["T"], {"T": wb.Absolute(1e-3), "*": wb.Exact()}).save(tmp_path / "x.zip")
    for archive in (wb.open(whole)["T"], wb.compress(array, wb.Absolute(1e-3))):
        found = archive.mean(weights="area")
        assert abs(found.value - true) <= found.bound < 1.1e-3
        assert archive.mean("time").values.shape == (19, 30)
        assert archive.mean(["time", "lon"], weights="area").values.shape == (19,)
        assert archive.std({"time": (0, 2)}, axis="lon").values.shape == (2, 19)
        with pytest.raises(WorkbenchError, match="axis must be the name of a dimension; got 'level'"):
            archive.mean("level")


def test_datasets_of_xarray_answer_from_their_archive(tmp_path):
    xarray = pytest.importorskip("xarray")
    import workbench.xarray  # noqa: F401

    values = field(np.random.default_rng(3), (5, 19, 30), np.float64, "noise")
    data = xarray.Dataset({"T": (("time", "lat", "lon"), values, {"units": "K"}), "h": ("lon", np.arange(30.0))})
    path = wb.compress(data, {"T": wb.Absolute(1e-3), "*": wb.Exact()}).save(tmp_path / "x.zip")
    opened = xarray.open_dataset(path, engine="lossbench")
    found = opened.wb.mean("time")
    assert set(found) == {"T", "T_bound"}
    assert found["T"].dims == ("lat", "lon")
    assert (abs(found["T"] - values.mean(axis=0)) <= found["T_bound"]).all()
    assert found["T"].attrs["ancillary_variables"] == "T_bound"
    assert abs(opened.wb.std(names="T")["T"] - values.std()) <= opened.wb.std(names="T")["T_bound"]
    part = opened["T"].isel(time=2, lat=slice(3, 9))
    largest = part.wb.max("lon")
    assert (abs(largest["T"] - values[2, 3:9].max(axis=1)) <= largest["T_bound"]).all()
    with pytest.raises(WorkbenchError, match="steps of 2"):
        opened["T"].isel(lat=slice(None, None, 2)).wb.mean()
    with pytest.raises(WorkbenchError, match="expected dimensions out of lat, lon, time; got 'level'"):
        opened.wb.mean("level", names="T")
    with pytest.raises(WorkbenchError, match="is not read from an archive"):
        (opened + 1).wb.mean(names="T")


def test_wrong_calls_are_refused_in_words():
    archive = wb.compress(np.linspace(0, 1, 600).reshape(20, 30), wb.Absolute(1e-3), "staged")
    for weights, why in (
        ("mass", 'weights must be "area"'), ({0: np.ones(30)}, r"must have the shape \(20,\)"),
        (-np.ones((20, 30)), "not negative"),
        ({}, "at least one axis"), ("area", "needs a coordinate of latitudes"), (np.full((20, 30), np.nan), "finite"),
        (np.zeros((20, 30)), "a positive weight; got none"),
    ):
        with pytest.raises(WorkbenchError, match=why):
            archive.mean(weights=weights)
    for axis in (2, (0, 0), True, (), 1.5):
        with pytest.raises(WorkbenchError, match="axis must"):
            archive.mean(axis=axis)
    with pytest.raises(WorkbenchError, match="the data name none: give its number"):
        archive.mean("time")
