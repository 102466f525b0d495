"""An expert on one codec: what its bytes and errors are beyond the base estimates, and how sure that is.

Of each figure it knows the logarithm of the true value over the base estimate (`middle`) and of the usual size of its own
mistakes (`width`), both as trees on the features; widths also depend on how far the features are from those of the
training. Mistakes were measured on kinds of data that were left out, and `reach` is the number of widths within which 90%
of them lie (locally weighted conformal prediction).
"""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any
from zipfile import BadZipFile

import numpy as np

from workbench import codecs
from workbench.bounds.prediction.features import Features
from workbench.bounds.prediction.trees import Ensembles, Trees
from workbench.codecs import Codec
from workbench.errors import WorkbenchError

FIGURES = ("bits", "noise", "loss")
KNOWN = ("rows", "centre", "scale", "usual")
COVERAGE = 0.9
LEAST_DISTANCE = 0.05
OF_STEPS = 0.5      # of an interval of bits, where the step before is known: set on series of seven families
SHIPPED = "experts.npz"
FORMAT = 3


@dataclass(frozen=True, eq=False)
class Learned:
    """What an expert knows of one figure."""

    middle: Trees
    width: Trees
    reach: float


@dataclass(frozen=True, eq=False)
class Known:
    """Features of the training, standardised by `centre` and `scale`, and the distance to them that is usual for new data.

    The nearest rows of other kinds than its own are farther than `usual` for every tenth row of the training.
    """

    rows: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    usual: float

    def distances(self, vectors: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        """How far each row of features is from the nearest one of the training, in units of `usual`.

        `others` says which rows of the training count for each row.

        >>> known = Known(np.array([[0.0], [3.0]]), np.zeros(1), np.ones(1), 2.0)
        >>> known.distances(np.array([[1.0]])).tolist()
        [0.5]
        >>> known.distances(np.array([[1.0]]), np.array([[False, True]])).tolist()
        [1.0]
        """
        rows = (vectors - self.centre) / self.scale
        squares = (rows * rows).sum(axis=1)[:, None] - 2 * rows @ self.rows.T + self._sizes
        nearest = squares.min(axis=1) if others is None else np.where(others, squares, np.inf).min(axis=1)
        found: np.ndarray = np.sqrt(np.maximum(nearest, 0)) / self.usual
        return found

    @functools.cached_property
    def _sizes(self) -> np.ndarray:
        """The squared length of each row."""
        found: np.ndarray = (self.rows * self.rows).sum(axis=1)
        return found


@dataclass(frozen=True, eq=False)
class Expert:
    """A predictor for one codec; `wb.bounds.train` makes one, `wb.predict` uses it.

    `shifts` correct it by runs of an earlier time step: logarithms of limits, and by how much the logarithms of bits and
    noise were off. `last` are logarithms of limits and of bits at that step. `starts` are corners of the patches that were
    looked at then, in a field of that `shape`: in the same ones, mistakes are much the same.
    """

    codec: Mapping[str, Any]
    learned: Mapping[str, Learned]
    known: Known
    shifts: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=lambda: MappingProxyType({}))
    last: tuple[np.ndarray, np.ndarray] | None = None
    starts: np.ndarray | None = None
    shape: tuple[int, ...] | None = None

    def figures(self, limits: np.ndarray, found: Features) -> tuple[dict[str, np.ndarray], float]:
        """Each figure at each limit in three rows, what is expected and the ends of its interval; and how far the data are.

        The farther they are from those of the training, the wider are the intervals.
        """
        base = np.array([getattr(found, name) for name in self.learned])
        distances = self.known.distances(found.vectors)
        sums = self._trees(with_distances(found.vectors, distances))
        middle, half = np.log(base) + sums[::2], self._reaches * np.exp(sums[1::2])
        for number, name in enumerate(self.learned):
            if name in self.shifts:
                middle[number] += np.interp(np.log(limits), *self.shifts[name])
        if self.last is not None and "bits" in self.learned:
            self._persist(np.log(limits), middle, half, list(self.learned).index("bits"))
        ends = np.exp(np.array([middle, middle - half, middle + half]))
        return {name: ends[:, number] for number, name in enumerate(self.learned)}, median(distances.tolist())

    def _persist(self, where: np.ndarray, middle: np.ndarray, half: np.ndarray, row: int) -> None:
        """Let the bits of the step before count as much as what is expected, between the limits that were measured then."""
        assert self.last is not None
        measured, bits = self.last
        inside = (where >= measured[0]) & (where <= measured[-1])
        middle[row] = np.where(inside, 0.5 * (middle[row] + np.interp(where, measured, bits)), middle[row])
        half[row] = np.where(inside, OF_STEPS, 1.0) * half[row]

    @functools.cached_property
    def _trees(self) -> Ensembles:
        """Of each figure what is expected, then the size of mistakes."""
        return Ensembles.of([part for learned in self.learned.values() for part in (learned.middle, learned.width)])

    @functools.cached_property
    def _reaches(self) -> np.ndarray:
        """The widths in half an interval, one row for each figure."""
        return np.array([[learned.reach] for learned in self.learned.values()])

    @functools.cached_property
    def made(self) -> Codec:
        """The codec that this expert knows."""
        return codecs.from_dict(self.codec)

    def shifted(
        self, shifts: Mapping[str, tuple[np.ndarray, np.ndarray]], last: tuple[np.ndarray, np.ndarray] | None = None,
        starts: np.ndarray | None = None, shape: tuple[int, ...] | None = None,
    ) -> Expert:
        """The expert with these corrections instead of earlier ones."""
        return dataclasses.replace(self, shifts=MappingProxyType(dict(shifts)), last=last, starts=starts, shape=shape)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the expert to a file of NumPy's format npz; shifts are left out."""
        target = Path(path)
        target.write_bytes(to_bytes([self]))
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Expert:
        """The expert in a file that `save` wrote."""
        try:
            (expert,) = from_bytes(Path(path).read_bytes())
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            why = f"{type(error).__name__}: {error}"
            raise WorkbenchError(f"{path} must be an expert written by Expert.save; {why}") from error
        return expert


