"""Models of the codec for fields: what they are made of, what is refused, and that every machine computes the same."""

import hashlib
import itertools
import math
from base64 import b85decode

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from slow_interpolation import Decoder
from turbulence import turbulent
from workbench import backend
from workbench.codecs import CodecFailed, Model, Tolerance, get
from workbench.codecs.interpolation_encoding import Encoding
from workbench.codecs.interpolation_model import Network, shapes
from workbench.codecs.interpolation_stream import ON_LATTICE
from workbench.codecs.pieces import join
from workbench.codecs.prequantised import lattice_step
from workbench.errors import WorkbenchError


def made_up(dimensions, frozen=(), seed=0, largest=60):
    """A model with random weights."""
    rng = np.random.default_rng(seed)
    kinds = range(1, dimensions - len(frozen) + 1)
    whole = {odd: [rng.integers(-largest, largest + 1, shape).astype(np.int16) for shape in shapes(odd)] for odd in kinds}
    return Model(dimensions, frozen, {odd: Network(*parts) for odd, parts in whole.items()})


def encoded(values, size, model):
    """The code with the model, whether it is smaller or not."""
    step = lattice_step(size, float(np.abs(values).max()), values.dtype)
    code = Encoding.of(values, model.frozen, 12, size, step, model=model).to_bytes()
    return join("interpolation", [code], values.shape, values.dtype, 2**28)


@pytest.mark.few(1)
@pytest.mark.parametrize(("shape", "frozen", "dtype"), [
    ((400,), (), "float32"), ((27, 31), (), "float64"), ((5, 20, 17), (0,), "float32"),
    *(pytest.param(*given, marks=pytest.mark.long) for given in [
        ((400,), (), "float64"), ((27, 31), (), "float32"), ((5, 20, 17), (0,), "float64"),
        *((*given, dtype) for dtype in ("float32", "float64") for given in [
            ((9, 14, 11), ()), ((8, 9, 9, 10), ()), ((2, 5, 3, 30), (0, 2)),
        ]),
    ]),
])
def test_kernels_decode_with_a_model_what_plain_python_decodes(shape, frozen, dtype):
    values, model = turbulent(shape, dtype), made_up(len(shape), frozen, len(shape))
    values.reshape(-1)[3::97] *= 1e6   # some are kept as they are
    for size in (1e-3, 0.3):
        data = encoded(values, size, model)
        found = get("interpolation", model=model).decode(data, shape, dtype)
        assert np.abs(found.astype("f8") - values).max() <= size
        assert found.tobytes() == Decoder(data, shape, np.dtype(dtype), model).decode().tobytes()


def test_models_with_the_same_weights_are_equal():
    one, other = made_up(2), made_up(2)
    assert one is not other
    assert one == other == Model.from_text(one.text)
    assert len({one, other, made_up(2, seed=1), made_up(2, (0,))}) == 3
    assert one != one.text


@settings(max_examples=20)
@given(st.integers(0, 99), st.sampled_from([1, 300, 32767]), st.floats(1e-7, 1e3), st.floats(1e-30, 1e30))
def test_whatever_the_weights_the_bound_holds(seed, largest, size, scale):
    values = turbulent((20, 24), np.float64) * scale
    model = made_up(2, (), seed, largest)
    data = encoded(values, size * scale, model)
    decoded = get("interpolation", model=model).decode(data, values.shape, "f8")
    assert np.abs(decoded - values).max() <= size * scale


def test_a_model_that_does_not_help_is_not_used():
    values, codec = turbulent((60, 60)), get("interpolation", model=made_up(2, largest=3000))
    with_it, without = (each.encode(values, Tolerance(absolute=0.01)) for each in (codec, get("interpolation")))
    assert with_it == without
    assert "without the model" in codec.remark(with_it, values.shape, values.dtype)
    forced = encoded(values, 0.01, made_up(2, largest=3000))
    assert codec.remark(forced, values.shape, values.dtype) == "coded with the model"
    assert get("interpolation").remark(without, values.shape, values.dtype) is None


def test_bytes_do_not_depend_on_the_number_of_threads():
    values, model, found = turbulent((48, 48, 12)), made_up(3), set()
    for threads in (1, 3):
        with backend.using_threads(threads):
            data = encoded(values, 1e-3, model)
            found.add((data, get("interpolation", model=model).decode(data, values.shape, values.dtype).tobytes()))
    assert len(found) == 1


def test_a_preview_is_decoded_with_the_model():
    values, model = turbulent((65, 65)), made_up(2)
    codec, data = get("interpolation", model=model), encoded(values, 1e-3, model)
    whole = codec.decode(data, values.shape, values.dtype)
    assert (codec.coarse(8).decode(data, values.shape, values.dtype)[::8, ::8] == whole[::8, ::8]).all()


