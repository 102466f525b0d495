"""How far the bytes of an archive are trusted: which codecs may decode them, where, and how much memory they may ask for.

An archive from elsewhere chooses the library that decodes it and the size that it decodes to. The caller can limit both.
`docs/compression.md` describes which risks are contained by default and which are not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.archive.store import Store
from workbench.arguments import number, whole_number
from workbench.codecs import Codec, Columns
from workbench.codecs.isolation import isolated
from workbench.codecs.registry import built_in
from workbench.errors import WorkbenchError


@dataclass(frozen=True)
class Trust:
    """Limits on the work that an archive may cause its reader.

    `codecs` names the codecs that may decode, besides the built-in ones (None: any). `most_bytes` limits the decoded size
    of one call (None: no limit). `isolate` decodes in another process where a codec could harm this one; there, `patience`
    is the seconds by the clock for each second of processor time that decoding may take (None: 3), for busy machines.

    >>> Trust(codecs=["sz3"], most_bytes=10**9)
    Trust(codecs=('sz3',), most_bytes=1000000000, isolate=True, patience=None)
    """

    codecs: Collection[str] | None = None
    most_bytes: int | None = None
    isolate: bool = True
    patience: float | None = None

    def __post_init__(self) -> None:
        if self.codecs is not None:
            given = [self.codecs] if isinstance(self.codecs, str) else list(self.codecs)
            if strangers := [name for name in given if not isinstance(name, str)]:
                raise WorkbenchError(f"codecs must be names of codecs, such as 'sz3'; got {strangers[0]!r}")
            object.__setattr__(self, "codecs", tuple(given))
        if self.most_bytes is not None:
            whole_number("most_bytes", self.most_bytes, least=1)
        if not isinstance(self.isolate, bool):
            raise WorkbenchError(f"isolate must be True or False; got {self.isolate!r}")
        if self.patience is not None:
            object.__setattr__(self, "patience", number("patience", self.patience, low=0.1, high=1e5))

    def require_codec(self, described: Any, where: str) -> None:
        """Refuse a codec that is not allowed, before its library is imported."""
        if self.codecs is None or not isinstance(described, Mapping):
            return
        name = described.get("id")
        if name == Columns.id:
            self.require_codec(described.get("codec"), where)
        elif name not in (*built_in(), *self.codecs):
            allowed = ", ".join(map(repr, self.codecs)) or "built-in ones only"
            raise WorkbenchError(
                f"{where} needs the codec {name!r:.80}, and codecs= allows {allowed}: add it there if its library may "
                "decode this archive"
            )

    def require_room(self, nbytes: int, what: str) -> None:
        """Refuse to decode more than `most_bytes`, before memory is allocated."""
        if self.most_bytes is not None and nbytes > self.most_bytes:
            raise WorkbenchError(
                f"{what} takes {nbytes:,} bytes once decoded, and most_bytes= allows {self.most_bytes:,}: read a part, or "
                "allow more"
            )

    def decoder(self, codec: Codec, store: Store) -> Codec:
        """The codec that decodes the chunks of a store. Archives in memory were made and decoded here: no isolation."""
        return isolated(codec, self.patience) if self.isolate and not store.in_memory else codec


DEFAULT = Trust()
