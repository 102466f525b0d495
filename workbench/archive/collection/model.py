"""The archive of a model: a collection of its tensors, and what its quality was when their bounds were chosen.

Each tensor is a member with its bound and certificate, as in any collection. What holds for all of them together is in what
is known of the whole: the quality of the decoded model, measured before the archive existed, and the names of tied weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.archive.collection.collection import Collection
from workbench.archive.collection.description import OURS
from workbench.charts.table import html_table
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Exact
from workbench.json_values import json_value

MODEL = "model"   # what is known of the whole
FIGURES = ("quality", "inputs", "loss", "budget", "alone", "pruned", "assessments")


@dataclass(frozen=True)
class ModelCertificate:
    """What was measured of the decoded model, with all bounds together.

    `loss` is its quality, at most `budget`; `inputs` names what it was measured on by the beginning of their SHA-256, if
    the quality has inputs that are known. `alone` is the sum of the losses of each group of tensors alone, and
    `additivity` the joint loss over that, beyond the loss of what was pruned.
    """

    quality: str
    inputs: str | None
    loss: float
    budget: float
    alone: float
    pruned: float
    assessments: int
    bounds: Mapping[str, Bound] = field(default_factory=dict)

    @property
    def additivity(self) -> float:
        """The joint loss over the sum of the losses of each group alone; NaN where nothing is lost."""
        return (self.loss - self.pruned) / self.alone if self.alone > 0 else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON types."""
        bounds = {name: bound.to_dict() for name, bound in self.bounds.items()}
        return json_value({**vars(self), "bounds": bounds, "additivity": self.additivity})

    def __str__(self) -> str:
        on = f" on the inputs {self.inputs}" if self.inputs else ""
        return (
            f"the decoded model loses {self.loss:.3g} of a budget of {self.budget:.3g} by {self.quality}{on}; every value "
            f"of {len(self.bounds)} tensors was decoded and compared with its bound; joint loss over the sum of those of "
            f"each group alone: {self.additivity:.2f}"
        )


class ModelArchive(Collection):
    """A model as `wb.compress_model` returns it, and as `wb.open` opens it: a collection of its tensors.

    >>> import numpy as np, workbench as wb
    >>> weights = {"w": np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)}
    >>> archive = wb.compress_model(weights, lambda tensors: float(((tensors["w"] - weights["w"])**2).mean()), 1e-3)
    >>> archive.certificate.loss <= 1e-3, archive["w"].certificate["values"].bound == archive.bounds["w"]
    (True, True)
    """

    sensitivity: Any = None   # the table of losses, where this process has measured them
    chosen: Mapping[str, float] = MappingProxyType({})   # the bound of each group there

    @property
    def certificate(self) -> ModelCertificate:
        """What was measured of the decoded model, and the bound of each tensor."""
        said = self.groups[""][MODEL]
        return ModelCertificate(**{name: said[name] for name in FIGURES}, bounds=self.bounds)

    @property
    def bounds(self) -> dict[str, Bound]:
        """The bound of each tensor."""
        promises = {name: archive.certificate[archive.data.layout.name] for name, archive in self.items()}
        return {name: Exact() if promise.bound is None else promise.bound for name, promise in promises.items()}

    @property
    def tied(self) -> dict[str, str]:
        """Names of tensors that are another one: the name of that."""
        return dict(self.groups[""][MODEL]["tied"])

    @property
    def tensor_ratio(self) -> float:
        """The compression ratio of the tensors without the documents that describe them, which matter in small models."""
        return self.original_nbytes / max(sum(row.nbytes for row in self.rows()), 1)

    @property
    def notes(self) -> list[str]:
        """Nothing: whether a bound is large is judged by the quality of the model, not by the spread of the tensor.

        So archives of models do not state such notes, unless they were made by an early version.
        """
        return []

    def tensors(self) -> dict[str, np.ndarray]:
        """The decoded tensors as arrays of their types, tied ones under each of their names."""
        decoded = {name: np.asarray(self.decompress_member(name).values) for name in self}
        return {**decoded, **{alias: decoded[name] for alias, name in self.tied.items()}}

    def plot(self) -> Any:
        """The map of losses, with the chosen bounds; of a model that was compressed in this process."""
        if self.sensitivity is None:
            raise WorkbenchError("the losses at each bound are not in the file: compress the model again to see them")
        return self.sensitivity.plot(self.chosen)

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n{self.certificate}"

    def _in_one_line(self) -> str:
        return f"{super()._in_one_line()}, the tensors alone {self.tensor_ratio:.3g}x"

    def _repr_html_(self) -> str:
        said = self.certificate
        rows = [["loss", f"{said.loss:.4g}"], ["budget", f"{said.budget:.4g}"], ["quality", said.quality]]
        return super()._repr_html_() + html_table(["the decoded model", ""], rows, texts=range(2))


def is_model(root: Mapping[str, Any]) -> bool:
    """Whether the root of a collection describes a model.

    >>> is_model({"attributes": {OURS: {"groups": {"": {}}}}})
    False
    """
    match root:
        case {"attributes": {**attributes}}:
            match attributes.get(OURS):
                case {"members": {**members}, "groups": {"": {"model": said}}} if _is_record(said):
                    tied = said.get("tied", {})
                    return all(isinstance(name, str) and name in members and alias not in members
                               for alias, name in tied.items())
    return False


def _is_record(said: Any) -> bool:
    """Whether this is what the archive of a model says of it."""
    match said:
        case {
            "quality": str(), "inputs": str() | None, "loss": int() | float(), "budget": int() | float(),
            "alone": int() | float(), "pruned": int() | float(), "assessments": int(), "tied": {},
        }:
            return True
    return False
