"""A real language model within a budget: what is stated is what a model with the decoded weights does."""

import dataclasses

import numpy as np
import pytest

import workbench as wb
from workbench.propagation import LanguageModel, language_model
from workbench.propagation.language import divergences
from workbench.propagation.language.gguf_file import read_model

TEXT = "Rivers carve valleys over many thousand years, and glaciers widen them. A map shows heights by lines."


@pytest.mark.long
def test_the_last_blocks_of_a_model_diverge_by_what_the_certificate_states():
    try:
        lm = language_model()
    except wb.WorkbenchError as missing:
        pytest.skip(str(missing))
    last = {name: each for name, each in lm.weights.items() if name.startswith(("block 28 ", "block 29 "))}
    archive = wb.compress_model(last, wb.KL(lm, TEXT), 0.002, bounds=[1 / 64, 1 / 16, 1 / 4])
    said = archive.certificate
    assert 0 < said.loss <= 0.002
    assert 0.7 < said.additivity < 1.4
    file = read_model()
    changed = LanguageModel(dataclasses.replace(file, weights={**file.weights, **archive.tensors()}))
    assert np.mean(divergences(lm.forward(TEXT), changed.forward(TEXT))) == pytest.approx(said.loss, rel=1e-2)
