"""Images, or other rows of numbers, to their classes: a small network, trained here, whose weights are sites.

It is what faults and reductions of weights are tried on where a large model would take too long. Biases are no sites: chips
that hold weights in analogue cells add them digitally.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import number, whole_number
from workbench.backend import Array, to_host
from workbench.errors import WorkbenchError
from workbench.propagation.language.quality import divergence
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.stage import Stage
from workbench.propagation.weight_arrays import largest

BATCH, RATE = 32, 2e-3          # of Adam (Kingma and Ba 2015)
DECAY, FADING = 1e-4, (0.9, 0.999)


def perceptron(
    images: Array, labels: Array, hidden: Sequence[int] = (128, 64), epochs: int = 40, seed: int = 0, keep: float = 1.0
) -> Pipeline:
    """A network of full layers with rectifiers between them: sites `weights 1`, `layer 1`, `weights 2`, ..., `logits`.

    It is trained on these rows and their classes, numbers from 0. With `keep`, all but this share of the weights of each
    layer, the largest, become zero after half of the epochs, and the others are trained on. The divergence of the
    probabilities of classes may reach 0.01 nats.

    >>> from workbench.data.synthetic import digits
    >>> network = perceptron(*digits(600), hidden=(16,), epochs=20)
    >>> images, labels = digits(300, seed=1)
    >>> float(np.mean(network(images).argmax(axis=1) == labels)) > 0.8
    True
    """
    rows, classes = _checked(images, labels)
    widths = [rows.shape[1], *(whole_number("the width of a layer", each, 1) for each in hidden), int(classes.max()) + 1]
    random = np.random.default_rng(whole_number("seed", seed, 0))
    layers = _Layers([random.normal(size=(m, n)) * np.sqrt(2 / n) for n, m in pairwise(widths)])
    layers.train(rows, classes, whole_number("epochs", epochs, 1), random, number("keep", keep, 0.0, 1.0))
    return network(layers.weights, layers.biases)


def network(weights: Sequence[np.ndarray], biases: Sequence[np.ndarray]) -> Pipeline:
    """The pipeline of full layers with these weights (outputs, inputs), in single precision."""
    stages: list[Stage] = []
    before = "input"
    for place, (weight, bias) in enumerate(zip(weights, biases, strict=True), 1):
        last = place == len(weights)
        site, name = f"weights {place}", "logits" if last else f"layer {place}"
        stages.append(Stage(site, partial(_constant, weight.astype(np.float32)), ("input",)))
        stages.append(Stage(name, partial(_layer, bias.astype(np.float32), not last), (before, site)))
        before = name
    return Pipeline(stages, tolerance=divergence(0.01), name="perceptron")


def _constant(values: np.ndarray, rows: Array) -> Array:
    return backend.namespace(rows).asarray(values)


def _layer(bias: np.ndarray, rectified: bool, rows: Array, weights: Array) -> Array:
    xp = backend.namespace(rows)
    found = rows.astype(np.float32) @ weights.T + xp.asarray(bias)
    return xp.maximum(found, 0) if rectified else found


@dataclass(eq=False)
class _Layers:
    """Weights and biases while they are trained, in double precision."""

    weights: list[np.ndarray]

    def __post_init__(self) -> None:
        self.biases = [np.zeros(len(each)) for each in self.weights]

    def train(
        self, rows: np.ndarray, classes: np.ndarray, epochs: int, random: np.random.Generator, keep: float
    ) -> None:
        """Adam on the cross entropy, with a rate that falls to zero."""
        parameters = [*self.weights, *self.biases]
        means, squares = ([np.zeros_like(each) for each in parameters] for _ in range(2))
        batches = [order for _ in range(epochs) for order in _batches(len(rows), random)]
        pruned: list[np.ndarray] = []
        for step, batch in enumerate(batches, 1):
            if keep < 1 and step == 1 + len(batches) // 2:
                pruned = [~largest(abs(each), keep) for each in self.weights]
            rate = RATE * (1 - (step - 1) / len(batches)) * np.sqrt(1 - FADING[1] ** step) / (1 - FADING[0] ** step)
            for each, slope, mean, square in zip(
                parameters, self._slopes(rows[batch], classes[batch]), means, squares, strict=True
            ):
                mean += (1 - FADING[0]) * (slope + DECAY * each - mean)
                square += (1 - FADING[1]) * ((slope + DECAY * each) ** 2 - square)
                each -= rate * mean / (np.sqrt(square) + 1e-8)
            for each, zero in zip(self.weights, pruned, strict=False):
                each[zero] = 0

    def _slopes(self, rows: np.ndarray, classes: np.ndarray) -> list[np.ndarray]:
        """The derivatives of the mean cross entropy by all weights, then by all biases."""
        active = [rows]
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True), 1):
            found = active[-1] @ weight.T + bias
            active.append(found if place == len(self.weights) else np.maximum(found, 0))
        shares = np.exp(active[-1] - active[-1].max(axis=1, keepdims=True))
        back = shares / shares.sum(axis=1, keepdims=True)
        back[np.arange(len(rows)), classes] -= 1
        back /= len(rows)
        of_weights: list[np.ndarray] = []
        of_biases: list[np.ndarray] = []
        for weight, seen in zip(reversed(self.weights), reversed(active[:-1]), strict=True):
            of_weights.insert(0, back.T @ seen)
            of_biases.insert(0, back.sum(axis=0))
            back = (back @ weight) * (seen > 0)
        return of_weights + of_biases


def _batches(count: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    order = random.permutation(count)
    return (order[start : start + BATCH] for start in range(0, count, BATCH))


def _checked(images: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    rows, classes = to_host(images), to_host(labels)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.size:
        raise WorkbenchError(f"images must be rows of numbers; got {rows.dtype} of shape {rows.shape}")
    if classes.shape != rows.shape[:1] or classes.dtype.kind not in "iu" or classes.min() < 0:
        raise WorkbenchError(f"labels must be a whole number from 0 for each of {len(rows)} rows; got {classes.shape}")
    values = rows.astype(np.float64)
    if not np.isfinite(values).all():
        raise WorkbenchError("images must be finite; got NaN or infinity")
    return values, classes.astype(np.int64)
