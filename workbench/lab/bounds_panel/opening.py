"""`wb.lab.bounds`: the panel that suits the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.archive.collection.sources import is_dataset
from workbench.bounds.sources import require_data
from workbench.codecs.interpolation_model import Model
from workbench.lab.bounds_panel.dataset_panel import DatasetPanel
from workbench.lab.bounds_panel.panel import BoundsPanel
from workbench.lab.cells import name_of


def bounds(data: Any, **choices: Any) -> BoundsPanel:
    """A panel for choosing an error bound: original, decoded and error side by side, figures, spectra, other codecs.

    `data` are a field or particles, of which it shows the positions; or a dataset, as `wb.compress` takes it: then a table
    has a row for each variable, `variable` names the one on display, and the code is the one call for all.

    `choices` are fields of `BoundsState`: codec, kind, eb, exact, order; target and goal of *find*; axis, index, time,
    window, logarithmic; and model, a trained model or the file of one, which can be left out again to see what it saves.

    >>> from workbench.data.synthetic import gaussian_field
    >>> panel = bounds(gaussian_field((64, 64), seed=1), codec="prequantised", eb=0.07)
    >>> panel.change(eb=0.05)
    True
    >>> panel.result["trial"].run["max_error"] <= 0.05
    True
    >>> panel.close()
    >>> with bounds({"T": gaussian_field((32, 32), seed=1), "id": [7, 8]}, eb=0.5) as panel:
    ...     print(panel.code().splitlines()[-1])
    archive = wb.compress(dataset, {"T": {"bound": wb.Absolute(0.5), "codec": "interpolation"}, "*": wb.Exact()})
    """
    model, called = _model_of(choices.get("model"))
    choices = choices if model is None else {**choices, "model": model}
    if is_dataset(data) or getattr(data, "kind", None) == "collection":
        return DatasetPanel(data, name_of(data, "dataset"), called, **choices)
    return BoundsPanel(require_data(data), name_of(data, "data"), called, **choices)


def _model_of(given: Any) -> tuple[Model | None, str]:
    """The model that was given, itself or by its file; and the same as Python."""
    if isinstance(given, str | Path):
        return Model.load(given), f"wb.codecs.Model.load({str(given)!r})"
    return given, name_of(given, "model") if given is not None else ""
