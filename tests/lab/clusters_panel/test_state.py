"""The choices: what is refused, where a panel begins, and the two units of a linking length."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from lab.clusters_panel import samples
from workbench.errors import WorkbenchError
from workbench.lab.clusters_panel.state import Chosen, ClustersState

REFUSED = [
    ({"bound": 0.0}, "the error bound ξ must be a positive number; 0 is not one"),
    ({"bound": -1}, "the error bound ξ must be a positive number; -1 is not one"),
    ({"bound": math.nan}, "the error bound ξ must be a positive number; nan is not one"),
    ({"bound": math.inf}, "the error bound ξ must be a positive number; inf is not one"),
    ({"bound": "abc"}, "the error bound ξ must be a positive number; 'abc' is not one"),
    ({"bound": True}, "the error bound ξ must be a positive number; True is not one"),
    ({"linking_length": 0}, "the linking length b must be a positive number; 0 is not one"),
    ({"unit": "Mpc"}, "the unit of the linking length must be one of spacing, length; got 'Mpc'"),
    ({"order": "any"}, "the order must be one of free, keep; got 'any'"),
    ({"solver": "adam"}, "the solver must be one of auto, pgd, refine; got 'adam'"),
    ({"shows": "both"}, "what is shown must be one of decoded, kept; got 'both'"),
    ({"axis": 3}, "the line of sight must be one of 0, 1, 2; got 3"),
    ({"axis": True}, "the line of sight must be one of 0, 1, 2; got True"),
    ({"min_members": 1}, "the number of members of the smallest halo must be a whole number, at least 2; 1 is not one"),
    ({"min_members": math.nan}, "the number of .* must be a whole number, at least 2; nan is not one"),
    ({"keep_members": 0}, "the number of .* smallest group to keep must be a whole number, at least 1; 0 is not one"),
    ({"codec": ""}, "codec must be one of .*; got ''"),
    ({"window": (1.0, 0.0, 0.0, 1.0)}, "window must be"),
    ({"window": (0.0, 1.0, 0.0)}, "window must be"),
    ({"window": (0.0, math.nan, 0.0, 1.0)}, "window must be"),
]


@pytest.mark.parametrize(("fields", "complaint"), REFUSED)
def test_what_makes_no_sense_is_refused_in_a_sentence(fields, complaint):
    with pytest.raises(WorkbenchError, match="^" + complaint):
        replace(ClustersState(0.1), **fields)


@pytest.mark.parametrize(
    ("kind", "ends"), [("halo", (1, 2)), ("link", (1,)), ("link", ()), ("star", (1,)), ("halo", (-1,))]
)
def test_what_is_chosen_has_the_ends_that_it_needs(kind, ends):
    with pytest.raises(WorkbenchError, match="a halo needs one particle and a link two"):
        Chosen(kind, ends)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_bound_is_taken_as_it_is_given(bound):
    assert ClustersState(bound).bound == bound


@pytest.mark.parametrize("name", samples.SETS)
def test_a_panel_begins_with_a_tenth_of_the_linking_length_rounded(name):
    particles = samples.SETS[name]()
    state = ClustersState.for_(particles)
    assert 0.05 < state.share(particles) < 0.2
    assert len(f"{state.bound:g}".replace(".", "").replace("0", "").split("e")[0]) == 1
    assert (state.linking_length, state.unit) == (0.2, "spacing") if particles.spacing > 0 else state.unit == "length"


def test_particles_in_a_plane_get_a_length_of_their_spacing_there():
    across, up = np.meshgrid(np.arange(11.0), np.arange(11.0))
    particles = wb.Particles(np.stack([across.ravel(), up.ravel(), np.zeros(121)], axis=1))
    state = ClustersState.for_(particles)
    assert state.unit == "length"
    assert state.linking_length == pytest.approx(0.2 * 10 / 11)


@given(st.floats(1e-3, 10), st.floats(0.1, 1000), st.floats(1e-4, 100))
def test_both_units_name_the_same_length_and_shares_are_of_it(linking, box, share):
    particles = wb.Particles([[0.01, 0.02, 0.03], [0.05, 0.05, 0.05]], box=box)
    state = ClustersState(0.1, linking_length=linking)
    there = state.in_unit(particles, "length")
    assert there.linking_length == pytest.approx(linking * particles.spacing)
    assert there.in_unit(particles, "spacing").linking_length == pytest.approx(linking)
    assert there.length(particles) == pytest.approx(state.length(particles))
    assert state.in_unit(particles, "spacing") is state
    assert state.with_share(particles, share).share(particles) == pytest.approx(share)


def test_a_unit_that_particles_do_not_have_is_refused():
    flat = wb.Particles([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    with pytest.raises(WorkbenchError, match="unit must be 'length' for particles that fill no volume"):
        ClustersState.for_(flat).in_unit(flat, "spacing")


def test_the_promise_is_what_the_state_says():
    promise = ClustersState(0.1, 0.15, "length", keep_members=20, solver="auto").promise
    assert promise == wb.KeepClusters(0.15, "length", 20, "auto")


def test_states_can_be_keys():
    assert len({ClustersState(0.1), ClustersState(0.1), ClustersState(0.2), ClustersState(0.1, chosen=Chosen.halo(3))}) == 3


def test_a_panel_opens_with_the_choices_that_it_is_given():
    particles = wb.Particles(np.random.default_rng(1).uniform(0, 10, (1000, 3)), box=10.0)
    assert ClustersState.for_(particles, linking_length=0.4).bound == 0.04
    assert ClustersState.for_(particles, unit="length", linking_length=0.5).bound == 0.05
    assert ClustersState.for_(particles, unit="length").linking_length == pytest.approx(0.2)
    assert ClustersState.for_(particles, bound=0.0123, codec="sz3").bound == 0.0123
    with pytest.raises(WorkbenchError, match="a clusters panel has no choice 'eb'; its choices are axis, bound, chosen, "):
        ClustersState.for_(particles, eb=0.1)
