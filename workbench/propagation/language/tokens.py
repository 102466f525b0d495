"""Text as the numbers of tokens, and back, with the vocabulary that a GGUF file carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import WorkbenchError
from workbench.propagation.language.gguf_file import needed

SPLITTERS = ("smollm", "gpt-2", "default")   # how text is cut before pairs are merged, as files name it
CONTROL = 3   # the type of tokens that are no text, such as the end of a turn


class Tokens:
    """The tokens of a model: byte pairs, merged by rank."""

    def __init__(self, stated: Mapping[str, Any]) -> None:
        library = needed("tokenizers")
        kind, splitter = stated.get("model"), stated.get("pre", "default")
        if kind != "gpt2" or splitter not in SPLITTERS:
            raise WorkbenchError(
                f"text needs tokens of the kind gpt2, cut as {', '.join(SPLITTERS)}; the file has {kind!r}, cut as "
                f"{splitter!r}: give the numbers of tokens instead of text"
            )
        names = stated["tokens"]
        pairs = [tuple(merge.split(" ")) for merge in stated["merges"]]
        self._library = library.Tokenizer(library.models.BPE({name: number for number, name in enumerate(names)}, pairs))
        parts = [library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
        if splitter == "smollm":
            parts.insert(0, library.pre_tokenizers.Digits(individual_digits=True))
        self._library.pre_tokenizer = library.pre_tokenizers.Sequence(parts)
        self._library.decoder = library.decoders.ByteLevel()
        special = [name for name, kind in zip(names, stated["token_type"], strict=True) if kind == CONTROL]
        self._library.add_special_tokens(special)

    def __contains__(self, name: str) -> bool:
        return self._library.token_to_id(name) is not None

    def of(self, text: str) -> list[int]:
        """The numbers of the tokens of a text."""
        return list(self._library.encode(text, add_special_tokens=False).ids)

    def text(self, tokens: Sequence[int]) -> str:
        """The text of these tokens, with those that are no text by their names."""
        return str(self._library.decode([int(each) for each in tokens], skip_special_tokens=False))
