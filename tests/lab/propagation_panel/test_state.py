"""The choices of the panel: what they stand for, and what is refused with a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from lab.propagation_panel.samples import ALL, sample, state_of
from workbench.errors import WorkbenchError
from workbench.guarantees import Relative
from workbench.lab.propagation_panel import PropagationState
from workbench.propagation import BitFlip, Bounded, Noise, StuckAt


@pytest.mark.parametrize("name", ALL)
def test_the_first_state_suits_the_pipeline(name: str) -> None:
    state = state_of(name)
    state.check(sample(name).run)
    assert state.site == state.look == sample(name).run.pipeline.sites[0]


def test_choices_are_perturbations() -> None:
    assert PropagationState("x", "x", bit=3, count=2).perturbation == BitFlip("x", bit=3, count=2)
    assert PropagationState("x", "x", kind="stuck at 1", bit=3).perturbation == StuckAt("x", bit=3, to=1)
    bounded = PropagationState("x", "x", kind="compression", bound=0.01, codec="pcodec").perturbation
    assert bounded == Bounded("x", Relative(0.01), "pcodec")
    assert PropagationState("x", "x", kind="noise", bound=0.01).perturbation == Noise("x", 0.01, unit="range")


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"kind": "gamma ray"}, "the kind of error must be one of"), ({"bound": "abc"}, "'abc' is not one"),
        ({"bound": 0.0}, "must be a positive number"), ({"bit": 1.5}, "the bit must be a whole number"),
        ({"codec": "zip"}, "the codec must be one of"), ({"count": 0}, "at least 1"), ({"trial": -1}, "at least 0"),
        ({"trials": 0}, "the number of trials"), ({"outcome": "fine"}, "the outcome must be one of"),
        ({"bits": "some"}, "the bits of the campaign"), ({"window": (0, 0, 0, 1)}, "left < right"),
        ({"index": -1}, "the slice must be"), ({"site": "densty"}, "there is no site 'densty'"),
        ({"tab": "graph"}, "the tab must be one of"), ({"budgeted": "all"}, "what is budgeted must be one of"),
        ({"tolerance": -1.0}, "the tolerance must be a positive number"),
        ({"look": "nowhere"}, "there is no site 'nowhere'"), ({"bit": 32}, "the bit must be from 0 to 31"),
        ({"site": "power", "bit": 64}, "as power holds float64"), ({"count": 10**6}, "count must be at most"),
        ({"colour": "red"}, "has no choice 'colour'"), ({"twice": 1}, "twice must be True or False"),
        ({"protect": ("wave",)}, "there is no site 'wave'; the nearest names are: waves"),
    ],
)
def test_what_cannot_be_is_refused(choices: dict[str, Any], said: str) -> None:
    with pytest.raises(WorkbenchError, match=said):
        state_of("density", **choices).check(sample("density").run)


def test_kinds_that_an_array_does_not_take_are_refused() -> None:
    with pytest.raises(WorkbenchError, match="noise needs floating-point values"):
        state_of("halos", site="groups", kind="noise").check(sample("halos").run)
