"""The particles of each subdomain, which lie in the files of their exchange; and what repairs have made of them.

Rows rise by the index in the archive, own particles and ghosts together. No worker remembers anything: each step reads what
it needs. Positions are not copied out of the exchange, as they are most of what keeping clusters takes in scratch. What
repairs have changed has a file for each round (`moved.py`): a step reads one round and writes the next, so that it may be
begun again wherever a worker died.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from workbench.archive.encoded import Encoded
from workbench.archive.keeping.moved import Moved
from workbench.archive.keeping.terms import Terms
from workbench.backend import read_only
from workbench.clusters.keep.inside import Inside
from workbench.run.executors import Executor
from workbench.run.scratch_files import load, save
from workbench.subdomains.decomposition import Decomposition
from workbench.subdomains.exchange import Exchange

Result = TypeVar("Result")


@dataclass(frozen=True)
class Decoded:
    """What travels with each original position: the decoded one, and the side information about its moves."""

    encoded: Encoded
    terms: Terms

    @property
    def row_bytes(self) -> int:
        """A position, and two bytes."""
        return self.terms.dimensions * self.terms.dtype.itemsize + 2

    def rows(self, chunk: int) -> np.ndarray:
        """The rows of a chunk."""
        decoded = self.encoded.decoded(chunk)
        surmise = self.terms.surmise(decoded)
        columns = decoded.view(np.uint8).reshape(len(decoded), -1), surmise.context[:, None], surmise.forward[:, None]
        return np.concatenate(columns, axis=1)


@dataclass(frozen=True)
class Subdomains:
    """All subdomains when a round of repairs begins. What a later run can go on from is in the folder `lasting`."""

    exchange: Exchange
    decomposition: Decomposition
    terms: Terms
    lasting: Path
    round: int = 0

    @property
    def parts(self) -> range:
        """The numbers of the subdomains."""
        return range(self.decomposition.parts)

    def of(self, part: int) -> Members:
        """The particles of one subdomain."""
        return Members(self, part)

    @property
    def next(self) -> Subdomains:
        """The same after one more round."""
        return replace(self, round=self.round + 1)

    @property
    def labels(self) -> Path:
        """The folder for labels of groups, and for constraints."""
        return self.exchange.folder / "labels"

    @property
    def of_round(self) -> Path:
        """The folder for what the repairs of a round tell each other."""
        return self.exchange.folder / f"round-{self.round}"

    @property
    def handed_back(self) -> Path:
        """The folder for what subdomains know in the end about the particles that they own."""
        return self.exchange.folder / "handed-back"

    def run(
        self, executor: Executor, name: str, step: Callable[[Subdomains, int], Result], parts: Sequence[int] | None = None
    ) -> list[Result]:
        """The results of a step for some subdomains; for all of them, unless they are named."""
        return executor.map(name, step, self.parts if parts is None else parts, "subdomain", shared=self)


@dataclass(frozen=True, eq=False)
class Members:
    """The particles of one subdomain, as they are when a round of repairs begins."""

    subdomains: Subdomains
    part: int

    def __len__(self) -> int:
        return len(self.index)

    @functools.cached_property
    def index(self) -> np.ndarray:
        """The indices in the archive (int64, rising)."""
        return self._members[0]

    @functools.cached_property
    def owned(self) -> np.ndarray:
        """Which particles the subdomain owns; the others are ghosts."""
        return self._members[1]

    @functools.cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        return self.subdomains.exchange.members(self.part)

    @functools.cached_property
    def owner(self) -> np.ndarray:
        """The subdomain that owns each ghost."""
        return load(self._owner_file)

    def write_owners(self, original: np.ndarray) -> None:
        """Find out who owns each ghost."""
        save(self._owner_file, self.subdomains.decomposition.owners(original[~self.owned]))

    @property
    def neighbours(self) -> np.ndarray:
        """The subdomains that may have ghosts of particles of this one."""
        return self.subdomains.decomposition.neighbours(self.part, self.subdomains.terms.ghost_width)

    @property
    def _owner_file(self) -> Path:
        return self.subdomains.labels / f"owner-{self.part}.npy"

    def original(self) -> np.ndarray:
        """The original positions."""
        return self.subdomains.exchange.positions(self.part)

    def decoded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The decoded positions and the side information: context and direction of moves."""
        cargo, terms = self.subdomains.exchange.cargo_of(self.part), self.subdomains.terms
        positions = np.ascontiguousarray(cargo[:, :-2]).view(terms.dtype).reshape(-1, terms.dimensions)
        return positions, np.ascontiguousarray(cargo[:, -2]), np.ascontiguousarray(cargo[:, -1])

    def current(self) -> np.ndarray:
        """The positions after all moves so far."""
        return self.moved.over("current", self.decoded()[0])

    @functools.cached_property
    def moved(self) -> Moved:
        """What repairs have changed before this round."""
        if self.subdomains.round:
            return Moved.load(self.moves)
        return Moved.none(self.subdomains.terms.dtype, self.subdomains.terms.dimensions)

    @property
    def moves(self) -> Path:
        """The file for what repairs have changed before this round."""
        return self.subdomains.lasting / f"moves-{self.subdomains.round}-{self.part}.npz"

    def deep(self, original: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Which of these particles are own ones so deep inside the subdomain that no other one's moves can affect them."""
        deep = self.owned[rows]
        deep[self.subdomains.decomposition.ghosts(original[rows], self.subdomains.terms.depth)[0]] = False
        return deep

    def inside(self, positions: np.ndarray) -> Inside:
        """Positions of particles as a search takes them."""
        return Inside(read_only(positions), self.subdomains.terms.box)
