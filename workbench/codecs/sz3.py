"""SZ3: predicts each value from its neighbours, and stores the prediction error quantised by the tolerance.

The strongest of the general codecs at moderate tolerances. It kept its bound, NaN and infinities in every case tried, but
values that are not finite spoil its predictions: the archive fills them in before, and corrects them after. It holds
Python's lock, so that processes help and threads do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs.codec import Tolerance, option
from workbench.codecs.pieces import InPieces

_ALGORITHMS = {"interp_lorenzo": "INTERP_LORENZO", "interp": "INTERP", "lorenzo_reg": "LORENZO_REG", "nopred": "NOPRED"}


@dataclass(frozen=True)
class SZ3(InPieces):
    """SZ3 with an absolute bound.

    >>> values = np.sin(np.arange(1000.0))
    >>> codec = SZ3(algorithm="lorenzo_reg")
    >>> decoded = codec.decode(codec.encode(values, Tolerance(absolute=0.01)), values.shape, values.dtype)
    >>> bool(abs(decoded - values).max() <= 0.01)
    True
    """

    id: ClassVar[str] = "sz3"
    title: ClassVar[str] = "SZ3: prediction and quantisation"
    look: ClassVar[Look | None] = Look("#8a6fd1", "circle")
    for_fields: ClassVar[bool] = True
    module: ClassVar[str | None] = "pysz"
    needs_extra: ClassVar[str | None] = "codecs"
    holds_gil: ClassVar[bool] = True
    most_values: ClassVar[int] = 2**26   # it needs several times the memory of its input

    algorithm: str = option("interp_lorenzo", "how values are predicted", choices=tuple(_ALGORITHMS))

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        from pysz import sz, szAlgorithm, szConfig, szErrorBoundMode

        config = szConfig()
        config.errorBoundMode = szErrorBoundMode.ABS
        config.absErrorBound = tolerance.absolute_for(values)
        config.cmprAlgo = getattr(szAlgorithm, _ALGORITHMS[self.algorithm])
        return sz.compress(values, config)[0].tobytes()

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        from pysz import sz

        return sz.decompress(np.frombuffer(data, np.uint8), dtype, shape)[0]
