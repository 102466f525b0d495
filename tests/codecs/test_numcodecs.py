import json
import sys
from importlib.metadata import EntryPoint

import numcodecs.registry
import numpy as np
import pytest
from numcodecs.abc import Codec as TheirCodec

from workbench.codecs import CodecFailed, Tolerance, from_dict, get
from workbench.codecs.numcodecs import CHECKSUMS, COMPRESSORS, FILTERS
from workbench.errors import WorkbenchError

ANY = Tolerance(absolute=0.0)
OPTIONS = {
    "astype": {"encode_dtype": "<f4"},
    "bitround": {"keepbits": 10},
    "fixedscaleoffset": {"offset": 0, "scale": 1000, "astype": "<i4"},
    "quantize": {"digits": 3},
    "zfpy": {"mode": 4, "tolerance": 1e-3},
}


def decoded(codec, values):
    return codec.decode(codec.encode(values, ANY), values.shape, values.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(50,), (4, 6), (3, 4, 5), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("name", [*COMPRESSORS, *FILTERS, *CHECKSUMS])
def test_every_listed_codec_works_and_is_told_the_type(name, shape, dtype):
    values = np.random.default_rng(0).normal(size=shape).astype(dtype)
    error = np.abs(decoded(get("numcodecs", codec=name, options=OPTIONS.get(name, {})), values) - values).max()
    exact = (name == "astype" and dtype == "float32") or name not in {"delta", *OPTIONS}
    assert error <= (0 if exact else 1e-2)


@pytest.mark.parametrize("name", ["pickle", "json2", "msgpack2", "categorize", "vlen-utf8", "vlen-array", "packbits"])
def test_codecs_that_execute_what_they_read_or_are_not_for_numbers_are_refused(name):
    with pytest.raises(WorkbenchError, match=f"codec must be one of blosc, .*; got '{name}', which is not for numbers"):
        from_dict({"id": "numcodecs", "codec": name, "options": {}})


@pytest.mark.parametrize("name", ["nonsense", "", None, 3, ["zstd"], {"zstd": 1}])
def test_unknown_codecs_are_answered_with_the_known_ones(name):
    with pytest.raises(WorkbenchError, match="codec must be one of blosc, "):
        from_dict({"id": "numcodecs", "codec": name})


class Reversed(TheirCodec):
    """What another package might bring."""

    codec_id = "reversed"

    def encode(self, buf):
        return bytes(memoryview(buf).cast("B"))[::-1]

    def decode(self, buf, out=None):
        return bytes(buf)[::-1]


def test_a_codec_of_another_package_runs_only_when_the_program_registered_it(monkeypatch):
    point = EntryPoint("reversed", "a_module_that_must_not_be_imported:Reversed", "numcodecs.codecs")
    monkeypatch.setitem(numcodecs.registry.entries, "reversed", point)
    with pytest.raises(WorkbenchError, match=r"'reversed' belongs to another package.*register_codec\(...\) first"):
        get("numcodecs", codec="reversed")
    assert "a_module_that_must_not_be_imported" not in sys.modules
    monkeypatch.setitem(numcodecs.registry.codec_registry, "reversed", Reversed)
    values = np.arange(6.0).reshape(2, 3)
    assert (decoded(get("numcodecs", codec="reversed"), values) == values).all()


def test_options_survive_json_and_make_equal_codecs_equal():
    filters = [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]
    codec = get("numcodecs", codec="lzma", options={"format": 3, "filters": filters})
    described = json.loads(json.dumps(codec.to_dict()))
    assert described == {"id": "numcodecs", "codec": "lzma", "options": {"format": 3, "filters": filters}}
    assert from_dict(described) == codec
    assert hash(from_dict(described)) == hash(codec)
    assert codec == get("numcodecs", codec="lzma", options={"filters": filters, "format": 3})
    values = np.arange(100.0)
    assert (decoded(codec, values) == values).all()


@pytest.mark.parametrize("options", [
    {"level": object()}, {"level": float("nan")}, {"id": "pickle"}, [1, 2], "[]", "{", 3, None,
])
def test_options_that_are_no_mapping_of_json_are_refused(options):
    with pytest.raises(WorkbenchError, match="numcodecs: options must be a mapping"):
        from_dict({"id": "numcodecs", "codec": "zstd", "options": options})


@pytest.mark.parametrize("options", [{"speed": 1}, {"level": "high"}])
def test_options_that_numcodecs_does_not_know_fail_with_its_reason(options):
    with pytest.raises(CodecFailed, match=r"numcodecs could not encode .*(speed|high|level|str)"):
        get("numcodecs", codec="zlib", options=options).encode(np.zeros(5), ANY)


@pytest.mark.parametrize("rate", [0, 0.5, 2.9, "1", None, [8]])
def test_a_rate_at_which_zfpy_harms_the_process_is_refused(rate):
    with pytest.raises(WorkbenchError, match="the rate of zfpy must be 3 or more"):
        from_dict({"id": "numcodecs", "codec": "zfpy", "options": {"mode": 2, "rate": rate}})
    get("numcodecs", codec="zfpy", options={"mode": 2, "rate": 8})


@pytest.mark.parametrize("kind", ["O", "U4", "M8[s]", "c16", "nonsense", 5, {}, [["a", "O"]]])
@pytest.mark.parametrize("option", ["dtype", "astype", "encode_dtype", "decode_dtype"])
def test_only_types_of_numbers_are_taken_as_options(option, kind):
    with pytest.raises(WorkbenchError, match=f"numcodecs: {option} must be a type of numbers"):
        from_dict({"id": "numcodecs", "codec": "astype", "options": {option: kind}})


def test_a_codec_that_changes_the_size_has_failed(monkeypatch):
    class Halved(Reversed):
        def decode(self, buf, out=None):
            return bytes(buf)[::2]

    monkeypatch.setitem(numcodecs.registry.codec_registry, "halved", Halved)
    with pytest.raises(CodecFailed, match="halved must decode to 6 values of float64; got 24 bytes"):
        decoded(get("numcodecs", codec="halved"), np.arange(6.0))
