"""Compiles the kernels for the CPU whenever the package is installed, and makes the README one for package indexes."""

import importlib.util
import os
import platform
import re
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


def _host_library(root: Path) -> Any:
    """Load the build module by path: importing the package would need NumPy, which a build environment lacks."""
    spec = importlib.util.spec_from_file_location("host_library", root / "workbench" / "host_library.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel_platform() -> str:
    """The platform in the name of the wheel: this one, as the compiler sees it.

    On macOS, Python states the system and the processors that it was itself built for. The compiler builds for this
    processor, and for the system that MACOSX_DEPLOYMENT_TARGET names, or this one.
    """
    stated = sysconfig.get_platform()
    if stated.startswith("macosx-"):
        version = os.environ.get("MACOSX_DEPLOYMENT_TARGET") or platform.mac_ver()[0]
        major, minor = (*version.split("."), "0")[:2]
        stated = f"macosx-{major}.{minor if major == '10' else 0}-{platform.machine()}"
    return stated.replace("-", "_").replace(".", "_")


class BuildKernels(BuildHookInterface):
    """Adds `workbench/_host.so` to the wheel and marks the wheel as made for this platform, any Python 3."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library in the source tree; an editable install uses it from there."""
        if self.target_name != "wheel":
            return
        library = _host_library(Path(self.root)).build()
        build_data["artifacts"].append(f"/workbench/{library.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{wheel_platform()}"


class ReadmeElsewhere(MetadataHookInterface):
    """The README as the description of the package: addresses within the repository become those of this version there."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description."""
        text, source = Path(self.root, "README.md").read_text(encoding="utf-8"), metadata["urls"]["Source"]
        for link, view in ((r"!\[[^]]*\]\(", "raw"), (r"(?<!!)\[[^]]*\]\(", "blob")):
            text = re.sub(rf"({link})(?!https?:|#)", rf"\1{source}/{view}/v{metadata['version']}/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