def test_a_model_returns_from_text_and_from_a_file(tmp_path):
    for dimensions, frozen in ((1, ()), (2, (1,)), (3, ()), (4, (0, 2))):
        model = made_up(dimensions, frozen)
        for again in (Model.from_text(model.text), Model.load(model.save(tmp_path / "a.model"))):
            assert (again.dimensions, again.frozen, again.text) == (dimensions, frozen, model.text)
            assert all((again.networks[odd].numbers() == model.networks[odd].numbers()).all() for odd in model.networks)
    assert repr(model).startswith("Model(4-D fields, frozen axes 0, 2, ")


@given(st.data())
def test_damaged_models_are_refused(data):
    text = made_up(1).text
    place, letter = data.draw(st.integers(0, len(text) - 1)), data.draw(st.sampled_from("09AZaz!~ "))
    damaged = data.draw(st.sampled_from([text[:place], text[:place] + letter + text[place + 1 :], text + letter]))
    if damaged != text:
        with pytest.raises(WorkbenchError, match="model"):
            get("interpolation", model=damaged)


@pytest.mark.parametrize(("model", "message"), [
    ("", "got ''"), (7, "got 7"), ("PK\x03\x04", "got 'PK"), ("a" * 10**6, "got 'aaa"), ("0" * 50, "another kind of file"),
])
def test_what_is_no_model_is_refused(model, message):
    with pytest.raises(WorkbenchError, match=f"must be the text that wb.codecs.train made; {message}|{message}"):
        get("interpolation", model=model)


def test_a_code_is_decoded_with_its_own_model_alone():
    values, model = turbulent((40, 40)), made_up(2)
    data = encoded(values, 0.01, model)
    for other, message in ((None, "does not have"), (made_up(2, seed=1), "or foreign"), (made_up(3), "or foreign")):
        with pytest.raises(CodecFailed, match=message):
            get("interpolation", model=other).decode(data, values.shape, values.dtype)


def test_a_code_that_states_a_model_for_other_fields_is_refused():
    values, model = turbulent((40, 40)), made_up(3)
    code = bytearray(encoded(values, 0.01, made_up(2)))[5:]
    code[26:30] = model.checksum.to_bytes(4, "little")
    data = join("interpolation", [bytes(code)], values.shape, values.dtype, 2**28)
    with pytest.raises(CodecFailed, match="the model is for fields with 3 axes"):
        get("interpolation", model=model).decode(data, values.shape, values.dtype)


def test_a_model_for_other_fields_is_refused_before_any_work():
    codec = get("interpolation", model=made_up(3))
    with pytest.raises(WorkbenchError, match="trained on fields with 3 axes; got a field with 2"):
        wb.compress(turbulent((40, 40)), wb.Absolute(0.01), codec)
    with pytest.raises(WorkbenchError, match=r"frozen must be that of the model, \(\); got \(0,\)"):
        get("interpolation", model=made_up(2), frozen=(0,))


