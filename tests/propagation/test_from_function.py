"""Pipelines from functions: which names become sites, and what cannot be traced."""

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from workbench.propagation import BitFlip, Noise, from_function, trace

FACTOR = 3.0


def spectrum(density, side=1.0):
    """A function with a docstring, a helper that is no array, and a default."""
    shape = density.shape
    contrast = density / density.mean() - 1
    waves = np.fft.rfftn(contrast)
    power = np.abs(waves) ** 2 * side / np.prod(shape)
    power[0] = 0
    bins = [int(n) for n in range(shape[0])]
    total = 0.0
    for place in bins[:3]:
        total = total + power[place].sum()
    return power, total


def test_named_arrays_become_sites():
    density = np.random.default_rng(0).random((6, 6)) + 1
    pipeline = from_function(spectrum, density)
    assert pipeline.sites == ["density", "contrast", "waves", "power", "power (2)", "total"]
    assert pipeline.outputs == ("power (2)", "total")
    direct = spectrum(density)
    traced = pipeline(density)
    np.testing.assert_array_equal(traced["power (2)"], direct[0])
    assert traced["total"] == direct[1]
    other = 2 + np.random.default_rng(1).random((6, 6))
    np.testing.assert_array_equal(pipeline(other)["power (2)"], spectrum(other)[0])
    changed = pipeline.perturbed(pipeline.run(density), BitFlip("waves", bit=62, index=(1, 2)))
    assert changed.computed == ("power", "power (2)", "total")


def test_parameters_are_inputs_defaults_or_fixed():
    def fitted(x, y, degree=1, offset=0.0):
        centred = x - x.mean()
        slope = (centred * y).sum() / (centred**2).sum()
        return {"slope": slope * degree + offset, "centred": centred}

    example = {"x": np.arange(5.0), "y": np.arange(5.0) ** 2}
    pipeline = from_function(fitted, example, offset=1.0)
    assert pipeline.inputs == ("x", "y")
    assert pipeline.outputs == ("slope (2)", "centred")
    assert float(pipeline(example)["slope (2)"]) == fitted(**example, offset=1.0)["slope"]
    with pytest.raises(wb.WorkbenchError, match="example must be an array, or a dict of x, y; got x"):
        from_function(fitted, np.ones(3))
    with pytest.raises(wb.WorkbenchError, match="has the parameters x, y, degree, offset; got ofset"):
        from_function(fitted, example, ofset=1.0)


def test_labelled_arrays_keep_their_labels():
    def anomaly(air):
        climatology = air.mean("time")
        anomalies = air - climatology
        spread = anomalies.std("time")
        return spread.max()

    air = xr.DataArray(np.random.default_rng(0).normal(280, 5, (10, 4)), dims=("time", "x"), coords={"x": [1, 2, 3, 4]})
    pipeline = from_function(anomaly, air)
    assert pipeline.sites == ["air", "climatology", "anomalies", "spread", "result"]
    assert float(pipeline(air)) == float(anomaly(air))
    found = trace(pipeline, air, Noise("anomalies", 0.01))
    assert found.changed.raw["anomalies"].dims == ("time", "x")
    assert found["spread"].badge in ("linear", "non-linear")


def test_closures_globals_branches_and_loops_are_followed():
    scale = 2.0

    def stepped(u, steps=3):
        grid = np.arange(len(u)) * 1.0
        for _ in range(steps):
            u = u + 0.1 * scale * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
        if u.mean() > 0:
            u *= FACTOR
        weights = [np.exp(-g) for g in grid]
        return sum(w * value for w, value in zip(weights, u, strict=True))

    u = np.random.default_rng(0).random(8)
    pipeline = from_function(stepped, u)
    assert pipeline.sites == ["u", "grid", "u (2)", "u (3)", "result"]
    for seed in range(3):
        other = np.random.default_rng(seed).normal(size=8)
        assert float(pipeline(other)) == float(stepped(other))


def test_arrays_changed_in_place_are_copied_first():
    def in_place(x):
        y = x * 2
        y += 1
        y[0] = 0
        np.add.at(y, [1, 1], 5.0)
        y.sort()
        return y

    x = np.array([3.0, 1.0, 2.0])
    pipeline = from_function(in_place, x)
    assert pipeline(x).tolist() == in_place(x).tolist()
    run = pipeline.run(x)
    assert run["y"].tolist() == [6.0, 2.0, 4.0]
    assert x.tolist() == [3.0, 1.0, 2.0]


def through_a_view(x):
    y = x * 2
    z = y
    z += 1
    return y


def returns_early(x):
    if x.sum() > 0:
        return x
    return -x


def returns_nothing(x):
    y = x + 1
    y = y * 2


def returns_text(x):
    return "text"


def yields(x):
    yield x


def changes_a_global(x):
    global FACTOR
    FACTOR = 4.0
    return x


def any_number(*x):
    return x[0]


def no_data(x=3.0):
    return np.ones(2) * x


def random(x):
    noise = np.random.default_rng().normal(size=3)
    return x + noise


BAD = [
    (through_a_view, "the steps of through_a_view must return what the function returns"),
    (random, "or is not deterministic"),
    (returns_early, "return inside a loop or condition cannot be traced"),
    (returns_nothing, "returns_nothing must return arrays; it returns nothing"),
    (returns_text, "the function must return arrays; got str"),
    (yields, "yield cannot be traced"),
    (changes_a_global, "global cannot be traced"),
    (any_number, r"must name its parameters; it has \* or"),
    (no_data, "needs a parameter for the data"),
    (lambda x: x, "was defined with `def`"),
    (np.sum, "was defined with `def`"),
]


@pytest.mark.parametrize(("function", "complaint"), BAD, ids=[case[1][:20] for case in BAD])
def test_what_cannot_be_traced_is_refused_with_a_reason(function, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        from_function(function, np.ones(3))


def test_a_function_without_source_is_refused():
    space = {}
    exec("def made(x):\n    return x + 1", space)
    with pytest.raises(wb.WorkbenchError, match="reads the source of made, which is not there"):
        from_function(space["made"], np.ones(3))
