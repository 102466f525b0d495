"""Codecs look the same wherever they are drawn, and different from each other."""

from __future__ import annotations

import itertools

from workbench.charts.description import Point, joined
from workbench.charts.looks import CODEC_COLOURS, COLOURS, DASHES, MARKS, Look, looks_of
from workbench.codecs import registry

LOOKS = registry.looks()


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
