"""A trajectory as an archive: positions, and what else frames have, in chunks of a few frames each.

A block of frames is read, and each of its chunks is encoded, checked and written, before the next: memory is that of a few
blocks however long the trajectory is. A chunk holds all it needs, so that any frame costs the decoding of one row of
chunks. Velocities may have a bound of their own; cells, times, steps and images are exact, as are the columns of the atoms.
Errors are plain differences of the coordinates of the file: nothing is wrapped here. A run that was killed, or failed,
leaves the chunks that are done and a record of each in the draft, from which the same call goes on.
"""

from __future__ import annotations

import functools
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import codecs
from workbench.archive import provenance
from workbench.archive.archive import Archive
from workbench.archive.choice import is_free
from workbench.archive.chunk import EncodedChunk, exact_chunk
from workbench.archive.chunking import axes_of
from workbench.archive.encoded import RECORDS, token_of, written
from workbench.archive.encoding import (
    EncodedArray,
    ReadyChunk,
    Task,
    assembled,
    encode_exactly,
    even_chunks,
    exact_layout,
    exactly,
    layout_for,
)
from workbench.archive.layout import ArrayLayout, Index
from workbench.archive.plausibility import notes_on_spread, on_earlier_loss
from workbench.archive.request import Request, archive_of
from workbench.archive.survey import Survey
from workbench.archive.writing import Place
from workbench.codecs import Codec, Columns, ParticleCodec
from workbench.codecs.rounded import Rounded, precision_of
from workbench.data.trajectory import OF_ATOMS, POSITIONS, Trajectory, as_edges
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Limit, Relative, encode_guarded
from workbench.run.executors import Executor

AXES = ("frame", "atom", "axis")
CODECS = ("motion", "interpolation")   # of positions, of which the smaller one is taken unless another is asked for
TRIED = 2**19                     # numbers of the first frames, on which both are tried
VELOCITY_CODEC = "prequantised"   # of velocities that have a bound, where the codec asked for is for positions alone
LEAST_FRAMES, MOST_FRAMES = 16, 256   # of a chunk, unless others are asked for
VALUES = 2**19                    # of a chunk: few atoms have more frames
SMALL = 2**14                     # frames in a chunk of cells, times and steps
ATOM = "atom_"                    # how the arrays of columns of atoms begin


@dataclass(frozen=True, eq=False)
class Plan:
    """How the frames of a trajectory are encoded: `tasks` within a bound, `exact` bit for bit, the others as they are."""

    trajectory: Trajectory
    tasks: Mapping[str, Task]
    exact: Mapping[str, ArrayLayout]
    place: Place
    choice: str = ""   # how the codec was chosen

    @property
    def frames(self) -> int:
        """The number of frames in a block."""
        return self.tasks[POSITIONS].layout.chunk_shape[0]

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return self.tasks[POSITIONS].layout.chunk_grid[0]

    @property
    def small(self) -> list[str]:
        """The arrays of which a frame has only a few numbers."""
        return [name for name in self.trajectory.arrays if name not in self.tasks and name not in self.exact]


@dataclass(frozen=True, eq=False)
class Block:
    """A block that is written: its chunks without their bytes, its small arrays, the survey of its positions."""

    ready: Mapping[str, list[ReadyChunk]]
    exact: Mapping[str, list[EncodedChunk]]
    small: Mapping[str, np.ndarray]
    survey: Survey


def compress_trajectory(
    trajectory: Trajectory, metadata: Mapping[str, Any], request: Request, place: Place, executor: Executor
) -> Archive:
    """The archive of a trajectory, whose parts go to this place."""
    plan = plan_for(trajectory, request, place, executor)
    free = not any(task.codec.holds_gil for task in plan.tasks.values())
    blocks = executor.map("encode-frames", encode_block, range(plan.blocks), "block of frames", shared=plan, together=free)
    survey = functools.reduce(Survey.__add__, (block.survey for block in blocks))
    arrays = [_assembled(plan, name, blocks) for name in trajectory.arrays]
    arrays += columns_of(trajectory)
    for array in arrays:
        if array.layout.name not in plan.tasks and array.layout.name not in plan.exact:
            for key, data in array.entries():
                place.put(key, data)
    notes = [*on_earlier_loss(trajectory, request.bound, survey.ends)]
    notes += notes_on_spread(POSITIONS, survey.statistics.spread, request.bound)
    described = {"kind": "trajectory", "labels": labels_of(trajectory), **_told(blocks)}
    return archive_of(arrays, described, plan.tasks[POSITIONS].codec, metadata, place, executor, tuple(notes), plan.choice)


