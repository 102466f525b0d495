"""The panel of a language model: an error by block and token, two texts that are written token by token, and its script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import small_language_model as small
import workbench as wb
from workbench.lab.language_panel.panel import LanguagePanel

TEXT = "the other 12 theories on the inside"


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> wb.propagation.LanguageModel:
    return wb.propagation.language_model(small.write_model(tmp_path_factory.mktemp("model") / "small.gguf"))


@pytest.fixture
def panel(lm: Any) -> Iterator[LanguagePanel]:
    panel = wb.lab.propagation(lm, TEXT, layer=1, token=4)
    assert isinstance(panel, LanguagePanel)
    panel.wait()
    yield panel
    panel.close()


def executed(panel: LanguagePanel, lm: Any) -> dict[str, Any]:
    names = {"lm": lm, "text": TEXT}
    exec(panel.code(), names)
    return names


@pytest.mark.parametrize(
    "change",
    [{"shown": "keys"}, {"kind": "noise", "amplitude": 0.1, "seed": 3}, {"part": "scores", "channel": 7, "bit": 27}],
)
def test_the_script_gives_what_is_shown(panel, lm, change):
    assert panel.change(**change)
    panel.ask("texts")
    panel.wait()
    names, found = executed(panel, lm), panel.result
    assert np.array_equal(names["errors"].errors, found["errors"].errors)
    assert np.array_equal(names["divergence"], found["changed"].divergence)
    assert names["texts"] == [lm.text(each) for each in (found["texts"].original, found["texts"].changed)]


def test_the_map_the_chart_and_the_figures_are_of_one_run(panel):
    (picture,) = panel.shown.pictures
    errors = panel.result["errors"]
    assert picture.pixels.shape == errors.errors.shape == (5, 23)
    assert np.array_equal(picture.pixels > 0, errors.errors > 0)
    other = int(panel.result["changed"].other.sum())
    assert panel.shown.facts[0].value == str(other)
    assert panel.shown.answer[0].startswith("A flip of bit 30 at block 1 down (")
    assert len(panel.shown.charts["divergence"].parts[1].x) == other > 0
    assert panel.reading(0, 4.5, 2.5).place == "block 1, token 4 'r'"
    assert float(panel.reading(0, 4.5, 2.5).values[0]) > 1e30
    assert panel.reading(0, 3.5, 2.5).values == ("0",)
    assert panel.reading(0, 30.0, 2.5) is None


def test_texts_are_written_token_by_token(panel):
    panel.rows()
    seen: list[tuple[int, int]] = []
    show = panel.show_parts

    def watched() -> None:
        texts = panel._engine.partial.get("texts")
        seen.append((0, 0) if texts is None else (len(texts.original), len(texts.changed)))
        show()

    panel.show_parts = watched
    panel.ask("texts")
    panel.wait()
    texts = panel.result["texts"]
    assert texts.done
    assert len(texts.original) == 32
    assert all(abs(one - other) <= 1 for one, other in seen)
    assert panel.shown.settings["written without the error"] == panel.pipeline.model.text(texts.original)


def test_what_is_not_finite_is_said_and_ends_the_text(panel):
    assert panel.change(part="values", layer=0)
    lost = [channel for channel in range(16) if 1 <= abs(panel.run["block 0 values"][channel // 8, 4, channel % 8]) < 2]
    assert panel.change(channel=lost[0])   # whose exponent becomes that of infinity and NaN
    panel.ask("texts")
    panel.wait()
    assert "NaN reaches earlier tokens, too" in panel.shown.remark
    assert panel.shown.facts[2].value == "23"
    assert panel.result["texts"].changed == ()
    panel.rows()
    panel.show_parts()
    assert "nothing: its logits are not finite" in panel._texts.content["html"]


def test_a_format_keeps_its_top_bit(panel):
    assert panel.change(format="bfloat16")
    assert panel.state.bit == 14
    assert panel.change(format="float32")
    assert panel.state.bit == 30


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"layer": 3}, "the block must be"), ({"token": 23}, "the token must be"), ({"channel": 32}, "the channel must be"),
        ({"bit": 32}, "the bit must be"), ({"amplitude": 0}, "must be a positive number"), ({"part": "dwn"}, "the site"),
        ({"tokens": 120}, "at most 128 tokens"), ({"kind": "flop"}, "the kind of error"),
    ],
)
def test_choices_that_are_refused(panel, change, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        panel.change(**change)


def test_the_weights_are_scanned_and_bounds_follow_the_budget(lm):
    panel = wb.lab.propagation(lm, TEXT, budget=0.3)
    try:
        panel.rows()
        panel.ask("weights")
        panel.wait()
        losses = panel.result["weights"]
        assert losses.groups == ("embedding", "block 0", "block 1", "block 2")
        panel.show_parts()
        wide = panel._weights.content["html"]
        assert "Loss (nats) by group and bound" in wide
        assert ">0.0625</text>" in wide   # the bound as in the table, where it is not rounded either
        names = {"lm": lm, "text": TEXT, "wb": wb}
        lines = [line for line in panel.code().splitlines() if line.startswith(("losses", "solution"))]
        exec("\n".join(lines), names)
        assert np.allclose(names["losses"].loss, losses.loss, equal_nan=True)
        assert names["solution"] == losses.within(0.3)
        assert f"{names['solution'].loss:.3g} of 0.3 nats" in wide
        panel.change(budget=1e-3)   # nothing is measured again
        assert panel.result["weights"] is losses
        panel.show_parts()
        assert "of 0.001 nats" in panel._weights.content["html"]
        assert losses.within(1e-3).nbytes > losses.within(0.3).nbytes
        with pytest.raises(wb.WorkbenchError, match="the budget must be a positive number"):
            panel.change(budget=0)
    finally:
        panel.close()


def test_caches_are_compared_on_the_text_of_the_panel(lm):
    text = TEXT + " of " + TEXT
    panel = wb.lab.propagation(lm, text, score_step=0.5)
    try:
        panel.rows()
        panel.ask("caches")
        panel.wait()
        found, names = panel.result["caches"], {"lm": lm, "text": text}
        exec(panel.code(), names)
        assert names["comparison"].to_dict() == found.to_dict()
        assert found[0].name == "steps 0.5 of scores, 0.4 of values"
        panel.show_parts()
        assert "KIVI, 4/4 bits" in panel._caches.content["html"]
        panel.change(score_step=2.0)
        panel.ask("caches")
        panel.wait()
        assert panel.result["caches"][0].bits < found[0].bits
    finally:
        panel.close()
