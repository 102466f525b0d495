"""Promises beyond an error bound: any safeguard of the library `compression-safeguards`.

That library finds the smallest changes of a decoded field that preserve signs, special values, derivatives or a quantity
given by a formula, or keep them within a bound. It is used only for compression: its changes are stored like any other
correction, so that reading an archive needs neither the library nor the version that wrote it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from workbench.errors import WorkbenchError
from workbench.guarantees.bounds import Limit
from workbench.guarantees.guarantee import Promised


@dataclass(frozen=True, init=False)
class Safeguard(Promised):
    """One safeguard of `compression-safeguards`, by its kind, with its options; for fields, as `keep=[...]`.

    >>> Safeguard("sign")
    Safeguard(kind='sign')
    >>> Safeguard("qoi_eb_pw", qoi="log10(x)", type="abs", eb=0.01).to_dict()
    {'kind': 'qoi_eb_pw', 'qoi': 'log10(x)', 'type': 'abs', 'eb': 0.01}
    """

    content: ClassVar[str] = "field"

    kind: str
    options: Mapping[str, Any] = field(hash=False)

    def __init__(self, /, kind: str, **options: Any) -> None:
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "options", _plain(kind, options))
        late = sorted(map(str, self._library.late_bound - self._library.builtin_late_bound))
        if late:
            raise WorkbenchError(
                f"the options of safeguard {kind!r} must be values; got the names {', '.join(late)}, "
                "which stand for arrays that are supplied later: that is not supported"
            )

    def to_dict(self) -> dict[str, Any]:
        """Kind and options, ready for JSON."""
        return {"kind": self.kind, **self.options}

    @property
    def needs_neighbours(self) -> bool:
        """Whether it looks at more than one value at a time: such a field must be compressed as one chunk.

        >>> Safeguard("sign").needs_neighbours, Safeguard("everywhere", safeguard={"kind": "sign"}).needs_neighbours
        (False, True)
        """
        from compression_safeguards.safeguards.stencil.abc import StencilSafeguard

        return any(isinstance(found, StencilSafeguard) for found in self._library.safeguards)

    def __repr__(self) -> str:
        return f"Safeguard({', '.join(f'{key}={value!r}' for key, value in self.to_dict().items())})"

    @property
    def _library(self) -> Any:
        return _library(json.dumps([self.to_dict()]))


def safeguarded(safeguards: Sequence[Safeguard], original: np.ndarray, decoded: np.ndarray, limit: Limit) -> np.ndarray:
    """The decoded values, changed where a safeguard requires it, and still within the limit according to the library."""
    bound = {"kind": "eb", "type": "rel" if limit.relative else "abs", "eb": limit.value}
    library = _library(json.dumps([bound, *(safeguard.to_dict() for safeguard in safeguards)]))
    with np.errstate(all="ignore"):
        try:
            return library.apply_correction(decoded, library.compute_correction(original, decoded))
        except Exception as error:
            raise _cannot(safeguards, original, error) from error


def safeguards_hold(safeguards: Sequence[Safeguard], original: np.ndarray, decoded: np.ndarray) -> bool:
    """Whether all safeguards hold, according to their library."""
    if not safeguards:
        return True
    library = _library(json.dumps([safeguard.to_dict() for safeguard in safeguards]))
    with np.errstate(all="ignore"):
        try:
            return bool(library.check(original, decoded))
        except Exception as error:
            raise _cannot(safeguards, original, error) from error


def _cannot(safeguards: Sequence[Safeguard], values: np.ndarray, error: Exception) -> WorkbenchError:
    names = ", ".join(map(repr, safeguards))
    return WorkbenchError(f"{names} cannot be applied to {values.dtype} values of shape {values.shape}: {error}")


def _plain(kind: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options as JSON returns them, so that the description in an archive gives the same safeguard."""
    if not isinstance(kind, str):
        raise WorkbenchError(f"the kind of a safeguard must be a name such as 'sign'; got {kind!r}")
    try:
        return json.loads(json.dumps(options, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise WorkbenchError(f"the options of safeguard {kind!r} must be JSON values: {error}") from None


@functools.cache
def _library(described: str) -> Any:
    """The library's own object for several safeguards."""
    try:
        from compression_safeguards import Safeguards
    except ImportError:
        raise WorkbenchError(
            "safeguards need compression-safeguards, which is not installed: pip install 'lossbench[safeguards]'"
        ) from None
    try:
        return Safeguards(safeguards=json.loads(described))
    except Exception as error:
        kinds = ", ".join(found["kind"] for found in json.loads(described))
        raise WorkbenchError(f"safeguard {kinds} cannot be made: {error}") from error
