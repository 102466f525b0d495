"""Projected gradient descent on a squared hinge loss: every violated pair pulls or pushes its two ends.

The optimiser is Adam, and each step is projected onto the bound: every coordinate within xi of the original one. Two
coincident particles have no direction of separation; their pair is left out, so they stay.

Most pairs are never close to a violation. Only pairs that could be violated are evaluated, until some particle has
travelled far enough to change that; this gives the same numbers several times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peers.clusters.constraints import Constraints
from peers.clusters.problem import Problem
from workbench.data.periodic import nearest_image

COINCIDENT = 1e-20   # pairs nearer than this are left out; a length, whatever its unit
NEAR = 0.5           # pairs are evaluated if violated, or if a change of their distance by this many xi would violate them
TRAVEL = 0.24        # the pairs are selected again when a particle has travelled this far, in xi: less than half of NEAR


@dataclass(frozen=True)
class Schedule:
    """The step per iteration and Adam's epsilon (both lengths), the loss at which to stop, and the most iterations."""

    rate: float
    epsilon: float
    tolerance: float
    iterations: int


def descend(problem: Problem, constraints: Constraints, margin: float, schedule: Schedule) -> tuple[np.ndarray, int]:
    """The edit of every particle, and the number of iterations.

    `margin` is how much nearer than the linking length linked pairs must be, and how much farther all others.
    """
    members, ends = np.unique(np.stack([constraints.first, constraints.second]), return_inverse=True)
    first, second = ends.reshape(2, -1)
    sign = np.where(constraints.linked, 1.0, -1.0)
    pull = _Pull(first, second, sign, problem.linking_length - sign * margin, problem.original.box)
    start, exact = (np.ascontiguousarray(array[members].T) for array in (problem.start, problem.exact))
    positions, adam = start.copy(), _Adam(start.shape, schedule)
    near, seen = pull.near(positions, NEAR * problem.xi), start
    done = 0
    while done < schedule.iterations:
        if (np.square(positions - seen).sum(axis=0) > (TRAVEL * problem.xi) ** 2).any():
            near, seen = pull.near(positions, NEAR * problem.xi), positions.copy()
        loss, gradient = near(positions)
        if gradient is None or loss < schedule.tolerance:
            break
        positions -= adam.step(gradient)
        np.clip(positions, exact - problem.xi, exact + problem.xi, out=positions)
        done += 1
    edits = np.zeros_like(problem.start)
    edits[members] = (positions - start).T
    return edits, done


@dataclass(frozen=True, eq=False)
class _Pull:
    """The loss and its gradient. Where `sign` is 1, `target` is the largest distance allowed; where -1, the smallest.

    Positions have one row per axis.
    """

    first: np.ndarray
    second: np.ndarray
    sign: np.ndarray
    target: np.ndarray
    box: tuple[float, ...] | None

    def near(self, positions: np.ndarray, change: float) -> _Pull:
        """The pull of pairs that are violated, or would be if their distances changed by this much."""
        _, _, excess = self._measure(positions)
        chosen = np.flatnonzero(excess > -change)
        return _Pull(self.first[chosen], self.second[chosen], self.sign[chosen], self.target[chosen], self.box)

    def _measure(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The difference vector of every pair, its distance, and its violation (negative: not violated)."""
        difference = np.take(positions, self.first, axis=1) - np.take(positions, self.second, axis=1)
        difference = nearest_image(difference.T, self.box).T
        distance = np.sqrt(np.einsum("ap,ap->p", difference, difference))
        return difference, distance, self.sign * (distance - self.target)

    def __call__(self, positions: np.ndarray) -> tuple[float, np.ndarray | None]:
        """The loss, and its gradient unless nothing is violated."""
        difference, distance, excess = self._measure(positions)
        violated = np.flatnonzero((excess > 0) & (distance >= COINCIDENT))
        if not len(violated):
            return 0.0, None
        amount = excess[violated]
        force = 2 * amount * self.sign[violated] / distance[violated] * difference[:, violated]
        gradient = np.empty_like(positions)
        for axis, along in enumerate(force):
            gradient[axis] = np.bincount(self.first[violated], along, positions.shape[1])
            gradient[axis] -= np.bincount(self.second[violated], along, positions.shape[1])
        return float(amount @ amount), gradient


class _Adam:
    """Running means of the gradient and of its square, with the usual rates and bias correction."""

    MEAN, SQUARE = 0.9, 0.999

    def __init__(self, shape: tuple[int, ...], schedule: Schedule) -> None:
        self.schedule = schedule
        self.mean, self.square = np.zeros(shape), np.zeros(shape)
        self.steps = 0

    def step(self, gradient: np.ndarray) -> np.ndarray:
        """How far to move against the gradient."""
        self.steps += 1
        self.mean += (1 - self.MEAN) * (gradient - self.mean)
        self.square += (1 - self.SQUARE) * (gradient * gradient - self.square)
        size = np.sqrt(self.square / (1 - self.SQUARE**self.steps))
        return self.schedule.rate / (1 - self.MEAN**self.steps) * self.mean / (size + self.schedule.epsilon)
