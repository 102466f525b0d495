"""The bracketed search against functions whose answer is known: smooth, stepped, rising in between, hopeless."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.bounds.tuning import cheapest
from workbench.bounds.tuning.search import Terms, Tried, best_of, next_place

TERMS = Terms(-12.0, 3.0, stop=0.01)


def searched(room, guide, terms=TERMS, most=40):
    tried = []
    while (place := next_place(tried, guide, terms)) is not None:
        assert terms.low <= place <= terms.high
        tried.append(Tried(place, room(place)))
        assert len(tried) <= most, "the search does not end"
    return tried


slopes = st.floats(0.2, 3.0)


@given(st.floats(-11, 2), slopes, slopes, st.floats(-3, 3), st.floats(-0.05, 0.05))
def test_smooth_falling_room_is_used_up(root, slope, guessed, offset, bend):
    def room(place):
        return -slope * (place - root) + bend * (place - root) ** 2 if abs(place - root) < 2 else -slope * (place - root)

    tried = searched(room, lambda places: -guessed * (places - root) + offset)
    best = best_of(tried)
    assert best.room <= TERMS.stop or abs(best.place - root) <= TERMS.precision


@given(st.floats(-10, 2), slopes)
def test_a_perfect_guide_needs_one_compression(root, slope):
    assert len(searched(lambda place: -slope * (place - root), lambda places: -slope * (places - root))) == 1


@given(st.lists(st.floats(-11, 2), min_size=1, max_size=6), st.floats(0.5, 5))
def test_a_jump_is_enclosed(edges, height):
    edges = sorted(edges)

    def room(place):
        return height - 2 * height * sum(place > edge for edge in edges) / len(edges) - 1e-3

    tried = searched(room, lambda places: -places - 5)
    best = best_of(tried)
    assert room(best.place) == best.room >= 0
    above = [point.place for point in tried if point.room < 0 and point.place > best.place]
    assert best.place == TERMS.high or min(above) - best.place <= TERMS.precision


@given(st.integers(0, 2**32 - 1))
def test_the_answer_is_one_that_was_measured_whatever_the_room_does(seed):
    rng = np.random.default_rng(seed)
    waves = rng.normal(size=4), rng.uniform(0.5, 20, 4), rng.uniform(0, 6, 4)

    def room(place):
        return float(-0.3 * (place + 4) + (waves[0] * np.sin(waves[1] * place + waves[2])).sum())

    best = best_of(searched(room, lambda places: -(places + 4)))
    assert best is None or (best.room >= 0 and room(best.place) == best.room)


def test_nothing_meets_an_impossible_target_and_everything_an_easy_one():
    def guide(places):
        return -places

    none = searched(lambda place: -1.0, guide)
    assert best_of(none) is None
    assert none[-1].place == TERMS.low
    assert best_of(searched(lambda place: 1.0, guide)).place == TERMS.high


@given(st.floats(-4, 1), st.floats(0.3, 3))
def test_the_cheapest_place_is_enclosed(least, width):
    tried = cheapest.search(lambda place: math.cosh((place - least) / width), 0.0)
    assert len(tried) <= cheapest.MOST
    assert abs(min(tried, key=tried.get) - least) < 0.5


def test_places_that_cost_too_much_are_left_behind():
    tried = cheapest.search(lambda place: math.inf if place > -3 else -place, 0.0)
    assert min(tried.values()) < math.inf
