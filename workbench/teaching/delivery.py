"""Files that somebody else has compressed, for lesson 5: some keep their promise, others hide that they do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.arguments import whole_number
from workbench.data import Field

Change = Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class Delivery:
    """One file, with the letter that an answer names it by."""

    letter: str
    path: Path


def deliveries(field: Field, bound: float, folder: str | Path, seed: int = 0) -> list[Delivery]:
    """Write five lossy copies of a field as .npy files; `seed` decides which of them is which.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     [file.path.name for file in deliveries(Field(np.zeros((16, 16))), 0.1, folder)]
    ['a.npy', 'b.npy', 'c.npy', 'd.npy', 'e.npy']
    """
    into = Path(folder)
    into.mkdir(parents=True, exist_ok=True)
    changes: tuple[Change, ...] = (_rounded, _coarse, _one_beyond, _repeated, _too_coarse)
    random = np.random.default_rng(whole_number("seed", seed, least=0))
    files = []
    for letter, which in zip("abcde", random.permutation(len(changes)), strict=True):
        path = into / f"{letter}.npy"
        np.save(path, changes[which](field.values.astype(np.float64), bound).astype(field.values.dtype))
        files.append(Delivery(letter, path))
    return files


def _to_steps(values: np.ndarray, bound: float) -> np.ndarray:
    """Within a little less than the bound, which leaves room for the round-off of float32."""
    return np.round(values / (1.99 * bound)) * (1.99 * bound)


def _rounded(values: np.ndarray, bound: float) -> np.ndarray:
    return _to_steps(values, bound / 4)


def _coarse(values: np.ndarray, bound: float) -> np.ndarray:
    """All of the bound is used: the roughest of the files that are right."""
    return _to_steps(values, bound)


def _one_beyond(values: np.ndarray, bound: float) -> np.ndarray:
    """Finer than the bound, but for one value, by a fifth of the bound."""
    copy = _to_steps(values, bound / 4)
    copy.flat[copy.size // 3] = values.flat[copy.size // 3] + 1.21 * bound
    return copy


def _repeated(values: np.ndarray, bound: float) -> np.ndarray:
    """The last row is a copy of the one before it."""
    copy = _to_steps(values, bound / 4)
    copy[-1] = copy[-2]
    return copy


def _too_coarse(values: np.ndarray, bound: float) -> np.ndarray:
    """Steps half as wide again as the bound allows."""
    return _to_steps(values, 1.5 * bound)
