"""Piecewise-homogeneous fields: each region has exactly the covariance of its model."""

import numpy as np
import pytest

import workbench as wb
from workbench.data.synthetic import Region, piecewise_field
from workbench.data.synthetic.regions import gauss_markov

SMOOTH, ROUGH, WHITE = Region(2.0, 0.95), Region(1.0, 0.5, mean=3.0), Region(0.1, 0.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("rho", [0.9, 0.3, 0.0, -0.6])
def test_covariance_is_exact_from_the_first_point_on(rho: float):
    random = np.random.default_rng(0)
    samples = np.array([gauss_markov(random, (5, 4), rho) for _ in range(20_000)])
    points = np.stack(np.meshgrid(np.arange(5), np.arange(4), indexing="ij"), axis=-1).reshape(-1, 2)
    distance = np.abs(points[:, None] - points[None]).sum(axis=-1)
    covariance = np.einsum("si,sj->ij", samples.reshape(-1, 20), samples.reshape(-1, 20)) / len(samples)
    assert np.abs(covariance - float(rho) ** distance).max() < 5 * np.sqrt(2 / len(samples))


def test_doubling_is_the_recursion():
    random = np.random.default_rng(4)
    values = gauss_markov(random, (300,), 0.97)
    noise = np.random.default_rng(4).standard_normal(300)
    expected = [noise[0]]
    for value in noise[1:]:
        expected.append(0.97 * expected[-1] + np.sqrt(1 - 0.97**2) * value)
    assert np.allclose(values, expected, rtol=1e-10, atol=1e-12)


def test_each_region_follows_its_model():
    models = [SMOOTH, ROUGH, WHITE]
    field = piecewise_field((600, 600), models, seed=1)
    regions = field.metadata["regions"]
    for index, model in enumerate(models):
        inside = (regions[:, 1:] == index) & (regions[:, :-1] == index)
        values = field.values.astype(np.float64) - model.mean
        variance = (values[regions == index] ** 2).mean()
        assert variance == pytest.approx(model.sigma**2, rel=0.3)   # a smooth region holds few independent values
        assert (values[:, 1:] * values[:, :-1])[inside].mean() / variance == pytest.approx(model.rho, abs=0.02)


def test_regions_are_independent():
    field = piecewise_field((4000, 2), [Region(1.0, 0.0), Region(1.0, 0.0)], seed=2)
    assert abs(np.corrcoef(field.values.T)[0, 1]) < 4 / np.sqrt(4000)


def test_layouts():
    split = piecewise_field((4, 6), [SMOOTH, ROUGH, WHITE]).metadata["regions"]
    assert split[0].tolist() == [0, 0, 1, 1, 2, 2]
    blocks = piecewise_field((4, 4), [SMOOTH, ROUGH], layout="blocks", block=2).metadata["regions"]
    assert blocks.tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]
    discs = piecewise_field((64, 64), [SMOOTH, ROUGH, WHITE], layout="discs").metadata["regions"]
    assert discs[0, 0] == 0
    assert (discs[7, 7], discs[7, 23]) == (1, 2)
    assert np.bincount(discs.ravel())[1:].sum() / discs.size == pytest.approx(np.pi * 0.4**2, abs=0.05)
    mine = np.array([[1, 0], [0, 1]])
    assert np.array_equal(piecewise_field((2, 2), [SMOOTH, ROUGH], layout=mine).metadata["regions"], mine)


@pytest.mark.parametrize("layout", ["split", "blocks", "discs"])
@pytest.mark.parametrize("shape", [(40,), (12, 13), (8, 9, 10), (4, 5, 6, 7)])
def test_any_shape_and_layout(shape: tuple[int, ...], layout: str):
    field = piecewise_field(shape, [SMOOTH, ROUGH], layout=layout, seed=3)
    assert field.shape == shape
    assert np.isfinite(field.values).all()
    assert set(np.unique(field.metadata["regions"])) == {0, 1}
    assert field.metadata["models"][1] == {"sigma": 1.0, "rho": 0.5, "mean": 3.0}


def test_seeds():
    first, again, other = (piecewise_field((16, 16), [SMOOTH], seed=seed).values for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"regions": []}, "regions must be a list of at least one Region"),
    ({"regions": [(1.0, 0.9)]}, "regions must be a list of at least one Region"),
    ({"layout": "stripes"}, "layout must be 'split', 'blocks', 'discs', or an integer array; got 'stripes'"),
    ({"layout": np.full((8, 8), 1)}, r"layout must be an integer array of shape \(8, 8\) with values from 0 to 0"),
    ({"layout": np.zeros((8, 8))}, "layout must be an integer array"),
    ({"block": 0}, "block must be a whole number, at least 1"),
    ({"shape": (8, -8)}, "each axis of shape must be a whole number"),
])
def test_nonsense_is_refused(arguments: dict[str, object], message: str):
    with pytest.raises(wb.WorkbenchError, match=message):
        piecewise_field(**({"shape": (8, 8), "regions": [SMOOTH]} | arguments))


@pytest.mark.parametrize("options", [{"rho": 1.0}, {"rho": float("nan")}, {"sigma": -1.0}, {"mean": float("inf")}])
def test_impossible_models_are_refused(options: dict[str, float]):
    with pytest.raises(wb.WorkbenchError, match=f"{next(iter(options))} must"):
        Region(**options)
