"""The work of *preserve*: an archive with the halos of the original, and its progress step by step."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.archive import Archive, compress
from workbench.clusters.keep.partition import kept_labels
from workbench.clusters.keep.repair import Step
from workbench.data import Particles
from workbench.guarantees import Absolute
from workbench.lab.clusters_panel.breakage import Halos, Outcome, in_original_order, outcome_of, positions_of
from workbench.lab.clusters_panel.state import ClustersState
from workbench.progress import Progress

SHARE_OF_KEEPING = 0.7   # of the time; the rest is checking


@dataclass(eq=False)
class Trace:
    """The steps so far, while halos are being kept; drawn as it grows. `promised` is the part of the state that is kept.

    An archive may try several bounds. Once it is made, `within` is the bound of the trial that it comes from.
    """

    taken: list[Step] = field(default_factory=list)
    promised: Hashable = None
    within: float | None = None

    @property
    def steps(self) -> list[Step]:
        """The steps of one trial: of the latest, then of the one that was taken."""
        within = self.taken[-1].within if self.taken and self.within is None else self.within
        return [step for step in self.taken if step.within == within]

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def nbytes(self) -> int:
        """Its approximate memory."""
        return 200 * len(self.taken)


@dataclass(frozen=True, eq=False)
class Kept:
    """An archive that promises halos, and the decoded particles.

    `certificate` is its statement about clusters. `verified`: the public finder, applied to the decoded particles, finds
    the groups of the original.
    """

    archive: Archive
    certificate: Mapping[str, Any]
    outcome: Outcome
    verified: bool
    trace: Trace

    @property
    def nbytes(self) -> int:
        """Its memory in bytes."""
        return self.archive.nbytes + self.outcome.nbytes + self.trace.nbytes

    @property
    def overhead(self) -> float:
        """The cost of keeping halos, in bits per particle; the archive is otherwise the same."""
        return 8 * float(self.certificate["bytes"]) / len(self.outcome.decoded)

    @property
    def bits_per_particle(self) -> float:
        """Bits for the position of each particle, with what keeping costs."""
        return self.archive.bits_per_particle


def keep_halos(
    particles: Particles, state: ClustersState, halos: Halos, progress: Progress, trace: Trace | None = None
) -> Kept:
    """Compress positions with the promise about halos, check it, and fill the trace meanwhile."""
    trace = Trace() if trace is None else trace
    watching = _Watching(progress, trace)
    archive = compress(
        positions_of(particles), Absolute(state.bound), state.codec, [state.promise], state.order, progress=watching
    )
    progress(SHARE_OF_KEEPING, "decompressing")
    decoded = in_original_order(archive, particles)
    rest = 1 - SHARE_OF_KEEPING
    outcome = outcome_of(
        particles, state, halos, decoded, lambda share, text: progress(SHARE_OF_KEEPING + rest * share, text)
    )
    wanted, present = (kept_labels(groups, state.keep_members) for groups in (halos.groups, outcome.groups))
    (certificate,) = archive.certificate["positions"].keep
    trace.within = float(certificate["encoded_within"])
    return Kept(archive, certificate, outcome, bool((wanted == present).all()), trace)


@dataclass(eq=False)
class _Watching:
    """Receives progress and steps, and passes on the overall progress."""

    progress: Progress
    trace: Trace
    share: float = 0.0

    def __call__(self, share: float, text: str) -> None:
        is_clusters = text.startswith("clusters")   # positions come first; the two shares refer to different tasks
        part = 0.2 + 0.8 * share if is_clusters else 0.2 * share
        self.share = max(self.share, SHARE_OF_KEEPING * part)
        self.progress(self.share, text if is_clusters else f"compressing {text}")

    def watch(self, step: Step) -> None:
        """Receive one step."""
        self.trace.taken.append(step)
        what = "descent, step" if step.phase == "descent" else "moves, round"
        self.progress(self.share, f"{what} {step.number}: {step.violations:,} violations")
