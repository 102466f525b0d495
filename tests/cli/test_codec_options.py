"""`--option KEY=VALUE`: values have the types that codecs declare, and what a codec does not have is named."""

import argparse
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import workbench as wb
from cli.conftest import Run
from workbench import codecs
from workbench.cli.codec_options import SET_ELSEWHERE, chosen_codec
from workbench.codecs import Codec, ParticleCodec, registry
from workbench.errors import WorkbenchError


def chosen(codec: str, *given: str) -> str | Codec:
    return chosen_codec(argparse.Namespace(codec=codec, codec_options=list(given), model=None))


@dataclass(frozen=True)
class Everything(Codec):
    """A codec with an option of every type."""

    id: ClassVar[str] = "everything"
    title: ClassVar[str] = "Every type"

    on: bool = codecs.option(False, "a switch")
    count: int | None = codecs.option(None, "a number of something", minimum=0, maximum=9)
    share: float = codecs.option(0.5, "a share")
    name: str = codecs.option("", "a name")
    sizes: tuple[float, ...] = codecs.option((), "some sizes")
    more: Mapping[str, Any] = codecs.option(None, "more of them")

    def _encode(self, values: Any, tolerance: Any) -> bytes:
        raise NotImplementedError

    _decode = _encode   # type: ignore[assignment]


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.cli.codec_options.codec_class", lambda name: Everything)


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on=yes", True), ("on=FALSE", False), ("count=3", 3), ("count=None", None), ("share=1e-3", 0.001),
        ("name=none", "none"), ("name=a=b", "a=b"), ("name=", ""), ("sizes=1,2.5", (1.0, 2.5)), ('more={"a": 1}', {"a": 1}),
    ],
)
def test_a_value_has_the_type_that_is_declared(text: str, value: Any) -> None:
    found = getattr(chosen("everything", text), text.split("=")[0])
    assert found == value
    assert type(found) is type(value)


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("on=perhaps", "--option on of everything must be boolean; got 'perhaps'"),
        ("count=1.5", "--option count of everything must be integer or none; got '1.5'"),
        ("share=half", "--option share of everything must be number; got 'half'"),
        ("sizes=1,big", "--option sizes of everything must be array; got '1,big'"),
        ("more={", "--option more of everything must be object; got '{'"),
        ("more=none", "--option more of everything must be object; got 'none'"),
        ("count=10", "count must be integer from 0 to 9; got 10"),
        ("cuont=1", "everything has the options on, count, share, name, sizes, more; got --option cuont=1"),
        ("id=sz3", "more; got --option id=sz3"),
        ("count", "--option must be KEY=VALUE; got 'count'"),
        ("=1", "--option must be KEY=VALUE; got '=1'"),
    ],
)
def test_a_wrong_option_is_named(text: str, message: str) -> None:
    with pytest.raises(WorkbenchError) as refused:
        chosen("everything", text)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", codecs.available())
def test_every_default_can_be_given_as_text(name: str) -> None:
    found = registry.codec_class(name)
    settable = {} if issubclass(found, ParticleCodec) else {field.name for field in dataclasses.fields(found)}
    texts = [f"{key}={in_shell(value)}" for key, value in codecs.get(name).to_dict().items() if key in settable]
    assert chosen(name, *texts) == codecs.get(name)


def in_shell(value: Any) -> str:
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value)


@pytest.mark.parametrize(
    ("codec", "key", "text", "value"),
    [
        ("sz3", "algorithm", "lorenzo_reg", "lorenzo_reg"), ("fpzip", "precision", "16", 16),
        ("fpzip", "precision", "none", None), ("zfp", "rate", "8.5", 8.5),
        ("numcodecs", "options", '{"level": 5}', {"level": 5}),
    ],
)
def test_options_of_real_codecs_arrive_in_the_archive(
    run: Run, field: Path, tmp_path: Path, codec: str, key: str, text: str, value: Any
) -> None:
    out = tmp_path / "a.zip"
    made = run("compress", field, out, "--abs", 0.1, "--codec", codec, "--option", f"{key}={text}", "--json")
    assert made.status == 0, made.err
    assert made.json["codec"][key] == value
    assert wb.open(out).codec.to_dict()[key] == value


def test_an_option_given_twice_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="--option level must be given once"):
        chosen("pcodec", "level=1", "level=2")


@pytest.mark.parametrize("key", list(SET_ELSEWHERE))
def test_what_compression_sets_itself_is_no_option(key: str) -> None:
    with pytest.raises(WorkbenchError, match=f"--option {key} has no effect: "):
        chosen("lattice", f"{key}=free")


def test_options_need_a_codec() -> None:
    with pytest.raises(WorkbenchError, match="--option level=1 needs --codec NAME"):
        chosen("auto", "level=1")
    assert chosen("auto") == "auto"
