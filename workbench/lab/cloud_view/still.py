"""The picture of a cloud without WebGL, for browsers that lack it and for pages without a kernel.

It is the formula of the shaders in NumPy: each point adds light and hue to its pixel, and a pixel shows the mean hue, as
bright as the logarithm of the light. The result is a picture like all others, so that the same code writes it.
"""

from __future__ import annotations

import math

import numpy as np

from workbench.lab.cloud_view.fates import HALO_BITS, JOINED, LEFT
from workbench.lab.cloud_view.scene import STEPS, Scene
from workbench.lab.cloud_view.state import HUES, SHADING, STATUS_HUES, USUAL, CloudState, rgb
from workbench.lab.description import Picture

MOST_DRAWN = 300_000   # points; a still picture has no more pixels to show them
PIXELS = 420, 560      # height and width
COLOURS = 255          # of a picture, beside its level for no value
LIGHT = SHADING["light"]


def still(scene: Scene, side: int, state: CloudState = USUAL, pixels: tuple[int, int] = PIXELS) -> Picture:
    """One side as seen by the camera; `pixels` are height and width.

    >>> from workbench.clusters import friends_of_friends
    >>> from workbench.data import Particles
    >>> from workbench.lab.cloud_view import fates_of, scene_of
    >>> particles = Particles(np.random.default_rng(0).random((500, 3)), box=1.0)
    >>> still(scene_of(particles, fates_of(particles, friends_of_friends(particles))), 0, pixels=(60, 80)).pixels.shape
    (60, 80)
    """
    height, width = pixels
    points = scene.points[side][:MOST_DRAWN]
    across, up, depth = _seen(scene, points[:, :3], state.camera)
    half, lens = min(height, width) / 2, SHADING["lens"]
    with np.errstate(divide="ignore", invalid="ignore"):
        column = np.rint(width / 2 + half * lens * across / depth)
        row = np.rint(height / 2 - half * lens * up / depth)
        inside = (depth > 0) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
    colours = palette(scene, state)[points[:, 3] & HALO_BITS]
    if side and state.changes and state.colouring != "density":
        for change, changed in ((LEFT, "left"), (JOINED, "joined")):
            colours[points[:, 3] >> 14 == change] = *rgb(SHADING[changed]), SHADING["changed"]
    colours = colours[inside]
    haze = SHADING["haze"] if state.depth_cue else 0.0
    light = colours[:, 3] * np.exp(haze * (state.camera[2] - depth[inside]))
    pixel = (row[inside] * width + column[inside]).astype(np.int64)
    lit = np.bincount(pixel, light, height * width)
    bright = brightness(lit, len(points), half, state)
    window, title = (0.0, float(width), 0.0, float(height)), scene.titles[side]
    if state.colouring == "density":
        levels = (255 * bright).astype(np.uint8).reshape(height, width)
        return Picture(title, levels, window, "density", 0.0, 0.0)
    hue = np.stack([np.bincount(pixel, light * colours[:, each], height * width) for each in range(3)], axis=-1)
    mean = hue / np.maximum(lit, 1e-12)[:, None]
    shown = 255 * (np.array(rgb(SHADING["background"])) * (1 - bright[:, None]) + mean * bright[:, None])
    levels, names = _levels(shown.astype(np.uint8).reshape(height, width, 3))
    return Picture(title, levels, window, low=0.0, high=0.0, palette=names)


def _levels(shown: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """A picture in few colours: the level of each pixel, from 1, and the colours."""
    from PIL import Image

    image = Image.fromarray(shown).quantize(COLOURS)
    known = bytes(image.getpalette() or b"").ljust(3 * COLOURS, b"\0")
    names = tuple(f"#{known[3 * number:3 * number + 3].hex()}" for number in range(COLOURS))
    return np.asarray(image) + np.uint8(1), names


def brightness(lit: np.ndarray, count: int, half: float, state: CloudState = USUAL) -> np.ndarray:
    """The light of each pixel, from 0 to 1: the logarithm of its density in units of the mean of all particles in none.

    >>> brightness(np.array([0.0, 1e9]), 1000, 100.0).tolist()
    [0.0, 1.0]
    """
    nearest = max(state.camera[2], 0.02 * SHADING["distance"])
    mean = LIGHT["none"] * max(count / (1.5 * (half * SHADING["lens"] / nearest) ** 2), 0.15)
    contrast = SHADING["contrast"]
    return np.clip(np.log1p(contrast * state.opacity * lit / mean) / math.log1p(contrast * SHADING["span"]), 0, 1)


def palette(scene: Scene, state: CloudState) -> np.ndarray:
    """The colour (red, green, blue, light) of the members of each halo, by its number; row 0 is for particles in none."""
    colours = np.empty((len(scene.fates.halos) + 1, 4))
    colours[0] = *rgb(SHADING["none"]), LIGHT["none"]
    colours[1:] = *rgb(SHADING["other"]), LIGHT["other"]
    if state.colouring == "status" and scene.fates.status is not None:
        hues = np.array([rgb(hue) for hue in STATUS_HUES.values()])
        colours[1:, :3], colours[1:, 3] = hues[scene.fates.status], LIGHT["coloured"]
    elif state.colouring == "density":
        colours[:, 3] = LIGHT["none"]   # all alike
    else:
        ranks = scene.ranks
        for halo in np.flatnonzero(ranks < state.coloured):
            colours[1 + halo] = *rgb(HUES[ranks[halo] % len(HUES)]), LIGHT["coloured"]
    return colours


def _seen(scene: Scene, steps: np.ndarray, camera: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places to the right, up and away from the camera."""
    yaw, pitch, distance, *middle = camera
    lengths = np.array(scene.frame.lengths) / max(scene.frame.lengths)
    x, y, z = ((steps / STEPS - 0.5) * lengths - middle).T
    across = math.cos(yaw) * x + math.sin(yaw) * y
    away = math.cos(yaw) * y - math.sin(yaw) * x
    up = math.cos(pitch) * z + math.sin(pitch) * away
    return across, up, distance + math.cos(pitch) * away - math.sin(pitch) * z
