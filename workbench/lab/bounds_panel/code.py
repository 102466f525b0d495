"""The Python code that reproduces the panel's result, for a script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.bounds.as_code import bound_code, codec_code, rule_code
from workbench.lab.bounds_panel.state import BoundsState
from workbench.lab.script import script

WIDEST = 110   # characters of a call on one line


def code(state: BoundsState, name: str, riders: bool = False, searched: str = "", model: str = "model") -> str:
    """Compress, decompress and compare the data in the variable `name`; with `riders` (companion arrays), positions alone.

    `searched` is the target of the search that found the bound; `model` is the model as Python, if the state has one.

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
    kind = "" if state.kind == "absolute" else f', kind="{state.bound.kind}"'
    codec = _codec(state, model)
    search = f"found = wb.find_bound({name}, {searched}, {codec}{kind}{order})   # gave this bound"
    reordered = [f"order = archive.permutation({name})   # decoded[i] is {name}[order[i]]"] if order else []
    return script([
        *positions,
        *([search] if searched else []),
        f"archive = wb.compress({name}, {bound_code(state.bound)}, codec={codec}{order})",
        "decoded = archive.decompress()",
        *reordered,
        f"report = wb.compare({name}, decoded{', order=order' if order else ''})",
    ])


def dataset_code(name: str, rules: Mapping[str, Any], searched: str = "") -> str:
    """The call that makes the archive of a dataset; `searched` is the call that found the bounds, as a comment.

    >>> from workbench.guarantees import Absolute, Exact
    >>> print(dataset_code("ocean", {"T": {"bound": Absolute(0.01), "codec": "sz3"}, "*": Exact()}))
    import workbench as wb
    <BLANKLINE>
    archive = wb.compress(ocean, {"T": {"bound": wb.Absolute(0.01), "codec": "sz3"}, "*": wb.Exact()})
    """
    lines = [f"archive = wb.compress({name}, {rules_code(rules)})"]
    if len(lines[0]) > WIDEST:
        lines = [f"archive = wb.compress({name}, {{", *(f"    {entry}," for entry in _entries(rules)), "})"]
    return script([*([f"# {searched} gave these bounds"] if searched else []), *lines])


def rules_code(rules: Mapping[str, Any]) -> str:
    """Rules of a dataset as Python on one line."""
    return f"{{{', '.join(_entries(rules))}}}"


def _entries(rules: Mapping[str, Any]) -> list[str]:
    return [f"{json.dumps(name, ensure_ascii=False)}: {rule_code(rule)}" for name, rule in rules.items()]


def _codec(state: BoundsState, model: str) -> str:
    """The codec as Python, with its model by name: its weights would fill the screen."""
    given = codec_code(state.given)
    if state.model is None:
        return given
    return f"{given[:-1]}, model={model})" if given.endswith(")") else f"wb.codecs.get({given}, model={model})"
