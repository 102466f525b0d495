"""Pipelines of every kind that the panel shows, small, each with its input."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import workbench as wb
from workbench.lab.propagation_panel.state import PropagationState
from workbench.lab.propagation_panel.travel import Baseline, Floor, Trace, Travel, floor_of, traced, travel
from workbench.propagation import Pipeline, Stage


@functools.cache
def sample(name: str) -> Baseline:
    """A finished run."""
    pipeline, x = MAKERS[name]()
    return Baseline(pipeline.run(x))


@functools.cache
def floor(name: str) -> Floor:
    return floor_of(sample(name).run)


def state_of(name: str, **choices: Any) -> PropagationState:
    return PropagationState.for_(sample(name).run, **choices)


def results(name: str, state: PropagationState) -> Mapping[str, Any]:
    """What the stages make of a sample, by name."""
    found: Travel = travel(sample(name), state.perturbation, state.seed, state.trial)
    theory: Trace = traced(found, state.perturbation, floor(name))
    return {"travel": found, "floor": floor(name), "trace": theory}


def density() -> tuple[Pipeline, Any]:
    values = wb.Field(np.exp(wb.synthetic.gaussian_field((12, 12, 12), seed=1).values))
    return wb.propagation.power_spectrum(values), values


def plane() -> tuple[Pipeline, Any]:
    waves = wb.synthetic.gaussian_field((16, 20), seed=1)
    return wb.propagation.derivatives(waves), waves


def flow() -> tuple[Pipeline, Any]:
    velocity = np.random.default_rng(1).normal(size=(3, 6, 6, 6))
    return wb.propagation.vorticity(velocity), velocity


def halos() -> tuple[Pipeline, Any]:
    snapshot = wb.synthetic.cosmic_web(n=12, seed=1)
    return wb.propagation.halos(snapshot, min_members=5), snapshot


def points() -> tuple[Pipeline, Any]:
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    values = np.random.default_rng(2).normal(size=(150, 2)) + np.repeat(centres, 50, axis=0)
    return wb.propagation.kmeans(values, clusters=3, rounds=2), values


def line() -> tuple[Pipeline, Any]:
    return wb.propagation.kuramoto_sivashinsky(points=32, time=8.0, snapshots=4), np.sin(np.arange(32) / 5)


def two_inputs() -> tuple[Pipeline, Any]:
    """Two inputs, two branches, several outputs of one stage, an array of five axes, and a stage that may raise."""

    def root(values: np.ndarray) -> np.ndarray:
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError("a root of what is negative or not finite")
        return np.sqrt(values)

    stages = [
        Stage("product", lambda a, b: a * b, ("a", "b")),
        Stage("parts", lambda p: (p.sum(axis=0), p > 1.0), ("product",), ("sums", "large")),
        Stage("roots", root, ("b",)),
        Stage("folded", lambda p: p.reshape(2, 2, 2, 2, -1), ("product",)),
    ]
    a, b = np.random.default_rng(3).uniform(0.5, 2.0, (2, 16, 3))
    return Pipeline(stages, inputs=("a", "b")), {"a": a.astype(np.float16), "b": b}


MAKERS: Mapping[str, Callable[[], tuple[Pipeline, Any]]] = {
    "density": density, "plane": plane, "flow": flow, "halos": halos, "points": points, "line": line,
    "two inputs": two_inputs,
}
ALL = list(MAKERS)
