"""`wb.lab.propagation` of a language model: an error inside it, by block and token, and what it then writes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from workbench.lab.choices import with_choices, within
from workbench.lab.controls import Button, Choice, LogSlider, Number, Row, Steps
from workbench.lab.description import Reading, Shown
from workbench.lab.engine import Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.language_panel import caches, drawing, weights
from workbench.lab.language_panel.drawing import Changed, Texts
from workbench.lab.language_panel.state import (
    LEAST_BUDGET,
    LEAST_NOISE,
    LEAST_STEP,
    MOST_BUDGET,
    MOST_NOISE,
    MOST_STEP,
    PLACES,
    LanguageState,
)
from workbench.lab.panel import Panel
from workbench.lab.part import Part
from workbench.lab.propagation_panel.entries import BitSlider
from workbench.lab.script import script
from workbench.propagation import CacheComparison, LanguageModel, Run
from workbench.propagation.language import TokenErrors, token_errors
from workbench.propagation.weights import Sensitivity


class LanguagePanel(Panel[LanguageState]):
    """The panel of a language model; its results are "changed", "errors" and, when asked for, others.

    These are "texts", "caches" and "weights".
    """

    title = "Language model"

    def __init__(self, model: LanguageModel, text: Any, names: tuple[str, str], **choices: Any) -> None:
        self.names, self.pipeline = names, model.pipeline()
        self.run: Run = self.pipeline.run(text)
        stages = [
            Stage("changed", lambda state: state.error, self._put_in, text="the error travels"),
            Stage("errors", lambda state: (state.error, state.shown), self._map),
            Stage("texts", lambda state: (state.error, state.tokens), self._write, True, "writing token by token"),
            Stage("caches", lambda state: (state.score_step, state.value_step), self._compare, True, "comparing caches"),
            Stage("weights", lambda state: None, self._scan, True, "bounding block by block"),
        ]
        tokens = len(self.run["tokens"])
        state = with_choices(LanguageState(layer=model.layers // 6, token=tokens // 3), choices)
        super().__init__(f"{model.name}: {tokens} tokens", state, stages)

    def rows(self) -> Sequence[Row]:
        """The error as a sentence, the two texts below the answer, the choice of the map below the pictures."""
        model, count = self.pipeline.model, len(self.run["tokens"])
        self._bit, self._texts = BitSlider("bit", "bit", self.state.numbers), Part(html="")
        self._channel = Steps("channel", "channel", 0, 1)
        self._format = Choice("format", "in", ["float32", "bfloat16", "float16"], about="number format")
        self._amplitude = LogSlider("amplitude", "of", LEAST_NOISE, MOST_NOISE, about="amplitude")
        self._token, self._seed = Steps("token", "token", 0, count - 1), Number("seed", "seed", whole=True)
        kind = Choice("kind", "", {"flip": "flip", "add noise to": "noise"}, about="kind of error")
        place = Choice("part", "at", PLACES, about="part of a block")
        play = Button("▶ play", lambda: self.ask("texts"), "write on without the error and with it, token by token", True)
        return [
            Row(kind, self._bit, self._format, self._amplitude, place),
            Row(Steps("layer", "block", 0, model.layers - 1), self._token, self._channel, self._seed),
            Row(play, Number("tokens", "at most", whole=True, unit="tokens", about="tokens written"), place="over"),
            Row(self._texts, place="over"),
            *self._cache_rows(),
            *self._weight_rows(),
            Row(Choice("shown", "map of", PLACES, about="part of a block"), place="strip"),
        ]

    def _cache_rows(self) -> list[Row]:
        """A cache of the reader's, and the table that compares it; none for texts that are too short for a block."""
        self._caches = Part(html="")
        if len(self.run["tokens"]) < caches.FEWEST:
            return []
        ask = Button("compare caches", lambda: self.ask("caches"), "code keys and values of the text in several ways", True)
        steps = [
            LogSlider("score_step", "step of scores", LEAST_STEP, MOST_STEP, about="step of scores"),
            LogSlider("value_step", "step of values", LEAST_STEP, MOST_STEP, about="step of values"),
        ]
        return [Row(ask, *steps, place="over"), Row(self._caches, place="over")]

    def _weight_rows(self) -> list[Row]:
        """The scan of all blocks, and the bounds that a budget allows, which follow it while it is dragged."""
        self._weights = Part(html="")
        ask = Button("scan the weights", lambda: self.ask("weights"), "keep each block alone within each bound", True)
        budget = LogSlider("budget", "within", LEAST_BUDGET, MOST_BUDGET, "nats", "budget of weights")
        return [Row(ask, budget, place="over"), Row(self._weights, place="over")]

    def fit_controls(self) -> None:
        """The controls that the kind of error has, with their ends."""
        flips = self.state.kind == "flip"
        self._bit.offer(self.state.numbers)
        self._channel.reach(self._channels(self.state) - 1)
        of_flips: tuple[Part, ...] = (self._bit, self._format, self._token, self._channel)
        for part in (*of_flips, self._amplitude, self._seed):
            part.set(hidden=flips != (part in of_flips))

    def show_parts(self) -> None:
        """The controls, and the texts as far as they are written."""
        self.fit_controls()
        texts = {**self._engine.results(), **self._engine.partial}.get("texts")
        self._texts.set(html=drawing.side_by_side(self.run, texts))
        compared, losses = (self._engine.results().get(name) for name in ("caches", "weights"))
        self._caches.set(html="" if compared is None else compared._repr_html_())
        self._weights.set(html="" if losses is None else weights.shown(self.pipeline.model, losses, self.state.budget))

    def draw(self, state: LanguageState, results: Results) -> Shown:
        """The map of errors, the divergence, the figures."""
        return drawing.draw(self.run, state, results)

    def ready(self, results: Results) -> bool:
        """Drawing waits for the map."""
        return "errors" in results

    def reading(self, picture: int, x: float, y: float) -> Reading | None:
        """The error at a place of the map."""
        errors = self.displayed[1].get("errors")
        return None if errors is None else drawing.reading(errors, x, y)

    def check(self, state: LanguageState) -> None:
        """Refuse blocks, tokens, channels and bits that this model does not have."""
        within("the block", state.layer, self.pipeline.model.layers)
        within("the token", state.token, len(self.run["tokens"]))
        within("the channel", state.channel, self._channels(state))
        within("the bit", state.bit, state.numbers.bits)
        self.pipeline.model.require_room(len(self.run["tokens"]) + state.tokens)

    def implied(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Another format keeps the field of the bit, as far as it has one; another part of a block its channel."""
        if "format" in fields and "bit" not in fields:
            fields = {**fields, "bit": 30 if fields["format"] == "float32" else 14}
        if "part" in fields and "channel" not in fields:
            fields = {**fields, "channel": 0}
        return fields

    def _channels(self, state: LanguageState) -> int:
        values = self.run[state.site] if state.site in self.pipeline.sites else self.run["embedding"]
        return int(values.size) // len(self.run["tokens"])

    def code_for(self, state: LanguageState) -> str:
        """The changed run, the map, and the two texts."""
        (model, text), tokens = self.names, len(self.run["tokens"])
        return script([
            f"pipeline = {model}.pipeline()",
            f"run = pipeline.run({text})",
            f"error = wb.propagation.{state.perturbation(self.run)!r}",
            f"changed = pipeline.perturbed(run, error, seed={state.seed})",
            f"errors = wb.propagation.language.token_errors(run, changed, {state.shown!r})",
            'divergence = wb.propagation.language.divergences(run["logits"], changed["logits"])',
            f"texts = [{model}.text(list(pipeline.written(each, {state.tokens}))) for each in (run, changed)]",
            *(caches.code(state, model, text, tokens) if tokens >= caches.FEWEST else []),
            *weights.code(state, model, text),
        ])

    # Stages.

    def _put_in(self, state: LanguageState, results: Results, job: Job) -> Changed:
        job(0.0, "the error travels")
        changed = self.pipeline.perturbed(self.run, state.perturbation(self.run), seed=state.seed)
        return drawing.changed_by(self.run, changed)

    def _map(self, state: LanguageState, results: Results, job: Job) -> TokenErrors:
        return token_errors(self.run, results["changed"].run, state.shown)

    def _compare(self, state: LanguageState, results: Results, job: Job) -> CacheComparison:
        return caches.compared(self.pipeline.model, self.run, state, job)

    def _scan(self, state: LanguageState, results: Results, job: Job) -> Sensitivity:
        return weights.scanned(self.pipeline.model, self.run, job)

    def _write(self, state: LanguageState, results: Results, job: Job) -> Texts:
        """Both texts, token by token side by side."""
        both: tuple[list[int], list[int]] = ([], [])
        writers = (self.pipeline.written(each, state.tokens) for each in (self.run, results["changed"].run))
        for number, pair in enumerate(zip_longest(*writers)):
            job(number / state.tokens, f"token {number}")
            for written, token in zip(both, pair, strict=True):
                written += [] if token is None else [token]
            job.show({"texts": Texts(tuple(both[0]), tuple(both[1]), False)})
        return Texts(tuple(both[0]), tuple(both[1]), True)
