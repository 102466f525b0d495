"""A campaign on disk, so that it can go on after an interruption: a line of JSON that identifies it, then one per trial.

The first line has digests of the arrays at all sites of the unperturbed run. So a file is continued only with the same data
and with code that computes the same bits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from workbench.backend import to_host
from workbench.errors import WorkbenchError
from workbench.propagation.trials import OUTCOMES, Experiment, Trial

FORMAT = "lossbench campaign 3"
NUMBERS = ("error", "damage")


def fingerprint(experiment: Experiment) -> dict[str, Any]:
    """What identifies a campaign: data, pipeline, perturbations, seed, tolerance; `made` makes the pipeline again."""
    return {
        "format": FORMAT,
        "pipeline": experiment.pipeline.name,
        "checks": {site: [repr(check) for check in found] for site, found in experiment.pipeline.checks.items()},
        "sites": {site: _digest(to_host(experiment.run[site])) for site in experiment.pipeline.sites},
        "strata": [[each.to_dict() for each in stratum] for stratum in experiment.strata],
        "seed": experiment.seed,
        "tolerance": experiment.tolerance.name,
        "limit": experiment.tolerance.limit,
        "made": experiment.pipeline.described(experiment.run),
    }


def identity_of(path: Path) -> dict[str, Any]:
    """The first line of the file of a campaign."""
    try:
        with path.open("rb") as file:
            identity = json.loads(file.readline())
    except OSError as error:
        raise WorkbenchError(f"the file of a campaign must be readable; {error}") from None
    except ValueError:
        identity = None
    if not isinstance(identity, dict) or identity.get("format") != FORMAT:
        raise WorkbenchError(f"{path} is not the file of a campaign: give another path")
    return identity


def _digest(values: np.ndarray) -> str:
    found = blake2b(f"{values.dtype.str} {values.shape}".encode(), digest_size=16)
    found.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def _plain(trial: Trial) -> dict[str, Any]:
    """A trial in JSON types: an infinite number, which JSON lacks, is the text "inf"."""
    numbers = {name: getattr(trial, name) for name in NUMBERS}
    infinite = {name: str(value) for name, value in numbers.items() if value is not None and math.isinf(value)}
    return {**asdict(trial), **infinite}


class CampaignFile:
    """The file of one campaign; it is created when the first trials are there."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self._path, self._identity = path, json.loads(json.dumps(identity))
        if path.is_dir() or not path.parent.is_dir():
            raise WorkbenchError(f"path must be a file in a folder that exists; got {path}")

    def read(self) -> list[Trial]:
        """The trials of the file; none if there is no file. A last line that was cut off is dropped."""
        if not self._path.exists() or self._path.stat().st_size == 0:
            return []
        identity = identity_of(self._path)
        lines = self._path.read_bytes().split(b"\n")
        differs = sorted(name for name in self._identity if identity.get(name) != self._identity[name])
        if differs:
            raise WorkbenchError(
                f"{self._path} holds another campaign, with other {', '.join(differs)}: give another path"
            )
        found = [self._trial(line, number) for number, line in enumerate(lines[1:-1], 2)]
        if lines[-1]:   # cut off in the middle of a line
            self._path.write_bytes(b"\n".join(lines[:-1]) + b"\n")
        return found

    def append(self, trials: Sequence[Trial]) -> None:
        """Write more trials."""
        new = not self._path.exists() or self._path.stat().st_size == 0
        lines = [self._identity] if new else []
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in [*lines, *map(_plain, trials)])
        except OSError as error:
            raise WorkbenchError(f"the trials must be written to {self._path}: {error}") from None

    def _trial(self, line: bytes, number: int) -> Trial:
        try:
            found = json.loads(line)
            trial = Trial(**{**found, **{name: float(found[name]) for name in NUMBERS if found[name] is not None}})
        except (ValueError, TypeError, KeyError):
            trial = None
        if trial is None or trial.outcome not in OUTCOMES:
            raise WorkbenchError(f"{self._path} is damaged in line {number}: delete that line and all after it")
        return trial
