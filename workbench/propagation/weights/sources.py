"""The tensors of a model: from a mapping of arrays, a torch module, a language model, a GGUF or a safetensors file.

Two names for the same memory are tied weights: there is one tensor, and the other name is an alias of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.collection.names import require_name
from workbench.backend import read_only, to_host
from workbench.data.safetensors import read_safetensors
from workbench.data.variable import Form
from workbench.errors import WorkbenchError, briefly
from workbench.propagation.language.gguf_file import read_tensors
from workbench.propagation.language.model import LanguageModel


@dataclass(frozen=True, eq=False)
class Tensors:
    """The tensors of a model by name, without those that are another one; `tied` says which these are."""

    arrays: Mapping[str, np.ndarray]
    tied: Mapping[str, str]
    source: str          # what they were given as
    nbytes: int          # of the file they are from, or of all tensors

    @classmethod
    def of(cls, given: Any) -> Tensors:
        """The tensors of whatever `wb.compress_model` takes."""
        if isinstance(given, Tensors):
            return given
        if isinstance(given, str | Path):
            return _of_file(Path(given))
        if isinstance(given, LanguageModel):
            return _named(given.weights, given.name)
        if is_module(given):
            return _named({name: of_torch(each) for name, each in given.state_dict().items()}, type(given).__name__)
        if not isinstance(given, Mapping):
            raise WorkbenchError(
                "tensors must be a mapping of arrays, a torch module, a language model, or the path of a GGUF or "
                f"safetensors file; got {briefly(given)}"
            )
        return _named(given, "a mapping")

    def whole(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Other values of these tensors, with the aliases."""
        return {**arrays, **{alias: arrays[name] for alias, name in self.tied.items() if name in arrays}}


def is_module(given: Any) -> bool:
    """Whether this is a module of torch, which need not be imported for that."""
    return hasattr(given, "state_dict") and any(base.__module__.startswith("torch.") for base in type(given).__mro__)


def of_torch(tensor: Any) -> np.ndarray:
    """A tensor of torch as an array that shares its memory where it can."""
    plain = tensor.detach().cpu()
    if str(plain.dtype) == "torch.bfloat16":
        import torch

        return np.asarray(plain.view(torch.int16).numpy()).view(Form("bfloat16", ()).numpy)
    return np.asarray(plain.numpy())


def _of_file(path: Path) -> Tensors:
    if not path.is_file():
        raise WorkbenchError(f"there is no file {path}: give the path of a GGUF or safetensors file")
    with path.open("rb") as start:
        gguf = start.read(4) == b"GGUF"
    arrays = read_tensors(path) if gguf else read_safetensors(path)
    return _named(arrays, path.name, path.stat().st_size)


def _named(given: Mapping[str, Any], source: str, nbytes: int | None = None) -> Tensors:
    """The tensors, checked, each once; read-only, as a quality that changed them would spoil what it is compared with."""
    arrays: dict[str, np.ndarray] = {}
    tied: dict[str, str] = {}
    seen: dict[tuple[Any, ...], tuple[str, np.ndarray]] = {}   # the arrays, too: their memory is used by no other
    for name, tensor in given.items():
        array = _array(require_name(name), tensor)
        memory = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str
        if array.size and memory in seen:
            tied[name] = seen[memory][0]
            continue
        seen[memory] = name, array
        arrays[name] = read_only(array.astype(array.dtype.newbyteorder("="), copy=False))
    if not arrays:
        raise WorkbenchError(f"a model must have tensors; got none in {source}")
    return Tensors(arrays, tied, source, sum(each.nbytes for each in arrays.values()) if nbytes is None else nbytes)


def _array(name: str, tensor: Any) -> np.ndarray:
    array = np.asarray(of_torch(tensor) if hasattr(tensor, "detach") else to_host(tensor))
    try:
        form = Form.of(array)
    except WorkbenchError as error:
        raise WorkbenchError(f"{name!r}: {error}") from None
    if not (form.is_number or form.dtype == "bool"):
        raise WorkbenchError(f"a tensor must hold numbers; {name!r} is {briefly(tensor)}: leave it out")
    return array
