"""The rows of a sweep as an HTML table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from workbench.bounds.run import Run
from workbench.charts.table import html_table


def table(rows: Sequence[Run], size: str, title: str) -> str:
    """The rows as HTML in the colours of the page, by bound: the smallest archive first, failed runs last."""
    bounds = list(dict.fromkeys(run.bound for run in rows))
    ordered = sorted(rows, key=lambda run: (bounds.index(run.bound), run.figures.get("nbytes", math.inf)))
    columns = {
        "ratio": "ratio", size: size.replace("_", " "), "max_error": "max error", "psnr": "PSNR [dB]",
        "encode_mb_per_s": "compress [MB/s]", "decode_mb_per_s": "decompress [MB/s]", "corrected": "corrected",
    }
    heads = ["codec", "bound", *columns.values(), ""]
    return html_table(heads, [_row(run, columns) for run in ordered], texts=(0, 1, len(heads) - 1), title=title)


def _row(run: Run, columns: Iterable[str]) -> list[str]:
    return [run.label, f"{run.bound.kind} {run.bound.eb:.6g}", *(_shown(run, name) for name in columns), _remark(run)]


def _shown(run: Run, name: str) -> str:
    if name not in run.figures:
        return ""
    return f"{run[name]:.3%}" if name == "corrected" else f"{run[name]:.4g}"


def _remark(run: Run) -> str:
    if run.error:
        return f"failed: {run.error}"
    stored = run.figures.get("chunks_stored_exactly")
    exactly = [f"{stored:,} of {run['chunks']:,} chunks stored exactly"] if stored else []
    return "; ".join([*exactly, *(["cached"] if run.cached else [])])
