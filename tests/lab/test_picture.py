"""A still picture of data, by one call."""

from __future__ import annotations

import re
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest

import workbench as wb


@pytest.fixture
def particles() -> wb.Particles:
    """Two tight groups in a box, and a few particles around them."""
    random = np.random.default_rng(1)
    groups = [centre + random.normal(0, 0.02, (size, 3)) for centre, size in (((2, 3, 4), 40), ((6, 5, 1), 30))]
    return wb.Particles.wrapped(np.concatenate([*groups, random.uniform(0, 8, (30, 3))]), 8.0)


def test_particles_are_seen_with_circles_around_their_largest_groups(particles: wb.Particles) -> None:
    groups = wb.friends_of_friends(particles, linking_length=0.1, unit="length")
    both = wb.lab.picture(particles, groups).content.marks[0]
    assert np.abs(both.places[:, :2] - [[2, 3], [6, 5]]).max() < 0.02
    assert (both.places[:, 2] > 0.02).all()
    one = wb.lab.picture(particles, groups, axis=0, most=1).content
    assert np.abs(one.marks[0].places[:, :2] - [[3, 4]]).max() < 0.02   # y and z
    assert one.marks[0].label == "largest of 2 groups"
    assert (one.axes.across, one.axes.up) == ("y", "z")


def test_a_field_is_seen_in_its_middle(tmp_path: Path) -> None:
    values = np.zeros((3, 4, 5))
    values[1, 0, 0] = 2.0
    drawn = wb.lab.picture(wb.Field(values, name="speed", metadata={"units": "m/s"}))
    assert repr(drawn) == "StillPicture(speed, axis 0 = 1 of 3: speed from 0 to 2 m/s)"
    assert drawn.content.pixels[-1, 0] == 255
    root = xml.etree.ElementTree.parse(drawn.save(tmp_path / "speed.svg")).getroot()
    texts = {"".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"speed [m/s]", "axis 2", "axis 1", "0", "2"} <= texts
    assert re.fullmatch(r'<img src="data:image/svg\+xml,[^"]+" alt="speed, [^"]+" style="[^"]+">', drawn._repr_html_())


def test_what_has_no_picture_is_refused(particles: wb.Particles, tmp_path: Path) -> None:
    line = wb.Field(np.arange(4.0))
    with pytest.raises(wb.WorkbenchError, match="two to four axes"):
        wb.lab.picture(line)
    with pytest.raises(wb.WorkbenchError, match="groups belong to particles"):
        wb.lab.picture(wb.Field(np.zeros((2, 2))), wb.friends_of_friends(particles, linking_length=0.2))
    with pytest.raises(wb.WorkbenchError, match="axis"):
        wb.lab.picture(particles, axis=3)
    with pytest.raises(wb.WorkbenchError, match="folder that exists"):
        wb.lab.picture(particles).save(tmp_path / "nowhere" / "map.svg")
