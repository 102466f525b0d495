"""`workbench info FILE`: describe the content of files."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from workbench import backend
from workbench.archive import Archive
from workbench.cli.archives import describe_archive, print_archive
from workbench.cli.failure import failed, status_of
from workbench.cli.source import KINDS, add_file, add_trust, open_source, print_result
from workbench.data import Field, Particles
from workbench.data.readers import left_out
from workbench.errors import WorkbenchError


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser("info", help="describe the content of files", description="Describe the content of files.")
    add_file(parser, text=f"{KINDS}; or an archive; several are described one after the other", several=True)
    add_trust(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open each file and describe it; archives are not decoded."""
    if len(options.files) == 1:
        options.file = options.files[0]
        described, archive = _described(options)
        _print(described, archive, options)
        return 0
    return _several(options)


def _several(options: argparse.Namespace) -> int:
    """Describe several files; an error in one does not stop the others."""
    found: list[dict[str, Any]] = []
    status = 0
    for file in options.files:
        options.file = file
        try:
            described, archive = _described(options)
        except WorkbenchError as error:
            quiet = argparse.Namespace(**{**vars(options), "json": False})
            status = status or failed(error, quiet)
            found.append({"file": file, "error": str(error), "status": status_of(error)})
            continue
        found.append(described)
        if not options.json:
            _print(described, archive, options)
            print()
    if options.json:
        print_result({"files": found, "status": status}, True)
    return status


def _described(options: argparse.Namespace) -> tuple[dict[str, Any], Archive | None]:
    data = open_source(options)
    if isinstance(data, Archive):
        return {"file": options.file, **describe_archive(data)}, data
    described = describe_particles(data) if isinstance(data, Particles) else describe_field(data)
    return {"file": options.file, **described}, None


def _print(described: dict[str, Any], archive: Archive | None, options: argparse.Namespace) -> None:
    if archive is not None:
        print_archive(described, archive, options)
    else:
        print_result(described, options.json)


def describe_particles(particles: Particles) -> dict[str, Any]:
    """Counts, ranges and companion arrays."""
    return {
        "kind": "particles",
        "count": len(particles),
        "dimensions": particles.dimensions,
        "dtype": str(particles.positions.dtype),
        "box": list(particles.box) if particles.box else None,
        "lower": particles.lower.tolist(),
        "upper": particles.upper.tolist(),
        "mean_spacing": particles.spacing,
        "velocities": particles.velocities is not None,
        "ids": particles.ids is not None,
        "masses": particles.masses is not None,
        "left_out": left_out(particles),
        **_metadata(particles.metadata),
    }


def describe_field(field: Field) -> dict[str, Any]:
    """Shape, range and number of missing values."""
    valid = backend.to_host(field.valid)
    values = backend.to_host(field.values)[valid]
    return {
        "kind": "field",
        "name": field.name,
        "shape": list(field.shape),
        "dtype": str(field.values.dtype),
        "spacing": list(field.spacing),
        "minimum": values.min().item() if values.size else None,
        "maximum": values.max().item() if values.size else None,
        "mean": _mean(values) if values.size else None,
        "invalid_or_masked": int(valid.size - valid.sum()),
        "left_out": left_out(field),
        **_metadata(field.metadata),
    }


def _mean(values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(values.mean(dtype=np.float64))
        return mean if math.isfinite(mean) else float((values / values.size).sum(dtype=np.float64))   # the sum overflows


def _metadata(metadata: Any) -> dict[str, Any]:
    return {f"metadata.{name}": value for name, value in metadata.items() if name != "left_out"}