def _told(blocks: Sequence[Block]) -> dict[str, Any]:
    """The first and last time, and the cell of the first frame, for those who look at the archive."""
    found: dict[str, Any] = {}
    if "times" in blocks[0].small:
        times = [float(blocks[0].small["times"][0]), float(blocks[-1].small["times"][-1])]
        found |= {"times": times} if np.isfinite(times).all() else {}
    if "cells" in blocks[0].small and np.isfinite(blocks[0].small["cells"][0]).all():
        found["cell"] = blocks[0].small["cells"][0].astype(np.float64).tolist()
    return found


def plan_for(trajectory: Trajectory, request: Request, place: Place, executor: Executor) -> Plan:
    """What is decided before any frame is encoded; a relative bound needs the range, so that all frames are read twice."""
    codec, tasks, exact = codec_for(request), {}, {}   # type: Codec, dict[str, Task], dict[str, ArrayLayout]
    chunks, choice = chunks_for(trajectory, request, codec), ""
    limit = limit_for(trajectory, POSITIONS, request.bound, executor)
    if is_free(request.codec):
        codec, choice = chosen(trajectory, chunks, limit)
    bounds: dict[str, Bound | None] = {POSITIONS: request.bound, "velocities": request.velocities}
    for name, (_, dtype) in trajectory.arrays.items():
        if name not in OF_ATOMS:
            continue
        bound = bounds.get(name)
        if bound is None:
            exact[name] = exact_layout(name, trajectory.shape, dtype, chunks)
            continue
        of_array = codec if name == POSITIONS else velocity_codec(request)
        layout = layout_for(name, trajectory.shape, dtype, chunks, of_array)
        own = limit if name == POSITIONS else limit_for(trajectory, name, bound, executor)
        tasks[name] = Task(layout, of_array, bound, own)
    return Plan(trajectory, tasks, exact, place, choice)