def test_an_archive_carries_its_model(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    values, model = turbulent((60, 60)), made_up(2)
    kept = "workbench.codecs.interpolation._smaller"
    monkeypatch.setattr(kept, lambda one, other: one if other[0] == ON_LATTICE else other)
    monkeypatch.setattr("workbench.codecs.interpolation.COPIES", -1)
    archive = wb.compress(values, wb.Relative(1e-3), get("interpolation", model=model))
    assert "1 of 1 chunks are coded with the model" in str(archive.certificate)
    opened = wb.open(archive.save(tmp_path / "a.zarr"))
    assert opened.codec.model == model.text
    assert opened.verify(values).passed
    assert (zarr.open(str(tmp_path / "a.zarr"), mode="r")["values"][:] == opened.decompress().values).all()


def test_an_archive_leaves_out_a_model_that_takes_more_than_it_saves():
    values = turbulent((60, 60))
    archive = wb.compress(values, wb.Absolute(0.01), get("interpolation", model=made_up(2)))
    assert archive.codec.model is None
    assert "takes more room than it saves: model" in archive.certificate.choice
    assert archive.certificate["values"].figures.keys().isdisjoint({"remarks"})
    without = wb.compress(values, wb.Absolute(0.01), "interpolation")
    assert archive.nbytes <= without.nbytes + 300   # of words


@pytest.mark.parametrize("kind", ["constant", "linear", "three values", "one wide", "single"])
def test_plain_fields_are_encoded_with_a_model(kind):
    x, y = np.meshgrid(np.arange(30.0), np.arange(20.0))
    values = {
        "constant": np.full((20, 30), 3.3), "linear": 3 * x - 2 * y, "three values": np.floor(3 * np.sin(x) * np.cos(y)),
        "one wide": x[:, :1] + y[:, :1], "single": np.full((1, 1), 5.0),
    }[kind]
    model = made_up(2)
    decoded = get("interpolation", model=model).decode(encoded(values, 0.01, model), values.shape, "f8")
    assert np.abs(decoded - values).max() <= 0.01


def test_networks_are_in_the_order_of_passes():
    model = made_up(2)
    rows = model.for_kernel(Encoding.of(turbulent((9, 9)), (), 12, 0.1, 0.2).coded.passes)
    assert (rows[:, 0] == 1).all()
    assert np.isfinite(rows).all()
    assert any((a != b).any() for a, b in itertools.pairwise(rows))
    assert math.prod(rows.shape) == len(rows) * 955


def test_bytes_of_an_earlier_day_decode_to_the_same_values():
    decoded = get("interpolation", model=STORED_MODEL).decode(b85decode(STORED), (300,), "float32")
    assert hashlib.sha256(decoded.tobytes()).hexdigest()[:16] == STORED_HASH


STORED_MODEL = (
    'OhQdD0RVW~U6Kj5>?#OFK^mF=XhlUnw_c^GpS6;xpzd=(8|)Z9rcj4w+z|T~8b@&m>vSFH0eQxlgMfD9lO}e^NQsV4WQ7w6+`Z!=+`$ckPxQUG4L'
    '^D$wx|yZoSI!|$-raFykU<{eX)(x92)nNU<*cC3u`t~`9Q)F&&|xeFQ06kOvh9=wKKs^Ke8ZJm)UJ6QqE3AzZ#6rrH&``z8$nV#Y(k;-g~dU)||2'
    'h6<Hi}XM$*BYsYc5QHgR!@1u#NmI6QSn_wF?lR5M_oXh|)k`cD+2A$9Xjl<X0EtPH9%U89H(`m3wI=v$@@)BSO2OF3Jg{>+OvdY9o*jqPu0OVM;!'
    '<o0oF<sF5l+rVsPhVOnFy^Kc&LbH}mJclN#fl5owjl&6*_g@(NA&|icEro)(&)k=CKRnK%R`xn-p{PVLf1SLGHmF`FtUU~?hCd~>U&F7(09>gokd'
    'x~=k7tFg^z_*{p2dR1#E}RILrmoYQzP$tlB3^PxnQuy2Gf%N3*jw;Ape;zgDS!DSsxPDh#*qwkNhz&DwpQM%3qw$=P?rRtZ$7*7G(N<^nV4%%clA'
    '+pMxgG^j2dv5w7obV$`Wsq~;SYgvurl??#-dEj~SZ|(E@`{(C#<$Pn1SL$c*#P0BC)4#|yg8b$uyvNtB?@4gwKeNxuzZ-AT?}m5AL!LLxMeyRfm-'
    'G9%r93u#Vc#g1QF)2a+nF~I-00UCkF9x~`566H{A9r+@(q(OnE&0K-}jlpk58|Py)g1|>ZZPd^2&HuAn&p#{9czoWq$B~dEb+l8PEJu3h=~VRfPM'
    'VS2sMY@4)54B?6wDTi?%hPf`Bn{{c^qwUnPWwVM'
)
STORED = (
    ')A_8;003DGu1CRols^Cf0ARuXz`qb20001_0001&6hxQ=XB4gn;d+!mAOHaX3jhEBc-muPfB*mh7ytu!+GAkgVGn0ySJ%+g(sp2Q+|K|4UfaNw>uxaRvIk5#'
    '?*&s12LjgvDX2<|6JW~b2!rQ#Fb_nTif;i4nx6#A8C(EU#*)Z_#%IAQZ4ZNac86esAfRyrOzB=`U<g?QrVtiEc^WEU!xSDM3xWVp0|Nutfebz{B_J+TrGgGf'
    'FmXOm3`r$A0J#ho4;lC%9Fd4sLjVx-0<l%}q#^*kF*DbP1~!`iFO{_bEA_hT4e5F2*dM=a@6YlC9IK|}j2-`%oOZA4{+FTEjy$(JT;m4$AoK^=1bpWoN_dVX'
    '=HDi3ioeOIKy&|5&-lB%!>8+kOViqk<RI~s!nwmqwv!-f;A<O*l818N;=1VikP=DwjxPo?g5)vYs(dwEMSrfQFNB!nZzW;r&_w#*T6yWY>)cq`L!DNw^svbs'
    'C1S7*oUNSRTN-!+!gbpVQ9XvNkDeF7fCfy>d|1`8{6nAceyV&@xd%&^UFzIO8JiqKb^rh'
)
STORED_HASH = "00d5570f3ce88dee"