def with_distances(vectors: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Features, and how far they are from those of the training, which tells how wrong an expert may be."""
    return np.column_stack([vectors, np.log2(distances + LEAST_DISTANCE)])


def to_bytes(experts: Sequence[Expert]) -> bytes:
    """Experts as one npz file."""
    arrays: dict[str, np.ndarray] = {"format": np.array(FORMAT)}
    for number, expert in enumerate(experts):
        arrays[f"{number}/codec"] = np.array(json.dumps(dict(expert.codec), sort_keys=True))
        for name in KNOWN:
            arrays[f"{number}/{name}"] = np.asarray(getattr(expert.known, name), np.float32)
        for figure, learned in expert.learned.items():
            arrays[f"{number}/{figure}/reach"] = np.array(learned.reach)
            for part in ("middle", "width"):
                for name, values in getattr(learned, part).to_arrays().items():
                    arrays[f"{number}/{figure}/{part}/{name}"] = values
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)   # type: ignore[arg-type]
    return file.getvalue()


def from_bytes(data: bytes) -> list[Expert]:
    """The experts in an npz file."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = dict(held.items())
    if int(arrays["format"]) != FORMAT:
        raise ValueError(f"format {int(arrays['format'])} instead of {FORMAT}")
    found = []
    for number in range(sum(name.endswith("/codec") for name in arrays)):
        learned = {}
        for figure in FIGURES:
            if f"{number}/{figure}/reach" not in arrays:
                continue
            parts = [
                Trees.from_arrays({
                    name.rpartition("/")[2]: values
                    for name, values in arrays.items() if name.startswith(f"{number}/{figure}/{part}/")
                })
                for part in ("middle", "width")
            ]
            learned[figure] = Learned(parts[0], parts[1], float(arrays[f"{number}/{figure}/reach"]))
        rows, centre, scale, usual = (arrays[f"{number}/{name}"].astype(np.float64) for name in KNOWN)
        codec = json.loads(str(arrays[f"{number}/codec"]))
        found.append(Expert(codec, learned, Known(rows, centre, scale, float(usual))))
    return found


@functools.cache
def shipped() -> Mapping[str, Expert]:
    """The experts that come with the package, by the name of their codec.

    >>> sorted(shipped())
    ['interpolation', 'prequantised', 'sperr', 'staged', 'sz3', 'zfp']
    """
    data = resources.files(__package__).joinpath(SHIPPED).read_bytes()
    return MappingProxyType({str(expert.codec["id"]): expert for expert in from_bytes(data)})
