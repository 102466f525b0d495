"""Codecs look the same wherever they are drawn, and different from each other."""

from __future__ import annotations

import itertools

from workbench.charts.chart import COLOURS, DASHES, MARKS, Point, chart
from workbench.charts.looks import CODEC_COLOURS, looks_of
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


def test_charts_of_sweeps_have_these_looks() -> None:
    lines = {name: [Point(1.0, 2.0, name), Point(2.0, 3.0, name)] for name in ("zfp", "sz3")}
    svg = chart(lines, "ratio", "psnr", 4, known=LOOKS).svg
    for look in (LOOKS["zfp"], LOOKS["sz3"]):
        assert f'd="{MARKS[look.marker]}"' in svg
        assert look.colour in svg
    assert f'stroke-dasharray="{DASHES[LOOKS["zfp"].dash]}"' in svg
