"""How a cloud is drawn: what a reader can choose, and the colours and the light, which the still picture has as well.

The hues are those of Okabe and Ito without their black and with a lighter blue, which remain distinct in all common kinds
of colour blindness. The background is dark in every theme, as in the maps: light adds up where many particles are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from workbench.arguments import flag
from workbench.errors import WorkbenchError
from workbench.lab.choices import one_of, whole

Colouring = Literal["halo", "status", "density"]

HUES = ("e69f00", "56b4e9", "009e73", "f0e442", "d55e00", "cc79a7", "4d7fff")
STATUS_HUES = {"intact": "56b4e9", "split": "ff7733", "merged": "ffe98a"}

# Depths are in lengths of the longest axis.
SHADING: dict[str, Any] = {
    "hues": HUES, "status": STATUS_HUES, "other": "b9b3c9", "none": "7f93d6", "background": "080818",
    "left": "ffffff", "joined": "ff4fd8", "changed": 2.5,   # particles that left their halo or joined one, and their light
    "light": {"coloured": 1.0, "other": 0.6, "none": 0.25},   # of a particle of a coloured halo, of another one, of none
    "yaw": 0.6, "pitch": 0.35,   # radians, where the camera is at the beginning and after a reset
    "distance": 2.7,    # of the camera from the centre
    "lens": 2.8,        # half the height of the picture is this many times smaller than what is one distance away
    "haze": 1.1,        # by which light falls with the depth
    "contrast": 3.0, "span": 150.0,   # light is the logarithm of the density in units of the mean, up to the span
}


@dataclass(frozen=True)
class CloudState:
    """The choices. `coloured` is how many of the largest halos have a hue.

    `point_size` and `opacity` are relative to what suits the number of points. With `changes`, members that left or joined
    a halo are marked. `camera` has yaw, pitch, distance and the place that it looks at, whose origin is the centre.

    >>> CloudState(colouring="status").camera
    (0.6, 0.35, 2.7, 0.0, 0.0, 0.0)
    """

    colouring: Colouring = "halo"
    coloured: int = 49
    point_size: float = 1.0
    opacity: float = 1.0
    box: bool = True
    depth_cue: bool = True
    changes: bool = True
    rotating: bool = False
    camera: tuple[float, ...] = (SHADING["yaw"], SHADING["pitch"], SHADING["distance"], 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        one_of("colouring", self.colouring, get_args(Colouring))
        whole("coloured", self.coloured, 0)
        for name in ("point_size", "opacity"):
            if not 0 < getattr(self, name) <= 100:
                raise WorkbenchError(f"{name} must be a positive number, at most 100; got {getattr(self, name)!r}")
        for name in ("box", "depth_cue", "changes", "rotating"):
            flag(name, getattr(self, name))
        object.__setattr__(self, "camera", tuple(map(float, self.camera)))
        if len(self.camera) != 6:
            raise WorkbenchError(f"camera must be yaw, pitch, distance and x, y, z of a place; got {self.camera}")


USUAL = CloudState()


def rgb(colour: str) -> tuple[float, float, float]:
    """A colour as three shares.

    >>> rgb("ff0080")
    (1.0, 0.0, 0.5019607843137255)
    """
    red, green, blue = bytes.fromhex(colour)
    return red / 255, green / 255, blue / 255
