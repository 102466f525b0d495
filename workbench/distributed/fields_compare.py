"""`wb.distributed.compare`: the errors of fields that do not fit into memory, chunk by chunk.

Errors of parts add up to those of the whole. What needs neighbours across chunks (SSIM) or all values at once (spectra) is
left out, and the report says so.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from workbench.data import Field
from workbench.distributed.clients import executor_of
from workbench.distributed.fields import ChunkedField, InArchive, map_parts
from workbench.distributed.sources import scratch_folder
from workbench.errors import WorkbenchError
from workbench.metrics import Errors, Report, pointwise
from workbench.metrics.compare import report_of_errors, require_bound

LEFT_OUT = "no ssim, spectrum or histogram: they need the whole field in one process (wb.compare)"


def compare(
    original: Any, decoded: Any, *, bound: float | None = None, client: Any = None, scratch: str | Path | None = None
) -> Report:
    """The errors of a decoded field, chunk by chunk: `wb.compare` for fields that do not fit into memory.

    Both are a `ChunkedField` or an array that it takes, an archive of a field, or a `wb.Field`. With a `bound`, the report
    says whether any absolute error exceeds it.

    >>> import numpy as np
    >>> from workbench.data.synthetic import gaussian_field
    >>> wave = gaussian_field((32, 32), seed=1)
    >>> report = compare(wave, np.round(wave.values, 2), bound=0.005001)
    >>> report.passed, report.max_error < 0.00501
    (True, True)
    """
    require_bound(bound)
    fields = ChunkedField.of(original), ChunkedField.of(decoded)
    if fields[0].shape != fields[1].shape:
        raise WorkbenchError(f"both fields must have the same shape; got {fields[0].shape} and {fields[1].shape}")
    executor = executor_of(client)
    with scratch_folder(scratch, executor) as folder:
        first, second = (field.reachable(executor, folder, name) for field, name in zip(fields, "ab", strict=True))
        step, shape = functools.partial(_errors, bound), min((second, first), key=_cost_of_other_chunks).chunk_shape
        found = sum(map_parts(executor, "compare-chunks", step, shape, [first, second]), Errors())
    return report_of_errors(f"{first!r}, original and decoded", found, bound, LEFT_OUT)


def _cost_of_other_chunks(field: ChunkedField) -> int:
    """Whose chunks to use: an archive decodes a whole chunk for any part of it, Dask has to cut and join blocks."""
    return 0 if isinstance(field.values, InArchive) else 1 if field.on_dask else 2


def _errors(bound: float | None, number: int, original: Field, decoded: Field) -> Errors:
    return pointwise(original, decoded, bound)
