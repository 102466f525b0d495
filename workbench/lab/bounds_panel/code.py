"""The Python code that reproduces the panel's result, for a script."""

from __future__ import annotations

import dataclasses

from workbench.codecs import Codec
from workbench.guarantees import Bound
from workbench.lab.bounds_panel.state import BoundsState


def code(state: BoundsState, name: str, riders: bool = False) -> str:
    """Compress, decompress and compare the data in the variable `name`; with `riders` (companion arrays), positions alone.

    >>> print(code(BoundsState("sz3", "relative", 0.001), "field"))
    import workbench as wb
    <BLANKLINE>
    archive = wb.compress(field, wb.Relative(0.001), codec="sz3")
    decoded = archive.decompress()
    report = wb.compare(field, decoded)
    """
    order = ', order="free"' if state.order == "free" else ""
    positions = [f"positions = wb.Particles({name}.positions, {name}.box)"] if riders else []
    name = "positions" if riders else name
    lines = [
        "import workbench as wb",
        "",
        *positions,
        f"archive = wb.compress({name}, {bound_code(state.bound)}, codec={codec_code(state.chosen)}{order})",
        "decoded = archive.decompress()",
    ]
    if state.order == "free":
        lines.append(f"order = archive.permutation({name})   # decoded[i] is {name}[order[i]]")
        return "\n".join([*lines, f"report = wb.compare({name}, decoded, order=order)"])
    return "\n".join([*lines, f"report = wb.compare({name}, decoded)"])


def bound_code(bound: Bound) -> str:
    """The bound as Python.

    >>> from workbench.guarantees import Absolute
    >>> bound_code(Absolute(0.05))
    'wb.Absolute(0.05)'
    """
    return f"wb.{type(bound).__name__}({bound.eb!r})"


def codec_code(codec: Codec) -> str:
    """The codec as Python: its name, or a call with the options that differ from the defaults.

    >>> from workbench.codecs import get
    >>> codec_code(get("pcodec")), codec_code(get("pcodec", level=4))
    ('"pcodec"', 'wb.codecs.get("pcodec", level=4)')
    """
    described = codec.to_dict()
    usual = {option.name: option.default for option in dataclasses.fields(codec)}
    changed = [f"{option}={described[option]!r}" for option in usual if getattr(codec, option) != usual[option]]
    return f'wb.codecs.get("{codec.id}", {", ".join(changed)})' if changed else f'"{codec.id}"'
