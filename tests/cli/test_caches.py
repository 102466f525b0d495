"""`workbench caches`: the table and its JSON are those of the library, and what is refused."""

from pathlib import Path

import pytest

import small_language_model as small
import workbench as wb
from cli.conftest import Run
from workbench.propagation import KVCache, baseline_cache, compare_caches

TEXT = "the other theories on the inside of an atom " * 4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write_model(tmp_path_factory.mktemp("model") / "small.gguf")


def test_caches_are_compared_as_by_the_library(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    options = [tmp_path / "text.txt", "--model", model, "--steps", "1,0.4", "--steps", "0.1,0.1"]
    sizes = {"recent": 0, "block": 16}
    options += ["--published", "kivi, packkv", "--prompt", 40, "--tokens", 40, "--recent", 0, "--block", 16, "-q"]
    found = run("caches", *options, "--json").json
    caches = [KVCache(1.0, 0.4, **sizes), KVCache(0.1, 0.1, **sizes)]
    caches += [baseline_cache(name, **sizes) for name in ("kivi", "packkv")]
    lm = wb.propagation.language_model(model)
    expected = compare_caches(lm, TEXT, caches, prompt=40, tokens=40)
    assert found == {"model": "small", **expected.to_dict()}
    printed = run("caches", *options)
    assert printed.status == 0
    head, *rows, last = printed.out.strip().split("\n")
    assert head.split()[0] == "cache"
    assert [row.split("  ")[0] for row in rows] == [each.name for each in expected.figures]
    assert last.startswith(f"{expected.predictions} predictions after prompts of 40 tokens")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["none.txt"], "the text must be a file that can be read"),
        (["bytes.txt"], "must be a text in UTF-8"),
        (["text.txt", "--model", "x.gguf"], "there is no file x.gguf"),
        (["text.txt", "--published", "gzip"], "argument --published: expected all, none, or some of kivi, "),
        (["text.txt", "--published", "kivi,all"], "got 'all'"),
        (["text.txt", "--published", ","], "got ''"),
        (["text.txt", "--steps", "1"], "expected two numbers such as 1,0.4; got '1'"),
        (["text.txt", "--steps", "0,1"], "must be positive"),
    ],
)
def test_what_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    printed = run("caches", *options)
    assert printed.status == 2
    assert complaint in printed.err
