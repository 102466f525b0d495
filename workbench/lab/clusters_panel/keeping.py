"""Pressing *preserve*: the archive whose halos are those of the original, and the way there as it happens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.archive import Archive, compress
from workbench.clusters.keep.partition import kept_labels
from workbench.clusters.keep.repair import Step
from workbench.data import Particles
from workbench.guarantees import Absolute
from workbench.lab.clusters_panel.breakage import Halos, Outcome, Progress, in_original_order, outcome_of, positions_of
from workbench.lab.clusters_panel.state import ClustersState

SHARE_OF_KEEPING = 0.7   # of the time; the rest is checking


@dataclass(eq=False)
class Trace:
    """The steps so far, while halos are being kept; drawn as it grows."""

    steps: list[Step] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def nbytes(self) -> int:
        """The memory that it takes, about."""
        return 200 * len(self.steps)


@dataclass(frozen=True, eq=False)
class Kept:
    """An archive that promises halos, and what came back.

    `certificate` is what it says about clusters. `verified` is whether a search of the groups of what was decoded, as
    anybody would do it, finds those of the original.
    """

    archive: Archive
    certificate: Mapping[str, Any]
    outcome: Outcome
    verified: bool
    trace: Trace

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.archive.nbytes + self.outcome.nbytes + self.trace.nbytes

    @property
    def overhead(self) -> float:
        """What keeping halos takes, in bits for each particle: the archive is otherwise the same."""
        return 8 * float(self.certificate["bytes"]) / len(self.outcome.decoded)


def keep_halos(
    particles: Particles, state: ClustersState, halos: Halos, progress: Progress, trace: Trace | None = None
) -> Kept:
    """Compress positions with the promise about halos, check it, and fill the trace on the way."""
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
    wanted, found = (kept_labels(groups, state.keep_members) for groups in (halos.groups, outcome.groups))
    (certificate,) = archive.certificate["positions"].keep
    return Kept(archive, certificate, outcome, bool((wanted == found).all()), trace)


@dataclass(eq=False)
class _Watching:
    """Takes progress and steps as they come, and hands on how far it is."""

    progress: Progress
    trace: Trace
    share: float = 0.0

    def __call__(self, share: float, text: str) -> None:
        is_clusters = text.startswith("clusters")   # positions come before, and the two shares are about different things
        part = 0.2 + 0.8 * share if is_clusters else 0.2 * share
        self.share = max(self.share, SHARE_OF_KEEPING * part)
        self.progress(self.share, text if is_clusters else f"compressing {text}")

    def watch(self, step: Step) -> None:
        """Another step."""
        self.trace.steps.append(step)
        what = "descent, step" if step.phase == "descent" else "moves, round"
        self.progress(self.share, f"{what} {step.number}: {step.violations:,} violations")
