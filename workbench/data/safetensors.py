"""Tensors in files of the format safetensors: a header of JSON that says where the bytes of each one are.

The format is small enough to be read and written here, without a further package. The file is mapped into memory, and what
the header states is checked before a tensor is made of it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.variable import Form
from workbench.errors import WorkbenchError, briefly

MOST_HEADER = 10**8   # bytes
MOST_AXES = 32
METADATA = "__metadata__"
_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64",
    "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}
_NAMES = {kind: name for name, kind in _TYPES.items()}


def read_safetensors(path: str | Path) -> dict[str, np.ndarray]:
    """The tensors in a file, by name; they stay in it until they are used.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_safetensors(f"{folder}/small.safetensors", {"w": np.eye(2, dtype=np.float32)})
    ...     read_safetensors(path)["w"].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return tensors_and_metadata(path)[0]


def tensors_and_metadata(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The tensors, and what the file says beside them."""
    file = Path(path)
    if not file.is_file():
        raise WorkbenchError(f"there is no file {file}: give the path of a safetensors file")
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= min(MOST_HEADER, size - 8):
            raise WorkbenchError(
                f"{file} is no safetensors file, or cut short: its header would have {length:,} of {size:,} bytes: check "
                "the path, or copy the file again"
            )
        header = _header(file, stream.read(length))
    start, stated = 8 + length, header.pop(METADATA, None)
    data = np.memmap(file, np.uint8, "r", start) if size > start else np.zeros(0, np.uint8)
    found = {name: _tensor(file, name, described, data) for name, described in header.items()}
    used = 0
    for begin, end, name in sorted((*header[name]["data_offsets"], name) for name in found):
        if begin != used:
            between = "overlap" if begin < used else "leave bytes out"
            raise WorkbenchError(f"{file}: tensors must follow each other, but {name!r} and the one before {between}")
        used = end
    if used != len(data):
        raise WorkbenchError(f"{file} must hold {used:,} bytes of tensors; got {len(data):,}: get the file again")
    return found, {key: str(value) for key, value in stated.items()} if isinstance(stated, dict) else {}


def write_safetensors(path: str | Path, tensors: Mapping[str, Any]) -> Path:
    """Write tensors as a file, completely or not at all; returns its path."""
    target, at, header = Path(path).expanduser(), 0, {}
    arrays = {name: np.asarray(tensor) for name, tensor in tensors.items()}
    for name, array in arrays.items():
        if not isinstance(name, str) or name == METADATA or array.dtype.name not in _NAMES:
            kinds = ", ".join(_NAMES)
            raise WorkbenchError(f"a safetensors file holds tensors of {kinds}; got {briefly(array)} as {name!r:.80}")
        header[name] = {
            "dtype": _NAMES[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)   # so that tensors are aligned
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with draft.open("xb") as stream:
            stream.write(len(text).to_bytes(8, "little") + text)
            for array in arrays.values():
                little = array.astype(array.dtype.newbyteorder("<"), copy=False) if array.dtype.byteorder == ">" else array
                stream.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)
        os.replace(draft, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise WorkbenchError(f"tensors must be written into a folder that exists; {briefly(str(error))}") from None
    return target


def _header(file: Path, text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:   # of Unicode, too
        raise WorkbenchError(f"{file} is no safetensors file: its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise WorkbenchError(f"{file} is no safetensors file: its header must be a mapping; got {briefly(header)}")
    return header


def _tensor(file: Path, name: str, stated: Any, data: np.ndarray) -> np.ndarray:
    """One tensor, of which the header states the type, the shape and the place."""
    match stated:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [int(begin), int(end)]}:
            pass
        case _:
            raise WorkbenchError(f"{file}: {name!r} needs a dtype, a shape and data_offsets; got {briefly(stated)}")
    if kind not in _TYPES:
        raise WorkbenchError(f"{file}: {name!r} must be of a type out of {', '.join(_TYPES)}; got {kind!r:.40}")
    dtype = Form(_TYPES[kind], ()).numpy
    whole = len(shape) <= MOST_AXES and all(type(length) is int and 0 <= length < 2**48 for length in shape)
    whole = whole and math.prod(length or 1 for length in shape) < 2**60   # of no values, too
    if not (whole and 0 <= begin <= end <= len(data) and end - begin == math.prod(shape) * dtype.itemsize):
        raise WorkbenchError(
            f"{file}: {name!r} of shape {briefly(shape)} cannot be the bytes {begin} to {end} of {len(data):,}: "
            "get the file again"
        )
    part = data[begin:end]
    aligned = part if (part.ctypes.data % dtype.itemsize == 0) else part.copy()
    return aligned.view(dtype).reshape(shape)
