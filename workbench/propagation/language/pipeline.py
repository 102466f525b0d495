"""A language model as a pipeline: each array between a text and the logits is a site, and so are the tokens it writes.

The sites of block 5 are `block 5 q`, `block 5 keys`, ..., and `block 5` for the residual stream after it. Blocks that are
not shown in detail are one stage each, with their keys, values and residual stream as sites. Tokens that the model
writes are computed step by step, `token 1`, `token 2 block 5 q`, ..., from the `stored` keys and values of those before: so
faults in the prompt, in the cache and in generation are told apart.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import flag, whole_number
from workbench.backend import Array, to_host
from workbench.errors import WorkbenchError
from workbench.propagation.language.arithmetic import (
    attention_weights,
    columns_of,
    gated,
    heads_of,
    mixed,
    rotated,
    scores,
)
from workbench.propagation.language.by_token import AllTokens, ByToken, LastToken
from workbench.propagation.language.cache import ExactCache
from workbench.propagation.language.gguf_file import MATRICES
from workbench.propagation.language.model import LanguageModel
from workbench.propagation.language.quality import same_tokens
from workbench.propagation.names import require_known
from workbench.propagation.pipeline import Pipeline, Run
from workbench.propagation.protection import Range
from workbench.propagation.stage import Detected, Stage
from workbench.propagation.tolerance import Tolerance

PARTS = (
    "attention norm", "q", "k", "queries", "keys", "values", "scores", "probabilities", "context", "attention",
    "middle", "feed-forward norm", "gate", "up", "hidden", "down",
)   # the sites of a block in detail, in order; the block itself is the residual stream after it
_LINEAR = {*MATRICES, "queries", "keys", "values", "middle"} - {"v"}
_MIXING = {"queries", "keys", "scores", "probabilities", "context"}   # with the positions of tokens, or with each other
_OF_HEADS = {"queries", "keys", "values", "scores", "probabilities", "stored keys", "stored values"}   # tokens are axis 1


class LanguagePipeline(Pipeline):
    """The pipeline of a model, whose input is a text or the numbers of its tokens; see `LanguageModel.pipeline`."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        new_tokens: int = 0,
        layers: Collection[int] | None = None,
        weights: Collection[str] = (),
        last: bool = False,
        tolerance: Tolerance | None = None,
    ) -> None:
        self.model, self.new_tokens, self.last = model, whole_number("new_tokens", new_tokens, 0), flag("last", last)
        self.layers = tuple(range(model.layers)) if layers is None else tuple(
            whole_number("a layer", layer, 0, model.layers - 1) for layer in layers
        )
        self.weights = tuple(require_known("weight", name, model.weights) for name in weights)
        stages = [Stage(f"{name} weight", partial(_weight, model, name), ("tokens",)) for name in self.weights]
        for step in range(max(self.new_tokens, 1)):
            stages += self._step(step)
        outputs = ["logits"]
        if self.new_tokens:
            tokens = [f"token {number + 1}" for number in range(self.new_tokens)]
            stages += [Stage(tokens[-1], _chosen, (self._name(self.new_tokens - 1, "logits"),), categorical=True)]
            stages += [Stage("answer", _joined, tuple(tokens), categorical=True)]
            outputs.append("answer")
        super().__init__(
            stages, inputs="tokens", outputs=outputs, tolerance=tolerance or same_tokens(), name=model.name
        )

    def described(self, run: Run) -> dict[str, Any]:
        """What makes the pipeline and its input again, in JSON types; None for checks that are no ranges."""
        ranges = {site: _range(checks) for site, checks in self.checks.items()}
        return {
            "model": self.model.digest, "layers": list(self.layers), "weights": list(self.weights),
            "new_tokens": self.new_tokens, "last": self.last, "tokens": to_host(run["tokens"]).tolist(), "ranges": ranges,
        }

    def token_axis(self, site: str) -> int | None:
        """The axis of a site along which the tokens of the text lie; None where there is none."""
        require_known("site", site, self.sites)
        if site in ("answer", "tokens") or site.startswith("token ") or site.endswith(" weight"):
            return 0 if site == "tokens" else None
        if site == "logits":
            return None if self.last else 0
        return 1 if site.startswith("block ") and site.split(" ", 2)[-1] in _OF_HEADS else 0

    def index(self, site: str, run: Run, token: int, channel: int) -> tuple[int, ...]:
        """Where the number of one token and channel is at a site; heads are counted through."""
        axis, shape = self.token_axis(site), run[site].shape
        if axis is None:
            raise WorkbenchError(f"{site!r} holds no number for each token")
        own = shape[:axis] + shape[axis + 1 :]
        whole_number("token", token, 0, shape[axis] - 1)
        place = np.unravel_index(whole_number("channel", channel, 0, math.prod(own) - 1), own)
        return (*map(int, place[:axis]), token, *map(int, place[axis:]))

    def written(self, run: Run, tokens: int = 64) -> Iterator[int]:
        """The tokens that the model writes after a run of the prompt, with its errors: from its keys, values and logits.

        A fault in the prompt lives on in the keys and values that later tokens read. Writing ends at the end of the text,
        and where a logit is not finite.
        """
        model, cache = self.model, ExactCache()
        for layer in range(model.layers):
            cache.append(layer, *(run[f"block {layer} {kind}"] for kind in ("keys", "values")))
        logits = run["logits"]
        with np.errstate(all="ignore"):   # faults overflow
            for _ in range(whole_number("tokens", tokens, 1)):
                if not bool(backend.namespace(logits).isfinite(logits[-1]).all()):
                    return
                token = model.chosen(logits)
                yield token
                if token == model.end or cache.length(0) == model.shape.context:
                    return
                logits = model.forward([token], cache, last=True)

    def given(self, x: Any) -> dict[str, Any]:
        """The tokens of a text, or tokens."""
        given = x["tokens"] if isinstance(x, Mapping) and set(x) == {"tokens"} else x
        tokens = self.model.tokens(given)
        self.model.require_room(len(tokens) + self.new_tokens)
        return super().given(tokens)

    @staticmethod
    def _name(step: int, site: str) -> str:
        return f"token {step} {site}" if step else site

    def _step(self, step: int) -> list[Stage]:
        """The stages of the prompt (step 0), or of one new token."""
        model, named = self.model, partial(self._name, step)
        read = (f"token {step}",) if step else ("tokens",)
        before = (self._name(step - 1, "logits"),)
        stages = [Stage(read[0], _chosen, before, categorical=True)] if step else []
        stages.append(self._weighted(Stage(named("embedding"), model.embedded, read), "embedding"))
        x = named("embedding")
        for layer in range(model.layers):
            stages += self._block(step, layer, x)
            x = named(f"block {layer}")
        head = self._head(named("logits"), x, last=self.last or step > 0)
        return [*stages, self._weighted(self._weighted(head, "output norm"), self._output)]

    def _head(self, name: str, x: str, last: bool) -> Stage:
        """The logits after every token, or after the last one."""
        model = self.model
        if not last:
            return Stage(name, model.logits, (x,), together=ByToken(model.logits, "logits", model.same_bits))
        own = LastToken(model.logits, "logits", model.same_bits)
        return Stage(name, own.alone, (x,), together=own)

    @property
    def _output(self) -> str:
        """The weight of the logits; where it is that of the embedding, one fault is in both."""
        return "embedding" if self.model.tied else "output"

    def _weighted(self, stage: Stage, name: str) -> Stage:
        """The stage, which reads this weight if it is a site."""
        if name not in self.weights:
            return stage
        place = "output" if name == self._output and "logits" in stage.name else name
        words = {"embedding": "embedding", "output": "output", "output norm": "norm"}
        function = _WithWeight(stage.function, len(stage.inputs or ()), words.get(place, "weight"))
        return Stage(stage.name, function, (*(stage.inputs or ()), f"{name} weight"), stage.outputs)

    def _block(self, step: int, layer: int, x: str) -> list[Stage]:
        """The stages of a block: all of them in detail, or one."""
        block, name = _Block(self.model, layer, step), f"block {layer}"
        past = [
            [self._name(earlier, f"{name} {'stored ' if earlier == 0 else ''}{kind}") for earlier in range(step)]
            for kind in ("keys", "values")
        ]
        prefix = self._name(step, name)
        own = [f"{prefix} keys", f"{prefix} values"]
        if layer in self.layers or any(each.startswith(f"{name} ") for each in self.weights):
            stages = self._in_detail(block, prefix, x, past)
        else:
            whole = partial(block.whole, step)
            stages = [Stage(prefix, whole, (x, "tokens", *past[0], *past[1]), (*own, prefix))]
        if step == 0 and self.new_tokens > 1:
            for kind in ("keys", "values"):
                stages.append(Stage(f"{name} stored {kind}", _same, (f"{name} {kind}",), linear=True))
        return stages

    def _in_detail(self, block: _Block, prefix: str, x: str, past: Sequence[Sequence[str]]) -> list[Stage]:
        reads = {
            "attention norm": (x,), "q": ("attention norm",), "k": ("attention norm",), "queries": ("q", "tokens"),
            "keys": ("k", "tokens"), "values": ("attention norm",), "scores": ("queries", *past[0], "keys"),
            "probabilities": ("scores",), "context": ("probabilities", *past[1], "values"), "attention": ("context",),
            "middle": (x, "attention"), "feed-forward norm": ("middle",), "gate": ("feed-forward norm",),
            "up": ("feed-forward norm",), "hidden": ("gate", "up"), "down": ("hidden",), "": ("middle", "down"),
        }
        stages = []
        for part, read in reads.items():
            inputs = tuple(f"{prefix} {each}" if each in PARTS else each for each in read)
            weight = f"block {block.layer} {'v' if part == 'values' else part}"
            linear = (part in _LINEAR or not part) and weight not in self.weights
            stage = Stage(
                f"{prefix} {part}".strip(), block.function(part), inputs, linear=linear, together=block.together(part)
            )
            stages.append(self._weighted(stage, weight))
        return stages


