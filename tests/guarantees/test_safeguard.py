"""Safeguards: they hold together with the bound, and a reader needs nothing for it."""

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from guarantees.checks import holds
from guarantees.some_codecs import Misbehaving, Negates, Rounding, Sorting
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit, Safeguard, decode_guarded, encode_guarded, enforce, safeguards_hold

pytest.importorskip("compression_safeguards")

DERIVATIVE = Safeguard(
    "qoi_eb_stencil",
    qoi="finite_difference(x, order=1, accuracy=2, type=0, axis=0, grid_spacing=1)",
    neighbourhood=[{"axis": 1, "before": 1, "after": 1, "boundary": "valid"}],
    type="abs",
    eb=0.02,
)
LOGARITHM = Safeguard("qoi_eb_pw", qoi="log10(abs(x) + 1)", type="abs", eb=0.01)
SIGN = Safeguard("sign")


def values(dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=0.3, size=(40, 50)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keep", [[SIGN], [DERIVATIVE], [LOGARITHM, SIGN], [Safeguard("same", value=0.0)]], ids=str)
@pytest.mark.parametrize("codec", [Rounding, Negates])
def test_bound_and_safeguards_hold_together(dtype, keep, codec):
    original, limit = values(dtype), Limit("absolute", 0.1)
    original[3, :9] = 0.0
    guarded = encode_guarded(codec(), original, limit, keep=keep)
    decoded = decode_guarded(codec(), guarded.sections, original.shape, dtype)
    assert decoded.tobytes() == guarded.decoded.tobytes()
    assert holds(original, decoded, limit)
    assert safeguards_hold(keep, original, decoded)


def test_signs_without_the_safeguard_are_lost():
    original, limit = values(), Limit("absolute", 0.1)
    guarded = encode_guarded(Rounding(), original, limit)
    assert not safeguards_hold([SIGN], original, guarded.decoded)
    kept = encode_guarded(Rounding(), original, limit, keep=[SIGN])
    assert (np.sign(kept.decoded) == np.sign(original)).all()
    assert 0 < kept.figures.corrected < original.size
    assert kept.figures.stored_exactly is None


def test_derivatives_are_within_their_own_bound():
    original, limit = values(np.float64), Limit("absolute", 0.1)

    def derivative(array: np.ndarray) -> np.ndarray:
        return (array[:, 2:] - array[:, :-2]) / 2

    kept = encode_guarded(Rounding(), original, limit, keep=[DERIVATIVE])
    plain = encode_guarded(Rounding(), original, limit)
    assert np.abs(derivative(kept.decoded) - derivative(original)).max() <= 0.02 + 1e-15
    assert np.abs(derivative(plain.decoded) - derivative(original)).max() > 0.02


def test_relative_limits_and_safeguards_go_together():
    original = values(np.float64)
    limit = Limit("relative", 0.1)
    guarded = encode_guarded(Rounding(), original, limit, keep=[SIGN, LOGARITHM])
    assert holds(original, guarded.decoded, limit)
    assert safeguards_hold([SIGN, LOGARITHM], original, guarded.decoded)


def test_values_that_mean_nothing_stay_as_they_are():
    original = values()
    original[0, :5] = [np.nan, np.inf, -np.inf, np.nan, 1e35]
    mask = original == np.float32(1e35)
    guarded = encode_guarded(Rounding(), original, Limit("absolute", 0.1), mask=mask, keep=[SIGN])
    assert guarded.decoded[0, :5].tobytes() == original[0, :5].tobytes()
    assert safeguards_hold([SIGN], original, guarded.decoded)


def test_all_bits_are_the_last_resort(monkeypatch):
    monkeypatch.setattr(enforce, "safeguarded", lambda keep, original, decoded, limit: decoded + np.float32(1))
    guarded = encode_guarded(Misbehaving(), values(), Limit("absolute", 0.1), keep=[SIGN])
    assert guarded.figures.stored_exactly == "the bound and the safeguards could not be met together"
    assert guarded.decoded.tobytes() == values().tobytes()


def test_particles_have_no_safeguards():
    with pytest.raises(WorkbenchError, match=r"safeguards are for fields; got particles, and Safeguard\(kind='sign'\)"):
        encode_guarded(Sorting(), np.zeros((5, 3)), Limit("absolute", 0.1), keep=[SIGN])


def test_a_safeguard_that_does_not_fit_the_field_is_named():
    with pytest.raises(WorkbenchError, match=r"qoi_eb_stencil.* cannot be applied to float64 values of shape \(50,\)"):
        encode_guarded(Rounding(), np.linspace(-1, 1, 50), Limit("absolute", 0.1), keep=[DERIVATIVE])


@pytest.mark.parametrize("safeguard", [SIGN, DERIVATIVE, LOGARITHM])
def test_copies_are_the_same_safeguard(safeguard):
    by_json = Safeguard(**json.loads(json.dumps(safeguard.to_dict())))
    for again in (by_json, pickle.loads(pickle.dumps(safeguard)), copy.deepcopy(safeguard)):
        assert again == safeguard
        assert hash(again) == hash(safeguard)


def test_which_safeguards_need_neighbours():
    assert DERIVATIVE.needs_neighbours
    assert Safeguard("any", safeguards=[{"kind": "sign"}, DERIVATIVE.to_dict()]).needs_neighbours
    assert not SIGN.needs_neighbours
    assert not LOGARITHM.needs_neighbours


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("nonsense", {}, "safeguard nonsense cannot be made: .*unknown SafeguardKind 'nonsense'"),
        (7, {}, "kind of a safeguard must be a name such as 'sign'; got 7"),
        ("sign", {"wrong": 1}, "safeguard sign cannot be made: .*unexpected keyword argument 'wrong'"),
        ("eb", {"type": "abs", "eb": "later"}, "must be values; got the names later"),
        ("same", {"value": np.zeros(3)}, "must be JSON values"),
        ("same", {"value": float("nan")}, "must be JSON values"),
        ("qoi_eb_pw", {"qoi": "x +", "type": "abs", "eb": 1}, "safeguard qoi_eb_pw cannot be made"),
    ],
)
def test_what_makes_no_safeguard_is_refused(kind, options, message):
    with pytest.raises(WorkbenchError, match=message):
        Safeguard(kind, **options)


WITHOUT_LIBRARY = """
import sys
sys.modules["compression_safeguards"] = None
from workbench.errors import WorkbenchError
from workbench.guarantees import Safeguard
try:
    Safeguard("sign")
except WorkbenchError as error:
    print(error)
"""


def test_a_missing_library_is_named():
    run = subprocess.run([sys.executable, "-c", WITHOUT_LIBRARY], capture_output=True, text=True, check=True)
    assert "not installed: pip install 'lossbench[safeguards]'" in run.stdout


def test_decoding_needs_no_library(monkeypatch):
    original = values()
    guarded = encode_guarded(Rounding(), original, Limit("absolute", 0.1), keep=[SIGN])
    monkeypatch.setitem(sys.modules, "compression_safeguards", None)
    assert decode_guarded(Rounding(), guarded.sections, original.shape, np.float32).tobytes() == guarded.decoded.tobytes()
