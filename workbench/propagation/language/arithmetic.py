"""The arithmetic of a transformer of the llama family, as plain functions: what the stages of a pipeline compute.

Heads come first, as (heads, tokens, head width), so that each head is one matrix. Queries that share keys and values are
the rows of one product.
"""

from __future__ import annotations

import math

import numpy as np

from workbench import backend
from workbench.backend import Array


def rms_norm(x: Array, weight: Array, epsilon: float) -> Array:
    """Each row in units of its root mean square, times a weight for each column.

    >>> rms_norm(np.float32([[1.0, -1.0], [8.0, 8.0]]), np.float32([1.0, 10.0]), 0.0).tolist()
    [[1.0, -10.0], [1.0, 10.0]]
    """
    xp = backend.namespace(x)
    return weight * (x / xp.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(epsilon)))


def heads_of(x: Array, heads: int) -> Array:
    """Columns as heads: (tokens, heads x width) becomes (heads, tokens, width)."""
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def columns_of(x: Array) -> Array:
    """Heads as columns: (heads, tokens, width) becomes (tokens, heads x width)."""
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def angles(positions: np.ndarray, width: int, base: float, divisors: np.ndarray | None = None) -> np.ndarray:
    """The rotary position embedding: the cosines and sines at each position, (2, positions, width / 2), in float32."""
    frequencies = base ** (-np.arange(0, width, 2, dtype=np.float64) / width)
    turned = positions[:, None] * (frequencies if divisors is None else frequencies / divisors)
    return np.stack([np.cos(turned), np.sin(turned)]).astype(np.float32)


def rotated(x: Array, turns: Array) -> Array:
    """Each pair (i, i + width / 2) of every head, turned by the angle of its position.

    >>> quarter = np.float32([[[0.0]], [[1.0]]])
    >>> rotated(np.float32([[[1.0, 0.0]]]), quarter).tolist()
    [[[0.0, 1.0]]]
    """
    xp = backend.namespace(x)
    half = x.shape[-1] // 2
    one, other, cos, sin = x[..., :half], x[..., half:], turns[0], turns[1]
    return xp.concatenate([one * cos - other * sin, other * cos + one * sin], axis=-1)


def scores(queries: Array, keys: Array) -> Array:
    """The product of each query with each key, over the root of the width: (heads, queries, keys)."""
    heads, tokens, width = queries.shape
    grouped = queries.reshape(len(keys), -1, width)
    return (grouped @ keys.transpose(0, 2, 1)).reshape(heads, tokens, -1) * np.float32(1 / math.sqrt(width))


def attention_weights(scores: Array) -> Array:
    """The softmax of the scores of each query, under the causal mask; the queries are those of the last keys.

    >>> attention_weights(np.zeros((1, 3, 4), np.float32))[0, ::2].tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]]
    """
    xp = backend.namespace(scores)
    _, tokens, known = scores.shape
    if tokens > 1:
        later = xp.arange(known)[None, :] > xp.arange(known - tokens, known)[:, None]
        scores = xp.where(later, scores.dtype.type(-np.inf), scores)
    raised = xp.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def mixed(weights: Array, values: Array) -> Array:
    """The values, weighted by each query's attention: (heads, queries, width)."""
    heads, tokens, known = weights.shape
    return (weights.reshape(len(values), -1, known) @ values).reshape(heads, tokens, -1)


def gated(gate: Array, up: Array) -> Array:
    """SwiGLU: the sigmoid-weighted gate times `up`, g / (1 + exp(-g)) u."""
    xp = backend.namespace(gate)
    with np.errstate(over="ignore"):   # the sigmoid of a very negative number is zero
        return gate / (1 + xp.exp(-gate)) * up
