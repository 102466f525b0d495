"""The Python code that reproduces the result of the clusters panel, with public names only."""

from __future__ import annotations

from workbench.lab.clusters_panel.state import ClustersState
from workbench.lab.script import script


def code(state: ClustersState, name: str = "particles", kept: bool = False) -> str:
    """A script for the particles in the variable `name`; with `kept`, their groups are kept.

    >>> print(code(ClustersState(bound=0.02), "snapshot").splitlines()[3])
    archive = wb.compress(original, wb.Absolute(0.02), codec="lattice", order="free")
    """
    return script([*_archive(state, name, kept), *_groups(state), *(_kept(state) if kept else _broken(state)), ""])


def _archive(state: ClustersState, name: str, kept: bool) -> list[str]:
    promise = f", keep=[{_promise(state)}]" if kept else ""
    options = f'codec="{state.codec}"{promise}, order="{state.order}"'
    reordered = "original = original.select(archive.permutation(original))   # in the decoded order"
    return [
        f"original = wb.Particles({name}.positions, {name}.box)",
        f"archive = wb.compress(original, wb.Absolute({float(state.bound)!r}), {options})",
        "decoded = archive.decompress()",
        *([reordered] if state.order == "free" else []),
    ]


def _groups(state: ClustersState) -> list[str]:
    return [
        f'before = wb.friends_of_friends(original, {float(state.linking_length)!r}, unit="{state.unit}")',
        'after = wb.friends_of_friends(decoded, before.linking_length, unit="length")',
        "print(archive, f\"{archive.bits_per_particle:.3f} bits per particle\")",
        f"print(before.count({state.min_members}), after.count({state.min_members}), after.equals(before))",
    ]


def _broken(state: ClustersState) -> list[str]:
    return [
        "broken = wb.clusters.broken_links(original, decoded, before)",
        'print(f"{len(broken.missing):,} missing links, {len(broken.false):,} false links")',
    ]


def _kept(state: ClustersState) -> list[str]:
    lines = ["print(archive.certificate)"]
    if state.keep_members == 1:
        lines.insert(0, "assert after.equals(before)")
    return lines


def _promise(state: ClustersState) -> str:
    members = f", min_members={state.keep_members}" if state.keep_members > 1 else ""
    return f'wb.KeepClusters({float(state.linking_length)!r}, unit="{state.unit}"{members}, solver="{state.solver}")'
