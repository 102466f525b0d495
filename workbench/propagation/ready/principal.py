"""Samples to their principal components, with the guaranteed interval of the variances (Weyl's inequality)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array, to_host
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.propagation.containers import array_of
from workbench.propagation.enclosures import WIDER, Ball, rounding
from workbench.propagation.error_sizes import norm as norm_of
from workbench.propagation.pipeline import Pipeline
from workbench.propagation.protection.findings import Findings
from workbench.propagation.protection.matrices import checked_matmul
from workbench.propagation.stage import Stage
from workbench.propagation.tolerance import within


def principal_components(samples: Particles | Array, share: float = 0.01) -> Pipeline:
    """Principal components of samples of shape (N, D): sites `centred`, `covariance`, `variances` and `axes`.

    >>> samples = np.random.default_rng(0).normal(size=(500, 3)) * [3.0, 1.0, 0.1]
    >>> principal_components(samples).run(samples)["variances"].round(1).tolist()
    [8.7, 0.9, 0.0]
    """
    values = array_of(samples)
    if values.ndim != 2 or len(values) < 2:
        raise WorkbenchError(f"principal components need samples of shape (N, D) with N > 1; got {tuple(values.shape)}")
    stages = [
        Stage("centred", _centred, linear=True, enclose=_centred_enclosure),
        Stage("covariance", _covariance, derivative=_covariance_change, enclose=_covariance_enclosure, verify=_verified),
        Stage("decomposition", _decomposition, outputs=("variances", "axes"), enclose=_variances_enclosure),
    ]
    return Pipeline(stages, outputs="variances", tolerance=within(share), name="principal components")


def _centred(samples: Array) -> Array:
    wide = samples.astype(np.float64)
    return wide - wide.mean(axis=0)


def _centred_enclosure(inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Ball | None:
    ball, samples = enclosures[0], to_host(inputs[0]).astype(np.float64)
    if not isinstance(ball, Ball):
        return None
    slack = 4 * rounding(len(samples) + 4, np.float64) * (abs(samples).max(axis=0) + np.max(ball.radius))
    radius = np.broadcast_to(ball.radius, samples.shape)
    norm = ball.norm + math.sqrt(len(samples)) * norm_of(slack)   # centring is a projection
    return Ball(WIDER * (radius + radius.mean(axis=0) + slack), WIDER * norm)


def _covariance(centred: Array) -> Array:
    return centred.T @ centred / (len(centred) - 1)


def _verified(inputs: Sequence[Any], output: Array) -> tuple[Array, Findings]:
    centred = inputs[0]
    return checked_matmul(centred.T / (len(centred) - 1), centred, output)


def _covariance_change(inputs: Sequence[Any], changes: Sequence[Any]) -> Array:
    half = inputs[0].T @ changes[0]
    return (half + half.T) / (len(inputs[0]) - 1)


def _covariance_enclosure(inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> Ball | None:
    ball, centred = enclosures[0], to_host(inputs[0])
    if not isinstance(ball, Ball):
        return None
    size = norm_of(centred)
    tiny = centred.size * float(np.finfo(np.float64).tiny)   # products that underflow
    slack = rounding(2 * len(centred) + 8, np.float64) * np.square(2 * size + ball.norm) + tiny
    norm = WIDER * (ball.norm * (2 * size + ball.norm) + slack) / (len(centred) - 1)
    return Ball(norm, norm)


def _decomposition(covariance: Array) -> tuple[Array, Array]:
    """The variances, the largest first, and the axes as rows, each with its largest entry positive."""
    xp = backend.namespace(covariance)
    if not bool(xp.isfinite(covariance).all()):
        shape = covariance.shape
        return xp.full(shape[0], np.nan), xp.full(shape, np.nan)
    variances, vectors = xp.linalg.eigh((covariance + covariance.T) / 2)
    axes = vectors.T[::-1]
    largest = xp.take_along_axis(axes, xp.argmax(abs(axes), axis=1)[:, None], axis=1)
    return variances[::-1].copy(), axes * xp.where(largest < 0, -1.0, 1.0)


def _variances_enclosure(inputs: Sequence[Any], enclosures: Sequence[Any], outputs: Sequence[Any]) -> list[Ball | None]:
    """The variances together change by no more than the matrix (Hoffman and Wielandt)."""
    ball, covariance = enclosures[0], to_host(inputs[0])
    if not isinstance(ball, Ball):
        return [None, None]
    norm = min(ball.norm, norm_of(np.broadcast_to(ball.radius, covariance.shape)))
    slack = rounding(64 * len(covariance) ** 2, np.float64) * (2 * norm_of(covariance) + norm)
    return [Ball(WIDER * (norm + slack), WIDER * (norm + slack)), None]
