"""Kernels of `workbench lab` that begin without code of the folder of their notebook.

Jupyter starts a kernel by `python -m ipykernel_launcher` in the folder of the notebook, where Python would first look for a
file of that name. IPython adds the folder later, so that cells import what lies beside their notebook, as ever.
"""

from __future__ import annotations

from jupyter_server.services.kernels.kernelmanager import ServerKernelManager

LAUNCH = ["-m", "ipykernel_launcher"]


class KernelManager(ServerKernelManager):
    """Jupyter's own, with another command."""

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """The command that starts a kernel; those of other languages are as they were."""
        program, *arguments = super().format_kernel_cmd(extra_arguments)
        return [program, *(["-P"] if arguments[:2] == LAUNCH else []), *arguments]
