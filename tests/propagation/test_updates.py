"""Stages that compute only what has changed give the bits that they give when they compute everything."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.propagation import BitFlip, Pipeline, derivatives, histogram, power_spectrum, vorticity
from workbench.propagation.draws import draws_of


def without_updates(pipeline):
    return Pipeline([replace(stage, update=None) for stage in pipeline.stages], outputs=pipeline.outputs)


MAKERS = {
    "spectrum": lambda x: power_spectrum(x),
    "derivatives": lambda x: derivatives(wb.Field(x, spacing=0.3)),
    "histogram": lambda x: histogram(x, bins=9),
    "vorticity": lambda x: vorticity(np.stack([x] * 3)),
}


@given(
    st.sampled_from(sorted(MAKERS)), st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]), st.integers(1, 5),
    st.sampled_from([(8, 8, 8), (6, 7, 9), (4, 12, 5)]),
)
@settings(max_examples=120, deadline=None)
def test_an_update_gives_the_bits_of_the_whole(name, seed, dtype, count, shape):
    x = np.exp(np.random.default_rng(seed).normal(size=shape)).astype(dtype)
    pipeline = MAKERS[name](x)
    given_x = np.stack([x] * 3) if name == "vorticity" else x
    plain = without_updates(pipeline)
    run = pipeline.run(given_x)
    for site in pipeline.sites:
        if run[site].dtype.kind not in "fc":
            continue
        flip = BitFlip(site, count=min(count, run[site].size))
        changed = pipeline.perturbed(run, flip, seed, 1)
        whole = plain.run(given_x, at={site: lambda values, flip=flip: flip.apply(values, draws_of(seed, 1)).values})
        for other in pipeline.sites:
            assert changed[other].tobytes() == whole[other].tobytes(), (site, other)


@pytest.mark.parametrize("place", [(0, 0, 0), (7, 7, 7), (3, 0, 7)])
def test_an_update_reaches_over_the_edge_of_the_box(place):
    x = np.random.default_rng(0).normal(size=(8, 8, 8))
    pipeline = derivatives(x)
    changed = pipeline.perturbed(pipeline.run(x), BitFlip("input", bit=51, index=place))
    touched = np.argwhere(changed["laplacian"] != pipeline.run(x)["laplacian"])
    distance = abs(touched - place)
    assert len(touched) == 7
    assert (np.minimum(distance, 8 - distance).sum(axis=1) <= 1).all()
