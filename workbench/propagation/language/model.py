"""`wb.propagation.language_model`: a small language model, each array of which can be looked at and changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import backend
from workbench.arguments import flag, whole_number
from workbench.backend import Array, to_host
from workbench.errors import WorkbenchError, briefly
from workbench.propagation.freed_memory import keep_freed_memory
from workbench.propagation.language.arithmetic import angles, columns_of, gated, heads_of, rms_norm, rotated
from workbench.propagation.language.by_token import Known
from workbench.propagation.language.cache import Cache, ExactCache
from workbench.propagation.language.gguf_file import ModelFile, read_model
from workbench.propagation.language.tokens import Tokens

if TYPE_CHECKING:
    from workbench.propagation.language.pipeline import LanguagePipeline

Text = str | Sequence[int] | np.ndarray   # or the numbers of its tokens


@dataclass(frozen=True, eq=False, repr=False)
class Generation:
    """Text that a model has written: the tokens of the prompt and the new ones, and the logits from which these were."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    text: str
    logits: Array
    cache: Any

    def __repr__(self) -> str:
        return f"Generation({len(self.tokens)} tokens after {len(self.prompt)}: {self.text!r})"


class LanguageModel:
    """A model of the llama family, on a CPU or a GPU. Texts are text, or the numbers of tokens."""

    def __init__(self, file: ModelFile, gpu: bool = False) -> None:
        self.path, self.name, self.shape, self.gpu = file.path, file.name, file.shape, flag("gpu", gpu)
        xp = backend.gpu() if gpu else np
        keep_freed_memory()
        self.weights: Mapping[str, Array] = {
            name: backend.read_only(xp.asarray(values)) for name, values in file.weights.items() if name != "output"
        }
        self.tied = file.weights["output"] is file.weights["embedding"]
        own = self.weights["embedding"] if self.tied else backend.read_only(xp.asarray(file.weights["output"]))
        self.weights = {**self.weights, "output": own}
        self._frequencies, self._stated = file.frequencies, file.tokens
        self.same_bits: Known = {}   # which products of some rows are those of more, bit for bit
        self.end = int(file.tokens["eos_token_id"]) if "eos_token_id" in file.tokens else None

    @property
    def layers(self) -> int:
        """The number of blocks."""
        return self.shape.layers

    @cached_property
    def vocabulary(self) -> Tokens:
        """Text as tokens, and back."""
        return Tokens(self._stated)

    def tokens(self, text: Text) -> np.ndarray:
        """The numbers of the tokens of a text, or these numbers, checked."""
        if isinstance(text, str):
            if not text:
                raise WorkbenchError("a text must have at least one letter; got an empty one")
            return np.array(self.vocabulary.of(text), np.int64)
        found = np.asarray(text)
        if found.dtype.kind not in "iu" or found.ndim != 1 or not found.size:
            raise WorkbenchError(f"a text must be text, or a row of whole numbers of tokens; got {briefly(text)}")
        if not (found.min() >= 0 and found.max() < self.shape.vocabulary):
            raise WorkbenchError(f"numbers of tokens must be from 0 to {self.shape.vocabulary - 1}; got {briefly(text)}")
        return found.astype(np.int64)

    def text(self, tokens: Sequence[int]) -> str:
        """The text of these tokens."""
        return self.vocabulary.text(tokens)

    def question(self, text: str) -> str:
        """A prompt that asks this of a model that was trained for dialogues in ChatML, as SmolLM2 was."""
        if "<|im_start|>" not in self.vocabulary:
            raise WorkbenchError(
                f"a question needs a model that knows <|im_start|> of ChatML; {self.name!r} does not: write its prompt"
            )
        return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"

    def forward(self, text: Text, cache: Cache | None = None, last: bool = False) -> Array:
        """The logits after every token, or after the `last` only; a cache has what was before, and takes what is new."""
        held = ExactCache() if cache is None else cache
        tokens = self.tokens(text)
        self.require_room(held.length(0) + len(tokens))
        x, turns = self.embedded(tokens), self.turns(held.length(0), len(tokens))
        for layer in range(self.layers):
            x = self._block(layer, x, turns, held)
        return self.logits(x, last=last)

    def generate(
        self, text: Text, tokens: int = 64, *, cache: Cache | None = None, ends: bool = True
    ) -> Generation:
        """Continue a text by the most likely tokens, so many or, if it `ends` there, up to the model's end of text."""
        held = ExactCache() if cache is None else cache
        prompt, count = self.tokens(text), whole_number("tokens", tokens, 1)
        self.require_room(held.length(0) + len(prompt) + count)
        logits = [self.forward(prompt, held, last=True)]
        found = [self.chosen(logits[-1])]
        while len(found) < count and not (ends and found[-1] == self.end):
            logits.append(self.forward(found[-1:], held, last=True))
            found.append(self.chosen(logits[-1]))
        xp = backend.namespace(logits[0])
        return Generation(tuple(prompt.tolist()), tuple(found), self.text(found), xp.concatenate(logits), held)

    def chosen(self, logits: Array) -> int:
        """The most likely token after the last row of logits."""
        row = to_host(logits[-1])
        if not np.isfinite(row).all():
            raise WorkbenchError("a token is chosen from finite logits; got NaN or infinity: check cache and weights")
        return int(row.argmax())

    def require_room(self, tokens: int) -> None:
        """Refuse a text that is longer than what the model was made for."""
        if tokens > self.shape.context:
            raise WorkbenchError(
                f"a text and what follows must have at most {self.shape.context:,} tokens; got {tokens:,}: shorten it"
            )

    # What the stages of a pipeline call, too. A weight that is given takes the place of the model's own.

    def embedded(self, tokens: Array, embedding: Array | None = None) -> Array:
        """The row of the embedding of each token."""
        table = self.weights["embedding"] if embedding is None else embedding
        if not (int(tokens.min()) >= 0 and int(tokens.max()) < len(table)):
            raise WorkbenchError(f"numbers of tokens must be from 0 to {len(table) - 1}; got others")
        return table[backend.namespace(table).asarray(tokens)]

    def turns(self, first: int, count: int) -> Array:
        """The rotation at so many positions, of those that the model was made for."""
        self.require_room(first + count)
        return backend.namespace(self._turns).ascontiguousarray(self._turns[:, first : first + count])

    @cached_property
    def _turns(self) -> Array:
        """The rotation at all positions."""
        shape = self.shape
        found = angles(np.arange(shape.context), shape.head_width, shape.rotation_base, self._frequencies)
        return backend.namespace(self.weights["output norm"]).asarray(found)

    def logits(self, x: Array, norm: Array | None = None, output: Array | None = None, *, last: bool = False) -> Array:
        """The logits of rows of the residual stream, or of the last one."""
        weight = self.weights["output norm"] if norm is None else norm
        normed = rms_norm(x[-1:] if last else x, weight, self.shape.epsilon)
        return _product(normed, self.weights["output"] if output is None else output)

    def normed(self, layer: int, part: str, x: Array, weight: Array | None = None) -> Array:
        """The residual stream before the attention, or before the feed-forward part."""
        own = self.weights[f"block {layer} {part} norm"] if weight is None else weight
        return rms_norm(x, own, self.shape.epsilon)

    def product(self, layer: int, part: str, x: Array, weight: Array | None = None) -> Array:
        """Rows times one of the matrices of a block."""
        return _product(x, self.weights[f"block {layer} {part}"] if weight is None else weight)

    def after_attention(self, layer: int, x: Array, context: Array) -> Array:
        """The residual stream after a block, of that before and of what its queries have seen."""
        x = x + self.product(layer, "attention", context)
        normed = self.normed(layer, "feed-forward", x)
        hidden = gated(self.product(layer, "gate", normed), self.product(layer, "up", normed))
        return x + self.product(layer, "down", hidden)

    def _block(self, layer: int, x: Array, turns: Array, cache: Cache) -> Array:
        shape = self.shape
        normed = self.normed(layer, "attention", x)
        queries = rotated(heads_of(self.product(layer, "q", normed), shape.heads), turns)
        keys = rotated(heads_of(self.product(layer, "k", normed), shape.key_value_heads), turns)
        cache.append(layer, keys, heads_of(self.product(layer, "v", normed), shape.key_value_heads))
        return self.after_attention(layer, x, columns_of(cache.attend(layer, queries)))

    def pipeline(self, **options: Any) -> LanguagePipeline:
        """The model as a pipeline: `lm.pipeline().run("a text")`.

        With `new_tokens`, the model also writes so many tokens. `layers` are those whose parts are sites, by default all;
        `weights` are the names of weights that are sites, such as "block 5 down". With `last`, only the logits after the
        last token are computed. `tolerance` says which results are equally good, by default those with the same tokens.
        """
        from workbench.propagation.language.pipeline import LanguagePipeline

        return LanguagePipeline(self, **options)

    @cached_property
    def digest(self) -> str:
        """What identifies the file of the model: the beginning of the SHA-256 of its bytes."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self.path, self.gpu)   # a worker reads the file itself

    def __repr__(self) -> str:
        shape = self.shape
        count = sum(values.size for name, values in self.weights.items() if name != "output" or not self.tied)
        return f"LanguageModel({self.name!r}: {shape.layers} blocks of width {shape.width}, {count / 1e6:.1f} M weights)"


def _product(x: Array, weight: Array) -> Array:
    """Rows times a matrix, which is column by column in memory, so that the bits do not depend on where it comes from."""
    return x @ backend.namespace(weight).asfortranarray(weight).T


def language_model(path: str | Path | None = None, *, gpu: bool = False) -> LanguageModel:
    """The language model in a GGUF file; without a path SmolLM2-135M-Instruct, if its package is installed.

    It runs in NumPy or, on a `gpu`, in CuPy.

    >>> import workbench as wb
    >>> try:
    ...     wb.propagation.language_model("notes.txt")
    ... except wb.WorkbenchError as error:
    ...     print(error)
    there is no file notes.txt: give the path of a GGUF file
    """
    return LanguageModel(read_model(path), gpu)


@lru_cache(maxsize=1)
def _loaded(path: Path, gpu: bool) -> LanguageModel:
    return language_model(path, gpu=gpu)
