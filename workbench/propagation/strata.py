"""What a campaign tries: one stratum for each site and each field of bits, or each bit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from workbench.errors import WorkbenchError
from workbench.propagation.bits import BitFlip, Bits, StuckAt
from workbench.propagation.names import require_known
from workbench.propagation.number_format import NumberFormat
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.pipeline import Pipeline, Run

FIELDS = ("sign", "exponent", "mantissa", "magnitude")


def strata(
    pipeline: Pipeline,
    x: Any,
    bits: str | int | Sequence[str | int] = "fields",
    sites: Iterable[str] | None = None,
    kind: Literal["flip", "stuck at 0", "stuck at 1"] = "flip",
    format: str | None = None,
) -> list[Bits]:
    """Perturbations for every site (by default all but the outputs) and every field of bits that its numbers have.

    `bits` is "fields" (sign, exponent, mantissa), "each" (every bit alone), "any", or the names of fields and numbers of
    bits. A field that the numbers of a site lack is left out there.

    >>> import numpy as np
    >>> pipeline = Pipeline([("double", lambda x: 2 * x), ("sum", lambda x: x.sum())])
    >>> strata(pipeline, np.ones(3), bits=["sign", 62])[:2]
    [BitFlip('input', bit='sign'), BitFlip('input', bit=62)]
    """
    run = x if isinstance(x, Run) else pipeline.run(x)
    named = [require_known("site", site, pipeline.sites) for site in sites] if sites is not None else [
        site for site in pipeline.sites if site not in pipeline.outputs
    ]
    if kind not in ("flip", "stuck at 0", "stuck at 1"):
        raise WorkbenchError(f"kind must be 'flip', 'stuck at 0' or 'stuck at 1'; got {kind!r}")
    made: list[Bits] = []
    for site in named:
        numbers = NumberFormat.of(run[site].dtype, format)
        for bit in _bits(bits, numbers):
            flip = BitFlip(site, bit=bit, format=format)
            made.append(flip if kind == "flip" else StuckAt(site, bit=bit, format=format, to=int(kind[-1])))
    if not made:
        raise WorkbenchError(f"no site of {', '.join(named)} has bits {bits!r}: name others")
    return made


def _bits(bits: str | int | Sequence[str | int], numbers: NumberFormat) -> list[str | int]:
    if bits == "fields":
        return [field for field in FIELDS if field in numbers.fields]
    if bits == "each":
        return list(range(numbers.bits))
    chosen = [bits] if isinstance(bits, str | int) else list(bits)
    known = {"sign", "exponent", "exponent_top", "mantissa", "magnitude"}
    kept: list[str | int] = []
    for each in chosen:
        if isinstance(each, str) and each in known and each not in numbers.fields:
            continue
        numbers.choices(each)
        kept.append(each)
    return kept


def name_of(perturbation: Perturbation) -> str:
    """What a stratum is called in a table: its bits, or its kind."""
    if isinstance(perturbation, Bits):
        bit = "any" if perturbation.bit is None else str(perturbation.bit)
        return bit if isinstance(perturbation, BitFlip) else f"{bit} stuck at {getattr(perturbation, 'to', '')}"
    return type(perturbation).__name__


def population(stratum: Sequence[Perturbation], run: Run) -> int:
    """How many different faults a stratum stands for: values times bits; 1 for what is no bit."""
    first = stratum[0]
    if not isinstance(first, Bits):
        return 1
    values = run[first.site]
    numbers = values.size * (2 if values.dtype.kind == "c" else 1)
    bits = NumberFormat.of(values.dtype, first.format).choices(first.bit)
    return (1 if first.index is not None else numbers) * (1 if isinstance(first.bit, tuple) else len(bits))
