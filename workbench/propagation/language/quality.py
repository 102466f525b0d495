"""When two answers of a language model are equally good: by their tokens, or by the probabilities of the next ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.arguments import positive
from workbench.backend import Array, to_host
from workbench.propagation.tolerance import Tolerance

Results = Mapping[str, Array]


def divergences(logits: Array, other: Array) -> np.ndarray:
    """The Kullback-Leibler divergence of each row of other logits from that of the first, in nats; NaN where not finite.

    >>> round(float(divergences(np.zeros((1, 2)), np.log([[0.25, 0.75]]))[0]), 4)
    0.1438
    """
    with np.errstate(all="ignore"):
        found = relative_entropies(*(log_probabilities(to_host(each)) for each in (logits, other)))
    return np.where(np.isfinite(found), np.maximum(found, 0.0), np.nan)


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    """The logarithms (float64) of the softmax of each row."""
    raised = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return raised - np.log(np.exp(raised).sum(axis=-1, keepdims=True))


def relative_entropies(exact: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """The Kullback-Leibler divergence of each row of changed logarithms of probabilities from the exact ones, in nats."""
    found: np.ndarray = np.einsum("ij,ij->i", np.exp(exact), exact - changed, dtype=np.float64)
    return found


def top_agreement(logits: Array, other: Array) -> float:
    """The share of rows with the same most likely token.

    >>> top_agreement(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 2.0], [0.0, 1.0]]))
    0.5
    """
    one, two = to_host(logits), to_host(other)
    return float(np.mean(one.argmax(axis=-1) == two.argmax(axis=-1)))


@dataclass(frozen=True)
class _Tokens:
    share: float

    def __call__(self, right: Results, other: Results) -> float:
        if "answer" in right:
            return float(np.mean(to_host(right["answer"]) != to_host(other["answer"]))) / self.share
        return (1.0 - top_agreement(right["logits"], other["logits"])) / self.share


@dataclass(frozen=True)
class _Divergence:
    limit: float

    def __call__(self, right: Results, other: Results) -> float:
        return float(divergences(right["logits"], other["logits"]).mean()) / self.limit


def same_tokens(share: float = 1e-3) -> Tolerance:
    """At most this share of the tokens changed: of those that were written, or else of the most likely next ones.

    >>> same_tokens().damage({"logits": np.eye(2)}, {"logits": np.eye(2)[::-1]}) > 1
    True
    """
    share = positive("share", share)
    return Tolerance(f"at most {share:.3g} of the tokens changed", _Tokens(share), share, same_tokens)


def divergence(limit: float = 0.01) -> Tolerance:
    """The probabilities of the next tokens diverge by at most this much (Kullback-Leibler, in nats, mean over the tokens).

    >>> divergence(0.1).damage({"logits": np.zeros((1, 2))}, {"logits": np.log([[0.25, 0.75]])}) > 1
    True
    """
    limit = positive("limit", limit)
    return Tolerance(f"a divergence of at most {limit:.3g} nats", _Divergence(limit), limit, divergence)
