"""Small images of digits, drawn with a shaking hand: something to recognise for small networks, without a download.

Each digit is a line through a few points. For an image, the points are moved at random, the whole is turned, sheared,
scaled and shifted, and drawn with a pen of random width into 8 x 8 pixels.
"""

from __future__ import annotations

import numpy as np

from workbench.arguments import whole_number

SIDE = 8
SHAKE, TURN, SHIFT = 0.035, 0.12, 0.04   # standard deviations: of a point, of each element of the matrix, of the whole
PEN = (0.055, 0.11)                      # from the middle of the line to where it ends, in units of the image
LINES: tuple[tuple[tuple[float, float], ...], ...] = (
    ((0.5, 0.1), (0.32, 0.25), (0.3, 0.6), (0.5, 0.9), (0.7, 0.7), (0.68, 0.3), (0.5, 0.1)),
    ((0.36, 0.28), (0.53, 0.1), (0.53, 0.9)),
    ((0.3, 0.28), (0.5, 0.1), (0.7, 0.28), (0.62, 0.5), (0.3, 0.9), (0.74, 0.9)),
    ((0.3, 0.14), (0.66, 0.14), (0.45, 0.46), (0.7, 0.66), (0.54, 0.9), (0.28, 0.84)),
    ((0.64, 0.9), (0.6, 0.1), (0.27, 0.62), (0.76, 0.62)),
    ((0.7, 0.1), (0.36, 0.1), (0.33, 0.46), (0.6, 0.44), (0.7, 0.66), (0.54, 0.9), (0.29, 0.84)),
    ((0.62, 0.1), (0.38, 0.4), (0.32, 0.7), (0.5, 0.9), (0.68, 0.7), (0.53, 0.54), (0.34, 0.66)),
    ((0.27, 0.12), (0.72, 0.12), (0.44, 0.9)),
    ((0.5, 0.47), (0.33, 0.29), (0.5, 0.1), (0.67, 0.29), (0.5, 0.47), (0.3, 0.69), (0.5, 0.9), (0.7, 0.69), (0.5, 0.47)),
    ((0.67, 0.33), (0.5, 0.5), (0.33, 0.32), (0.5, 0.11), (0.67, 0.33), (0.6, 0.9)),
)   # from left to right and from top to bottom, in units of the image


def digits(count: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """So many images as rows of 64 pixels from 0 to 1 (float32), and their labels.

    >>> images, labels = digits(20, seed=1)
    >>> images.shape, labels[:10].tolist()
    ((20, 64), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    count, random = whole_number("count", count, 1), np.random.default_rng(whole_number("seed", seed, 0))
    labels = np.arange(count) % len(LINES)
    images = np.empty((count, SIDE * SIDE), np.float32)
    for digit, line in enumerate(LINES):
        own = np.flatnonzero(labels == digit)
        if len(own):
            images[own] = _drawn(_moved(np.array(line), len(own), random), random.uniform(*PEN, (len(own), 1)))
    return images, labels


def _moved(line: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """The points of many lines, by image, point and axis."""
    points = line - 0.5 + SHAKE * random.normal(size=(count, *line.shape))
    matrix = np.eye(2) + TURN * random.normal(size=(count, 2, 2))
    return points @ matrix + 0.5 + SHIFT * random.normal(size=(count, 1, 2))


def _drawn(points: np.ndarray, pen: np.ndarray) -> np.ndarray:
    """How dark each pixel is: by its distance from the line."""
    middles = (np.arange(SIDE) + 0.5) / SIDE
    pixels = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(1, -1, 2)
    nearest = np.full((len(points), pixels.shape[1]), np.inf)
    for begin, end in zip(points.swapaxes(0, 1)[:-1], points.swapaxes(0, 1)[1:], strict=True):
        along, there = (end - begin)[:, None], pixels - begin[:, None]
        part = np.clip((there * along).sum(axis=-1) / np.maximum((along * along).sum(axis=-1), 1e-12), 0, 1)
        nearest = np.minimum(nearest, np.hypot(*np.moveaxis(there - part[..., None] * along, -1, 0)))
    return np.clip(0.5 + (pen - nearest) * SIDE, 0, 1)