def chosen(trajectory: Trajectory, chunks: tuple[int, int, int], limit: Limit) -> tuple[Codec, str]:
    """The codec that makes the first frames smallest, and the trial in words.

    Where the file has rounded its numbers, and the bound is not above half a step, they are kept as they are.
    """
    frames, atoms = min(chunks[0], max(TRIED // (3 * chunks[1]), LEAST_FRAMES)), slice(0, chunks[1])
    values = trajectory.read(0, frames, [name for name in (POSITIONS, "cells") if name in trajectory.arrays])
    sample = _part(values[POSITIONS], atoms)
    candidates: list[Codec] = [codecs.get(name) for name in CODECS]
    if rounded := rounding_of(trajectory, sample, limit):
        candidates = [Rounded(rounded, name) for name in CODECS]
    if limit.value == 0 and not rounded:
        return candidates[0], ""
    found = {codec: encode_guarded(_in_cells(codec, values), sample, limit) for codec in candidates}
    sizes = {codec: 8 * guarded.nbytes / (sample.size / 3) for codec, guarded in found.items()}
    preferred = sorted(sizes, key=lambda codec: sizes[codec])
    listed = ", ".join(f"{_in_words(codec)} {sizes[codec]:.3g}" for codec in preferred)
    kept = f"; the numbers, multiples of 1/{rounded:g}, are kept exactly" if rounded else ""
    return preferred[0], f"chosen by trial on the first {len(sample):,} frames: {listed} bits per atom and frame{kept}"


def rounding_of(trajectory: Trajectory, sample: np.ndarray, limit: Limit) -> float | None:
    """The precision that the file has, if the bound is at most half a step; None if a bound is larger, or there is none."""
    if limit.relative or not np.isfinite(sample).all():
        return None
    stated = trajectory.metadata.get("precision")
    known = precision_of(sample[:1], float(stated) if isinstance(stated, int | float) and stated > 0 else None)
    return known if known is not None and limit.value <= 0.5 / known * (1 + 1e-6) else None


def _in_words(codec: Codec) -> str:
    return f"{codec.id} by {codec.numbers}" if isinstance(codec, Rounded) else codec.id


def codec_for(request: Request) -> Codec:
    """The codec of positions; refused if it cannot take frames."""
    codec = request.chosen_codec(CODECS[0])
    return _taking_frames(codec, "leave the codec out, or give motion, or one of arrays")


def velocity_codec(request: Request) -> Codec:
    """The codec of velocities that have a bound."""
    given = request.column_codec or request.codec
    chosen = given if isinstance(given, Codec) else codecs.get(VELOCITY_CODEC if is_free(given) else given)
    if request.column_codec is None and (isinstance(chosen, ParticleCodec) or 3 not in chosen.dimensions):
        chosen = codecs.get(VELOCITY_CODEC)
    return _taking_frames(chosen, "give another one as column_codec")


def _taking_frames(codec: Codec, advice: str) -> Codec:
    if 3 not in codec.dimensions or isinstance(codec, Columns) or codec.beside_positions or codec.bare:
        raise WorkbenchError(f"{codec.id} takes no arrays of frames, atoms and axes: {advice}")
    return codec


def limit_for(trajectory: Trajectory, name: str, bound: Bound, executor: Executor) -> Limit:
    """The limit of a bound for all values of an array."""
    if not isinstance(bound, Relative):
        return bound.limit(np.empty(0))
    parts = range(0, len(trajectory), LEAST_FRAMES)
    pieces = executor.map("find-range", _ends, parts, "block of frames", shared=(trajectory, name))
    return bound.limit(np.concatenate(pieces))


def _ends(shared: tuple[Trajectory, str], start: int) -> np.ndarray:
    trajectory, name = shared
    return Survey.of(trajectory.read(start, start + LEAST_FRAMES, (name,))[name]).ends


def chunks_for(trajectory: Trajectory, request: Request, codec: Codec) -> tuple[int, int, int]:
    """The shape of the chunks: as many frames as are asked for or usual, of as many atoms as make a usual chunk.

    A number in place of a shape is that of the frames.
    """
    shape, given = trajectory.shape, request.chunks
    if isinstance(given, int):
        given = (given, None, None)
    frames, atoms, axes = (None, None, None) if given is None else axes_of(given, shape, AXES)
    if axes not in (None, 3):
        raise WorkbenchError(f"a chunk of a trajectory holds all three coordinates; got chunks={request.chunks!r}")
    most = request.chunk_values or max(VALUES, codec.chunk_values)
    if frames is None:
        several = min(max(VALUES // (3 * (atoms or shape[1])), LEAST_FRAMES), MOST_FRAMES)
        frames = even_chunks(shape[0], min(several, max(most // 3, 1)))
    if atoms is None:
        atoms = even_chunks(shape[1], max(most // (3 * frames), 1))
    return min(frames, shape[0]), min(atoms, shape[1]), 3


def columns_of(trajectory: Trajectory) -> Iterator[EncodedArray]:
    """The columns of the atoms as arrays; text as numbers of labels, which the archive lists."""
    for name, column in trajectory.atoms.items():
        values = np.unique(column, return_inverse=True)[1].astype(np.int32) if column.dtype.kind == "U" else column
        yield encode_exactly(ATOM + name, np.ascontiguousarray(values), (min(len(values), 2**20),))


def labels_of(trajectory: Trajectory) -> dict[str, list[str]]:
    """The text that columns of atoms have, sorted, by their names."""
    return {name: np.unique(column).tolist() for name, column in trajectory.atoms.items() if column.dtype.kind == "U"}


def encode_block(plan: Plan, number: int) -> Block:
    """Read a block of frames; encode, check and write its chunks, as far as no earlier run did."""
    trajectory, begin = plan.trajectory, number * plan.frames
    values = trajectory.read(begin, min(begin + plan.frames, len(trajectory)), tuple(trajectory.arrays))
    ready: dict[str, list[ReadyChunk]] = {}
    for name, task in plan.tasks.items():
        if name == POSITIONS:
            task = replace(task, codec=_in_cells(task.codec, values))
        ready[name] = [_encoded(plan.place, task, index, _part(values[name], part))
                       for index, part in _chunks(task.layout, number)]
    exact: dict[str, list[EncodedChunk]] = {}
    for name, layout in plan.exact.items():
        for index, part in _chunks(layout, number):
            chunk = exact_chunk(_part(values[name], part))
            plan.place.put(layout.chunk_key(index), chunk.data)
            exact.setdefault(name, []).append(chunk.without_bytes())
    small = {name: np.array(values[name]) for name in plan.small}
    return Block(ready, exact, small, Survey.of(values[POSITIONS]))


def _in_cells(codec: Codec, values: Mapping[str, np.ndarray]) -> Codec:
    """The codec of positions that knows the cells of the frames, if there are any."""
    return codec.in_cells(as_edges(values["cells"])) if "cells" in values else codec


def _chunks(layout: ArrayLayout, block: int) -> Iterator[tuple[Index, slice]]:
    """The chunks of a block, and their atoms."""
    for piece in range(layout.chunk_grid[1]):
        yield (block, piece, 0), layout.chunk_slices((block, piece, 0))[1]


def _part(values: np.ndarray, atoms: slice) -> np.ndarray:
    return np.ascontiguousarray(values[:, atoms])


def _encoded(place: Place, task: Task, index: Index, values: np.ndarray) -> ReadyChunk:
    """A chunk without its bytes, which are in their place."""
    if place.unfinished is None:
        return written(task, index, values, place, None, 0).ready
    record = place.unfinished / RECORDS / task.layout.chunk_key(index)
    return written(task, index, values, place, record, zlib.crc32(values.data, _begin(task))).ready


def _begin(task: Task) -> int:
    """A checksum of how chunks are encoded: from it, those of their sources go on."""
    stated = [task.codec.to_dict(), provenance.versions(task.codec), repr(task.limit), task.layout.chunk_shape]
    return zlib.crc32(json.dumps(stated, sort_keys=True).encode())


def _assembled(plan: Plan, name: str, blocks: Sequence[Block]) -> EncodedArray:
    """An array of the archive, from all its chunks."""
    if name in plan.tasks:
        return assembled(plan.tasks[name], [chunk for block in blocks for chunk in block.ready[name]])
    if name in plan.exact:
        return exactly(plan.exact[name], [chunk for block in blocks for chunk in block.exact[name]])
    values = np.concatenate([block.small[name] for block in blocks])
    return encode_exactly(name, values, (min(len(values), SMALL), *values.shape[1:]))


def token_for(trajectory: Trajectory, request: Request) -> str:
    """A name for this call: the same for the same arguments and trajectories of the same shape and arrays."""
    codec = codec_for(request)
    return token_of({
        "bound": request.bound.to_dict(), "velocities": request.velocities and request.velocities.to_dict(),
        "codec": codec.to_dict(), "column_codec": str(request.column_codec), "versions": provenance.versions(codec),
        "chunk": request.chunk_values, "chunks": request.chunks, "shape": trajectory.shape,
        "arrays": {name: str(dtype) for name, (_, dtype) in trajectory.arrays.items()},
        "atoms": zlib.crc32(repr([(name, column.tolist()) for name, column in trajectory.atoms.items()]).encode()),
    })


def bits_per_atom(archive: Archive) -> float:
    """Bits for the position of an atom in a frame: all chunks of the positions."""
    return 8 * archive.data.nbytes / math.prod(archive.data.layout.shape[:2])
