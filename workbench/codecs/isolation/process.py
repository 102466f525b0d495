"""The program of the decoding process: it answers requests until the other side closes the connection or ends.

The program that starts it is in `decoders.py`.
"""

from __future__ import annotations

import importlib
import socket
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.codecs import registry
from workbench.codecs.codec import Codec, CodecFailed, ParticleCodec
from workbench.codecs.columns import Columns
from workbench.codecs.isolation.exchange import SharedFile, receive, send
from workbench.codecs.isolation.limits import Limits, write_no_files
from workbench.errors import WorkbenchError


def main(descriptor: int) -> None:
    """Answer requests on this socket. A request without a file uses the file of the previous one."""
    write_no_files()
    file: SharedFile | None = None
    with socket.socket(fileno=descriptor) as link:
        send(link, {"ready": True})
        while (received := receive(link)) is not None:
            request, file = received[0], received[1] or file
            assert file is not None   # the first request comes with one
            send(link, _answer(request, file, link))
            if not request["keep"]:
                file = None


def _answer(request: Mapping[str, Any], file: SharedFile, link: socket.socket) -> dict[str, Any]:
    limits = Limits(**request["limits"])
    try:
        codec = registry.from_dict(request["codec"])
        codec.require()
        _load_library(codec)
    except Exception as error:   # whatever the package of the codec raises
        return {"unknown": f"{type(error).__name__}: {error}"}
    send(link, {"begun": True})   # what came before is no part of the time for decoding
    try:
        with limits.kept():
            return {"found": WORK[request["work"]](codec, request, file)}
    except MemoryError:
        return {"failed": _too_large(codec, limits)}
    except CodecFailed as error:
        out_of_memory = isinstance(error.__cause__, MemoryError)
        return {"failed": _too_large(codec, limits) if out_of_memory else str(error)}
    except WorkbenchError as error:   # the inputs do not fit together; the encoded bytes may be fine
        return {"refused": str(error)}


def _load_library(codec: Codec) -> None:
    """Import the package that decodes, which can take seconds on a busy machine."""
    if codec.module is not None:
        importlib.import_module(codec.module)
    if isinstance(codec, Columns):
        _load_library(codec.codec)


def _too_large(codec: Codec, limits: Limits) -> str:
    return f"the decoder of {codec.id} asked for more than {limits.memory:,} bytes of memory"


def _decode(codec: Codec, request: Mapping[str, Any], file: SharedFile) -> bool:
    """Put the decoded array into its place."""
    shape, dtype = tuple(request["shape"]), np.dtype(request["dtype"])
    place = file.array(request["result"], shape, dtype)
    place[...] = codec.decode(file.read(*request["given"][0]), shape, dtype)
    return True


def _permutation(codec: Codec, request: Mapping[str, Any], file: SharedFile) -> bool:
    """Put the permutation into its place, if there is one."""
    if not isinstance(codec, ParticleCodec):
        raise CodecFailed(f"{codec.id} has no permutation: it is no codec for particles")
    positions = file.array(request["given"][1][0], tuple(request["shape"]), np.dtype(request["dtype"]))
    found = codec.permutation(positions, file.read(*request["given"][0]))
    if found is None:
        return False
    if found.shape != positions.shape[:1] or found.dtype.kind not in "iu":
        raise CodecFailed(f"{codec.id} must give a permutation of {len(positions):,} points; got something else")
    file.array(request["result"], found.shape, np.dtype(np.int64))[...] = found
    return True


WORK = {"decode": _decode, "permutation": _permutation}
