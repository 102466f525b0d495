"""Several fields of one kind for a pipeline: realisations as they are given, blocks of a field, times of a series."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.arguments import whole_number
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError, briefly
from workbench.propagation.containers import array_of, is_labelled
from workbench.propagation.pipeline import Pipeline, Run

Cut = tuple[int | slice, ...]


def realisations(x: Any, axis: int | str | None = None, block: int | Sequence[int] | None = None) -> list[Any]:
    """The fields along an axis, such as times, or the blocks of this shape, of a field or an array: for `budget`.

    What is left at the ends after whole blocks is left out. An array of xarray keeps its labels, and its axis may have a
    name. Neighbouring blocks, and times that follow closely, are less than independent: then fewer count.

    >>> import numpy as np
    >>> series = np.zeros((12, 64, 64))
    >>> len(realisations(series, axis=0)), len(realisations(series[0], block=(16, 32)))
    (12, 8)
    """
    if isinstance(x, Particles | Mapping | list | tuple) or (axis is None) == (block is None):
        raise WorkbenchError(
            f"realisations takes a field or an array, and an axis or the shape of a block; got {briefly(x)}, axis {axis!r} "
            f"and block {block!r}"
        )
    shape = x.shape if isinstance(x, Field) else array_of(x).shape
    cuts = list(_along(x, shape, axis) if block is None else _blocks(shape, block))
    if len(cuts) == 1:
        warnings.warn(
            f"axis={axis!r} and block={block!r} make one realisation of {' x '.join(map(str, shape))} values, and a budget "
            "takes at least 2: blocks of at most half a side make more", stacklevel=2
        )
    return [_cut(x, cut) for cut in cuts]


def _along(x: Any, shape: Sequence[int], axis: Any) -> Iterator[Cut]:
    place = x.dims.index(axis) if is_labelled(x) and axis in x.dims else axis
    place = whole_number(f"axis of an array with {len(shape)} axes", place, 0, len(shape) - 1)
    return ((slice(None),) * place + (index,) for index in range(shape[place]))


def _blocks(shape: Sequence[int], block: int | Sequence[int]) -> Iterator[Cut]:
    sides = [block] * len(shape) if isinstance(block, int) else list(block)
    if len(sides) != len(shape):
        raise WorkbenchError(f"a block must have {len(shape)} axes, as the field; got {briefly(block)}")
    steps = [whole_number("the side of a block", side, 1, most) for side, most in zip(sides, shape, strict=True)]
    starts = [range(0, count - step + 1, step) for count, step in zip(shape, steps, strict=True)]
    return (
        tuple(slice(start, start + step) for start, step in zip(corner, steps, strict=True))
        for corner in itertools.product(*starts)
    )


def _cut(x: Any, cut: Cut) -> Any:
    if not isinstance(x, Field):
        return x[cut]
    kept = tuple(step for place, step in enumerate(x.spacing) if place >= len(cut) or isinstance(cut[place], slice))
    mask = None if x.mask is None else x.mask[cut]
    return replace(x, values=x.values[cut], spacing=kept, mask=mask)


def listed_realisations(
    pipeline: Pipeline, x: Any, coverage: float | None = None, confidence: float | None = None
) -> list[Any]:
    """The several fields that are given; none where `x` is a single one. They must be alike, and enough."""
    if not _several(x):
        asked = ", ".join(name for name, given in (("coverage", coverage), ("confidence", confidence)) if given is not None)
        if asked:
            raise WorkbenchError(f"{asked} of a budget takes at least 2 fields; got one: give a list of fields of one kind")
        return []
    if len(x) < 2:
        raise WorkbenchError(
            "a budget that holds on new fields takes at least 2, one to tune the bounds and others to certify them; got a "
            "list of 1: give more, or the field itself for bounds that are tuned to it alone"
        )
    first = _shapes(pipeline, x[0])
    for number, each in enumerate(x[1:], 2):
        if (found := _shapes(pipeline, each)) != first:
            raise WorkbenchError(
                f"all fields must have the shape of the first, {_named(first)}; number {number} has {_named(found)}"
            )
    return list(x)


def _several(x: Any) -> bool:
    """A list of arrays, rather than an array that is written as a list."""
    if not isinstance(x, list | tuple) or not x:
        return False
    return all(isinstance(each, Field | Particles | Mapping) or getattr(each, "shape", ()) != () for each in x)


def _shapes(pipeline: Pipeline, x: Any) -> dict[str, tuple[int, ...]]:
    given = {site: x.raw[site] for site in pipeline.inputs} if isinstance(x, Run) else pipeline.given(x)
    return {site: tuple(array_of(each).shape) for site, each in given.items()}


def _named(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{shape} at {site!r}" for site, shape in shapes.items())


def run_of(pipeline: Pipeline, x: Any) -> Run:
    """The run of what the pipeline takes, or the run itself."""
    return x if isinstance(x, Run) else pipeline.run(x)
