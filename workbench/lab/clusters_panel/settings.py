"""The choices of the clusters panel in words, for reports."""

from __future__ import annotations

from workbench.data import Particles
from workbench.lab.clusters_panel.state import ClustersState


def settings(particles: Particles, state: ClustersState) -> dict[str, str]:
    """The settings that the pictures and figures belong to.

    >>> from workbench.data.synthetic import cosmic_web
    >>> web = cosmic_web(n=8, seed=1)
    >>> settings(web, ClustersState.for_(web))["linking length"]
    '0.2 mean spacings'
    """
    unit = " mean spacings" if state.unit == "spacing" else ""
    told = {
        "codec": state.codec,
        "error bound": f"absolute {state.bound:.6g}",
        "linking length": f"{state.linking_length:.6g}{unit}",
        "order": "free" if state.order == "free" else "kept",
        "halos": f"at least {state.min_members} members",
        "groups kept": f"at least {state.keep_members} members",
    }
    return told | ({"seen": f"along {'xyz'[state.axis]}"} if particles.dimensions == 3 else {})
