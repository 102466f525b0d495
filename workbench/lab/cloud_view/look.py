"""The colours and the camera of a cloud: the browser and the still picture take the same.

The hues are those of Okabe and Ito without their black and with a lighter blue, which remain distinct in all common kinds
of colour blindness. The background is dark in every theme, as in the maps: light adds up where many particles are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Colouring = Literal["halo", "status", "density"]

HUES = ("e69f00", "56b4e9", "009e73", "f0e442", "d55e00", "cc79a7", "4d7fff")
STATUS_HUES = {"intact": "56b4e9", "split": "ff7733", "merged": "ffe98a"}
OTHER_HALO = "b9b3c9"
IN_NO_HALO = "7f93d6"
LEFT_HUE, JOINED_HUE = "ffffff", "ff4fd8"   # of particles that left their halo or joined one: they also have more light
CHANGED_LIGHT = 2.5
BACKGROUND = "080818"

# The share of the light of a particle: of a coloured halo, of another one, of none.
LIGHT: Mapping[str, float] = {"coloured": 1.0, "other": 0.6, "none": 0.25}

YAW, PITCH = 0.6, 0.35   # radians, at the beginning
DISTANCE = 2.7           # of the camera from the centre, in lengths of the longest axis
LENS = 2.8               # half the height of the picture is this many times smaller than what is one distance away
HAZE = 1.1               # by which light falls with the depth, per length of the longest axis
CONTRAST, SPAN = 3.0, 150.0   # light is the logarithm of the density in units of the mean, up to SPAN


def look() -> dict[str, object]:
    """All of it, for the browser.

    >>> look()["hues"][0]
    'e69f00'
    """
    return {
        "hues": list(HUES), "status": dict(STATUS_HUES), "other": OTHER_HALO, "none": IN_NO_HALO, "background": BACKGROUND,
        "left": LEFT_HUE, "joined": JOINED_HUE, "changed": CHANGED_LIGHT,
        "light": dict(LIGHT), "yaw": YAW, "pitch": PITCH, "distance": DISTANCE, "lens": LENS, "haze": HAZE,
        "contrast": CONTRAST, "span": SPAN,
    }


def rgb(colour: str) -> tuple[float, float, float]:
    """A colour as three shares.

    >>> rgb("ff0080")
    (1.0, 0.0, 0.5019607843137255)
    """
    red, green, blue = bytes.fromhex(colour)
    return red / 255, green / 255, blue / 255
