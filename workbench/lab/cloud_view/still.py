"""The picture of a cloud without WebGL, for browsers that lack it and for pages without a kernel.

It is the formula of the shaders in NumPy: each point adds light and hue to its pixel, and a pixel shows the mean hue, as
bright as the logarithm of the light.
"""

from __future__ import annotations

import base64
import io
import math

import numpy as np

from workbench.lab.cloud_view.fates import HALO_BITS, JOINED, LEFT
from workbench.lab.cloud_view.look import (
    BACKGROUND,
    CHANGED_LIGHT,
    CONTRAST,
    DISTANCE,
    HAZE,
    HUES,
    IN_NO_HALO,
    JOINED_HUE,
    LEFT_HUE,
    LENS,
    LIGHT,
    OTHER_HALO,
    PITCH,
    SPAN,
    STATUS_HUES,
    YAW,
    Colouring,
    rgb,
)
from workbench.lab.cloud_view.scene import STEPS, Scene
from workbench.lab.colours import table

MOST_DRAWN = 300_000   # points; a still picture has no more pixels to show them


def still(
    scene: Scene, side: int, pixels: tuple[int, int], colouring: Colouring = "halo", coloured: int = 49
) -> np.ndarray:
    """One side from where the camera begins, as (height, width, 3) bytes; `pixels` are height and width.

    >>> from workbench.clusters import friends_of_friends
    >>> from workbench.data import Particles
    >>> from workbench.lab.cloud_view import fates_of, scene_of
    >>> particles = Particles(np.random.default_rng(0).random((500, 3)), box=1.0)
    >>> picture = still(scene_of(particles, fates_of(particles, friends_of_friends(particles))), 0, (60, 80))
    >>> picture.shape, bool(picture.max() > 60)
    ((60, 80, 3), True)
    """
    height, width = pixels
    points = scene.points[side][:MOST_DRAWN]
    across, up, depth = _seen(scene, points[:, :3])
    half = min(height, width) / 2
    column = np.rint(width / 2 + half * LENS * across / depth).astype(np.int64)
    row = np.rint(height / 2 - half * LENS * up / depth).astype(np.int64)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    colours = palette(scene, colouring, coloured)[points[:, 3] & HALO_BITS]
    if side and colouring != "density":
        for change, changed in ((LEFT, LEFT_HUE), (JOINED, JOINED_HUE)):
            colours[points[:, 3] >> 14 == change] = *rgb(changed), CHANGED_LIGHT
    colours = colours[inside]
    light = colours[:, 3] * np.exp(HAZE * (DISTANCE - depth[inside]))
    pixel = row[inside] * width + column[inside]
    lit = np.bincount(pixel, light, height * width)
    hue = np.stack([np.bincount(pixel, light * colours[:, each], height * width) for each in range(3)], axis=-1)
    bright = brightness(lit, len(points), half)
    if colouring == "density":
        shown = table("density")[(255 * bright).astype(np.uint8)].astype(float)
    else:
        mean = hue / np.maximum(lit, 1e-12)[:, None]
        shown = 255 * (np.array(rgb(BACKGROUND)) * (1 - bright[:, None]) + mean * bright[:, None])
    return shown.astype(np.uint8).reshape(height, width, 3)


def brightness(lit: np.ndarray, count: int, half: float) -> np.ndarray:
    """The light of each pixel, from 0 to 1: the logarithm of its density in units of the mean of all particles in none.

    >>> brightness(np.array([0.0, 1e9]), 1000, 100.0).tolist()
    [0.0, 1.0]
    """
    mean = max(LIGHT["none"] * count / (1.5 * (half * LENS / DISTANCE) ** 2), 0.15 * LIGHT["none"])
    return np.clip(np.log1p(CONTRAST * lit / mean) / math.log1p(CONTRAST * SPAN), 0, 1)


def palette(scene: Scene, colouring: Colouring, coloured: int) -> np.ndarray:
    """The colour (red, green, blue, light) of the members of each halo, by its number; row 0 is for particles in none."""
    count = len(scene.fates.halos)
    colours = np.empty((count + 1, 4))
    colours[0] = *rgb(IN_NO_HALO), LIGHT["none"]
    colours[1:] = *rgb(OTHER_HALO), LIGHT["other"]
    if colouring == "status" and scene.fates.status is not None:
        hues = np.array([rgb(hue) for hue in STATUS_HUES.values()])
        colours[1:, :3], colours[1:, 3] = hues[scene.fates.status], LIGHT["coloured"]
    elif colouring == "density":
        colours[:, 3] = LIGHT["none"]   # all alike
    else:
        ranks = scene.ranks
        for halo in np.flatnonzero(ranks < coloured):
            colours[1 + halo] = *rgb(HUES[ranks[halo] % len(HUES)]), LIGHT["coloured"]
    return colours


def png(picture: np.ndarray) -> bytes:
    """A picture as a PNG file."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def data_url(picture: np.ndarray) -> str:
    """A picture as a data URL for an HTML page."""
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode()


def _seen(scene: Scene, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places to the right, up and away from the camera, which looks at the centre."""
    lengths = np.array(scene.frame.lengths) / max(scene.frame.lengths)
    x, y, z = ((steps / STEPS - 0.5) * lengths).T
    across = math.cos(YAW) * x + math.sin(YAW) * y
    away = math.cos(YAW) * y - math.sin(YAW) * x
    up = math.cos(PITCH) * z + math.sin(PITCH) * away
    return across, up, DISTANCE + math.cos(PITCH) * away - math.sin(PITCH) * z
