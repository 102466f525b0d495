"""`wb.compress_model`: a bound for each tensor of a model, so that the decoded model keeps a budget of its quality.

Each group of tensors is bounded alone, at rising bounds, and its bytes and the loss of quality are noted
(`sensitivity.py`). As losses nearly add up while they are small, the bounds with the fewest bytes are those whose losses
add up to the budget (`allocation.py`). Whether they do is measured: tensors are encoded, decoded from the archive, and the
quality of the decoded model is what the certificate states. If it misses the budget, or leaves much of it, the sum that is
allowed is scaled, and the tensors whose bounds change are encoded again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.collection.compressing import gathered
from workbench.archive.collection.model import MODEL, ModelArchive
from workbench.archive.compress import compress
from workbench.archive.writing import require_writable
from workbench.arguments import function, positive
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Exact
from workbench.progress import Progress
from workbench.propagation.weights.bounding import codec_of
from workbench.propagation.weights.quality import KL
from workbench.propagation.weights.scan import listed_bounds, prepared
from workbench.propagation.weights.sensitivity import Scanned, Sensitivity, Solution, bound_of
from workbench.propagation.weights.sources import Tensors

ASSESSMENTS = 4      # of all bounds together, at most
ENOUGH = 0.8         # of the budget that should be used
AIM = 0.96           # of the budget, at which the next assessment aims
FLAT = 4.0           # by which the sum of losses is multiplied or divided, at most
FAR = 2.0            # budgets of loss, from which on larger bounds of a group are not tried
STEPS = ((2**18, 4), (2**22, 2), (math.inf, 1))   # bounds that are tried within a factor of 2, up to so many values
HIGHEST = 2.0        # bound that is tried, in units of the root mean square; the lowest is far below one that all can have:
BEGIN, LEAST = 2.0**-5, 2.0**-24   # such ones are looked for from here on, down to there,
SPARE = 16           # by a joint loss of such a part of the budget;
BELOW = 2            # and so much smaller ones are tried, too


def compress_model(
    tensors: Any,
    quality: Any,
    budget: float,
    codec: str | Codec = "auto",
    prune: float | Mapping[str, float] | None = None,
    groups: str | Mapping[str, str | Sequence[str]] | None = None,
    *,
    bounds: Sequence[float] | None = None,
    exact: Sequence[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ModelArchive:
    """Compress the tensors of a model as far as a budget of its quality allows; the decoded model was measured.

    `tensors` is a mapping of arrays, a torch module, a language model, or the path of a GGUF or safetensors file. `quality`
    is a function of the tensors that returns how much worse they are than the original, for which it is 0; or
    `wb.KL(model, inputs)`, the divergence of its predictions, which holds best on other inputs. `budget` is its largest
    value for the decoded model.

    `codec` "auto" is the built-in codec for numbers without neighbours, which keeps zeros exactly. `prune` sets the
    smallest values to zero before: the share that is kept, of all matrices, or by name or pattern. `groups` are tensors
    with a bound in common, in units of the root mean square of each: "layers" and "experts" go by the first and the last
    number in their names, a mapping names them; those of a language model are its blocks. `bounds` are those that are
    tried, in these units, and `exact` names tensors that are not changed, by default the vectors of language models.
    Integers are never changed, and tied weights are stored once.

    >>> import numpy as np, workbench as wb
    >>> random = np.random.default_rng(0)
    >>> weights = {"first": random.normal(size=(32, 64)), "second": random.normal(size=(64, 8))}
    >>> def logits(tensors, x):
    ...     return np.maximum(x @ tensors["first"], 0) @ tensors["second"] / 16
    >>> archive = wb.compress_model(weights, wb.KL(logits, random.normal(size=(50, 32))), budget=1e-3)
    >>> archive.certificate.loss <= 1e-3, archive.tensor_ratio > 8
    (True, True)
    """
    if out is not None:
        require_writable(out, overwrite)
    allowed, given = positive("budget", budget), Tensors.of(tensors)
    function("progress", progress)
    tell = progress or (lambda share, what: None)
    scanned = prepared(given, quality, allowed, codec_of(codec), prune, groups, exact)
    shares = listed_bounds(bounds) if bounds is not None else _ladder(scanned, allowed)
    table = scanned.scan(shares, FAR * allowed, tell)
    archive = _within(scanned, table, allowed, given, quality, tell)
    if out is not None:
        archive.save(out, overwrite)
    return archive


@dataclass(frozen=True)
class _Making:
    """What encodes the tensors at chosen bounds, and decodes them; those whose bounds stay are kept."""

    scanned: Scanned
    made: dict[str, tuple[Bound, Archive, np.ndarray]] = field(default_factory=dict)

    def encoded(self, shares: Mapping[str, float]) -> dict[str, Archive]:
        """The archives of all tensors at these bounds of their groups."""
        base = self.scanned.base
        bounds: dict[str, Bound] = dict.fromkeys(base, Exact())
        for group, share in shares.items():
            bounds |= {name: bound_of(base[name], share) for name in self.scanned.groups[group]}
        changed = {name: bound for name, bound in bounds.items() if name not in self.made or self.made[name][0] != bound}
        if changed:
            rules: Any = changed
            found: Any = compress({name: base[name] for name in changed}, rules, codec=self.scanned.codec)
            for name, bound in changed.items():
                decoded = np.asarray(found.decompress_member(name).values)
                self.made[name] = bound, found[name], decoded
        return {name: self.made[name][1] for name in base}

    def loss(self, original: Mapping[str, np.ndarray]) -> float:
        """How much worse the decoded model is."""
        found = {name: values for name, (_, _, values) in self.made.items()}
        decoded = {name: values for name, values in found.items() if values.tobytes() != original[name].tobytes()}
        return self.scanned.measure.changed(decoded, "the decoded model")


def _within(
    scanned: Scanned, table: Sensitivity, budget: float, given: Tensors, quality: Any, tell: Progress
) -> ModelArchive:
    """The smallest archive whose decoded model keeps the budget, of at most four."""
    making, start = _Making(scanned), scanned.start
    aimed, best, smallest, loss = budget - start, None, math.inf, math.nan
    low, high = 0.0, math.inf   # sums of losses alone: allowed ones, and too large ones
    seen: list[Solution] = []
    while len(seen) < ASSESSMENTS and (found := table.within(aimed)) not in seen:
        seen.append(found)
        tell(len(seen) / (ASSESSMENTS + 1), "encoding all tensors, and measuring the decoded model")
        members, alone = making.encoded(found.chosen), found.loss
        loss = making.loss(given.arrays)
        nbytes = sum(stored.nbytes for archive in members.values() for stored in archive.arrays.values())
        if loss <= budget and nbytes < smallest:
            best, smallest = (members, found, loss), nbytes
        if ENOUGH * budget <= loss <= budget:
            break
        low, high = (aimed, high) if loss <= budget else (low, aimed)
        joint = loss - start
        scaled = alone * min(AIM * (budget - start) / joint, FLAT) if joint > 0 < alone else aimed * FLAT
        aimed = scaled if low < scaled < high else math.sqrt(low * high) if 0 < low < high < math.inf else aimed / FLAT
    if best is None:
        raise WorkbenchError(
            f"{len(seen)} assessments must find bounds within the budget, {budget:.3g}; the decoded model lost "
            f"{loss:.3g}: give smaller bounds=, or name sensitive tensors in exact="
        )
    members, found, loss = best
    record = {
        "quality": _name(quality), "inputs": getattr(quality, "digest", None), "loss": loss, "alone": found.loss,
        "budget": budget, "pruned": start,
        "assessments": len(seen), "tied": dict(given.tied), "source": given.source, "source_nbytes": given.nbytes,
    }
    archive = ModelArchive(gathered(members, {"": {MODEL: record}}, notes=False).store)
    archive.sensitivity, archive.chosen = table, found.chosen
    return archive


def _name(quality: Any) -> str:
    """What the certificate calls a quality."""
    if isinstance(quality, KL):
        return "the mean Kullback-Leibler divergence in nats"
    return str(getattr(quality, "__qualname__", type(quality).__name__))


def _ladder(scanned: Scanned, budget: float) -> list[float]:
    """The bounds that are tried, from far below one that all tensors can have together."""
    spare, lowest = (budget - scanned.start) / SPARE, BEGIN
    while lowest > LEAST and scanned.joint(lowest) > spare:
        lowest /= 2
    while lowest >= BEGIN and 2 * lowest < HIGHEST and scanned.joint(2 * lowest) <= spare:
        lowest *= 2
    octaves = math.log2(HIGHEST * BELOW / lowest)
    steps = round(octaves) * next(each for most, each in STEPS if scanned.values <= most)
    return [HIGHEST * 2.0 ** (-octaves * step / steps) for step in range(steps, -1, -1)]
