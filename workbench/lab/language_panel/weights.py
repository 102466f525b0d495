"""The scan of a model's weights, block by block, and the bounds that a budget of its divergence allows."""

from __future__ import annotations

from workbench.charts.table import html_table
from workbench.data.summary_html import size
from workbench.lab.jobs import Job
from workbench.lab.language_panel.state import LanguageState
from workbench.propagation import LanguageModel, Run
from workbench.propagation.weights import KL, Sensitivity, sensitivity
from workbench.propagation.weights.charts import named

VALUES = 4   # bytes of a weight, in which ratios are


def scanned(model: LanguageModel, run: Run, job: Job) -> Sensitivity:
    """The divergence on the text of the panel when each block alone is kept within each bound."""
    return sensitivity(model, KL(model, run["tokens"]), progress=job)


def shown(model: LanguageModel, table: Sensitivity, budget: float) -> str:
    """The map of losses with the chosen bounds, and these as a table beside it, as HTML."""
    found = table.within(budget)
    rows = [
        [name, named(share), f"{table.loss[row, column]:.2g}", f"{table.sizes[row, column]:,.0f}"]
        for row, (name, share) in enumerate(found.chosen.items()) for column in [table.shares.index(share)]
    ]
    whole = sum(values.size for name, values in model.weights.items() if name != "output" or not model.tied) * VALUES
    ratio = whole / found.nbytes if found.nbytes else 0.0
    smaller = f"{size(round(found.nbytes))}, {ratio:.2f}x smaller"
    said = f"the sum of divergences is {found.loss:.3g} of {budget:.3g} nats; {smaller}"
    solution = html_table(["block", "bound", "nats", "bytes"], rows, texts=(0, 1), title=said)
    chart = table.plot(found.chosen)._repr_html_()
    table_beside = f'<div style="flex: 1 1 290px; max-height: 560px; overflow: auto" tabindex="0">{solution}</div>'
    map_of_losses = f'<div style="flex: 1 1 600px; max-width: 640px">{chart}</div>'
    return f'<div style="display: flex; gap: 0.5em 1.5em; flex-wrap: wrap">{map_of_losses}{table_beside}</div>'


def code(state: LanguageState, model: str, text: str) -> list[str]:
    """The same as lines of Python."""
    return [
        f"losses = wb.propagation.weights.sensitivity({model}, wb.KL({model}, {text}))",
        f"solution = losses.within({state.budget!r})",
        f"# measured together, and as an archive: wb.compress_model({model}, wb.KL({model}, {text}), {state.budget!r})",
    ]