@dataclass(frozen=True, eq=False)
class _Block:
    """The functions of the stages of a block, in the prompt (step 0) or in a later step."""

    model: LanguageModel
    layer: int
    step: int

    def function(self, part: str) -> Any:
        """The function of a site."""
        if part in MATRICES:
            return partial(self.model.product, self.layer, part)
        if part.endswith(" norm"):
            return partial(self.model.normed, self.layer, part.removesuffix(" norm"))
        own = {
            "queries": self.queries, "keys": self.keys, "values": self.values, "scores": self.scores,
            "probabilities": attention_weights, "context": self.context, "middle": _sum, "hidden": gated, "": _sum,
        }
        return own[part]

    def together(self, part: str) -> ByToken | AllTokens:
        """The function of a site for several runs."""
        axis = 1 if part in _OF_HEADS else 0
        if part in _MIXING:
            return AllTokens(self.function(part), axis)
        return ByToken(self.function(part), part, self.model.same_bits, axis)

    def _turns(self, tokens: Array, count: int) -> Array:
        return self.model.turns(len(tokens) + self.step - 1 if self.step else 0, count)

    def queries(self, q: Array, tokens: Array) -> Array:
        return rotated(heads_of(q, self.model.shape.heads), self._turns(tokens, len(q)))

    def keys(self, k: Array, tokens: Array) -> Array:
        return rotated(heads_of(k, self.model.shape.key_value_heads), self._turns(tokens, len(k)))

    def values(self, normed: Array, weight: Array | None = None) -> Array:
        return heads_of(self.model.product(self.layer, "v", normed, weight), self.model.shape.key_value_heads)

    def scores(self, queries: Array, *keys: Array) -> Array:
        return scores(queries, _concatenated(keys))

    def context(self, probabilities: Array, *values: Array) -> Array:
        return columns_of(mixed(probabilities, _concatenated(values)))

    def whole(self, step: int, x: Array, tokens: Array, *past: Array) -> tuple[Array, Array, Array]:
        """The keys, the values and the residual stream, as the stages in detail compute them."""
        model, layer = self.model, self.layer
        normed = model.normed(layer, "attention", x)
        queries = self.queries(model.product(layer, "q", normed), tokens)
        keys, values = self.keys(model.product(layer, "k", normed), tokens), self.values(normed)
        probabilities = attention_weights(self.scores(queries, *past[:step], keys))
        return keys, values, model.after_attention(layer, x, self.context(probabilities, *past[step:], values))


@dataclass(frozen=True)
class _WithWeight:
    """A function whose last input is one of its weights."""

    function: Any
    inputs: int
    word: str

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.function(*given[: self.inputs], **{self.word: given[self.inputs]}, **named)


def _range(checks: Sequence[Any]) -> list[float] | None:
    guard = getattr(checks[0], "guard", None) if len(checks) == 1 else None
    return [guard.low, guard.high] if isinstance(guard, Range) else None


def _weight(model: LanguageModel, name: str, tokens: Array) -> Array:
    return model.weights[name]


def _same(values: Array) -> Array:
    return values


def _sum(one: Array, other: Array) -> Array:
    return one + other


def _concatenated(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else backend.namespace(*parts).concatenate(parts, axis=1)


def _joined(*tokens: Array) -> Array:
    return backend.namespace(*tokens).concatenate(tokens)


def _chosen(logits: Array) -> Array:
    """The most likely token after the last row, as an array of one number; the model stops where a logit is not finite."""
    xp = backend.namespace(logits)
    if not bool(xp.isfinite(logits[-1]).all()):
        raise Detected("a token is chosen from finite logits; some are not")
    return xp.argmax(logits[-1:], axis=-1).astype(np.int64)
