"""Where in a model an error is: by block and by token.

The size of a whole array says little here. A few tokens (the first one above all) are hundreds of times as large as the
rest, and hide what happens to others. So each token's error is relative to that token's own values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.backend import to_host
from workbench.charts.description import Axis, Cells, Chart
from workbench.charts.looks import VIRIDIS
from workbench.errors import WorkbenchError
from workbench.propagation.language.pipeline import PARTS, LanguagePipeline
from workbench.propagation.names import require_known
from workbench.propagation.pipeline import Run
from workbench.propagation.rows import Rows, first_axis

FLOOR, LARGEST = 1e-7, 10.0   # relative errors, of rounding and large ones, beyond which colours no longer change
MOST_NAMES = 40


@dataclass(frozen=True, eq=False, repr=False)
class TokenErrors:
    """The relative error of each token (columns) at several sites (rows), infinite where values are not finite any more.

    `tokens` are the pieces of the text.
    """

    sites: tuple[str, ...]
    tokens: tuple[str, ...]
    errors: np.ndarray

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The tokens as an axis shows them, with a mark for those of spaces alone."""
        return tuple(token.strip() or "␣" for token in self.tokens)

    @property
    def reached(self) -> np.ndarray:
        """The tokens with an error at the last site that is more than rounding: their numbers."""
        return np.flatnonzero(self.errors[-1] > FLOOR)

    @property
    def lost(self) -> np.ndarray:
        """The tokens whose values at the last site are not finite any more."""
        return np.flatnonzero(np.isinf(self.errors[-1]))

    def plot(self) -> Chart:
        """A map with the first site at the top; the lighter, the larger the error, up to 10 and what is not finite."""
        rows, columns = self.errors.shape
        boxes, colours, tooltips = [], [], []
        for row in range(rows):
            for column in np.flatnonzero(self.errors[row] > 0):
                error = float(self.errors[row, column])
                boxes.append((float(column), rows - row - 1.0, column + 1.0, float(rows - row)))
                colours.append(colour(error))
                said = "not finite" if math.isinf(error) else f"{error:.3g}"
                tooltips.append(f"{self.sites[row]}, token {column} {self.tokens[column]!r}: {said}")
        every, each = max(1, columns // MOST_NAMES), max(1, rows // MOST_NAMES)
        pieces = [(n + 0.5, self.labels[n]) for n in range(0, columns, every)]
        sites = [(rows - n - 0.5, self.sites[n]) for n in range(0, rows, each)]
        return Chart(
            "Relative error by block and token",
            Axis("", 0, columns, names=pieces, turned=True), Axis("", 0, rows, names=sites),
            (Cells("", boxes, tooltips=tooltips, colours=colours, outlined=False),),
            about=f"Relative error by block and token. {self}.", height=max(200, min(12 * rows + 120, 520)), grid=False,
            scale=(
                Cells("1e-7", [], colour(FLOOR)), Cells("1e-3", [], colour(1e-3)), Cells("0.1", [], colour(0.1)),
                Cells("10 and not finite", [], colour(LARGEST)),
            ),
        )

    def __repr__(self) -> str:
        finite = self.errors[-1][np.isfinite(self.errors[-1])]
        largest = f", at most {finite.max():.3g}" if finite.size else ""
        reached = f"{len(self.reached)} of {len(self.tokens)} tokens reached"
        return f"{self.sites[-1]}: {reached}, {len(self.lost)} not finite{largest}"

    def _repr_html_(self) -> str:
        return self.plot()._repr_html_()


def colour(error: float) -> str:
    """The colour of a relative error, on a logarithmic scale.

    >>> colour(1e-9), colour(1e-3), colour(math.inf)
    ('#440154', '#22908c', '#fde725')
    """
    place = (len(VIRIDIS) - 1) * math.log(min(max(error, FLOOR), LARGEST) / FLOOR) / math.log(LARGEST / FLOOR)
    before = min(int(place), len(VIRIDIS) - 2)
    ends = (bytes.fromhex(VIRIDIS[n]) for n in (before, before + 1))
    return "#" + "".join(f"{round(one + (other - one) * (place - before)):02x}" for one, other in zip(*ends, strict=True))


def token_errors(original: Run, changed: Run, part: str = "") -> TokenErrors:
    """The error of each token at the same part of all blocks: by default the residual stream, then the logits.

    `original` and `changed` are runs of one pipeline of a language model, such as those of a trace.
    """
    pipeline = original.pipeline
    if not isinstance(pipeline, LanguagePipeline) or changed.pipeline.sites != pipeline.sites:
        raise WorkbenchError("errors by token need two runs of one pipeline of a language model: lm.pipeline()")
    model = pipeline.model
    if part:
        require_known("part of a block", part, PARTS)
        sites = [f"block {layer} {part}" for layer in range(model.layers) if f"block {layer} {part}" in pipeline.sites]
    else:
        sites = ["embedding", *(f"block {layer}" for layer in range(model.layers)), *([] if pipeline.last else ["logits"])]
    if not sites:
        raise WorkbenchError(f"the pipeline must have some {part!r} of a block as a site; it has none: choose layers")
    rows = [_relative(original, changed, site) for site in sites]
    return TokenErrors(tuple(sites), tuple(model.text([token]) for token in to_host(original["tokens"])), np.array(rows))


def _relative(original: Run, changed: Run, site: str) -> np.ndarray:
    """The error of each token at a site; squares of float32 neither overflow nor vanish in float64."""
    pipeline = original.pipeline
    assert isinstance(pipeline, LanguagePipeline)
    axis = pipeline.token_axis(site)
    assert axis is not None
    found = np.zeros(original[site].shape[axis])
    if changed.raw[site] is original.raw[site]:
        return found
    one, other = first_axis(original[site], axis), first_axis(changed[site], axis)
    rows = Rows.of(None, one.shape, 0).differing(one, other).indices
    with np.errstate(all="ignore"):
        shape = len(rows), math.prod(one.shape[1:])
        before, after = (to_host(each)[rows].astype(np.float64).reshape(shape) for each in (one, other))
        change, size = (np.sqrt(np.einsum("ij,ij->i", each, each)) for each in (after - before, before))
        found[rows] = np.where(change == 0, 0.0, change / size)
    return np.where(np.isfinite(found), found, np.inf)
