"""What the panel of a language model shows: the map of errors, the divergence of each next token, and two texts."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from workbench.charts.description import Axis, Chart, Series
from workbench.charts.looks import COLOURS
from workbench.lab import levels
from workbench.lab.description import Axes, Charts, Fact, Picture, Reading, Shown
from workbench.lab.language_panel.state import LanguageState
from workbench.propagation import Run
from workbench.propagation.language import LanguagePipeline, TokenErrors, divergences
from workbench.propagation.language.token_errors import FLOOR, LARGEST

TICKS = 12


class Changed(NamedTuple):
    """The run with the error, and how the probabilities of the next tokens have changed."""

    run: Run
    divergence: np.ndarray   # of each next token, NaN where a logit is not finite
    other: np.ndarray        # whether another token is the most likely next one

    @property
    def nbytes(self) -> int:
        """What a kept result takes."""
        return sum(values.nbytes for values in self.run.values())


class Texts(NamedTuple):
    """The tokens that are written without the error and with it, as far as they are there; `done` if there are no more."""

    original: tuple[int, ...]
    changed: tuple[int, ...]
    done: bool

    @property
    def nbytes(self) -> int:
        """What a kept result takes."""
        return 32 * len(self.original + self.changed)


def changed_by(run: Run, changed: Run) -> Changed:
    """A changed run with its effect on the next tokens."""
    one, other = run["logits"], changed["logits"]
    with np.errstate(invalid="ignore"):
        return Changed(changed, divergences(one, other), one.argmax(axis=-1) != other.argmax(axis=-1))


def draw(run: Run, state: LanguageState, results: Mapping[str, Any]) -> Shown:
    """The map, the chart and the figures of the results so far."""
    changed, errors, texts = (results.get(name) for name in ("changed", "errors", "texts"))
    if changed is None or errors is None:
        return Shown(pictures=())
    finite = changed.divergence[np.isfinite(changed.divergence)]
    lost, wrong = int((~np.isfinite(changed.divergence)).sum()), int(changed.other.sum())
    mean = f"{finite.mean():.3g}" if finite.size else "none"
    facts = (
        Fact("next tokens changed", f"{wrong:,}", "bad" if wrong else "good", "whose most likely one is another"),
        Fact("divergence", mean, "", "of the probabilities of the next tokens, mean over the finite ones", "nats"),
        Fact("tokens not finite", f"{lost:,}", "bad" if lost else "", "tokens after which a logit is NaN or infinite"),
    )
    (note,) = changed.run.notes.get(state.site) or [{}]
    was = f" ({note['before']:.4g} becomes {note['after']:.4g})" if "before" in note else ""
    what = f"A flip of bit {state.bit}" if state.kind == "flip" else "Noise"
    others = f"of {len(changed.other)} next tokens change; divergence"
    answer = (f"{what} at {state.site}{was}:", facts[0], others, facts[1])
    return Shown(
        pictures=(picture(errors),), charts=Charts({"divergence": chart(errors, changed)}), facts=facts, answer=answer,
        beside=("divergence",), remark=_where(errors),
        note="each token's error is relative to that token's own values; what is not finite has the colour of 10",
        settings={"error": repr(state.perturbation(run)), **_said(run, texts)},
    )


def _said(run: Run, texts: Texts | None) -> dict[str, str]:
    pipeline = run.pipeline
    assert isinstance(pipeline, LanguagePipeline)
    if texts is None:
        return {}
    one, other = (pipeline.model.text(tokens) for tokens in (texts.original, texts.changed))
    return {"written without the error": one, "written with it": other}


def _where(errors: TokenErrors) -> str:
    first = int(errors.reached.min()) if errors.reached.size else None
    said = "The error ends before the last site." if first is None else f"{errors!r}; the first is token {first}."
    early = errors.lost.size and errors.lost.min() == 0
    return said + (" NaN reaches earlier tokens, too: a weight of zero times NaN is NaN." if early else "")


def picture(errors: TokenErrors) -> Picture:
    """A row for each site, a column for each token; without colour where nothing has changed."""
    rows, columns = errors.errors.shape
    shown = np.where(errors.errors > 0, np.clip(errors.errors, FLOOR, LARGEST), np.nan)
    each, every = max(1, columns // TICKS), max(1, rows // TICKS)
    across = tuple((n + 0.5, errors.labels[n]) for n in range(0, columns, each))
    up = tuple((rows - n - 0.5, errors.sites[n]) for n in range(0, rows, every))
    return Picture(
        "relative error", levels.bytes_of(shown, FLOOR, LARGEST, logarithmic=True), (0.0, float(columns), 0.0, float(rows)),
        "viridis", FLOOR, LARGEST, logarithmic=True, empty=True, axes=Axes("token", "site", ticks=(across, up)),
        quantity="relative error",
    )


def chart(errors: TokenErrors, changed: Changed) -> Chart:
    """The divergence of the probabilities of each next token, with marks where another one is the most likely."""
    places, there = np.arange(len(changed.divergence)), changed.divergence > 0
    each = max(1, len(places) // TICKS)
    names = [(float(n), errors.labels[n]) for n in range(0, len(places), each)]
    after = zip(errors.tokens, changed.divergence, strict=True)
    tooltips = [f"after {token!r}: {value:.3g} nats" for token, value in after]

    def series(name: str, kept: np.ndarray, look: dict[str, Any]) -> Series:
        shown = [tooltips[n] for n in np.flatnonzero(kept)]
        return Series(name, places[kept], changed.divergence[kept], tooltips=shown, **look)

    lines = (
        series("divergence", there, {"colour": COLOURS[0], "marker": "circle", "size": 6}),
        series("another token", there & changed.other, {"colour": COLOURS[1], "dash": None, "marker": "square"}),
    )
    return Chart(
        "Divergence of the next token", Axis("", -0.5, len(places) - 0.5, names=names, turned=True),
        Axis.around("nats", changed.divergence[there], True, 0.08), lines,
    )


def reading(errors: TokenErrors, x: float, y: float) -> Reading | None:
    """The error at a place of the map."""
    rows, columns = errors.errors.shape
    row, column = rows - 1 - int(y), int(x)
    if not (0 <= row < rows and 0 <= column < columns):
        return None
    error = float(errors.errors[row, column])
    said = "not finite" if np.isinf(error) else f"{error:.4g}"
    return Reading((said,), f"{errors.sites[row]}, token {column} {errors.tokens[column]!r}")


def side_by_side(run: Run, texts: Texts | None) -> str:
    """The two texts beside each other as HTML, with tokens marked that differ; nothing before there are any."""
    if texts is None:   # nobody has asked for them
        return ""
    pipeline = run.pipeline
    assert isinstance(pipeline, LanguagePipeline)
    one, other = texts.original, texts.changed
    ended = [texts.done and not written for written in (one, other)]
    columns = [
        _column(pipeline, "without the error", one, other, ended[0]), _column(pipeline, "with it", other, one, ended[1]),
    ]
    return f'<div style="display: flex; gap: 1.5em">{"".join(columns)}</div>'


def _column(pipeline: LanguagePipeline, title: str, own: Sequence[int], beside: Sequence[int], ended: bool) -> str:
    pieces = []
    for token, other in zip_longest(own, beside):
        text = "" if token is None else html.escape(pipeline.model.text([token]))
        pieces.append(text if token in (None, other) else f"<mark>{text}</mark>")
    said = "nothing: its logits are not finite" if ended else "".join(pieces) or "…"
    return f'<div style="flex: 1"><strong>{title}</strong><p style="white-space: pre-wrap">{said}</p></div>'
