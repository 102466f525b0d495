"""Codecs look the same wherever they are drawn, and different from each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from workbench.charts.description import Point, joined
from workbench.charts.looks import AREA_COLOURS, CODEC_COLOURS, COLOURS, DASHES, MARKS, Look, looks_of
from workbench.codecs import registry

LOOKS = registry.looks()
# What is left of red, green and blue (linear) without one kind of cones: Machado, Oliveira and Fernandes 2009.
SIGHT = {
    "full": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
) / np.array([[0.95047], [1.0], [1.08883]])


def linear(colour: str) -> np.ndarray:
    shares = np.array(list(bytes.fromhex(colour[1:]))) / 255
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def difference(one: str, other: str, sight: str) -> float:
    """The distance of two colours in CIE L*a*b*, as somebody sees them; 2 is just visible, 10 at a glance."""
    places = []
    for colour in (one, other):
        x, y, z = np.cbrt(TO_XYZ @ np.clip(SIGHT[sight] @ linear(colour), 0, 1))
        places.append(np.array([116 * y, 500 * (x - y), 200 * (y - z)]))
    return float(np.linalg.norm(places[0] - places[1]))


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(LOOKS, 2)])
def test_two_codecs_have_two_colours_and_with_one_mark_everybody_tells_them_apart(one: str, other: str) -> None:
    first, second = LOOKS[one], LOOKS[other]
    assert difference(first.colour, second.colour, "full") > 20
    if first.marker == second.marker:
        assert min(difference(first.colour, second.colour, sight) for sight in SIGHT) > 35


def test_every_built_in_codec_has_a_look_of_its_own() -> None:
    assert set(registry.own()) <= set(LOOKS)
    assert len({(look.colour, look.marker) for look in LOOKS.values()}) == len(LOOKS)
    assert {look.colour for look in LOOKS.values()} <= set(CODEC_COLOURS)
    assert not set(CODEC_COLOURS) & set(COLOURS[:3])   # of theoretical curves
    assert {look.marker for look in LOOKS.values()} <= set(MARKS)
    assert {look.dash for look in LOOKS.values()} <= set(DASHES)


def test_the_look_of_a_codec_does_not_depend_on_the_others() -> None:
    names = [*LOOKS, "of somebody else", "pcodec(level=4)", "sz3, relative"]
    for name, other in itertools.permutations(names, 2):
        assert looks_of([other, name], LOOKS)[name] == looks_of([name], LOOKS)[name]


def test_forty_codecs_look_different() -> None:
    found = looks_of((f"codec {number}" for number in range(40)), LOOKS)
    assert len({(look.colour, look.marker) for look in (*found.values(), *LOOKS.values())}) == 40 + len(LOOKS)
    assert {look.colour for look in found.values()} <= set(CODEC_COLOURS)
    assert list(found) == [f"codec {number}" for number in range(40)]


def test_joined_points_have_these_looks() -> None:
    zfp, sz3 = joined((Point(name, x, 2.0, name) for name in ("zfp", "sz3") for x in (2.0, 1.0)), LOOKS)
    assert Look(zfp.colour, zfp.marker, zfp.dash) == LOOKS["zfp"]   # type: ignore[arg-type]
    assert Look(sz3.colour, sz3.marker, sz3.dash) == LOOKS["sz3"]   # type: ignore[arg-type]
    assert list(zfp.x) == [1.0, 2.0]


def test_areas_differ_for_everybody_and_from_every_page() -> None:
    for (one, other), sight in itertools.product(itertools.combinations(AREA_COLOURS, 2), SIGHT):
        assert difference(one, other, sight) > 25
    for colour in AREA_COLOURS:
        light = float((TO_XYZ @ linear(colour))[1])
        assert min(1.05 / (light + 0.05), (light + 0.05) / (0.0056 + 0.05)) > 2.3   # on white, and on a dark page
