"""Training of models: what is learned is true, repeatable, and helps on fields that were not seen."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from turbulence import turbulent
from workbench.codecs import Tolerance, get, train
from workbench.codecs import interpolation_training as training
from workbench.errors import WorkbenchError


def size(values, bound, **options):
    return len(get("interpolation", **options).encode(values, Tolerance(absolute=bound)))


def fronts(seed, size=128):
    """A field with steep fronts between flat parts, which no linear interpolation fits."""
    wave = np.fft.fftfreq(size) * size
    power = np.exp(-(wave[:, None] ** 2 + wave**2) / 50)
    noise = np.random.default_rng(seed).normal(size=(size, size))
    smooth = np.fft.ifft2(np.fft.fft2(noise) * power).real
    return np.tanh(3 * smooth / smooth.std())


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setitem(train.__kwdefaults__, "steps", 250)
    monkeypatch.setattr(training, "LEAST_STEPS", 100)
    monkeypatch.setattr(training, "BETWEEN", 50)
    monkeypatch.setattr(training, "ROUNDS", 2)


@pytest.fixture
def brief(quick, monkeypatch):
    """For tests of which models are equal, however little they have learned."""
    monkeypatch.setitem(train.__kwdefaults__, "steps", 100)


@given(st.floats(-20, 20), st.floats(1e-3, 10), st.floats(-3, 3), st.floats(-5, 5))
def test_derivatives_are_those_of_the_bits(offset, bound, shift, octaves):
    lessons = training.Lessons(np.zeros((1, 0), np.float32), np.array([offset]), np.array([bound]))

    def bits(a, b):
        return float(training._logistic(np.array([[a, b]]), lessons)[0][0])

    (by_shift, by_octaves), step = training._logistic(np.array([[shift, octaves]]), lessons)[1][0], 1e-5
    for found, other in (
        (by_shift, (bits(shift + step, octaves) - bits(shift - step, octaves)) / (2 * step)),
        (by_octaves, (bits(shift, octaves + step) - bits(shift, octaves - step)) / (2 * step)),
    ):
        if abs(other) < 29:   # larger ones are cut
            assert found == pytest.approx(other, rel=2e-3, abs=2e-3)


def test_gradients_are_those_of_the_bits_of_a_batch():
    rng = np.random.default_rng(0)
    learner = training._Learner(1, rng)
    seen = rng.normal(size=(50, len(learner.layers[0]))).astype(np.float32)
    learner.see(training.Lessons(seen, rng.normal(size=50).astype(np.float32), np.full(50, 0.3, np.float32)))
    batch = learner.known
    learner.layers = [layer.astype(np.float64) for layer in learner.layers]

    def bits():
        answers = training._forward(batch.seen * learner.scale[:, 0], learner.layers)[-1]
        return float(training._logistic(answers, batch)[0].mean())

    for layer, gradient in zip(learner.layers, learner._gradients(batch), strict=True):
        for place in [(0, 0), (2, 1), (layer.shape[0] - 1, 1)]:
            before, step = layer[place], 1e-5
            layer[place] = before + step
            more = bits()
            layer[place] = before - step
            difference = (more - bits()) / (2 * step)
            layer[place] = before
            assert gradient[place] == pytest.approx(difference, rel=0.02, abs=1e-4)


@pytest.mark.long
def test_a_model_of_earlier_steps_helps_with_later_ones(quick):
    steps = [fronts(seed) for seed in range(3)]
    bound = 1e-3 * float(np.ptp(steps[2]))
    model = train(steps[:2], 1e-3)
    assert size(steps[2], bound, model=model) < 0.98 * size(steps[2], bound)


@pytest.mark.long
def test_where_most_residuals_are_zero_the_model_learns_what_it_changes_itself(quick):
    smooth = np.cumsum(np.cumsum(turbulent((128, 128), seed=3), axis=0), axis=1).astype(np.float32)
    bound = 1e-2 * float(np.ptp(smooth))
    assert size(smooth, bound, model=train(smooth, 1e-2)) <= size(smooth, bound)


def test_the_same_seed_gives_the_same_model(brief):
    values = turbulent((64, 64))
    first, again, other = (train(values, 1e-2, seed=seed).text for seed in (1, 1, 2))
    assert first == again != other


def test_a_slow_machine_learns_the_same(quick, monkeypatch):
    values = turbulent((64, 64))
    expected, step = train(values, 1e-2).text, training._Learner._gradients

    def slowly(*lessons):
        time.sleep(0.0005)
        return step(*lessons)

    monkeypatch.setattr(training._Learner, "_gradients", slowly)
    assert train(values, 1e-2).text == expected


def test_from_too_few_values_nothing_is_learned_and_that_is_said():
    values = turbulent((24, 24))
    with pytest.warns(UserWarning, match=r"needs 2,000 values to learn from, and there are [\d,]+: give larger fields"):
        model = train(values, 1e-2)
    assert not model.learned
    assert "nothing learned" in repr(model)
    assert size(values, 0.1, model=model) == size(values, 0.1)


def test_steps_that_help_nothing_are_told_of(quick, monkeypatch):
    monkeypatch.setattr(training, "RATE", 0.0)
    with pytest.warns(UserWarning, match="250 steps made no code smaller: take more steps"):
        assert not train(turbulent((64, 64)), 1e-2).learned


@pytest.mark.long
def test_axes_that_are_frozen_in_training_are_frozen_in_the_model(quick):
    model = train(np.random.default_rng(5).normal(size=(8, 1, 1)) + fronts(0, 64), bounds=1e-2)
    assert (model.dimensions, model.frozen, list(model.networks)) == (3, (0,), [1, 2])


@pytest.mark.long
def test_masked_and_missing_values_are_no_lessons(quick):
    values = turbulent((64, 64))
    values[:9], values[20, 20] = np.nan, np.inf
    field = wb.Field(values, mask=np.arange(64 * 64).reshape(64, 64) % 50 == 0)
    assert train([field, turbulent((30, 40))], (1e-2, 1e-3)).dimensions == 2


def test_progress_names_each_step_and_stops_the_work(quick):
    told = []
    train(turbulent((96, 96)), 1e-2, progress=lambda share, what: told.append((what, share)))
    assert {"round 1 of 2: encoding", "round 2 of 2: training network 2 of 2"} <= {what for what, _ in told}
    assert all(0 <= share <= 1 for _, share in told)

    def stop(_share, _what):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(turbulent((64, 64)), 1e-2, progress=stop)


@pytest.mark.long
def test_bounds_are_given_as_numbers_or_as_bounds(brief):
    field = turbulent((64, 64))
    expected = train(field, 1e-2)
    assert train(field, [wb.Relative(1e-2)]) == train(field, np.array([1e-2])) == expected
    assert train(field, wb.Absolute(0.5)) == train(field, 0.5, relative=False) != expected


@pytest.mark.parametrize(("fields", "options", "message"), [
    (np.zeros((9, 9)), {}, "not constant; got a range of 0"),
    (np.arange(99), {}, r"fields of floats; got .*astype\('float32'\)"),
    (np.full(99, np.nan), {}, "finite values; got none"),
    ([np.zeros(9), np.zeros((3, 3))], {}, r"as many axes; got fields with \[1, 2\] axes"),
    (None, {}, "a field, an array or several of them; got None"),
    ([], {}, r"as many axes; got fields with \[\] axes"),
    (np.arange(9.0), {"bounds": 0}, "bounds must be wb.Absolute, wb.Relative or positive numbers, one or several; got 0"),
    (np.arange(9.0), {"bounds": ()}, "got ()"),
    (np.arange(9.0), {"bounds": [1e-3, np.nan]}, "positive numbers"),
    (np.arange(9.0), {"bounds": "1e-3"}, "positive numbers, one or several; got '1e-3'"),
    (np.arange(9.0), {"bounds": wb.Relative(0)}, r"bounds above 0; got Relative\(eb=0.0\)"),
    (np.arange(9.0), {"bounds": [wb.Absolute(1), wb.PointwiseRelative(0.1)]}, "wb.Relative bounds; got Point"),
    (np.arange(9.0), {"bounds": wb.Absolute("1 km")}, "must be in the unit of the data"),
    (np.arange(9.0), {"steps": 0}, "steps must be"),
    (np.arange(9.0), {"seed": -1}, "seed"),
])
def test_bad_input_is_refused(fields, options, message):
    with pytest.raises(WorkbenchError, match=message):
        train(fields, **options)
